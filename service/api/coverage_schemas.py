"""What `/v1/coverage` says, as JSON schemas. Wire shapes only: nothing here is used inside."""

from datetime import datetime

from service.api.schemas import Wire


class Runs(Wire):
    """Runs by what they can bring; they sum to all that are known."""

    listed: int
    """Every item of theirs is in the ledger."""
    to_list: int
    """They count, and their items are not all listed yet."""
    not_counting: int
    """Not over yet, unsuccessful, excluded, invalidated, or of a race that was called off."""


class Refused(Wire):
    """Items that stand in one state for one reason."""

    reason: str | None
    items: int
    attempts: int
    """Most tries that one of them has had."""
    first_try_at: datetime | None
    """When the first of them is asked for again; null while all are being asked for."""
    last_try_at: datetime | None


class Lost(Wire):
    """Items that are gone for one reason."""

    reason: str | None
    items: int
    attempts: int


class Cover(Wire):
    """Items by state, which sum to `items`, and why they stand so."""

    items: int
    expected: int
    fetched: int
    changed: int
    """Fetched, and to be asked for again: they are listed otherwise since."""
    embargoed: int
    failed: int
    gone: int
    share: float | None
    """Share of the items that can be had which is stored; null while there are none, or runs are to be listed."""
    runs: Runs
    embargoes: list[Refused]
    failures: list[Refused]
    losses: list[Lost]


class RaceCover(Wire):
    """One race; the last one stands for all qualifying runs, which belong to none."""

    race_id: str
    """`qualifying` for the last one."""
    race_number: int | None
    suite_id: int | None
    status: str | None
    cover: Cover


class AgentCover(Wire):
    """One agent version in the race that was asked for."""

    agent_version_id: str
    agent_name: str
    cover: Cover


class TrajectoryHistory(Wire):
    """Distinct (agent version, problem) pairs, as SN15 counts them and as they are here. Shown, never a gate."""

    total: int | None
    """SN15's; null while it has not counted them, or was not asked."""
    read_at: datetime | None
    listed: int
    """Ours that stand in the ledger."""
    stored: int
    """Ours of which a trajectory is stored."""
    difference: int | None
    """`total` less `stored`."""


class Coverage(Wire):
    """How much of what SN15 has released is here; the same as `sluice coverage --json`."""

    races: list[RaceCover]
    """Newest first; qualifying runs come last."""
    agents: list[AgentCover] | None
    """Of the race asked for; null where none was."""
    history: TrajectoryHistory
