"""Rule sets: what a trajectory must be to be kept, as frozen data with a name, a version and a digest.

Not code: a rule set only holds the order of the gates, numbers and names; `gates` applies them. A changed field, or
a change of what a gate or an attribution means, is a new version. What each field means for people is in `wording`.
"""

import msgspec

from service.domain import canonical
from service.domain.filter.reasons import Gate
from service.domain.trajectory import PARSER_VERSION

FILTER_VERSION = "sluice-filter/2"
"""Names the code that attributes, grades and asks: a change that can change a verdict is a new one."""


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
    """Everything that a verdict may vary on."""

    name: str
    version: str
    gates: tuple[Gate, ...]
    """Gates that are asked, in order. Each kind of trajectory passes over those that ask nothing of it."""
    token_budget: int
    """Most tokens of the rendered chat (system prompt and tool schemas included)."""
    token_method: str
    """Name of the counting method; a change of tokenizer is a change of rules."""
    reasoning_floor: float
    """Lowest reasoning score admitted."""
    unjudged_reasoning: bool
    """Admit rows whose reasoning SN15 did not judge."""
    keep_negatives: bool
    """Clean failures become `kept_negative`; otherwise they are rejected."""
    ours: tuple[str, ...]
    """Fields the named source leaves open and we had to choose; a gate is named `gates.NAME`."""
    loop_calls: int = 3
    """This many identical calls are a loop."""
    recommended_ids: int = 4
    """Most ids an answer may name: no known problem asks for more products."""
    single_ids: int = 1
    """Most ids of an answer where the query asks for one product."""
    several_words: tuple[str, ...] = ("shop", "store", "seller", "voucher", "budget")
    """A query asks for one product unless it has one of these words: several are scored by shop or budget alone."""
    episode_endings: tuple[str, ...] = ("placed_order", "declined")
    """How an episode may end; any other end is no decision of the agent's."""
    episode_faults: tuple[str, ...] = (
        *("environment_error", "verifier_error", "infrastructure_error"),
        *("infrastructure", "environment_fault", "world_error"),
    )
    """Outcomes, endings and failure categories of an episode that are not the agent's doing."""
    void_outcomes: tuple[str, ...] = ("exploit", "leakage")
    """Outcomes of an episode by which SN15 voids it: it shows a way around the task, not a way to do it."""
    void_statuses: tuple[str, ...] = ("SKIPPED", "CANCELLED", "STALE", "INVALIDATED")
    """Statuses of an item by which SN15 takes back what it had said of it, or never said it."""
    open_statuses: tuple[str, ...] = ("PENDING", "CLAIMED", "RUNNING")
    """Statuses of an item that is not judged yet: no failure."""
    evidence: EvidenceRule = EVIDENCE_1
    parser: str = PARSER_VERSION
    """What reads payloads and replies: its caps, and which tools search, view and answer."""
    filter: str = FILTER_VERSION
    """What attributes calls, grades evidence and asks the gates' questions."""

    @property
    def label(self) -> str:
        """Name and version, such as `sluice-1/2`."""
        return f"{self.name}/{self.version}"

    @property
    def digest(self) -> str:
        """Sha256 hex of the canonical form; stored beside every verdict."""
        return canonical.digest(self)


SLUICE_1 = RuleSet(
    name="sluice-1",
    version="2",
    gates=(
        *(Gate.READABLE, Gate.INVALIDATED, Gate.HARNESS),
        *(Gate.PAIRING, Gate.ANSWER_COUNT, Gate.ARGUMENTS, Gate.ENDING, Gate.EPISODE_END),
        *(Gate.SUCCESS, Gate.REASONING, Gate.CLASS, Gate.SUPPORT),
        *(Gate.LOOP, Gate.OVER_RECOMMEND, Gate.GROUNDED, Gate.FORMAT, Gate.BUDGET),
    ),
    token_budget=14_336,
    token_method="qwen3-chat",
    reasoning_floor=0.5,
    unjudged_reasoning=True,
    keep_negatives=True,
    ours=(
        *("gates", "reasoning_floor", "unjudged_reasoning", "keep_negatives", "loop_calls", "recommended_ids"),
        *("single_ids", "several_words", "episode_endings", "episode_faults", "void_outcomes", "void_statuses"),
        *("open_statuses", "evidence", "token_method"),
    ),
)
"""Our default. 0.5: the judge found the thinking to use tool results; four ids: no known problem asks for more."""

PAPER_2606_10064 = RuleSet(
    name="paper-2606.10064",
    version="2",
    gates=(
        *(Gate.READABLE, Gate.INVALIDATED, Gate.HARNESS, Gate.SUCCESS, Gate.REASONING),
        *(Gate.PAIRING, Gate.ANSWER_COUNT, Gate.ARGUMENTS, Gate.GROUNDED, Gate.BUDGET, Gate.ENDING),
        *(Gate.EPISODE_END, Gate.CLASS),
    ),
    token_budget=14_336,
    token_method="qwen3-chat",
    reasoning_floor=0.5,
    unjudged_reasoning=False,
    keep_negatives=False,
    ours=(
        *("gates.readable", "gates.invalidated", "gates.harness", "gates.success", "gates.grounded"),
        *("gates.episode_end", "token_method", "reasoning_floor", "unjudged_reasoning", "keep_negatives"),
        *("episode_endings", "episode_faults", "void_outcomes", "void_statuses", "open_statuses", "evidence"),
    ),
)
"""The reasoning gate, the five hard rejects and the agentic class of arXiv 2606.10064, as far as it states them."""

RULE_SETS: dict[str, RuleSet] = {rules.name: rules for rules in (SLUICE_1, PAPER_2606_10064)}
