"""The error vocabulary: one code for each kind of fault. Knows nothing of HTTP statuses, exit codes or retries."""

from enum import StrEnum


class ErrorCode(StrEnum):
    """What went wrong, in a word machines can match. API statuses and CLI exits are tables elsewhere."""

    BAD_INPUT = "BAD_INPUT"
    """A value given by the user cannot be used; the message names it."""
    NOT_FOUND = "NOT_FOUND"
    PREREQUISITE_MISSING = "PREREQUISITE_MISSING"
    """Something this machine must have is absent (a binary, a folder, a free port)."""
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE"
    """Postgres, Redis or the source did not answer."""
    SCHEMA_OUTDATED = "SCHEMA_OUTDATED"
    DATA_DIR_IN_USE = "DATA_DIR_IN_USE"
    EMPTY_SPLIT = "EMPTY_SPLIT"
    """A snapshot would have no rows in train or in eval; the message names the cause."""
    AUDIT_FAILED = "AUDIT_FAILED"
    COMPONENT_TOO_LARGE = "COMPONENT_TOO_LARGE"
    """One leak cluster holds more of the problems than the plan allows; a person must look."""
    QUARANTINE_TOO_LARGE = "QUARANTINE_TOO_LARGE"
    """New evidence would quarantine more of the problems than the plan allows; a person must look."""
    LEASE_LOST = "LEASE_LOST"
    """Another worker took over the long work this one was doing; nothing it wrote after that counts."""
    DIGEST_MISMATCH = "DIGEST_MISMATCH"
    """Bytes do not have the sha256 they were promised under."""
    STOPPING = "STOPPING"
    """The process was asked to stop while it waited; what it waited for was not begun."""


class SluiceError(Exception):
    """A fault with a name. `context` holds JSON-able facts for logs and problem documents, never secrets."""

    def __init__(self, code: ErrorCode, message: str, **context: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.context = context

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"
