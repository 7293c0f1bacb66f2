"""What the planner is given, as queries: open items, what is under way, and what verdicts have said. Plans nothing.

Rows come as plain tuples, and no more of them than a plan can make use of: where more than `WINDOW` items are due,
only some problems are looked at, those of which least is known and those whose items have been due longest.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Select, any_, case, cast, func, literal, select, union
from sqlalchemy.dialects.postgresql import ARRAY, distinct_on
from sqlalchemy.orm import Session

from service.domain.filter.structure import Outcome
from service.domain.harvest.chances import Hint, Knowledge, ProblemKnown, Tally
from service.domain.harvest.gains import Candidate, Standing
from service.domain.trajectory import ExecutionKind
from service.store.corpus import verdicts
from service.store.corpus.tombstones import entombed
from service.store.harvest.ledger import OPEN_STATES
from service.store.models import AgentVersion, EvaluationRun, Evidence, LedgerItem, LedgerState, Trajectory, Verdict

_Key = TypeVar("_Key")

WINDOW = 30_000
"""Items that are due and are looked at; a little more, since problems are looked at whole."""
LONGEST_DUE = 100
"""Items whose problems are looked at, up to a quarter of the window, because they have been due longest."""
SIBLINGS = 3
"""Newest versions of a family that tell what its versions are like, beside those with open items."""
REQUESTS = {ExecutionKind.LEGACY: 2, ExecutionKind.ENVPACK: 1}
"""Requests that one item takes."""
UNJUDGED = 1_000
"""Stored items without a verdict that count as under way; where there are more, they only wait for new rules."""

_HINT = case(
    (LedgerItem.judgement["success"].astext == "true", literal(True)),
    (LedgerItem.judgement["success"].astext == "false", literal(False)),
)
_ITEM = (
    LedgerItem.ledger_id,
    LedgerItem.problem_id,
    EvaluationRun.agent_version_id,
    AgentVersion.family,
    _HINT.label("hint"),
    case({kind.value: number for kind, number in REQUESTS.items()}, value=EvaluationRun.kind, else_=1),
    LedgerItem.attempts,
    case(
        {LedgerState.CHANGED: Standing.REREAD.value, LedgerState.FAILED: Standing.RETRY.value},
        value=LedgerItem.state,
        else_=Standing.NEW.value,
    ),
)
"""The fields of `Candidate`, in order."""


class Outlook(NamedTuple):
    """All that a plan is made from."""

    candidates: list[Candidate]
    in_flight: list[Candidate]
    knowledge: Knowledge


class Scope(NamedTuple):
    """The problems and agents that have open items."""

    versions: dict[str, str]
    """Family by version."""
    problems: dict[str, int]
    """Items that are due, by problem."""


def outlook(session: Session, rules_digest: str, now: datetime, sent: Collection[int]) -> Outlook:
    """Gather what a plan needs.

    Args:
        session: reading transaction.
        rules_digest: rule set whose verdicts count.
        now: present time.
        sent: ledger ids that are in the queue: under way, though no one has claimed them yet.
    """
    within = scope(session, now)
    known = knowledge(session, rules_digest, within)
    open_items = candidates(session, now, within, known)
    already = set(sent)
    return Outlook(
        candidates=[item for item in open_items if item.ledger_id not in already],
        in_flight=in_flight(session, rules_digest, now, already),
        knowledge=known,
    )


def scope(session: Session, now: datetime) -> Scope:
    """Which problems and agents have items that are due."""
    by_version = _items(EvaluationRun.agent_version_id, AgentVersion.family).where(*_due(now)).distinct()
    by_problem = select(LedgerItem.problem_id, func.count()).where(*_due(now)).group_by(LedgerItem.problem_id)
    versions = {version: family for version, family in session.execute(by_version)}
    return Scope(versions, {problem: items for problem, items in session.execute(by_problem)})


def candidates(session: Session, now: datetime, within: Scope, known: Knowledge) -> list[Candidate]:
    """Open items that are due, claimed ones left out; those of some problems where there are too many."""
    wanted = _items(*_ITEM).where(*_due(now))
    if sum(within.problems.values()) > WINDOW:
        wanted = wanted.where(_among(LedgerItem.problem_id, _shown(session, now, within, known)))
    return _candidates(session, wanted)


def in_flight(session: Session, rules_digest: str, now: datetime, sent: Collection[int]) -> list[Candidate]:
    """Items that are claimed, that are sent, or that are stored and wait for their verdict."""
    waiting = verdicts.unjudged(session, rules_digest, UNJUDGED)
    claimed = (
        LedgerItem.state.in_(OPEN_STATES) & LedgerItem.claimed_by.is_not(None) & (LedgerItem.next_try_at > now),
        LedgerItem.state.in_(OPEN_STATES) & _among(LedgerItem.ledger_id, sent),
        LedgerItem.ledger_id.in_(
            select(Trajectory.ledger_id).where(_among(Trajectory.trajectory_id, waiting)).scalar_subquery()
        ),
    )
    found = (item for condition in claimed for item in _candidates(session, _items(*_ITEM).where(condition)))
    return sorted({item.ledger_id: item for item in found}.values())


def knowledge(session: Session, rules_digest: str, within: Scope) -> Knowledge:
    """What verdicts have said of the problems and families in scope."""
    versions, problems = {**_siblings(session, within), **within.versions}, set(within.problems)
    overall: defaultdict[Hint, list[int]] = defaultdict(_zeros)
    of_family: defaultdict[tuple[str, Hint], list[int]] = defaultdict(_zeros)
    of_version: defaultdict[tuple[str, Hint], list[int]] = defaultdict(_zeros)
    of_problem: defaultdict[str, defaultdict[Hint, list[int]]] = defaultdict(lambda: defaultdict(_zeros))
    kept: defaultdict[str, dict[str, int]] = defaultdict(dict)
    sampled: defaultdict[str, set[str]] = defaultdict(set)
    for version, family, problem, hint, *counts, standing in _judged(session, rules_digest, versions, problems):
        if version in versions:
            for tally in (overall[hint], of_family[family, hint], of_version[version, hint]):
                _add(tally, counts)
            sampled[version].add(problem)
        if problem in problems:
            _add(of_problem[problem][hint], counts)
            if standing:
                kept[problem][family] = kept[problem].get(family, 0) + standing
    return Knowledge(
        overall=_tallies(overall),
        families=_tallies(of_family),
        versions=_tallies(of_version),
        problems={
            problem: ProblemKnown(sum(kept[problem].values()), kept[problem], _tallies(by_hint))
            for problem, by_hint in of_problem.items()
        },
        sampled={version: frozenset(seen) for version, seen in sampled.items()},
    )


def _due(now: datetime) -> tuple[ColumnElement[bool], ...]:
    """A claim that runs holds `next_try_at` in the future."""
    return LedgerItem.state.in_(OPEN_STATES), LedgerItem.next_try_at <= now


def _items(*columns: Any) -> Select[*tuple[Any, ...]]:
    return (
        select(*columns)
        .select_from(LedgerItem)
        .join(EvaluationRun, EvaluationRun.eval_run_id == LedgerItem.eval_run_id)
        .join(AgentVersion, AgentVersion.agent_version_id == EvaluationRun.agent_version_id)
    )


def _candidates(session: Session, statement: Select[*tuple[Any, ...]]) -> list[Candidate]:
    rows = session.execute(statement)
    return [Candidate._make((*row[:-1], Standing(row[-1]))) for row in rows]


def _shown(session: Session, now: datetime, within: Scope, known: Knowledge) -> list[str]:
    """Problems that are looked at, whole, until their items fill the window: some longest due, then the least known."""

    def known_of(problem: str) -> int:
        told = known.problems.get(problem)
        return 1 if told is None else (1 + told.kept) * (1 + sum(tally.judged for tally in told.by_hint.values()))

    longest_due = (
        select(LedgerItem.problem_id).where(*_due(now)).order_by(LedgerItem.next_try_at).limit(LONGEST_DUE).subquery()
    )
    first = session.scalars(select(longest_due.c.problem_id).distinct().order_by(longest_due.c.problem_id)).all()
    least_known = sorted(within.problems, key=lambda problem: (known_of(problem), problem))
    shown: dict[str, None] = {}
    items = 0
    for problems, most in ((first, WINDOW // 4), (least_known, WINDOW)):
        for problem in problems:
            if problem not in shown and items < most:
                shown[problem] = None
                items += within.problems[problem]
    return list(shown)


def _siblings(session: Session, within: Scope) -> dict[str, str]:
    """The newest versions of the families in scope, whether they have open items or not."""
    newest = (
        select(
            AgentVersion.agent_version_id,
            AgentVersion.family,
            func.row_number()
            .over(
                partition_by=AgentVersion.family,
                order_by=(AgentVersion.version_number.desc().nulls_last(), AgentVersion.agent_version_id),
            )
            .label("place"),
        )
        .where(_among(AgentVersion.family, set(within.versions.values())))
        .subquery()
    )
    rows = session.execute(select(newest.c.agent_version_id, newest.c.family).where(newest.c.place <= SIBLINGS))
    return {version: family for version, family in rows}


def _judged(
    session: Session, rules_digest: str, versions: Collection[str], problems: Collection[str]
) -> Iterable[tuple[Any, ...]]:
    """Rows of version, family, problem, hint; judged, kept, clean failures; kept ones that count.

    Of each trajectory the verdict on the latest evidence that was judged counts.
    """
    of_versions = (
        select(Trajectory.trajectory_id)
        .join(EvaluationRun, EvaluationRun.eval_run_id == Trajectory.eval_run_id)
        .where(_among(EvaluationRun.agent_version_id, versions))
    )
    of_problems = select(Trajectory.trajectory_id).where(_among(Trajectory.problem_id, problems))
    about = union(of_versions, of_problems).subquery()
    current = (
        select(Verdict.trajectory_id, Verdict.outcome)
        .join(about, about.c.trajectory_id == Verdict.trajectory_id)
        .join(
            Evidence,
            (Evidence.trajectory_id == Verdict.trajectory_id) & (Evidence.evidence_digest == Verdict.evidence_digest),
        )
        .where(Verdict.rules_digest == rules_digest)
        .ext(distinct_on(Verdict.trajectory_id))
        .order_by(Verdict.trajectory_id, Evidence.seq.desc())
        .subquery()
    )
    graves = entombed()
    is_kept = current.c.outcome == Outcome.KEPT.value
    by = (EvaluationRun.agent_version_id, AgentVersion.family, Trajectory.problem_id, _HINT)
    statement = (
        select(
            *by,
            func.count(),
            func.count().filter(is_kept),
            func.count().filter(current.c.outcome == Outcome.KEPT_NEGATIVE.value),
            func.count().filter(is_kept, graves.c.trajectory_id.is_(None)),
        )
        .select_from(current)
        .join(Trajectory, Trajectory.trajectory_id == current.c.trajectory_id)
        .join(LedgerItem, LedgerItem.ledger_id == Trajectory.ledger_id)
        .join(EvaluationRun, EvaluationRun.eval_run_id == Trajectory.eval_run_id)
        .join(AgentVersion, AgentVersion.agent_version_id == EvaluationRun.agent_version_id)
        .join(graves, graves.c.trajectory_id == current.c.trajectory_id, isouter=True)
        .group_by(*by)
    )
    return session.execute(statement)


def _among(column: Any, wanted: Collection[Any]) -> ColumnElement[bool]:
    """Whether the column is one of the values, sent as one array however many there are."""
    return column == any_(cast(list(wanted), ARRAY(column.type)))  # type: ignore[no-any-return]


def _zeros() -> list[int]:
    return [0, 0, 0]


def _add(tally: list[int], counts: list[int]) -> None:
    for place, count in enumerate(counts):
        tally[place] += count


def _tallies(of: dict[_Key, list[int]]) -> dict[_Key, Tally]:
    return {key: Tally(*counts) for key, counts in of.items()}
