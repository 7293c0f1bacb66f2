"""Files of questions as the items of a benchmark. What an item means in the leak graph is `benchmarks`'s to say."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from service.domain.leaks.benchmarks import BenchmarkItem
from service.errors import ErrorCode, SluiceError

MAX_QUERY_CHARACTERS = 100_000
MAX_GOLD_IDS = 1_000
"""Of one item; the longest of ShoppingBench has four."""


def read_items(
    lines: Iterable[tuple[int, bytes | None]], query_field: str = "query", gold_field: str = "reward"
) -> tuple[BenchmarkItem, ...]:
    """Read a JSONL file of questions.

    Args:
        lines: number and JSON object of each line that is not blank; None is one too long to be read.
        query_field: key of the question's text.
        gold_field: key of the right products: an id, an object with a `product_id`, or a list of either.

    Raises:
        SluiceError: BAD_INPUT, with the line, for one that cannot be read, or that has neither text nor products.
    """
    items = tuple(_item(number, line, query_field, gold_field) for number, line in lines)
    if not items:
        raise SluiceError(ErrorCode.BAD_INPUT, "there are no items")
    return items


def joined_items(files: Iterable[Sequence[BenchmarkItem]]) -> tuple[BenchmarkItem, ...]:
    """The items of several files as those of one, numbered as if the files lay behind each other."""
    joined: list[BenchmarkItem] = []
    before = 0
    for items in files:
        joined += (item._replace(line=before + item.line) for item in items)
        before += max((item.line for item in items), default=0)
    return tuple(joined)


def _item(number: int, line: bytes | None, query_field: str, gold_field: str) -> BenchmarkItem:
    if line is None:
        raise _fault(number, "longer than any question")
    try:
        told = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _fault(number, f"no JSON: {error}") from error
    if not isinstance(told, dict):
        raise _fault(number, "not an object")
    query = told.get(query_field)
    if query is not None and not isinstance(query, str):
        raise _fault(number, f"`{query_field}` is no text")
    if query is not None and len(query) > MAX_QUERY_CHARACTERS:
        raise _fault(number, f"`{query_field}` is longer than {MAX_QUERY_CHARACTERS} characters")
    gold_ids = tuple(sorted(set(_gold_ids(number, gold_field, told.get(gold_field)))))
    if len(gold_ids) > MAX_GOLD_IDS:
        raise _fault(number, f"`{gold_field}` names more than {MAX_GOLD_IDS} products")
    text = query.strip().replace("\0", "\N{REPLACEMENT CHARACTER}") if query else ""
    if not text and not gold_ids:
        raise _fault(number, f"neither a text in `{query_field}` nor products in `{gold_field}`")
    return BenchmarkItem(number, text or None, gold_ids)


def _gold_ids(number: int, gold_field: str, gold: Any) -> Iterator[str]:
    match gold:
        case None:
            return
        case list():
            for each in gold:
                yield from _gold_ids(number, gold_field, each)
        case {"product_id": (str() | int()) as product_id, **_rest} if not isinstance(product_id, bool):
            yield from _gold_ids(number, gold_field, product_id)
        case bool() | float() | dict():
            raise _fault(number, f"`{gold_field}` names no product")
        case _:
            product_id = str(gold).strip()
            if not product_id or "\0" in product_id:
                raise _fault(number, f"`{gold_field}` names no product")
            yield product_id


def _fault(number: int, why: str) -> SluiceError:
    return SluiceError(ErrorCode.BAD_INPUT, f"line {number}: {why}", line=number)
