"""JSON that strangers nested, cut to a depth that every serialiser and every reader can follow."""

from typing import Annotated, Any

from pydantic import BeforeValidator

DEPTH_MAX = 64
CUT = f"(nested deeper than {DEPTH_MAX} levels)"


def cut(value: Any, levels: int = DEPTH_MAX) -> Any:
    """The value, with whatever lies below so many levels replaced by `CUT`."""
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        return CUT
    if isinstance(value, dict):
        return {name: cut(below, levels - 1) for name, below in value.items()}
    return [cut(below, levels - 1) for below in value]


Foreign = Annotated[Any, BeforeValidator(cut)]
