"""Snapshot ids as people type them: whole, or their first digits. Looks nothing up."""

import re
from collections.abc import Iterable

from service.domain.rows.manifest import SNAPSHOT_ID
from service.errors import ErrorCode, SluiceError

SHORTEST = 8
"""Fewer digits than this name nothing: what is unique today may not be tomorrow."""


def is_whole(given: str) -> bool:
    """Whether this is an id, not the beginning of one.

    Raises:
        SluiceError: BAD_INPUT when it is neither.
    """
    if re.fullmatch(SNAPSHOT_ID, given):
        return True
    if not re.fullmatch(r"[0-9a-f]{1,63}", given):
        raise SluiceError(ErrorCode.BAD_INPUT, f"{given!r} is no snapshot id: 64 hexadecimal digits, or the first few")
    if len(given) < SHORTEST:
        raise SluiceError(ErrorCode.BAD_INPUT, f"{given!r} is too short for an id; give at least {SHORTEST} digits")
    return False


def find(given: str, published: Iterable[str]) -> str:
    """The one id that begins so.

    Raises:
        SluiceError: BAD_INPUT for what is no beginning of an id or of several; NOT_FOUND when there is none.
    """
    if is_whole(given):
        return given
    meant = sorted({each for each in published if each.startswith(given)})
    if not meant:
        raise SluiceError(ErrorCode.NOT_FOUND, f"there is no snapshot whose id begins with {given}")
    if len(meant) > 1:
        raise SluiceError(ErrorCode.BAD_INPUT, f"{len(meant)} snapshots' ids begin with {given}; give more digits")
    return meant[0]
