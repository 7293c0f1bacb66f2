"""Rule sets: what a trajectory must be to be kept, as frozen data with a name, a version and a digest.

Not code: a rule set only holds numbers and switches; `structure` applies them. A changed number is a new version.
"""

import msgspec

from service.domain import canonical
from service.domain.trajectory import PARSER_VERSION


class EvidenceRule(msgspec.Struct, frozen=True, kw_only=True):
    """How far sizes and times in a log may be apart before they disagree, or prove nothing."""

    time_share: float = 0.25
    time_slack_seconds: float = 0.1
    """A log may outlast the reported execution by this much: clocks step, and agents take time to start."""
    bytes_per_token: int = 8
    """No tokenizer packs more into a token on average, so a prompt of n tokens holds at most 8n bytes."""
    reply_bytes_per_token: int = 16
    """A reply longer than this many bytes a token cannot have the reported size."""
    shown_share: float = 0.25
    """Share of the results that prompts must at least have room for, and grow by; agents may trim what they show."""
    history_bytes: int = 400
    """With less history than this between two replies, growth says nothing."""


EVIDENCE_1 = EvidenceRule()


class RuleSet(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the gates of `structure` may vary on."""

    name: str
    version: str
    token_budget: int
    """Most tokens of the rendered chat (system prompt and tool schemas included)."""
    token_method: str
    """Name of the counting method; a change of tokenizer is a change of rules."""
    reasoning_floor: float
    """Lowest reasoning score admitted."""
    unjudged_reasoning: bool
    """Admit rows whose reasoning SN15 did not judge."""
    require_terminate: bool
    """Ask for a `terminate` call after the recommendation."""
    loop_calls: int | None
    """This many identical calls are a loop; None: loops are not a reject."""
    recommended_ids: int | None
    """Most ids one recommendation may name; None: any number."""
    require_grounded_ids: bool
    """Every id an answer or a view names must have appeared in an earlier result."""
    require_format: bool
    """Reject steps that hold neither a call nor a response, and calls without a name or arguments."""
    require_evidence: bool
    """Positive evidence is needed to keep a row: equal counts, usage, logged searches, large enough prompts."""
    keep_negatives: bool
    """Clean failures become `kept_negative`; otherwise they are rejected."""
    ours: tuple[str, ...]
    """Fields the named source leaves open and we had to choose."""
    evidence: EvidenceRule = EVIDENCE_1
    episode_endings: tuple[str, ...] = ("placed_order", "declined")
    """How an episode may end; any other end is no decision of the agent's."""
    episode_faults: tuple[str, ...] = ("environment_error", "verifier_error")
    """Outcomes of an episode that are not the agent's doing."""
    parser: str = PARSER_VERSION
    """What reads payloads and replies: its caps, and which tools search, view and answer."""

    @property
    def digest(self) -> str:
        """Sha256 hex of the canonical form; stored beside every verdict."""
        return canonical.digest(self)


SLUICE_1 = RuleSet(
    name="sluice-1",
    version="1",
    token_budget=14_336,
    token_method="qwen3-chat",
    reasoning_floor=0.5,
    unjudged_reasoning=True,
    require_terminate=False,
    loop_calls=3,
    recommended_ids=4,
    require_grounded_ids=True,
    require_format=True,
    require_evidence=True,
    keep_negatives=True,
    ours=("reasoning_floor", "unjudged_reasoning", "loop_calls", "recommended_ids"),
)
"""Our default. 0.5: the judge found the thinking to use tool results; four ids: no known problem asks for more."""

PAPER_2606_10064 = RuleSet(
    name="paper-2606.10064",
    version="1",
    token_budget=14_336,
    token_method="qwen3-chat",
    reasoning_floor=0.5,
    unjudged_reasoning=False,
    require_terminate=False,
    loop_calls=None,
    recommended_ids=None,
    require_grounded_ids=True,
    require_format=False,
    require_evidence=False,
    keep_negatives=False,
    ours=("reasoning_floor", "unjudged_reasoning", "token_method", "require_grounded_ids", "require_evidence"),
)
"""The five hard rejects, the reasoning gate and the agentic class of arXiv 2606.10064, as far as it states them."""

RULE_SETS: dict[str, RuleSet] = {rules.name: rules for rules in (SLUICE_1, PAPER_2606_10064)}
