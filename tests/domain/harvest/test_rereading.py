"""When what is complete is looked at again: less and less often, and for a small share of the requests."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from service.domain.harvest.rereading import ITEMS, LISTINGS, SHARE, Reading, RereadingRule, allowance, due

COMPLETE = datetime(2026, 1, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ages = st.timedeltas(timedelta(0), timedelta(days=400))


def looks(rule: RereadingRule, until: timedelta, step: timedelta) -> list[timedelta]:
    """Ages at which something is looked at that is read first when it is complete."""
    read_at, found, age = COMPLETE, [], timedelta(0)
    while age <= until:
        if rule.is_due(read_at, COMPLETE, COMPLETE + age):
            read_at = COMPLETE + age
            found.append(age)
        age += step
    return found


def test_items_are_listed_again_after_a_day_a_week_and_seven_weeks() -> None:
    # After a look at age a, the next comes at a + 6 a.
    assert looks(ITEMS, timedelta(days=365), DAY) == [timedelta(days=days) for days in (1, 7, 49, 343)]


def test_a_year_of_re_reading_keeps_to_its_share() -> None:
    # 100 agent versions, a race and 300 runs become complete each day; on a day a year on, what was complete d days
    # before is looked at as often as one thing is on its d-th day. Summed over d: the looks of one thing in a year.
    listings, items = len(looks(LISTINGS, timedelta(days=365), HOUR)), len(looks(ITEMS, timedelta(days=365), HOUR))
    assert (listings, items) == (21, 4)
    requests = 101 * listings + 300 * items
    assert requests == 3_321
    assert requests < SHARE * 50 * 60 * 24


@given(ages, ages)
def test_the_wait_grows_with_the_age_and_has_its_limits(young: timedelta, older: timedelta) -> None:
    young, older = sorted((young, older))

    def waits(age: timedelta, wait: timedelta) -> bool:
        return not LISTINGS.is_due(COMPLETE + age, COMPLETE, COMPLETE + age + wait)

    for wait in (HOUR, DAY, 30 * DAY):
        if waits(young, wait):
            assert waits(older, wait)
    assert waits(young, LISTINGS.shortest - HOUR)
    assert not waits(older, LISTINGS.longest)


def test_what_was_never_read_is_due_and_what_is_undated_is_old() -> None:
    assert LISTINGS.is_due(None, None, COMPLETE)
    assert not LISTINGS.is_due(COMPLETE, None, COMPLETE + 59 * DAY)
    assert LISTINGS.is_due(COMPLETE, None, COMPLETE + 60 * DAY)


def test_the_least_recently_read_comes_first() -> None:
    now = COMPLETE + 100 * DAY
    readings = [
        Reading("yesterday", now - DAY, now - DAY),
        Reading("just now", now, COMPLETE),
        Reading("never", None, COMPLETE),
        Reading("long ago", COMPLETE, COMPLETE),
    ]
    assert due(readings, now) == ["never", "long ago", "yesterday"]


def test_a_walk_has_its_share_of_the_requests_until_the_next() -> None:
    # 5 % of the 250 requests that 50 a minute give in five minutes.
    assert allowance(50, 300.0) == 12
    assert allowance(1, 1.0) == 1
    assert allowance(0, 300.0) > 1_000
