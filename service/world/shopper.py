"""The shopper's mind behind every scripted agent: turns of thought and tool calls, driven by what the tools return.

It stands for a language model that has read the query rightly and may act carelessly: what it wants is the problem's
targets, what it finds comes from the search alone. It writes no log and does not know which harness runs it.
"""

import json
import random
from collections.abc import Generator
from enum import StrEnum
from typing import Any, NamedTuple

from service.domain.sn15.scoring import TITLE_SIMILARITY_MIN, Category, Target, Voucher, meets
from service.world.problems import Problem, title_similarity


class Turn(NamedTuple):
    """What the mind says and asks for in one step."""

    think: str
    calls: list[tuple[str, dict[str, Any]]]
    response: str = ""


Mind = Generator[Turn, list[Any], None]
"""Yields turns and is sent the results of their calls."""


class Flaw(StrEnum):
    """A way to spoil a run that the gates of a filter have a name for."""

    LOOP = "loop"
    TWO_RECOMMENDATIONS = "two_recommendations"
    INVENTED_ID = "invented_id"
    UNKNOWN_TOOL = "unknown_tool"
    STOPS_THINKING = "stops_thinking"


class Voice(NamedTuple):
    """The wording and habits one family of agents shares."""

    start: str
    look: str
    again: str
    choose: str
    budget: str
    finish: str
    brand_first: bool
    """Whether a search starts from the brand, else from the noun."""
    checks_voucher: bool
    views: int
    """Most products viewed for one wish."""


VOICES = {
    "planner": Voice(
        "The user needs {count} product(s). I start with item {item}: \"{words}\".",
        "The search returned {found} products; {named} look right. I check their attributes before choosing.",
        "Nothing fits yet, so I reformulate the query and search for \"{words}\" without filters.",
        "{chosen} wins over {others} because its options and attributes meet the request: {needs}.",
        "The total is {total} PHP; I verify that the voucher brings it within {budget}.",
        "The recommendation is made, so the task is complete.",
        brand_first=True, checks_voucher=True, views=5,
    ),
    "terse": Voice(
        "Search {words}.",
        "{found} hits. View {named}.",
        "No match. Retry with {words}.",
        "{chosen} matches {needs}; {others} do not.",
        "Sum {total}, budget {budget}: check.",
        "Done.",
        brand_first=False, checks_voucher=False, views=4,
    ),
    "careful": Voice(
        "Let me break the request down. Wish {item} of {count} mentions {words}, so I search for those first.",
        "I got {found} results back. Titles alone cannot settle this, so I open {named} and compare their details.",
        "None of the candidates satisfied every condition. I will widen the search: {words}.",
        "Comparing the details, {chosen} is the one with {needs}. I rule out {others}, which miss at least one.",
        "Prices add up to {total}. Before recommending I make sure that the budget of {budget} holds with the voucher.",
        "All wishes are answered and verified; I can close the conversation now.",
        brand_first=True, checks_voucher=True, views=6,
    ),
}  # fmt: skip


class _Pick(NamedTuple):
    product_id: str
    shop_id: str
    price: float


def shop(problem: Problem, voice: Voice, skill: float, flaw: Flaw | None, rng: random.Random) -> Mind:
    """Shop for a problem.

    Args:
        problem: what is wanted; its gold ids are never read.
        voice: wording and habits.
        skill: chance per wish to look at the details before choosing.
        flaw: a defect to show, None for a clean run.
        rng: the only randomness.
    """
    picks: list[_Pick] = []
    for number, target in enumerate(problem.targets, 1):
        shop_id = picks[0].shop_id if picks and _one_shop(problem) else None
        pick = yield from _pick(problem, voice, target, number, shop_id, rng.random() < skill, flaw)
        if pick is not None:
            picks.append(pick)
    if flaw is Flaw.UNKNOWN_TOOL:
        yield Turn("A dedicated tool may know more.", [("search_products", {"query": "x"})])
    if problem.voucher is not None and voice.checks_voucher and picks:
        total = sum(pick.price for pick in picks)
        think = voice.budget.format(total=f"{total:.2f}", budget=f"{problem.voucher.budget:g}")
        yield Turn(think, [("calculate_voucher", _voucher_call(problem.voucher, picks))])
    answer = [pick.product_id for pick in picks]
    if flaw is Flaw.INVENTED_ID and answer:
        answer[0] = str(int(answer[0]) ^ 7)
    if flaw is Flaw.STOPS_THINKING:
        yield Turn("I have seen enough to decide.", [], "")
        return
    think = f"I recommend {', '.join(answer)} in the order asked." if answer else "Nothing suitable was found."
    yield Turn(think, [("recommend_product", {"product_ids": ",".join(answer)})])
    if flaw is Flaw.TWO_RECOMMENDATIONS:
        yield Turn("Once more, to be sure.", [("recommend_product", {"product_ids": ",".join(answer)})])
    yield Turn(voice.finish, [("terminate", {"status": "success" if answer else "failure"})])


