"""When `--once` has waited long enough: nothing moves, and nobody is at one long piece of work. Ends nothing itself."""

from service.cli.watching import Look
from service.source.http.budget import MAX_PARK_SECONDS
from service.source.refusals import Refusal
from service.store.work.leases import LeaseName

STALL_SECONDS = 1800.0
"""So long nothing may move."""
IDLE_LEASES = frozenset({LeaseName.SWEEP})
"""Leases that are held whether or not there is work."""
REASONS_SHOWN = 5


class Patience:
    """Looks at the work again and again, and says when it is stuck and where."""

    def __init__(self) -> None:
        self._last: object = None
        self._moved_at = 0.0
        self._at_work: frozenset[tuple[str, int]] = frozenset()

    def ends(self, seen: Look, now: float) -> str | None:
        """What is stuck; None while there is hope.

        Args:
            seen: the present look.
            now: seconds on a clock that never goes back.
        """
        leases = frozenset(lease for lease in seen.signs.leases if lease[0] not in IDLE_LEASES)
        # Not what is being done: walks begin again and again, whatever comes of them.
        moving = (seen.items, seen.settled, seen.walked, seen.signs.newest)
        if moving != self._last:
            self._last, self._moved_at, self._at_work = moving, now, leases
            return None
        # Whoever has held one lease all along is at work, however long it takes; a new try has a new token.
        self._at_work &= leases
        if self._at_work or now - self._moved_at < _allowed_seconds(seen):
            return None
        return _told(seen, now - self._moved_at)


def _allowed_seconds(seen: Look) -> float:
    """A source that limits our rate may ask for a longer silence, and is obeyed."""
    return STALL_SECONDS + (MAX_PARK_SECONDS if Refusal.RATE_LIMITED in seen.reasons else 0.0)


def _told(seen: Look, seconds: float) -> str:
    ranked = sorted(seen.reasons.items(), key=lambda entry: (-entry[1], entry[0]))[:REASONS_SHOWN]
    parts = [f"nothing has moved for {seconds / 60:.0f} minutes while {seen.doing}"]
    if ranked:
        parts.append("items not given: " + ", ".join(f"{items:,} {reason}" for reason, items in ranked))
    if seen.errors:
        parts.append(f"the last walk broke off: {seen.errors[-1]}")
    return "; ".join([*parts, "the workers' logs say more"])
