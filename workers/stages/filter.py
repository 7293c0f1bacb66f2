"""Filter: judge every trajectory that has no verdict under the rules in force. Decides nothing itself."""

from collections.abc import Sequence

from service.judging import judge_batch
from workers.context import Context


def run(ids: Sequence[int], context: Context, _claimant: str) -> list[int]:
    """Judge the unjudged trajectories among `ids`; the stages after this one look at the whole corpus."""
    judge_batch(context.engine, ids, context.policies.rules, context.count_tokens)
    return []
