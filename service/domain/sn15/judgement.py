"""What SN15 said of one item, as one value for both formats. Not a verdict: nothing here says whether it is true."""

from typing import Any

import msgspec

from service.domain.sn15.failures import category_of


class Judgement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What SN15 said of one item. None always means "was not said", never a number."""

    status: str | None = None
    success: bool | None = None
    score: float | None = None
    reasoning_score: float | None = None
    """0.1 to 0.9; None: unjudged."""
    inference_total: int | None = None
    """None is also how the API writes zero; see `provenance`."""
    inference_failure_count: int | None = None
    execution_seconds: float | None = None
    paid_reward: float | None = None
    outcome: str | None = None
    failure_category: str | None = None
    """As it came; `failure` is the same in the one spelling."""
    components: dict[str, Any] = {}

    @property
    def failure(self) -> str | None:
        """A `FailureCategory`, or what it says where that is none."""
        return category_of(self.failure_category)
