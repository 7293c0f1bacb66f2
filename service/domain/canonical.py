"""One spelling for every value, so that equal values have equal digests. Not a wire format and not a parser."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec


def canonical_json(value: object) -> bytes:
    """Spell a JSON-able value: keys sorted, no spaces, UTF-8.

    Sets are spelled as sorted lists; dataclasses and structs as objects. Two equal values give equal bytes on every
    machine and Python version.

    Raises:
        ValueError: the value holds NaN or an infinity, which have no JSON spelling.
        TypeError: the value holds something JSON cannot say, or a key that is not a string.
    """
    text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def digest(value: object) -> str:
    """sha256 (64 hex digits) of the value's canonical spelling."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _plain(value: object) -> Any:
    if isinstance(value, Enum):
        return _plain(value.value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        strange = [key for key in value if not isinstance(key, str)]
        if strange:
            raise TypeError(f"an object key must be a string, not {type(strange[0]).__name__}")
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(item) for item in value), key=canonical_json)
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    raise TypeError(f"no canonical spelling for {type(value).__name__}")