def _pick(
    problem: Problem, voice: Voice, target: Target, number: int, shop_id: str | None, looks: bool, flaw: Flaw | None
) -> Generator[Turn, list[Any], _Pick | None]:
    """Search for one wish, look at what may fit, choose; None if the search finds nothing at all."""
    words = _words(target, voice.brand_first)
    query = {"q": words, **_filters(target), **({"shop_id": shop_id} if shop_id else {})}
    think = voice.start.format(count=len(problem.targets), item=number, words=words)
    rows = (yield Turn(think, [("find_product", query)]))[0]
    for _ in range(3 if flaw is Flaw.LOOP and number == 1 else 0):
        rows = (yield Turn("The results may have changed, so I search again.", [("find_product", query)]))[0]
    candidates = _candidates(rows, target)
    if not candidates:
        words = _words(target, not voice.brand_first)
        rows = (yield Turn(voice.again.format(words=words), [("find_product", {"q": words})]))[0]
        candidates = _candidates(rows, target) or rows[:1]
    if not candidates:
        return None
    chosen = candidates[0]
    if looks:
        viewed = candidates[: voice.views]
        ids = ",".join(row["product_id"] for row in viewed)
        think = voice.look.format(found=len(rows), named=ids.replace(",", ", "))
        details = (yield Turn(think, [("view_product_information", {"product_ids": ids})]))[0]
        seen = {entry["product_id"]: entry for entry in details}
        fitting = [row for row in viewed if meets({**seen.get(row["product_id"], {}), **row}, target, title_similarity)]
        chosen = (fitting or viewed)[0]
        if problem.category is Category.PRODUCT and len(viewed) > 1:
            yield from _verify(voice, target, chosen, viewed)
    return _Pick(chosen["product_id"], chosen["shop_id"], chosen["price"])


def _verify(voice: Voice, target: Target, chosen: dict[str, Any], viewed: list[dict[str, Any]]) -> Mind:
    """Say why, and check the choice with the matching tool."""
    others = ", ".join(row["product_id"] for row in viewed if row is not chosen)
    needs = {key.replace("_", " "): value for key, value in target.options}
    listed = ", ".join(f"{key} {value}" for key, value in needs.items()) or "the price asked"
    requirements = json.dumps(dict(target.options))
    think = voice.choose.format(chosen=chosen["product_id"], others=others, needs=listed)
    yield Turn(think, [("check_product_match", {"product_id": chosen["product_id"], "requirements": requirements})])


def _words(target: Target, brand_first: bool) -> str:
    title = target.title[0].lower().split()
    return " ".join(title if brand_first else title[1:])


def _filters(target: Target) -> dict[str, str]:
    filters = {}
    for bounds in target.price:
        for low, high in bounds.values():
            filters["price"] = f"{low or 0:g}-{'' if high is None else format(high, 'g')}"
    if target.service:
        filters["service"] = ",".join(target.service)
    return filters


def _candidates(rows: list[dict[str, Any]], target: Target) -> list[dict[str, Any]]:
    return [row for row in rows if title_similarity(row["title"], target.title[0]) >= TITLE_SIMILARITY_MIN]


def _one_shop(problem: Problem) -> bool:
    return problem.category is Category.SHOP or (problem.voucher is not None and problem.voucher.voucher_type == "shop")


def _voucher_call(voucher: Voucher, picks: list[_Pick]) -> dict[str, Any]:
    fixed = voucher.discount_type == "fixed"
    return {
        "product_prices": ",".join(str(pick.price) for pick in picks),
        "voucher_type": voucher.discount_type,
        "discount_value": voucher.face_value if fixed else round((voucher.discount or 0) * 100, 2),
        "threshold": voucher.threshold,
        "budget": voucher.budget,
        "cap": voucher.cap or 0,
    }
