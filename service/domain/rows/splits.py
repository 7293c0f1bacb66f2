"""Where a kept row belongs: its dataset configuration, and its side of the leak boundary. Chooses no row."""

from enum import StrEnum

from service.domain.attribution.provenance import StructuralClass
from service.domain.filter.structure import Verdict


class Config(StrEnum):
    """Which dataset configuration a row belongs to; they are never mixed."""

    AGENTIC = "agentic"
    """The model is known to have issued the calls."""
    UNATTRIBUTED = "unattributed"
    """Passed, but no evidence says who issued the calls (envpack)."""


class Split(StrEnum):
    """Which side of the leak boundary a row is on."""

    TRAIN = "train"
    EVAL = "eval"


def row_config(verdict: Verdict) -> Config:
    """The configuration a kept verdict belongs to: agentic only on evidence that the model issued every call."""
    return Config.AGENTIC if verdict.structural_class is StructuralClass.AGENTIC else Config.UNATTRIBUTED
