"""What is asked of a source for one item, and what comes of it: bytes, none needed, or a refusal. Sends nothing."""

from dataclasses import dataclass
from datetime import datetime

from service.domain.trajectory import ExecutionKind
from service.source.refusals import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTarget:
    """What to ask for to get one item's trajectory."""

    kind: ExecutionKind
    agent_version_id: str
    eval_run_id: str
    problem_id: str
    episode_result_id: str | None = None
    etag: str | None = None
    """Entity tag of the bytes that are there already: they need not be sent again."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Bytes of one object, unpacked."""

    payload: bytes
    etag: str | None = None
    """Entity tag they came with; None where the source gave none."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The bytes are still those whose entity tag was sent along."""


@dataclass(frozen=True, slots=True)
class Refused:
    """No bytes, and why. `retry_at` is None for terminal refusals."""

    reason: Refusal
    retry_at: datetime | None

    @property
    def terminal(self) -> bool:
        """Whether asking again cannot help."""
        return self.reason.terminal
