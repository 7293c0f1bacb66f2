"""What the REST service says, as JSON schemas. Wire shapes only: nothing here is used inside."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, computed_field

from service.domain.rows.records import trajectory_key
from service.domain.sn15.commitment import Check, CommitmentState, Result
from service.store.figures.dossier import Withheld


class Wire(BaseModel):
    """Base of all bodies; built from the store's rows by attribute."""

    model_config = ConfigDict(from_attributes=True, frozen=True)


class Fault(Wire):
    """What went wrong (RFC 9457). `code` is stable; `detail` is for people."""

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str
    context: dict[str, Any] = {}


class Harvest(Wire):
    """Items the source announced, by what became of them."""

    items: int
    expected: int
    fetched: int
    changed: int
    embargoed: int
    failed: int
    gone: int
    reasons: dict[str, int]


class Verdicts(Wire):
    """Trajectories by outcome and reason."""

    kept: int
    kept_negative: int
    rejected: int
    unjudged: int
    reasons: dict[str, int]


class LeftOut(Wire):
    """Kept trajectories that a snapshot does not hold: by pool where it is no split, else by selection reason."""

    pools: dict[str, int]
    selection: dict[str, int]


class SnapshotFigures(Wire):
    """A snapshot in short."""

    id: str
    rows: dict[str, int]
    audit: dict[str, bool]
    left_out: LeftOut


class Refusal(Wire):
    """Why there is no snapshot of the present corpus."""

    code: str
    message: str


class Stats(Wire):
    """The corpus in figures; the same as `sluice stats --json`."""

    races: int
    trajectories: int
    by_class: dict[str, int]
    verdicts: Verdicts
    clusters: int
    pools: dict[str, int]
    snapshot: SnapshotFigures | None
    refusal: Refusal | None
    harvest: Harvest
    commitments: dict[str, int]
    """Races that have a seed commitment, by how it stands."""
    rows: list[dict[str, str | int | None]] | None = None
    """Counts by the dimensions asked for with `by`; null without it."""


class SeedCommitment(Wire):
    """How the commitment to a race's world seed stands."""

    state: CommitmentState
    checks: dict[Check, Result]
    """What was checked, by name. `drand_signature` never is: ask a drand client."""


class Race(Wire):
    """One SN15 race and how far its harvest has come."""

    race_id: str
    race_number: int | None
    status: str
    suite_id: int | None
    started_at: datetime | None
    completed_at: datetime | None
    agents: int
    ledger: dict[str, int]
    """Items by state."""
    seed_commitment: SeedCommitment | None
    """Null for a race that has none, or was not asked about yet."""


class Races(Wire):
    """All races, newest first."""

    races: list[Race]


class TrajectoryItem(Wire):
    """One trajectory without its content; verdict fields are null while it is unjudged."""

    trajectory_id: int
    eval_run_id: str
    item_key: str
    problem_id: str
    kind: str
    category: str
    agent: str
    race_id: str | None
    size_bytes: int
    harvested_at: datetime
    outcome: str | None
    reason: str | None
    structural_class: str | None
    trust: str | None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def trajectory_key(self) -> str:
        """Name of the trajectory that holds on every machine; the rows of snapshots carry it."""
        return trajectory_key(self.eval_run_id, self.problem_id)


class TrajectoryPage(Wire):
    """One page of trajectories in order of id."""

    trajectories: list[TrajectoryItem]
    next_after: int | None
    """Give it as `after` for the next page; null: this was the last."""


class CallProvenance(Wire):
    """Who issued one tool call, and the rule that decided."""

    step: int
    call: int
    issuer: str
    trust: str
    rule: str
    inference: int | None = None


class Verdict(Wire):
    """What the rule set says of the trajectory. `signals` and `answer` are null while content is withheld."""

    outcome: str
    reason: str
    structural_class: str
    trust: str
    calls: list[CallProvenance]
    signals: dict[str, Any] | None
    answer: list[str] | None


class Call(Wire):
    """One tool call and what came back. All of it was written by strangers; the domain bounds how deep it nests."""

    name: str
    arguments: Any
    call_id: str
    result: Any
    error_code: str | None


class Step(Wire):
    """One turn of the agent."""

    index: int
    think: str
    calls: list[Call]
    response: str
    timestamp_ms: int | None
    shopper_message: str | None


class Content(Wire):
    """What the agent did, as far as its record could be read."""

    query: str | None
    steps: list[Step]
    defects: list[str]
    unknown_fields: list[str]
    """Places in the payload that Sluice keeps and does not read, as JSON Pointers with `*` for positions in lists."""


class TrajectoryDetail(TrajectoryItem):
    """One trajectory with its verdict and, where it may be shown, its content."""

    verdict: Verdict | None
    judgement: dict[str, Any] | None
    """What SN15 said of it; null while unjudged, and while content is withheld.

    `failure_category` is in Sluice's one spelling, `failure_given` as it came.
    """
    content: Content | None
    withheld: Withheld | None
    """Why `content` is null. `held_out`: the problem is held for future evaluation or in no pool, or it is an eval
    problem and this trajectory is in no published snapshot. `redacted`: it was taken down."""


class SnapshotItem(SnapshotFigures):
    """A published snapshot."""

    published_at: datetime
    spec_digest: str


class Snapshots(Wire):
    """All published snapshots, newest first."""

    snapshots: list[SnapshotItem]


class SnapshotFile(Wire):
    """One data file of a snapshot; `url` is relative to the service."""

    name: str
    config: str | None
    """None: of all configurations."""
    split: str
    format: str
    rows: int
    """Lines of the file; one row may give several."""
    bytes: int
    sha256: str
    url: str


class SnapshotDetail(SnapshotItem):
    """A published snapshot with its files."""

    source_races: list[str]
    licence: str
    files: list[SnapshotFile]


class RowMarks(Wire):
    """The rows of a snapshot that one thing has become known of."""

    rows: int
    since: datetime
    trajectory_keys: list[str]


class ContactRows(Wire):
    """Rows of one split whose problems share a leak cluster with an item of a benchmark."""

    rows: int
    direct: int
    """Rows whose problem touches an item itself."""
    trajectory_keys: list[str]


class SnapshotContacts(Wire):
    """A benchmark registered since, that rows of the snapshot touch."""

    benchmark: str
    policy: str
    since: datetime
    """When the benchmark was registered."""
    splits: dict[str, ContactRows]


class SnapshotStatus(Wire):
    """What has been learned about a snapshot since it was published."""

    model_config = ConfigDict(extra="allow")

    state: str
    """`published`, or `marked` when something has become known of its rows."""
    marks: dict[str, RowMarks] = {}
    """Rows by reason: SN15 no longer counts them, or says otherwise of them than when the snapshot was made."""
    invalidated_runs: list[str]
    contaminated_by: list[SnapshotContacts]
    redacted_rows: list[str]


class Health(Wire):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Ready(Wire):
    """Everything the service needs answers."""

    status: Literal["ready"] = "ready"
    database: bool
    schema_current: bool
    redis: bool
