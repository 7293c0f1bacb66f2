"""What SN15 publishes around its runs: suites, standings, and every state of a race's seed commitment.

Suites and standings are refreshed where they differ; commitments are only ever added to. It decides nothing: whether a
commitment holds is `domain.commitment`'s business.
"""

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlalchemy.orm import Session, aliased

from service.domain.sn15 import commitment
from service.domain.sn15.commitment import Verification
from service.store.harvest.listings import ROWS_PER_STATEMENT, UNLISTED
from service.store.models import Base, LeaderboardEntry, Race, RaceEntry, SeedCommitment, Suite


def save_suites(session: Session, suites: Collection[Suite]) -> None:
    """Insert or refresh suites."""
    _refresh(session, Suite, suites, ("suite_id",))


def save_race_entries(session: Session, entries: Collection[RaceEntry]) -> None:
    """Insert or refresh the entries of races."""
    _refresh(session, RaceEntry, entries, ("race_id", "agent_version_id"))


def save_leaderboard(session: Session, entries: Collection[LeaderboardEntry]) -> None:
    """Insert or refresh entries of leaderboards."""
    _refresh(session, LeaderboardEntry, entries, ("suite_id", "agent_version_id"))


def races_to_ask(session: Session, limit: int) -> list[str]:
    """Races whose seed commitment may read otherwise than it is stored: those never asked about first, then the newest.

    A race that is over and has none will not get one, and what is revealed is all there is.
    """
    newest = select(SeedCommitment).ext(distinct_on(SeedCommitment.race_id))
    latest = aliased(
        SeedCommitment, newest.order_by(SeedCommitment.race_id, SeedCommitment.commitment_id.desc()).subquery()
    )
    is_over = Race.is_complete | Race.is_cancelled
    asked = latest.commitment_id.is_not(None)
    statement = (
        select(Race.race_id)
        .join(latest, latest.race_id == Race.race_id, isouter=True)
        .where(
            Race.status != UNLISTED,
            or_(~asked, latest.source.is_(None) & ~is_over, latest.source.is_not(None) & ~latest.is_revealed),
        )
        .order_by(asked, Race.started_at.desc().nulls_first(), Race.race_id)
        .limit(limit)
    )
    return list(session.scalars(statement))


def add_commitment(session: Session, race_id: str, source: dict[str, Any] | None, *, is_revealed: bool) -> bool:
    """Add the next state of a race's commitment, unless it is the present one; returns whether it was added.

    Args:
        session: open transaction; the race stays locked until it ends.
        race_id: whose commitment.
        source: the record as it came; None where the source says that there is none.
        is_revealed: whether the record says so.
    """
    session.execute(select(Race.race_id).where(Race.race_id == race_id).with_for_update())
    of_race = select(SeedCommitment).where(SeedCommitment.race_id == race_id)
    present = session.scalar(of_race.order_by(SeedCommitment.commitment_id.desc()).limit(1))
    if present is not None and present.source == source:
        return False
    session.add(SeedCommitment(race_id=race_id, is_revealed=is_revealed, source=source))
    return True


def verifications(session: Session) -> dict[str, Verification]:
    """How the commitment of each race stands; races without one are left out."""
    rows = session.execute(
        select(SeedCommitment.race_id, Race.source, SeedCommitment.source)
        .join(Race, Race.race_id == SeedCommitment.race_id)
        .order_by(SeedCommitment.commitment_id)
    )
    histories: dict[str, list[commitment.Commitment | None]] = {}
    races: dict[str, dict[str, Any]] = {}
    for race_id, race, source in rows:
        races[race_id] = race
        histories.setdefault(race_id, []).append(None if source is None else commitment.read(source))
    verified = {
        race_id: commitment.verify(history, commitment.qualifying_closes_at(races[race_id]))
        for race_id, history in histories.items()
    }
    return {race_id: found for race_id, found in verified.items() if found is not None}


def _refresh(session: Session, model: type[Base], rows: Iterable[Base], key: tuple[str, ...]) -> None:
    """Insert rows, or refresh those that differ; of several with one key the first counts."""
    names = [column.name for column in model.__table__.columns]
    distinct: dict[tuple[object, ...], dict[str, object]] = {}
    for row in rows:
        distinct.setdefault(tuple(getattr(row, name) for name in key), {name: getattr(row, name) for name in names})
    values = list(distinct.values())
    changing = [name for name in names if name not in key]
    for start in range(0, len(values), ROWS_PER_STATEMENT):
        statement = insert(model).values(values[start : start + ROWS_PER_STATEMENT])
        session.execute(
            statement.on_conflict_do_update(
                index_elements=key,
                set_={name: statement.excluded[name] for name in changing},
                where=or_(*(getattr(model, name).is_distinct_from(statement.excluded[name]) for name in changing)),
            )
        )
