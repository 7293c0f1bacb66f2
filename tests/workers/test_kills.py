"""Kill a worker in the middle of any stage: what is left, run again, ends where an undisturbed run ends."""

import signal
from typing import Any

import pytest

from service.domain.rows.splits import Split
from tests.workers.harness import Pipeline

FAULTS = {
    "subscribe, items listed and not committed": "service.store.harvest.ledger.expect@3",
    "subscribe, items committed and the run not marked": "service.store.harvest.listings.mark_run_listed@3:before",
    "subscribe, at its end": "service.store.harvest.walks.finish",
    "ingest, claimed and nothing fetched": "service.source.oro.source.OroSource.fetch@12:before",
    "ingest, trajectories written and not committed": "service.store.corpus.trajectories.add@4",
    "ingest, committed and the next stage not told": "workers.pipeline.send@3:before",
    "filter, verdicts written and not committed": "service.store.corpus.verdicts.add@2",
    "cluster, revision sealed": "service.domain.leaks.leakage.edges",
    "cluster, written and not committed": "service.store.release.clusters.save",
    "assign, written and not committed": "service.store.release.pools.save",
    "snapshot, some rows written": "service.store.release.files.Draft.add@5",
    "snapshot, files published and not recorded": "service.store.release.files.Draft.publish",
    "snapshot, recorded and not committed": "service.store.release.snapshots.record",
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_killed_worker_loses_and_doubles_nothing(fault: str, work: Pipeline, undisturbed: dict[str, Any]) -> None:
    with work.worker(fault) as doomed:
        assert doomed.wait(timeout=120) == -signal.SIGKILL
    work.run()
    assert work.outcome() == undisturbed


def test_the_undisturbed_run_is_worth_comparing_with(undisturbed: dict[str, Any]) -> None:
    ((_, train, evaluation),) = undisturbed["snapshots"]
    assert train > 0, f"{Split.TRAIN} is empty"
    assert evaluation > 0, f"{Split.EVAL} is empty"
    assert {"agentic", "sub_task", "forged", "none"} <= {count[0][1] for count in undisturbed["counts"]}


def test_running_again_adds_nothing(work: Pipeline, undisturbed: dict[str, Any]) -> None:
    work.run()
    work.run()
    assert work.outcome() == undisturbed


def test_three_workers_at_once_do_the_same_work_once(work: Pipeline, undisturbed: dict[str, Any]) -> None:
    work.run(workers=3)
    assert work.outcome() == undisturbed
