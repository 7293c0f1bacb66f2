"""Late truth: what SN15 takes back or changes after it was harvested, and what becomes of rows that were published.

One corpus lives through four harvests: the first; one after SN15 has changed its word on a run of each kind; one after
nothing; one after everything is as it was at first.
"""

import gzip
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from service.config import Settings
from service.domain.rows.records import trajectory_key
from service.domain.rows.splits import Config
from service.embedded import Services
from service.replay.archive import read_archive
from service.replay.faults import Faults
from service.replay.recorded import LegacyItem, Run
from service.replay.server import Replay, replaying
from service.store.corpus import revisions
from service.store.corpus.verdicts import current
from service.store.engine import reading
from service.store.models import Evidence, LedgerItem, Tombstone, Trajectory
from service.store.release import clusters, snapshots
from tests.workers import late
from workers.context import Context, open_context

INVALIDATED_AT = datetime(2026, 6, 1, tzinfo=UTC)
REWRITTEN_AT = datetime(2026, 6, 2, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Target:
    """One published row, and the run it comes from as it was at first."""

    run: Run
    item_key: str

    @property
    def key(self) -> str:
        return trajectory_key(self.run.eval_run_id, self.item_key)


@dataclass(slots=True)
class Story:
    """What was seen after each harvest."""

    context: Context
    targets: dict[str, Target] = field(default_factory=dict)
    newest: list[str] = field(default_factory=list)
    rows: list[set[str]] = field(default_factory=list)
    """Trajectory keys of the newest snapshot."""
    counts: list[dict[str, int]] = field(default_factory=list)
    status: list[dict[str, Any]] = field(default_factory=list)
    """Of the first snapshot."""
    ledger: list[dict[str, tuple[str, str | None]]] = field(default_factory=list)
    """State and reason by trajectory key."""
    asked: list[list[str]] = field(default_factory=list)
    """Paths of the requests for objects."""
    revisions: list[int] = field(default_factory=list)
    verdicts: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    """What was read at each sealed revision when it was new."""

    def look(self, faults: Faults) -> None:
        """Note everything as it is now."""
        self.newest.append(late.newest(self.context))
        self.rows.append(late.keys(self.context, self.newest[-1]))
        self.counts.append(late.counts(self.context))
        self.status.append(late.status(self.context, self.newest[0]))
        with reading(self.context.engine) as session:
            items = session.scalars(select(LedgerItem)).all()
            self.revisions.append(revisions.last_sealed(session))
        self.ledger.append({trajectory_key(i.eval_run_id, i.problem_id): (i.state.value, i.reason) for i in items})
        self.verdicts[self.revisions[-1]] = self.verdicts_at(self.revisions[-1])
        self.asked.append([path for path in faults.requests if "/objects/" in path or path.endswith("/feedback")])
        faults.requests.clear()

    def verdicts_at(self, revision: int) -> list[tuple[int, str]]:
        """The evidence that stood for each trajectory at a sealed revision."""
        standing = current(self.context.policies.rules.digest, revision)
        with reading(self.context.engine) as session:
            columns = (standing.c.trajectory_id, standing.c.evidence_digest)
            return [tuple(row) for row in session.execute(select(*columns).order_by(standing.c.trajectory_id))]

    def trajectory_id(self, target: Target) -> int:
        with reading(self.context.engine) as session:
            number = select(Trajectory.trajectory_id).where(
                Trajectory.eval_run_id == target.run.eval_run_id, Trajectory.item_key == target.item_key
            )
            return session.scalars(number).one()

    def evidence(self, target: Target) -> list[Evidence]:
        """Every state of a row's evidence, oldest first."""
        states = select(Evidence).where(Evidence.trajectory_id == self.trajectory_id(target)).order_by(Evidence.seq)
        with reading(self.context.engine) as session:
            return list(session.scalars(states))


TAKEN_BACK = ("invalidated", "discarded")
CHANGED = ("scored anew", "other bytes", "same bytes", "withdrawn")


def choose(story: Story, replay: Replay) -> dict[str, Target]:
    """A published legacy row for each kind of change; those that are taken back have an agent version of their own."""
    runs = [run for run in replay.archive.runs.values() if not late.is_envpack(run)]
    every = [Target(run, item.problem_id) for run in runs for item in run.items if isinstance(item, LegacyItem)]
    published = sorted((each for each in every if each.key in story.rows[0]), key=lambda each: each.key)
    found: dict[str, Target] = {}
    for name in TAKEN_BACK:
        found[name] = published[0]
        published = [each for each in published if each.run.agent_version_id != found[name].run.agent_version_id]
    return found | dict(zip(CHANGED, published, strict=False))


def change(replay: Replay, targets: dict[str, Target]) -> None:
    """Let SN15 change its word on every target."""
    runs, agents = replay.archive.runs, replay.archive.agents

    def rewrite(name: str, **changed: Any) -> None:
        of = targets[name]
        replay.archive.replace(late.with_item(runs[of.run.eval_run_id], of.item_key, **changed))

    invalidated, discarded = (targets[name].run for name in TAKEN_BACK)
    replay.archive.replace(replace(invalidated, invalidated_at=INVALIDATED_AT, is_included=False))
    agents[discarded.agent_version_id] = replace(agents[discarded.agent_version_id], is_discarded=True)
    rewrite("scored anew", update=item_of(targets["scored anew"]).update | {"score": 0.0})
    other = b" " + gzip.decompress(item_of(targets["other bytes"]).packed or b"")
    rewrite("other bytes", payload=other, updated_at=REWRITTEN_AT)
    rewrite("same bytes", updated_at=REWRITTEN_AT)
    rewrite("withdrawn", packed=None, updated_at=REWRITTEN_AT)


def item_of(target: Target) -> LegacyItem:
    return next(
        item for item in target.run.items if isinstance(item, LegacyItem) and item.problem_id == target.item_key
    )


def take_back(replay: Replay, targets: dict[str, Target]) -> None:
    """Let SN15 say again what it said at first; objects are written once more to say so."""
    for target in targets.values():
        replay.archive.replace(target.run)
    agent = replay.archive.agents[targets["discarded"].run.agent_version_id]
    replay.archive.agents[agent.agent_version_id] = replace(agent, is_discarded=False)


@pytest.fixture(scope="module")
def story(
    new_database: Callable[[], AbstractContextManager[str]],
    services: Services,
    archive: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Story]:
    """All four harvests."""
    faults = Faults()
    with new_database() as url, replaying(read_archive(archive), faults=faults) as replay:
        settings = Settings(source_url=replay.url, data_dir=tmp_path_factory.mktemp("late"))
        story = Story(open_context(settings, url, services.redis_url))
        late.harvest(story.context)
        story.look(faults)
        story.targets = choose(story, replay)
        change(replay, story.targets)
        late.again(story.context, items=True)
        story.look(faults)
        late.again(story.context, items=True)
        story.look(faults)
        take_back(replay, story.targets)
        late.again(story.context, items=True)
        story.look(faults)
        yield story
        story.context.engine.dispose()


FIRST, CHANGED_NOW, NOTHING_NEW, TAKEN_BACK_NOW = range(4)


@pytest.mark.parametrize(
    ("name", "is_row"),
    [
        ("invalidated", [True, False, False, True]),
        ("discarded", [True, False, False, True]),
        ("withdrawn", [True, False, False, True]),
        # Scored 0 it is no success any more, and not kept.
        ("scored anew", [True, False, False, True]),
        # A blank before the JSON changes no step, and no row.
        ("other bytes", [True, True, True, True]),
        ("same bytes", [True, True, True, True]),
    ],
)
def test_new_snapshots_leave_out_what_does_not_count_now(story: Story, name: str, is_row: list[bool]) -> None:
    assert [story.targets[name].key in rows for rows in story.rows] == is_row


def test_the_same_corpus_makes_the_same_snapshot_again(story: Story) -> None:
    assert story.newest[TAKEN_BACK_NOW] == story.newest[FIRST]
    assert story.newest[CHANGED_NOW] == story.newest[NOTHING_NEW] != story.newest[FIRST]


def test_tombstones_are_raised_and_lifted_and_name_their_reason(story: Story) -> None:
    run, discarded = story.targets["invalidated"].run, story.targets["discarded"].run
    withdrawn = str(story.trajectory_id(story.targets["withdrawn"]))
    raised = {
        ("run", run.eval_run_id, "run_invalidated"),
        ("agent_version", discarded.agent_version_id, "agent_discarded"),
        ("item", withdrawn, "withdrawn"),
    }
    with reading(story.context.engine) as session:
        found = session.scalars(select(Tombstone).order_by(Tombstone.tombstone_id)).all()
    assert {(stone.subject, stone.subject_id, stone.reason) for stone in found[:3]} == raised
    assert {(stone.subject, stone.subject_id, stone.reason) for stone in found[3:]} == raised
    assert [stone.is_lifted for stone in found] == [False] * 3 + [True] * 3
    (of_run,) = [stone for stone in found[:3] if stone.subject == "run"]
    assert of_run.source["row"]["invalidated_at"] == INVALIDATED_AT.isoformat()


def test_a_published_snapshot_is_marked_for_as_long_as_its_rows_differ(story: Story) -> None:
    run = story.targets["invalidated"].run.eval_run_id
    of_run = sorted(late.keys(story.context, story.newest[FIRST], run, tuple(Config)))
    told = story.status[CHANGED_NOW]
    assert told["state"] == "marked"
    assert told["invalidated_runs"] == [story.targets["invalidated"].run.eval_run_id]
    marked = {reason: found["trajectory_keys"] for reason, found in told["marks"].items()}
    assert marked["run_invalidated"] == of_run
    assert story.targets["discarded"].key in marked["agent_discarded"]
    assert marked["withdrawn"] == [story.targets["withdrawn"].key]
    assert marked["judgement_changed"] == [story.targets["scored anew"].key]
    assert marked["bytes_changed"] == [story.targets["other bytes"].key]
    assert {found["rows"] == len(found["trajectory_keys"]) for found in told["marks"].values()} == {True}
    unmarked = {"state": "published", "marks": {}, "invalidated_runs": [], "contaminated_by": [], "redacted_rows": []}
    assert story.status[FIRST] == story.status[TAKEN_BACK_NOW] == unmarked


def test_a_harvest_after_which_nothing_is_new_adds_nothing(story: Story) -> None:
    assert story.counts[NOTHING_NEW] == story.counts[CHANGED_NOW]
    assert story.status[NOTHING_NEW] == story.status[CHANGED_NOW]
    assert story.ledger[NOTHING_NEW] == story.ledger[CHANGED_NOW]
    assert story.asked[NOTHING_NEW] == []


def test_each_state_of_the_evidence_stays_and_one_that_returns_is_a_state_of_its_own(story: Story) -> None:
    first, anew, back = story.evidence(story.targets["scored anew"])
    assert [state.body["judgement"]["score"] for state in (first, anew, back)] == [1.0, 0.0, 1.0]
    assert len({state.evidence_digest for state in (first, anew, back)}) == 3
    first, other, back = story.evidence(story.targets["other bytes"])
    assert other.payload_sha256 != first.payload_sha256 == back.payload_sha256
    assert len({state.evidence_digest for state in (first, other, back)}) == 3
    for name in ("invalidated", "discarded", "same bytes", "withdrawn"):
        assert len(story.evidence(story.targets[name])) == 1


def test_what_was_read_at_a_sealed_revision_stays(story: Story) -> None:
    assert len(story.verdicts) == 3
    for revision, told in story.verdicts.items():
        assert story.verdicts_at(revision) == told


def test_objects_are_asked_for_again_only_when_they_are_listed_otherwise(story: Story) -> None:
    def path(name: str) -> str:
        target = story.targets[name]
        return f"/objects/logs/{target.run.eval_run_id}/{target.item_key}.json.gz"

    # Of one that is not there, no URL is given.
    assert sorted(story.asked[CHANGED_NOW]) == sorted([path("other bytes"), path("same bytes")])
    again = [path("other bytes"), path("same bytes"), path("withdrawn")]
    assert sorted(story.asked[TAKEN_BACK_NOW]) == sorted(again)
    withdrawn = [ledger[story.targets["withdrawn"].key] for ledger in story.ledger]
    assert withdrawn == [("fetched", None), ("fetched", "no_object"), ("fetched", "no_object"), ("fetched", None)]


def test_solve_rates_drop_what_does_not_count_and_leak_edges_keep_it(story: Story) -> None:
    rules, target = story.context.policies.rules.digest, story.targets["invalidated"]
    before, after = story.revisions[FIRST], story.revisions[CHANGED_NOW]
    with reading(story.context.engine) as session:
        rate_before = snapshots.solve_rates(session, rules, before)
        rate_after = snapshots.solve_rates(session, rules, after)
        told_before, told_after = (
            {row for row in clusters.reports(session, rules, at) if row.problem_id == target.item_key}
            for at in (before, after)
        )
    # The invalidated run had solved it: without that success the rate is lower, unless every other try succeeded too.
    assert rate_after.get(target.item_key, 0.0) <= rate_before[target.item_key]
    assert told_after == told_before
