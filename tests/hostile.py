"""Strategies for what strangers send: any bytes, and valid payloads with a part made hostile or bytes disturbed."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

HOLE = "@hole@"


def nested(depth: int, inside: str = "1") -> str:
    """Lists in lists, as JSON text."""
    return "[" * depth + inside + "]" * depth


SPELLINGS = st.sampled_from(
    [
        *("null", "true", "0", "-1", "1e999", "-1e999", "NaN", "Infinity", "9" * 400, "1e308", "-0.0", "0.1"),
        *('""', '"x"', '"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\\u202e<b>"', '"' + "x" * 5_000 + '"'),
        *('"<tool_call>{"', '"</think>"', '"<tool_response>a</tool_response>"', '"{\\"a\\": 1}"', '"[[[["'),
        *("[]", "{}", "[null]", "[[]]", '{"a": 1, "a": {"a": []}}', '{"": {"\\ud800": 0}}', '["a", 1, null, {}]'),
        *(nested(60), nested(70), nested(1_100), "[" + "{}," * 3_000 + "{}]", '{"a":' * 90 + "1" + "}" * 90),
    ]
)
"""JSON text, or nearly, to be put in place of any part."""


def parts_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of every part of a JSON value, itself included."""
    yield path
    if isinstance(value, dict | list):
        for name, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from parts_of(member, (*path, name))


def with_hole(value: Any, path: tuple[Any, ...]) -> Any:
    """A copy of a JSON value with one part replaced by the hole."""
    if not path:
        return HOLE
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = with_hole(copied[path[0]], path[1:])
    return copied


def spoilt(valid: Any) -> st.SearchStrategy[bytes]:
    """A valid JSON value with one part, or one key, made hostile."""
    paths = list(parts_of(valid))

    def spell(path: tuple[Any, ...], spelling: str) -> bytes:
        return json.dumps(with_hole(valid, path)).replace(f'"{HOLE}"', spelling, 1).encode()

    return st.builds(spell, st.sampled_from(paths), SPELLINGS)


@st.composite
def disturbed(draw: st.DrawFn, valid: bytes) -> bytes:
    """Valid bytes with a few stretches cut out, doubled, or written over."""
    body = bytearray(valid)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(body)))
        end = min(len(body), start + draw(st.integers(0, 40)))
        instead = draw(st.one_of(st.just(b""), st.just(bytes(body[start:end]) * 2), st.binary(max_size=12)))
        body[start:end] = instead
    return bytes(body)


def hostile(valid: Any) -> st.SearchStrategy[bytes]:
    """All of it."""
    return st.one_of(spoilt(valid), disturbed(json.dumps(valid).encode()), st.binary(max_size=400))
