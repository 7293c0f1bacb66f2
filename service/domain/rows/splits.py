"""Where a row belongs: its dataset configuration, and its side of the leak boundary. Chooses no row."""

from enum import StrEnum

from service.domain.attribution.provenance import StructuralClass
from service.domain.filter.structure import Outcome, Verdict


class Config(StrEnum):
    """Which dataset configuration a row belongs to; they are never mixed."""

    AGENTIC = "agentic"
    """The model is known to have issued the calls."""
    UNATTRIBUTED = "unattributed"
    """Passed, but no evidence says who issued the calls (envpack)."""
    NEGATIVE = "negative"
    """A clean failure of the model's own: an example of what not to do. Of train problems alone."""
    REJECTED = "rejected"
    """What was left out, with the reason. Of train problems alone."""


TRAINED = frozenset({Config.AGENTIC, Config.UNATTRIBUTED})
"""Configurations whose rows are examples to follow."""


class Split(StrEnum):
    """Which side of the leak boundary a row is on."""

    TRAIN = "train"
    EVAL = "eval"


def row_config(verdict: Verdict) -> Config:
    """The configuration a verdict belongs to: agentic only on evidence that the model issued every call."""
    return config_of(verdict.outcome, verdict.structural_class)


def config_of(outcome: str, structural_class: str) -> Config:
    """The same of a verdict as it is stored."""
    if outcome != Outcome.KEPT:
        return Config.NEGATIVE if outcome == Outcome.KEPT_NEGATIVE else Config.REJECTED
    return Config.AGENTIC if structural_class == StructuralClass.AGENTIC else Config.UNATTRIBUTED
