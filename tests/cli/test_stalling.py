"""When waiting ends: never while something moves or one worker is at one piece of work; else after half an hour."""

from sqlalchemy import text

from service.cli.fleet import STOP_SECONDS
from service.cli.stalling import STALL_SECONDS, Patience
from service.cli.watching import Look, look
from service.config import WORKER_STOP_SECONDS
from service.source.http.budget import MAX_PARK_SECONDS
from service.store.engine import open_engine
from service.store.work.progress import Progress
from service.store.work.signs import Standing

LATE = STALL_SECONDS + 1


def seen(
    settled: int = 5,
    verdict: int = 7,
    leases: tuple[tuple[str, int], ...] = (),
    reasons: dict[str, int] | None = None,
    errors: tuple[str, ...] = (),
    walking: bool = False,
) -> Look:
    backlog = Progress(
        walking=walking,
        items_pending=1,
        unjudged=False,
        clustering_due=False,
        assignment_due=False,
        release_due=False,
    )
    return Look(
        items=10,
        settled=settled,
        walked=True,
        errors=list(errors),
        reasons=reasons or {},
        backlog=backlog,
        signs=Standing((verdict, 1, 1, 1), frozenset(leases)),
    )


def test_what_moves_is_waited_for():
    for moved in (seen(settled=6), seen(verdict=8)):
        patience = Patience()
        assert patience.ends(seen(), 0.0) is None
        assert patience.ends(moved, LATE) is None
        assert patience.ends(moved, LATE + STALL_SECONDS - 1) is None
        assert patience.ends(moved, LATE + STALL_SECONDS) is not None


def test_walks_that_begin_again_and_again_are_no_movement():
    patience = Patience()
    assert patience.ends(seen(walking=True), 0.0) is None
    assert patience.ends(seen(walking=False), STALL_SECONDS / 2) is None
    assert patience.ends(seen(walking=True), LATE) is not None


def test_it_says_what_is_stuck():
    patience = Patience()
    stuck = seen(reasons={"unreachable": 2, "upstream_error": 3}, errors=("first", "the source is away"))
    patience.ends(stuck, 0.0)
    assert patience.ends(stuck, LATE) == (
        "nothing has moved for 30 minutes while harvesting; items not given: 3 upstream_error, 2 unreachable; "
        "the last walk broke off: the source is away; the workers' logs say more"
    )


def test_one_long_piece_of_work_is_waited_for_and_repeated_tries_are_not():
    """The same token is the same holder; a stage that fails and is tried again takes the next one."""
    patience = Patience()
    patience.ends(seen(leases=(("snapshot", 4),)), 0.0)
    assert patience.ends(seen(leases=(("snapshot", 4), ("subscribe", 9))), LATE) is None
    assert patience.ends(seen(leases=(("snapshot", 5),)), LATE + 1) is not None


def test_the_sweep_is_no_work():
    patience = Patience()
    patience.ends(seen(leases=(("sweep", 4),)), 0.0)
    assert patience.ends(seen(leases=(("sweep", 4),)), LATE) is not None


def test_a_source_that_asks_for_silence_gets_it():
    patience, limited = Patience(), seen(reasons={"rate_limited": 1})
    patience.ends(limited, 0.0)
    assert patience.ends(limited, LATE) is None
    assert patience.ends(limited, LATE + MAX_PARK_SECONDS) is not None


def test_a_look_at_the_database(database_url: str, service):
    """The filled corpus: nine of ten items fetched, one gone; nobody holds a lease until one is taken."""
    engine = open_engine(service.settings.database_url)
    found = look(engine, 0)
    assert (found.items, found.settled, found.reasons) == (10, 10, {})
    assert found.signs.leases == frozenset()
    # Eight verdicts, one clustering, one assignment, one release.
    assert found.signs.newest == (8, 1, 1, 1)
    engine.dispose()
    empty = open_engine(database_url)
    with empty.begin() as connection:
        connection.execute(
            text("INSERT INTO leases VALUES ('a', 'h', 3, now() + interval '9 s'), ('b', 'h', 1, now())")
        )
    assert look(empty, 0).signs == Standing((0, 0, 0, 0), frozenset({("a", 3)}))
    empty.dispose()


def test_workers_get_the_time_they_take():
    """Their handlers and then their loops may each take `WORKER_STOP_SECONDS`."""
    assert STOP_SECONDS > 2 * WORKER_STOP_SECONDS
