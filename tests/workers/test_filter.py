"""Filter: every trajectory gets a verdict, even one that the filter itself cannot take."""

import pytest

from service import judging
from service.domain.filter.structure import Verdict
from service.domain.policy import DEFAULT_POLICIES
from service.store.corpus import verdicts
from service.store.engine import reading
from service.store.figures import statistics
from service.store.figures.statistics import Dimension
from service.store.harvest import ledger
from workers.context import Context
from workers.stages import filter as filter_stage
from workers.stages import ingest
from workers.subscribe import walk

RULES = DEFAULT_POLICIES.rules.digest


def test_one_trajectory_that_breaks_the_filter_stops_no_other(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk(context)
    with reading(context.engine) as session:
        ids = ledger.due(session, context.now(), 20)
    stored = ingest.run(ids, context, "message")
    judge, calls = judging.judge, [0]

    def breaking(*arguments: object) -> Verdict:
        calls[0] += 1
        if calls[0] == 3:
            raise RecursionError("text out of the payload")
        return judge(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(judging, "judge", breaking)
    filter_stage.run(stored, context, "message")
    with reading(context.engine) as session:
        assert list(verdicts.unjudged(session, RULES, 100)) == []
        reasons = {
            count.values[0]: count.trajectories for count in statistics.counts(session, RULES, [Dimension.REASON])
        }
    assert reasons["judge_failed"] == 1
    assert sum(reasons.values()) == len(stored)
