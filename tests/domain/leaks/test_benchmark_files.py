"""Files of questions: every spelling of gold, and every line that cannot be read, by its number."""

import msgspec
import pytest

from service.domain.leaks.benchmark_files import joined_items, read_items
from service.domain.leaks.benchmarks import BenchmarkItem
from service.errors import SluiceError


def read(*documents: object) -> tuple[BenchmarkItem, ...]:
    return read_items((number, msgspec.json.encode(each)) for number, each in enumerate(documents, start=1))


@pytest.mark.parametrize(
    ("gold", "ids_read"),
    [
        ("7", ("7",)),
        (7, ("7",)),
        (["9", 7, "7"], ("7", "9")),
        ({"product_id": "7", "title": ["t"]}, ("7",)),
        ([{"product_id": 7}, {"product_id": "9"}], ("7", "9")),
        (None, ()),
        ([], ()),
    ],
)
def test_gold_is_read_in_all_its_spellings(gold: object, ids_read: tuple[str, ...]) -> None:
    assert read({"query": " a kettle ", "reward": gold}) == (BenchmarkItem(1, "a kettle", ids_read),)


def test_fields_may_have_other_names() -> None:
    lines = [(1, b'{"question": "a kettle", "answer": ["7"]}')]
    assert read_items(lines, "question", "answer") == (BenchmarkItem(1, "a kettle", ("7",)),)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"{", "no JSON"),
        (b"[1]", "not an object"),
        (b"{}", "neither"),
        (b'{"query": "  "}', "neither"),
        (b'{"query": 1}', "no text"),
        (b'{"query": "a", "reward": true}', "names no product"),
        (b'{"query": "a", "reward": 1.5}', "names no product"),
        (b'{"query": "a", "reward": {"title": "t"}}', "names no product"),
        (b'{"query": "a", "reward": {"product_id": true}}', "names no product"),
        (b'{"query": "a", "reward": ""}', "names no product"),
        (b'{"query": "a", "reward": "7\\u0000"}', "names no product"),
        (b'{"query": "\xff"}', "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (None, "longer than"),
        (msgspec.json.encode({"query": "a" * 100_001}), "longer than"),
        (msgspec.json.encode({"reward": [str(n) for n in range(1001)]}), "more than"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: bytes | None, fault: str) -> None:
    with pytest.raises(SluiceError, match=f"line 7: .*{fault}"):
        read_items([(6, b'{"query": "a"}'), (7, line)])


def test_a_file_without_items_is_refused() -> None:
    with pytest.raises(SluiceError, match="no items"):
        read_items([])


def test_files_are_numbered_as_if_they_lay_behind_each_other() -> None:
    one, other = BenchmarkItem(3, "a", ()), BenchmarkItem(1, "b", ())
    assert [item.line for item in joined_items([[one], [other], [other]])] == [3, 4, 5]
