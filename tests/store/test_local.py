"""Positions of followed files and what was read of them: one writer at a time, and nothing twice."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, select

from service.errors import ErrorCode, SluiceError
from service.store.engine import reading, transaction
from service.store.models import LocalEnvelope, TailPosition, WitnessLine
from service.store.validator import gradings, local
from service.store.validator.local import NewEnvelope, NewLine, PositionRow

NOW = datetime(2026, 11, 1, tzinfo=UTC)
START = PositionRow("eval_1/output.jsonl", 1, 2, 10, 1, "head", 10, "tail")
LATER = START._replace(offset_bytes=20, lines=2)


def envelope(ordinal: int, sha256: str = "one", problem_id: str | None = "p") -> NewEnvelope:
    return NewEnvelope("run", problem_id, "sandbox", ordinal, sha256, b"{}", 2, "SUCCESS", (), NOW, NOW)


def line(sha256: str, at: datetime = NOW) -> NewLine:
    return NewLine(sha256, at, 1_000, "GET", "/search/find_product", {"q": "a"}, 200, 10, None, None)


def test_a_position_moves_and_goes(engine: Engine) -> None:
    for before, after in ((None, START), (START, LATER), (LATER, LATER._replace(inode=3))):
        with transaction(engine) as session:
            local.move(session, "logs", before, after, NOW, garbage_lines=2)
            assert local.positions(session, "logs") == [after]
            assert local.positions(session, "proxy") == []
    with transaction(engine) as session:
        assert session.scalar(select(TailPosition.garbage_lines)) == 6
        local.move(session, "logs", LATER._replace(inode=3), None, NOW)
        assert local.positions(session, "logs") == []


@pytest.mark.parametrize(("before", "after"), [(None, LATER), (START._replace(lines=9), LATER), (LATER, None)])
def test_who_has_been_overtaken_writes_nothing(
    engine: Engine, before: PositionRow | None, after: PositionRow | None
) -> None:
    with transaction(engine) as session:
        local.move(session, "logs", None, START, NOW)

    def write() -> None:
        with transaction(engine) as session:
            local.add_envelopes(session, [envelope(0)], NOW)
            local.move(session, "logs", before, after, NOW)

    with pytest.raises(SluiceError) as overtaken:
        write()
    assert overtaken.value.code is ErrorCode.LEASE_LOST
    with reading(engine) as session:
        assert local.positions(session, "logs") == [START]
        assert gradings.waiting(session) == 0


def test_the_same_line_again_is_one_row_that_knows_its_last_place(engine: Engine) -> None:
    with transaction(engine) as session:
        local.add_envelopes(session, [envelope(0), envelope(1, "two"), envelope(2)], NOW)
        local.add_envelopes(session, [envelope(0), envelope(1, "two"), envelope(5, problem_id=None)], NOW)
        local.add_envelopes(session, [envelope(6, problem_id=None)], NOW)
        columns = (
            LocalEnvelope.problem_id,
            LocalEnvelope.line_sha256,
            LocalEnvelope.ordinal,
            LocalEnvelope.last_ordinal,
        )
        rows = session.execute(select(*columns).order_by(LocalEnvelope.ordinal)).all()
    assert [tuple(row) for row in rows] == [("p", "one", 0, 2), ("p", "two", 1, 1), (None, "one", 5, 6)]


def test_lines_are_given_once_in_order_of_time(engine: Engine) -> None:
    late, early = line("late", NOW + timedelta(seconds=1)), line("early")
    with transaction(engine) as session:
        assert gradings.covered(session) is None
        assert local.add_lines(session, [late, early], NOW) == 2
        assert local.add_lines(session, [early, late, line("far", NOW + timedelta(hours=1))], NOW) == 1
        assert len(session.scalars(select(WitnessLine.line_id)).all()) == 3
        assert gradings.lines_within(session, [(NOW, NOW + timedelta(minutes=1))]) == [early, late]
        assert gradings.lines_within(session, []) == []
        assert gradings.covered(session) == (NOW, NOW + timedelta(hours=1))
