"""What the source lists and gives, as values. No field here is trusted text: strangers wrote the names and queries.

`raw` keeps a row as it came, with unknown fields and unknown enum values. Statuses stay text; what one means is a
property.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from service.domain.trajectory import ExecutionKind

_RACE_COMPLETE = "RACE_COMPLETE"
_CANCELLED = "CANCEL"
"""How a race is called that was called off is nowhere written down; it has been seen to hold this."""
_RUN_SUCCESS = "SUCCESS"
VOLATILE_RUN_FIELDS = frozenset({"last_heartbeat_at", "lease_expires_at", "service_versions", "sandbox_metadata"})
"""Fields of a run's row that may change without anything of its outcome changing."""
_RUN_OVER = frozenset({_RUN_SUCCESS, "FAILED", "TIMED_OUT", "STALE", "CANCELLED"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentListing:
    """One agent version, as a race or the leaderboard names it."""

    agent_version_id: str
    agent_name: str | None
    miner_hotkey: str | None
    version_number: int | None
    raw: dict[str, Any]

    @property
    def is_discarded(self) -> bool | None:
        """Whether SN15 has thrown the version out; None where this listing does not say."""
        told = self.raw.get("is_discarded")
        return told if isinstance(told, bool) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceListing:
    """One race with the agent versions in it. `status` is whatever the API says."""

    race_id: str
    suite_id: int | None
    status: str
    race_number: int | None
    """Restarts on a new suite: never a key."""
    started_at: datetime | None
    completed_at: datetime | None
    agents: tuple[AgentListing, ...]
    raw: dict[str, Any]

    @property
    def is_complete(self) -> bool:
        """Whether it has run to its end, so that nothing of it changes but what is still to be revealed."""
        return self.status == _RACE_COMPLETE

    @property
    def is_cancelled(self) -> bool:
        """Whether it was called off: what is not released by then never will be."""
        return _CANCELLED in self.status.upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteListing:
    """One problem suite."""

    suite_id: int
    kind: ExecutionKind
    world: str | None
    """The catalogue its episodes play in; None for legacy suites."""
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunListing:
    """One validator's run of one agent version."""

    eval_run_id: str
    agent_version_id: str
    race_id: str | None
    """None for a qualifying run."""
    suite_id: int | None
    validator_hotkey: str | None
    phase: str
    """`RACE` or `QUALIFYING`."""
    status: str
    is_included: bool
    invalidated_at: datetime | None
    completed_at: datetime | None
    kind: ExecutionKind
    raw: dict[str, Any]

    @property
    def counts(self) -> bool:
        """Whether SN15 counts it: successful, included, and not invalidated since."""
        return self.status == _RUN_SUCCESS and self.is_included and self.invalidated_at is None

    @property
    def is_successful(self) -> bool:
        """Whether it came to its end without fault."""
        return self.status == _RUN_SUCCESS

    @property
    def is_over(self) -> bool:
        """Whether its status is one that no longer changes. A status nobody here knows may still change."""
        return self.status in _RUN_OVER


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemListing:
    """One item of a run: a legacy problem or an envpack episode."""

    eval_run_id: str
    agent_version_id: str
    item_key: str
    """Unique within its run: the problem_id, or the episode's task."""
    problem_id: str
    kind: ExecutionKind
    category: str | None
    """Lower case: product, shop, voucher; the task family for envpack."""
    query: str | None
    """As the API gives it: never, for problems of a hidden bank."""
    released: bool
    """False: the API itself says that details are withheld. True is no promise."""
    episode_result_id: str | None
    judgement: dict[str, Any]
    """JSON-able fields of the domain's Judgement."""
    updated_at: datetime | None = None
    """When the item's result was last written; None where the API does not say."""


@dataclass(frozen=True, slots=True)
class RunItems:
    """The items of one run that the API lists at present."""

    items: list[ItemListing]
    complete: bool
    """Nothing is withheld and everything expected is there: asking again would show nothing more."""

    @property
    def withheld(self) -> bool:
        """Whether nothing of the run is released yet."""
        return not self.complete and not any(item.released for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemListing:
    """One problem of a public suite."""

    problem_id: str
    kind: ExecutionKind
    suite_id: int
    category: str | None
    query: str | None
    reward: list[dict[str, Any]] | None
    """The gold products, however the API nests them; None where it publishes none."""
    voucher: dict[str, Any] | None
