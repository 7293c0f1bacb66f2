"""Which kept trajectories a snapshot asks for at all, by plain facts of each one alone.

Not the selection among those (`selection`: trust, duplicates, caps, balance) and not a verdict.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

import msgspec

from service.domain.attribution.provenance import StructuralClass
from service.domain.rows.splits import Config
from service.domain.trajectory import ExecutionKind


class Unwanted(StrEnum):
    """Why a kept trajectory is none that a snapshot asks for."""

    CONFIG = "other_config"
    KIND = "other_kind"
    CLASS = "other_class"
    CATEGORY = "other_category"
    RACE = "other_race"
    DATE = "other_date"
    """Its run was completed on another day, or nobody says when."""
    REWARD = "reward_too_low"
    """Or SN15 states none."""
    REASONING = "reasoning_too_low"
    """Or its reasoning is unjudged."""
    DISPUTED = "disputed"
    """Validators who ran this agent version at this problem disagree on its success."""
    TOKENS = "too_many_tokens"


class Wanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a snapshot asks for. Empty lists and None ask for anything."""

    configs: tuple[Config, ...] = tuple(Config)
    kinds: tuple[ExecutionKind, ...] = ()
    classes: tuple[StructuralClass, ...] = ()
    categories: tuple[str, ...] = ()
    races: tuple[str, ...] = ()
    """Race ids; a run outside any race is in none."""
    since: str | None = None
    """First day, in UTC, on which a run may have been completed: YYYY-MM-DD."""
    until: str | None = None
    """Last such day."""
    min_reward: float | None = None
    """0 to 1: least reward that SN15 paid for an episode, or score of a problem."""
    min_reasoning: float | None = None
    """0.1 to 0.9; an unjudged one is left out."""
    unanimous: bool = False
    """Only what all validators agree on who ran the agent version at the problem; one alone agrees with itself."""
    max_tokens: int | None = None
    """Exact tokens of the rendered chat, tools included."""


class Offered(NamedTuple):
    """What is known of one kept trajectory. None: SN15 does not say."""

    config: Config
    kind: str
    structural_class: str
    category: str
    race_id: str | None
    completed_on: str | None
    """Day, in UTC: YYYY-MM-DD."""
    reward: float | None
    reasoning_score: float | None
    is_disputed: bool


def day_of(moment: datetime | None) -> str | None:
    """The day of a moment, in UTC, as wishes name it; None: no moment is known."""
    return None if moment is None else moment.astimezone(UTC).date().isoformat()


def unwanted(offered: Offered, wanted: Wanted) -> Unwanted | None:
    """Why a trajectory is not asked for; None if it is. Its tokens are not looked at."""
    day = offered.completed_on
    dated = wanted.since is not None or wanted.until is not None
    refused = (
        (Unwanted.CONFIG, offered.config not in wanted.configs),
        (Unwanted.KIND, bool(wanted.kinds) and offered.kind not in wanted.kinds),
        (Unwanted.CLASS, bool(wanted.classes) and offered.structural_class not in wanted.classes),
        (Unwanted.CATEGORY, bool(wanted.categories) and offered.category not in wanted.categories),
        (Unwanted.RACE, bool(wanted.races) and offered.race_id not in wanted.races),
        (Unwanted.DATE, dated and (day is None or not (wanted.since or day) <= day <= (wanted.until or day))),
        (Unwanted.REWARD, _is_below(offered.reward, wanted.min_reward)),
        (Unwanted.REASONING, _is_below(offered.reasoning_score, wanted.min_reasoning)),
        (Unwanted.DISPUTED, wanted.unanimous and offered.is_disputed),
    )
    return next((reason for reason, holds in refused if holds), None)


def _is_below(value: float | None, floor: float | None) -> bool:
    return floor is not None and (value is None or value < floor)
