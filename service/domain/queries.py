"""When two query texts ask for the same thing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueryRule:
    """The near-equal rule."""

    threshold: float = 0.50
    informative_tokens: int = 4
