"""What a static scan of an agent's released source found. The source is data: it is parsed, and never run or imported.

Not a verdict: what a finding means for a trajectory is `provenance` and `trust`. A scan holds names and line numbers,
and no text of the source.
"""

from enum import StrEnum

import msgspec

SCANNER_VERSION = "sluice-scan/1"
"""A change that can change a finding is a new version."""


class Dispatch(StrEnum):
    """Who decides which tool is called next, as far as the source shows."""

    MODEL = "model"
    """Every place that calls a tool takes name or arguments out of a model's reply."""
    CODE = "code"
    """Tools are called by name, with arguments that no reply names the call for."""
    BOTH = "both"
    NONE = "none"
    """No place that calls a tool was found."""


class FindingKind(StrEnum):
    """What a line of the source does."""

    TOUCHES_LOG = "touches_log"
    """It names a file or field of the log that only the executor and its client write."""
    CODE_DISPATCH = "code_dispatch"
    MODEL_DISPATCH = "model_dispatch"
    CONSTANT_THINK = "constant_think"
    """A think text that stands in the source."""
    MODEL_REQUEST = "model_request"
    """It asks a language model."""
    OBFUSCATED = "obfuscated"
    """It runs text that the scan cannot read."""


class Finding(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One thing found. `name` is a name of ours or of the log, never text of the source."""

    kind: FindingKind
    line: int
    name: str
    file: int = 0
    """Place of the file among the sources of an archive, in order of their names."""


class CodeScan(msgspec.Struct, frozen=True, kw_only=True):
    """All that a scan found, in order of lines."""

    scanner: str = SCANNER_VERSION
    is_readable: bool = True
    """False: the source is no Python that parses, so nothing was found in it."""
    dispatch: Dispatch = Dispatch.NONE
    findings: tuple[Finding, ...] = ()
