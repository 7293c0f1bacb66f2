"""Which stored trajectories become rows of one snapshot, and what is said of those that do not. Writes nothing.

The rules are the domain's: `wanted` and `selection` decide. Here rows are read, asked about and counted.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
from sqlalchemy.orm import Session

from service.domain.filter.rules import RuleSet
from service.domain.filter.structure import Outcome
from service.domain.leaks.likeness import Behaviour, alike, behaviour
from service.domain.leaks.pools import Pool
from service.domain.rows.candidates import Candidate, candidate
from service.domain.rows.chat import chat_messages, render_chat
from service.domain.rows.prompts import tool_set
from service.domain.rows.records import row_id
from service.domain.rows.selection import Selection, SelectionReason, select
from service.domain.rows.spec import Options, SnapshotSpec
from service.domain.rows.splits import TRAINED, Config, Split
from service.domain.rows.wanted import Unwanted, Wanted, unwanted
from service.domain.trajectory import ExecutionKind, Trajectory, parse
from service.store.release import snapshots
from service.store.release.snapshots import JudgedRow, Scope
from workers import stored
from workers.context import Context


class Order(NamedTuple):
    """One snapshot to be made, and the requests that it answers."""

    options: Options
    rules: RuleSet
    spec: SnapshotSpec
    scope: Scope
    is_standing: bool
    request_ids: tuple[int, ...]


class Chosen(NamedTuple):
    """One trajectory that becomes a row."""

    trajectory_id: int
    left_out: str | None = None
    """Why it is a rejected row though its verdict kept it."""
    withheld: bool = False
    """SN15 no longer counts it: its row has no content."""


class Choice(NamedTuple):
    """The rows of one snapshot in their order, and how many trajectories ended where."""

    rows: list[Chosen]
    funnel: dict[str, Any]


@dataclass(slots=True)
class _Gathered:
    """Trajectories of one outcome, as far as choosing among them is concerned."""

    candidates: list[Candidate] = field(default_factory=list)
    behaviours: list[Behaviour] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    pools: Counter[str] = field(default_factory=Counter)
    quarantined: Counter[str] = field(default_factory=Counter)
    unwanted: Counter[str] = field(default_factory=Counter)

    def reasons(self, selection: Selection) -> dict[str, int]:
        """Why how many were left out, by wish or by selection."""
        return dict(sorted((Counter(selection.counts) + self.unwanted).items()))


def choose(session: Session, context: Context, order: Order) -> Choice:
    """Choose the rows of a snapshot."""
    spec, scope = order.spec, order.scope
    disputed: Set[tuple[str, str]] = frozenset()
    if spec.wanted.unanimous:
        disputed = snapshots.disputed(session, scope.rules_digest, scope.revision)
    kept = _gather(session, context, order, Outcome.KEPT, frozenset(spec.splits), disputed)
    trained = frozenset(spec.splits) & {Split.TRAIN}
    negative = _gather(session, context, order, Outcome.KEPT_NEGATIVE, trained, disputed)
    rows: dict[str, Chosen] = {}
    selections = []
    for gathered in (kept, negative):
        selection = select(
            alike(gathered.candidates, gathered.behaviours, context.policies.leaks.families), spec.selection
        )
        selections.append(selection)
        rows |= {key: Chosen(gathered.ids[key]) for key in selection.chosen}
        if Config.REJECTED in spec.wanted.configs:
            rows |= _left_out(gathered, selection)
    chosen = sum(len(selection.chosen) for selection in selections)
    if trained and Config.REJECTED in spec.wanted.configs:
        rows |= _rejected(session, scope, spec.wanted)
    verdicts = snapshots.funnel(session, scope.rules_digest, scope.revision)
    funnel = {
        "trajectories": sum(verdicts.values()),
        "verdicts": dict(sorted(verdicts.items())),
        "pools": dict(sorted(kept.pools.items())),
        "quarantined": dict(sorted(kept.quarantined.items())),
        "selection": kept.reasons(selections[0]),
        "rows": len(selections[0].chosen),
        "negatives": {"rows": len(selections[1].chosen), "selection": negative.reasons(selections[1])},
        "rejected_rows": len(rows) - chosen,
    }
    return Choice([rows[key] for key in sorted(rows, key=row_id)], funnel)


def without_secretive(funnel: dict[str, Any], secretive: Mapping[Config, int]) -> dict[str, Any]:
    """The funnel once rows have been left out in whose texts a secret was found, counted by their configurations."""
    followed = sum(secretive.get(config, 0) for config in TRAINED)
    failures = secretive.get(Config.NEGATIVE, 0)
    if not followed and not failures:
        return funnel
    negatives = funnel["negatives"]
    return funnel | {
        "rows": funnel["rows"] - followed,
        "selection": _with_secretive(funnel["selection"], followed),
        "negatives": {
            "rows": negatives["rows"] - failures,
            "selection": _with_secretive(negatives["selection"], failures),
        },
    }


def _with_secretive(reasons: Mapping[str, int], rows: int) -> dict[str, int]:
    found = {SelectionReason.SECRET_FOUND.value: rows} if rows else {}
    return dict(sorted((dict(reasons) | found).items()))


def _gather(
    session: Session,
    context: Context,
    order: Order,
    outcome: Outcome,
    splits: Set[Split],
    disputed: Set[tuple[str, str]],
) -> _Gathered:
    found, spec = _Gathered(), order.spec
    for row in snapshots.judged(session, order.scope, outcome):
        found.pools[row.pool] += 1
        if row.pool == Pool.QUARANTINED:
            found.quarantined[row.pool_reason] += 1
        if row.pool not in splits:
            continue
        reason = unwanted(stored.offered(row, disputed), spec.wanted)
        trajectory = parse(row.payload, ExecutionKind(row.kind))
        if reason is None and _is_too_long(row, trajectory, spec, context):
            reason = Unwanted.TOKENS
        if reason is not None:
            found.unwanted[reason.value] += 1
            continue
        found.ids[stored.key(row)] = row.trajectory_id
        found.candidates.append(
            candidate(
                stored.key(row),
                row.family,
                stored.problem(row),
                trajectory,
                stored.verdict(row),
                split=Split(row.pool),
                policy=spec.selection,
                tombstoned=row.tombstone is not None,
            )
        )
        found.behaviours.append(behaviour(row.agent_version_id, row.family, row.problem_id, trajectory))
    return found


def _is_too_long(row: JudgedRow, trajectory: Trajectory, spec: SnapshotSpec, context: Context) -> bool:
    """Whether the row that it would be has more tokens than are wanted; counted only where a number is given."""
    if spec.wanted.max_tokens is None:
        return False
    messages = chat_messages(trajectory, stored.verdict(row).calls, row.query)
    chat = render_chat(messages, tool_set(trajectory.kind, trajectory.tool_calls).schemas)
    return context.count_tokens(chat) > spec.wanted.max_tokens


def _left_out(gathered: _Gathered, selection: Selection) -> dict[str, Chosen]:
    """Train trajectories that selection dropped, with its reason. Nothing is told of eval beyond its rows."""
    trained = (one for one in gathered.candidates if one.split is Split.TRAIN and one.key in selection.dropped)
    return {one.key: Chosen(gathered.ids[one.key], selection.dropped[one.key].value, one.tombstoned) for one in trained}


def _rejected(session: Session, scope: Scope, wanted: Wanted) -> dict[str, Chosen]:
    """Train trajectories that their verdicts reject, of the kinds, categories, races and days that are asked for."""
    loose = msgspec.structs.replace(
        wanted, classes=(), min_reward=None, min_reasoning=None, unanimous=False, max_tokens=None
    )
    return {
        stored.key(row): Chosen(row.trajectory_id, withheld=row.tombstone is not None)
        for row in _comparable(snapshots.judged(session, scope, Outcome.REJECTED))
        if row.pool == Pool.TRAIN and unwanted(stored.offered(row, frozenset()), loose) is None
    }


def _comparable(rows: Iterator[JudgedRow]) -> Iterator[JudgedRow]:
    """Rows of problems of which anything is known: the audit could not compare the others."""
    return (row for row in rows if row.query or row.gold_ids or row.winner_ids)
