"""Who takes part in the demo races: agents of every structural class, several of them agentic and of differing skill.

Names and numbers only; how an agent behaves is in `agents` and `episodes`.
"""

from dataclasses import dataclass

from service.world.agents import Agent, Harness
from service.world.episodes import Player

_DEEPSEEK = "deepseek-ai/DeepSeek-V3.2-TEE"
_KIMI = "moonshotai/Kimi-K2.5-TEE"
_QWEN = "Qwen/Qwen3-32B-TEE"

ASTER = Agent("aster", Harness.REACT, "planner", 0.95, _DEEPSEEK, flaw_rate=0.06)
ASTER_COPY = Agent("asterisk", Harness.REACT, "planner", 0.9, _DEEPSEEK, flaw_rate=0.06)
"""Another miner's copy of aster: the same family under another hotkey."""
BRIAR = Agent("briar", Harness.NATIVE, "careful", 0.9, _KIMI, flaw_rate=0.08, outage_rate=0.02)
CLOVER = Agent("clover", Harness.REACT, "terse", 0.8, _QWEN, flaw_rate=0.12, outage_rate=0.05)
DOGWOOD = Agent("dogwood", Harness.NATIVE, "planner", 0.7, _KIMI, flaw_rate=0.08, reasoning_rate=0.06)
ELDER = Agent("elder", Harness.MIXED, "careful", 0.85, _DEEPSEEK)
FENNEL = Agent("fennel", Harness.SUB_TASK, "terse", 0.8, _QWEN)
GORSE = Agent("gorse", Harness.SCRIPTED, "terse", 0.7, _QWEN)
HAZEL = Agent("hazel", Harness.ECHOED, "planner", 0.8, _DEEPSEEK)
IVY = Agent("ivy", Harness.FORGED, "careful", 0.85, _DEEPSEEK)
JUNIPER = Agent("juniper", Harness.CRASHING, "terse", 0.5, _QWEN)


@dataclass(frozen=True, slots=True)
class Entry:
    """One evaluation of an agent version in a race."""

    agent: Agent
    version: int = 1
    validator: int = 0
    qualifies: bool = False
    """Whether its run on the public suite is part of this race's folder."""

    @property
    def folder(self) -> str:
        """Name of its folder; a second validator's run of the same version has one of its own."""
        return self.agent.slug if self.validator == 0 else f"{self.agent.slug}.validator-{self.validator + 1}"


LEGACY_RACES: tuple[tuple[Entry, ...], ...] = (
    (
        Entry(ASTER, qualifies=True),
        Entry(ASTER, validator=1),
        Entry(BRIAR, qualifies=True),
        Entry(CLOVER),
        Entry(ELDER),
        Entry(FENNEL, qualifies=True),
        Entry(GORSE),
        Entry(IVY),
        Entry(JUNIPER),
    ),
    (
        Entry(ASTER_COPY),
        Entry(BRIAR),
        Entry(CLOVER),
        Entry(DOGWOOD, qualifies=True),
        Entry(DOGWOOD, validator=1),
        Entry(HAZEL),
        Entry(FENNEL),
        Entry(GORSE),
    ),
)

PLAYERS = (
    Player("kelp", asks=0.95, skill=0.95),
    Player("lupin", asks=0.7, skill=0.9),
    Player("mallow", asks=0.9, skill=0.6),
    Player("nettle", asks=0.2, skill=0.5, breaks=0.1),
)
