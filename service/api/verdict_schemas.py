"""How a verdict is laid open on the wire, as JSON schemas. Nothing here is used inside."""

from service.api.schemas import Wire
from service.store.figures.dossier import Withheld


class Ground(Wire):
    """A name out of the verdict, and what it means."""

    name: str
    why: str


class Entry(Wire):
    """One thing that happened. All text in `what` was written by strangers; null while content is withheld."""

    kind: str
    """`reply`, `search`, `think` or `call`."""
    step: int | None
    """The step it belongs to in true time; null: after the last."""
    seconds: float | None
    """From the first thing that happened."""
    what: str | None
    issuer: str | None
    rule: str | None
    why: str | None
    inference: int | None
    """Index of the reply that it is, or that holds it."""
    lifted_from: list[int]
    """Replies that state every value of a call which code issued."""


class ExplainedVerdict(Wire):
    """A verdict with its grounds. While content is withheld, `failed`, `contradictions` and `unsupported` are empty
    and `entries` holds calls alone.
    """

    trajectory_id: int
    rules: str
    """Name and version of the rule set."""
    outcome: str
    decided: Ground
    """The gate that decided."""
    failed: list[Ground]
    structural_class: Ground
    trust: Ground
    contradictions: list[Ground]
    unsupported: list[Ground]
    findings: list[Ground]
    """What a scan of the agent's released code found, by line; never its text."""
    lift: str
    """How much of it a reply had stated before code did it: `whole`, `part` or `none`."""
    entries: list[Entry]
    withheld: Withheld | None
    """Why there is no content: `held_out` or `redacted`; null when there is."""
