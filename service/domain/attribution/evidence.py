"""What is known of a trajectory beside its own payload: one value, with the digest that a verdict holds for.

Not the payload and no conclusion: what the evidence comes to is `provenance` and `trust`.
"""

from functools import lru_cache
from typing import Any

import msgspec

from service.domain import canonical
from service.domain.agent_code.code_scan import CodeScan
from service.domain.sn15.judgement import Judgement


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a trajectory beside its own payload."""

    judgement: Judgement = Judgement()
    agent_code: str | None = None
    """Sha256 of the agent version's released source, which is kept apart."""
    code: CodeScan | None = None
    """What a static scan found in that source; None: it is not released, or not scanned."""
    witness: tuple[dict[str, Any], ...] = ()
    """Records of the validator's own side about this run and item: `witness` and `grading` make them."""
    payload_sha256: str | None = None
    """The bytes the evidence is about where the source has replaced them since; None: those that came first."""
    returns: int = 0
    """How often the evidence had been exactly this before: a state that comes back is a state of its own."""

    @property
    def digest(self) -> str:
        """Sha256 hex of the canonical form: a verdict holds for exactly this evidence and these bytes."""
        told = {name: getattr(self, name) for name in self.__struct_fields__}
        late = {name: told.pop(name) for name in ("code", "payload_sha256", "returns")}
        if self.code is not None:
            late["code"] = _digest_of(self.code)
        return canonical.digest(told | {name: value for name, value in late.items() if value})


@lru_cache(maxsize=64)
def _digest_of(code: CodeScan) -> str:
    """Of one scan, which thousands of trajectories share."""
    return canonical.digest(code)
