"""Snapshots that somebody asked for: each answered once, from the newest pools, whatever happens on the way."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import func, select

from service.cli.difference import compare
from service.cli.joined import Joined
from service.cli.reaudit import reaudit
from service.config import Settings
from service.domain.filter.rules import PAPER_2606_10064
from service.domain.policy import DEFAULT_POLICIES
from service.domain.rows.pseudonyms import salted
from service.domain.rows.splits import TRAINED
from service.embedded import Services
from service.judging import judge_batch
from service.store.engine import reading, transaction
from service.store.models import Release, Snapshot, SnapshotAnswer
from service.store.release import pools, requests, snapshots
from service.store.release.requests import Answer
from service.store.work import backlog
from service.store.work.progress import progress
from tests.workers import late
from workers.context import Context, open_context
from workers.stages import snapshot


@pytest.fixture(scope="module")
def corpus(
    new_database: Callable[[], AbstractContextManager[str]],
    services: Services,
    source_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Context]:
    """A harvested corpus with its standing snapshot."""
    folder = tmp_path_factory.mktemp("requests")
    with new_database() as url:
        context = open_context(Settings(source_url=source_url, data_dir=folder), url, services.redis_url)
        late.harvest(context)
        yield context
        context.engine.dispose()


def ask(context: Context, options: dict[str, Any]) -> int:
    with transaction(context.engine) as session:
        return requests.add(session, options)


def serve(context: Context) -> None:
    snapshot.run([], context, "message")


def answer(context: Context, options: dict[str, Any]) -> Answer:
    number = ask(context, options)
    serve(context)
    return answered(context, number)


def answered(context: Context, number: int) -> Answer:
    with reading(context.engine) as session:
        found = requests.answer_to(session, number)
    assert found is not None
    return found


def rows_of(context: Context, given: Answer) -> list[snapshots.NewRow]:
    """The rows to be followed."""
    assert given.snapshot_id is not None, given.refusal
    with reading(context.engine) as session:
        return [row for row in snapshots.members(session, given.snapshot_id) if row.config in TRAINED]


def standing(context: Context) -> Answer:
    return Answer(late.newest(context), None)


def releases(context: Context) -> int:
    with reading(context.engine) as session:
        return session.scalar(select(func.count()).select_from(Release)) or 0


def test_what_is_asked_for_as_it_stands_is_the_standing_snapshot(corpus: Context) -> None:
    before = releases(corpus)
    assert answer(corpus, {}) == standing(corpus)
    assert releases(corpus) == before


def test_one_split_is_written_alone(corpus: Context) -> None:
    given = answer(corpus, {"splits": ["eval"]})
    assert {row.split for row in rows_of(corpus, given)} == {"eval"}
    expected = {row.trajectory_id for row in rows_of(corpus, standing(corpus)) if row.split == "eval"}
    assert {row.trajectory_id for row in rows_of(corpus, given)} == expected
    manifest = corpus.files.manifest(given.snapshot_id or "")
    assert {part.split for part in manifest.parts} == {"eval"}
    assert manifest.audit["ok"]


def test_a_wish_leaves_out_the_rest_with_its_reason(corpus: Context) -> None:
    given = answer(corpus, {"wanted": {"categories": ["shop"]}, "selection": {"keep": "all"}})
    funnel = corpus.files.manifest(given.snapshot_id or "").funnel
    served = funnel["pools"]["train"] + funnel["pools"]["eval"]
    assert funnel["selection"]["other_category"] > 0
    assert funnel["rows"] == len(rows_of(corpus, given)) == served - sum(funnel["selection"].values())
    assert not {"duplicate", "near_duplicate", "family_cap", "problem_cap", "balance"} & set(funnel["selection"])


def test_all_is_more_than_the_best(corpus: Context) -> None:
    given = answer(corpus, {"selection": {"keep": "all"}})
    every = {row.trajectory_id for row in rows_of(corpus, given)}
    assert every > {row.trajectory_id for row in rows_of(corpus, standing(corpus))}


def test_exact_tokens_are_asked_of_every_row(corpus: Context) -> None:
    given = answer(corpus, {"selection": {"keep": "all"}})
    counted = sorted(tokens(corpus, given))
    limit = counted[len(counted) // 2]
    fewer = answer(corpus, {"selection": {"keep": "all"}, "wanted": {"max_tokens": limit}})
    assert sorted(tokens(corpus, fewer)) == [number for number in counted if number <= limit]


def tokens(context: Context, given: Answer) -> list[int]:
    manifest = context.files.manifest(given.snapshot_id or "")
    names = [entry.name for entry in manifest.files if entry.format == "parquet" and entry.config in TRAINED]
    return [
        number
        for name in names
        for number in pq.read_table(context.files.path(manifest.snapshot_id, name)).column("tokens").to_pylist()
    ]


def test_a_wish_that_nothing_meets_is_refused_by_name_and_leaves_the_standing_one(corpus: Context) -> None:
    before = standing(corpus)
    given = answer(corpus, {"wanted": {"races": ["no such race"]}})
    assert given.snapshot_id is None
    assert given.refusal is not None
    assert given.refusal["code"] == "EMPTY_SPLIT"
    assert "other_race" in given.refusal["message"]
    assert standing(corpus) == before


def test_equal_requests_are_made_once(corpus: Context) -> None:
    before = releases(corpus)
    numbers = [ask(corpus, {"selection": {"per_problem": 1}}) for _ in range(2)]
    serve(corpus)
    first, second = (answered(corpus, number) for number in numbers)
    assert first == second
    assert releases(corpus) == before + 1
    assert answer(corpus, {"selection": {"per_problem": 1}}) == first
    assert releases(corpus) == before + 1


def test_a_request_of_another_version_is_refused_and_holds_up_nothing(corpus: Context) -> None:
    unreadable, fine = ask(corpus, {"moon": "full"}), ask(corpus, {"splits": ["train"]})
    serve(corpus)
    refusal = answered(corpus, unreadable).refusal
    assert refusal is not None
    assert "moon" in refusal["message"]
    assert answered(corpus, fine).snapshot_id is not None


def test_an_open_request_is_work_to_do(corpus: Context) -> None:
    number = ask(corpus, {"selection": {"per_problem": 2}})
    with reading(corpus.engine) as session:
        state = progress(session, DEFAULT_POLICIES, corpus.now())
    assert (state.requests_due, state.idle, state.release_due) == (True, False, False)
    serve(corpus)
    assert answered(corpus, number).snapshot_id
    with reading(corpus.engine) as session:
        assert not backlog.requests_due(session)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("place", ["service.store.release.snapshots.record", "service.store.release.requests.answer"])
def test_a_request_survives_whoever_dies_over_it(corpus: Context, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 3 + len(place) % 5
    number = ask(corpus, {"selection": {"per_problem": limit}})

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(place, die)
        with pytest.raises(Killed):
            serve(corpus)
    with reading(corpus.engine) as session:
        assert requests.answer_to(session, number) is None
    serve(corpus)
    assert answered(corpus, number).snapshot_id
    with reading(corpus.engine) as session:
        answers = session.scalars(select(SnapshotAnswer).where(SnapshotAnswer.request_id == number)).all()
        assert len(answers) == 1
        stored = set(session.scalars(select(Snapshot.snapshot_id)))
    assert stored == set(corpus.files.ids())


def test_miners_are_named_by_a_salt_where_there_is_one(corpus: Context) -> None:
    wish = {"salted_hotkeys": True, "splits": ["eval"]}
    refused = answer(corpus, wish).refusal
    assert refused is not None
    assert refused["code"] == "PREREQUISITE_MISSING"
    assert "SLUICE_HOTKEY_SALT" in refused["message"]
    with_salt = replace(corpus, settings=corpus.settings.model_copy(update={"hotkey_salt": "s" * 16}))
    # What was lacking decides nothing about the pools: the same wish is met once it is there.
    named = answer(with_salt, wish)
    plain = answer(corpus, {"splits": ["eval"]})
    by_row = [{row["row_id"]: row for row in table(corpus, given)} for given in (plain, named)]
    assert by_row[0].keys() == by_row[1].keys()
    for name, row in by_row[1].items():
        other = by_row[0][name]
        for column in ("miner_hotkey", "agent_family"):
            assert row[column] == salted(other[column], "s" * 16)
            assert other[column] not in str(row)
        assert row["messages"] == other["messages"]


def table(context: Context, given: Answer) -> list[dict[str, Any]]:
    manifest = context.files.manifest(given.snapshot_id or "")
    names = [entry.name for entry in manifest.files if entry.format == "parquet"]
    return [row for name in names for row in pq.read_table(context.files.path(manifest.snapshot_id, name)).to_pylist()]


def test_rows_that_anybody_was_given_count_as_published(corpus: Context) -> None:
    answer(corpus, {"selection": {"keep": "all"}})
    with reading(corpus.engine) as session:
        published = pools.history(session).published_train
        rows = [row for one in snapshots.listing(session) for row in snapshots.members(session, one.snapshot_id)]
    assert published == {row.problem_id for row in rows if row.split == "train"}


def test_a_difference_says_why_each_row_is_in_one_alone(corpus: Context) -> None:
    at = Joined(corpus.engine, corpus.settings)
    standing_id = late.newest(corpus)
    every = answer(corpus, {"selection": {"keep": "all"}}).snapshot_id or ""
    shops = answer(corpus, {"splits": ["train"], "wanted": {"categories": ["shop"]}, "selection": {"keep": "all"}})
    found = compare(at, corpus.files, standing_id, every, most=10_000)
    rows = {name: rows_of(corpus, Answer(name, None)) for name in (standing_id, every)}
    split_of = {row.trajectory_id: row.split for row in rows[every]}
    extra = split_of.keys() - {row.trajectory_id for row in rows[standing_id]}
    held_out = sum(split_of[one] == "eval" for one in extra)
    # What the standing one leaves out of train is among its rejected rows; of eval it tells nothing.
    moved = [told for told in found.rows if told.change.difference == "moved"]
    assert {told.why for told in moved} <= {"kept", "not_successful"}
    assert found.counts["added"] == held_out
    assert found.counts["moved"] == len(moved) >= len(extra) - held_out
    assert found.why.get("added", {}) == ({"selection": held_out} if held_out else {})
    assert found.spec == {"selection.keep_all": (False, True)}
    fewer = compare(at, corpus.files, every, shops.snapshot_id or "", most=3)
    assert len(fewer.rows) == 3
    assert fewer.why["removed"]["pool:eval"] == sum(split == "eval" for split in split_of.values())
    assert fewer.why["removed"]["other_category"] > 0
    assert sum(fewer.why["removed"].values()) == fewer.counts["removed"]


def test_parquet_alone_can_be_audited_again_and_compared(corpus: Context) -> None:
    alone = answer(corpus, {"formats": ["parquet"]}).snapshot_id or ""
    assert {entry.format for entry in corpus.files.manifest(alone).files} == {"parquet"}
    assert reaudit(corpus.engine, corpus.files, alone).ok
    found = compare(Joined(corpus.engine, corpus.settings), corpus.files, late.newest(corpus), alone, most=1)
    assert {name for name, rows in found.counts.items() if rows} == {"same"}


def test_another_rule_set_needs_its_verdicts_first(corpus: Context) -> None:
    wish = {"rules": PAPER_2606_10064.name, "splits": ["train"], "selection": {"keep": "all"}}
    refused = answer(corpus, wish).refusal
    assert refused is not None
    assert refused["code"] == "PREREQUISITE_MISSING"
    assert f"sluice judge --rules {PAPER_2606_10064.name}" in refused["message"]
    with reading(corpus.engine) as session:
        ids = list(backlog.trajectories_unjudged(session, PAPER_2606_10064.digest, 10_000))
    judge_batch(corpus.engine, ids, PAPER_2606_10064, corpus.count_tokens)
    number = ask(corpus, wish)
    late.release(corpus)
    given = answered(corpus, number)
    assert given.snapshot_id is not None, given.refusal
    manifest = corpus.files.manifest(given.snapshot_id)
    assert manifest.spec["rules"] == PAPER_2606_10064.label
    assert manifest.rows["train"] > 0
