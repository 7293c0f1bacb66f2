"""Equal values, equal bytes; everything JSON cannot say is refused."""

import dataclasses
from enum import StrEnum

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.canonical import canonical_json, digest

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def test_keys_are_sorted_and_nothing_is_padded() -> None:
    assert canonical_json({"b": [1, 2.5], "a": "é"}) == '{"a":"é","b":[1,2.5]}'.encode()


def test_digest_is_the_sha256_of_the_bytes() -> None:
    # printf '{}' | sha256sum
    assert digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@given(JSON)
def test_reading_back_and_spelling_again_changes_nothing(value: object) -> None:
    spelled = canonical_json(value)
    if not _has_lone_surrogate(spelled):
        assert canonical_json(msgspec.json.decode(spelled)) == spelled


@given(st.dictionaries(st.text(), st.integers(), min_size=2))
def test_insertion_order_does_not_matter(value: dict[str, int]) -> None:
    assert canonical_json(value) == canonical_json(dict(reversed(value.items())))


@given(st.frozensets(st.text(), min_size=2))
def test_a_set_is_spelled_as_a_sorted_list(value: frozenset[str]) -> None:
    assert canonical_json(value) == canonical_json(set(reversed(sorted(value))))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_numbers_without_a_spelling_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="Out of range"):
        canonical_json(value)


@pytest.mark.parametrize("value", [{1: "a"}, object(), b"bytes", {"a": {None: 1}}])
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)


def test_records_are_spelled_as_objects() -> None:
    class Colour(StrEnum):
        RED = "red"

    class Struct(msgspec.Struct, frozen=True):
        colour: Colour

    @dataclasses.dataclass(frozen=True)
    class Record:
        struct: Struct
        tags: frozenset[str]

    record = Record(Struct(Colour.RED), frozenset({"b", "a"}))
    assert canonical_json(record) == b'{"struct":{"colour":"red"},"tags":["a","b"]}'


def _has_lone_surrogate(spelled: bytes) -> bool:
    return spelled != spelled.decode("utf-8", "replace").encode()
