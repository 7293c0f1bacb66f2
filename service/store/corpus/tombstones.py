"""Tombstones: what SN15 no longer counts, as a numbered revision of the corpus knows it. Decides no reason itself.

Append-only: a tombstone that is lifted is a further row, so that what stood at a sealed revision can be read for ever.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import TEXT, BigInteger, Select, Subquery, case, cast, func, literal, or_, select, text, union_all
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from service.domain.sn15.tombstones import Subject, TombstoneReason
from service.store.corpus.revisions import open_revision
from service.store.models import EvaluationRun, Tombstone, Trajectory


class Word(NamedTuple):
    """What one listing says of one subject."""

    subject_id: str
    reason: TombstoneReason | None
    """Why it does not count; None when it does."""
    listing: str
    """Which listing says so. What one listing has raised, no other can lift: they may disagree for a while."""
    row: dict[str, Any]
    """The listing's row as it came."""


def settle(session: Session, subject: Subject, words: Iterable[Word]) -> list[str]:
    """Raise the tombstones that are told of and do not stand, lift those that are taken back.

    Two who are told the same at once raise one tombstone.

    Returns:
        Ids of the subjects of which the word has changed.
    """
    told = {word.subject_id: word for word in words}
    if not _changes(session, subject, told):
        return []
    session.execute(text("LOCK TABLE tombstones IN SHARE ROW EXCLUSIVE MODE"))
    changes = _changes(session, subject, told)
    revision = open_revision(session)
    session.add_all(
        Tombstone(
            revision=revision,
            subject=subject,
            subject_id=word.subject_id,
            reason=change.reason,
            is_lifted=change.is_lifted,
            source={"listing": word.listing, "row": word.row},
        )
        for word, change in changes
    )
    session.flush()
    return [word.subject_id for word, _ in changes]


class _Change(NamedTuple):
    reason: str
    is_lifted: bool


def _changes(session: Session, subject: Subject, told: Mapping[str, Word]) -> list[tuple[Word, _Change]]:
    rows = session.execute(_standing(subject).where(Tombstone.subject_id.in_(told)))
    stands = {row.subject_id: row for row in rows if not row.is_lifted}
    changes = []
    for subject_id, word in sorted(told.items()):
        now = stands.get(subject_id)
        if word.reason is None:
            if now is not None and now.source["listing"] == word.listing:
                changes.append((word, _Change(now.reason, is_lifted=True)))
        elif now is None or now.reason not in (word.reason, TombstoneReason.REDACTED):
            changes.append((word, _Change(word.reason, is_lifted=False)))
    return changes


def _standing(subject: Subject, revision: int | None = None) -> Select[*tuple[Any, ...]]:
    """The newest row of each subject, lifted ones included."""
    columns = (Tombstone.subject_id, Tombstone.reason, Tombstone.is_lifted, Tombstone.source, Tombstone.recorded_at)
    statement = (
        select(*columns)
        .where(Tombstone.subject == subject)
        .ext(distinct_on(Tombstone.subject_id))
        .order_by(Tombstone.subject_id, Tombstone.tombstone_id.desc())
    )
    return statement if revision is None else statement.where(Tombstone.revision <= revision)


def standing(subject: Subject, revision: int | None = None) -> Subquery:
    """Selectable (subject_id, reason, recorded_at) of what does not count.

    Args:
        subject: runs, agent versions or items.
        revision: sealed corpus revision to read at; None reads everything committed.
    """
    newest = _standing(subject, revision).subquery()
    columns = (newest.c.subject_id, newest.c.reason, newest.c.recorded_at)
    return select(*columns).where(~newest.c.is_lifted).subquery(f"standing_{subject}")


def entombed(revision: int | None = None, among: Select[int] | None = None) -> Subquery:
    """Selectable (trajectory_id, reason, recorded_at) of the trajectories that do not count, each once.

    The closest tombstone names the reason: the item's, then its run's, then its agent version's.

    Args:
        revision: sealed corpus revision to read at; None reads everything committed.
        among: ids of the trajectories to look at; None looks at all.
    """
    items, runs = standing(Subject.ITEM, revision), standing(Subject.RUN, revision)
    agents = standing(Subject.AGENT_VERSION, revision)
    numbers = select(
        cast(case((items.c.subject_id.regexp_match("^[0-9]+$"), items.c.subject_id)), BigInteger).label("number"),
        items.c.reason,
        items.c.recorded_at,
    ).subquery()
    branches = [
        _of(numbers, 0).join(numbers, numbers.c.number == Trajectory.trajectory_id),
        _of(runs, 1).join(runs, runs.c.subject_id == Trajectory.eval_run_id),
        _of(agents, 2)
        .join(EvaluationRun, EvaluationRun.eval_run_id == Trajectory.eval_run_id)
        .join(agents, agents.c.subject_id == EvaluationRun.agent_version_id),
    ]
    if among is not None:
        branches = [branch.where(Trajectory.trajectory_id.in_(among)) for branch in branches]
    found = union_all(*branches).subquery()
    return (
        select(found.c.trajectory_id, found.c.reason, found.c.recorded_at)
        .ext(distinct_on(found.c.trajectory_id))
        .order_by(found.c.trajectory_id, found.c.distance)
        .subquery("entombed")
    )


def redacted() -> Select[int]:
    """Ids of the trajectories that were taken down: themselves, with their run, or with their agent version."""
    found = []
    for subject, column in (
        (Subject.ITEM, cast(Trajectory.trajectory_id, TEXT)),
        (Subject.RUN, Trajectory.eval_run_id),
        (Subject.AGENT_VERSION, EvaluationRun.agent_version_id),
    ):
        stones = standing(subject)
        taken = select(stones.c.subject_id).where(stones.c.reason == TombstoneReason.REDACTED)
        found.append(column.in_(taken))
    return (
        select(Trajectory.trajectory_id)
        .join(EvaluationRun, EvaluationRun.eval_run_id == Trajectory.eval_run_id)
        .where(or_(*found))
    )


def _of(stones: Subquery, distance: int) -> Select[*tuple[Any, ...]]:
    columns = (stones.c.reason, stones.c.recorded_at, literal(distance).label("distance"))
    return select(Trajectory.trajectory_id, *columns).select_from(Trajectory)


def known(session: Session) -> int:
    """Number of tombstones raised and lifted so far."""
    return session.scalar(select(func.count()).select_from(Tombstone)) or 0
