"""The gates of `sluice-1` as a script over dicts would have them: for legacy dialogues, and only what those need.

Written apart from the service, to be compared with it: same outcome and reason for every row, whatever reads the JSON.
It keeps no evidence, no signals and no broken payload, knows three forms of calls in replies, and reads no
released code and no witness. Only the texts of prompt and tools and the tokenizer are the service's.
"""

import json
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from service.domain.filter.chat_size import tokens_at_most
from service.domain.rows.prompts import PUBLISHED_TOOLS, SYSTEM_PROMPTS
from service.domain.sn15.judgement import Judgement
from service.domain.tools import ExecutionKind

BUDGET = 14_336
OPENING = SYSTEM_PROMPTS[ExecutionKind.LEGACY] + json.dumps(PUBLISHED_TOOLS)
LOGGED = ("find_product", "view_product_information")
SEVERAL = ("shop", "store", "seller", "voucher", "budget")

Loads = Callable[[bytes], Any]
Row = dict[str, Any]


class Run(NamedTuple):
    """A dialogue laid out."""

    steps: list[Row]
    calls: list[tuple[int, Row]]
    """Step and call."""
    replies: list[Row]
    searches: list[Row]
    query: str
    seconds: float | None


def verdict(
    payload: bytes, judgement: Judgement, loads: Loads, spell: Callable[[Any], Any], count: Callable[[str], int]
) -> tuple[str, str]:
    """Outcome and reason. `loads` reads JSON, `spell` writes it."""
    try:
        steps, has_nan = loads(payload), False
    except ValueError:
        steps, has_nan = json.loads(payload), True
    if not steps:
        return "rejected", "empty"
    if has_nan or (loads is json.loads and b"NaN" in payload and not is_strict(payload)):
        return "rejected", "bare_nan"
    run = laid_out(steps)
    reasons = []
    for gate in (shape, lambda run, _: success(judgement), lambda run, _: belief(run, judgement, loads, spell), rest):
        reason = gate(run, spell)
        if reason:
            reasons.append(reason)
    if not reasons and over_budget(run, spell, count):
        reasons.append("token_budget")
    if reasons == ["not_successful"]:
        return "kept_negative", "not_successful"
    return ("rejected", reasons[0]) if reasons else ("kept", "kept")


def is_strict(payload: bytes) -> bool:
    """Whether NaN stands in texts only."""
    found: list[str] = []
    json.loads(payload, parse_constant=found.append)
    return not found


def laid_out(steps: list[Row]) -> Run:
    """Flatten calls and log."""
    extras = [step.get("extra_info") or {} for step in steps]
    messages = [(step.get("completion") or {}).get("message") or {} for step in steps]
    lines = sorted((line for extra in extras for line in extra.get("proxy_calls") or ()), key=lambda x: x["timestamp"])
    return Run(
        [{**message, "at": extra.get("timestamp")} for message, extra in zip(messages, extras, strict=True)],
        [(place, call) for place, message in enumerate(messages) for call in message.get("tool_call") or ()],
        [line for line in lines if "/inference/" in line["path"]],
        [line for line in lines if "/search/" in line["path"]],
        next((extra["query"] for extra in extras if extra.get("query")), ""),
        next((extra["execution_time"] for extra in extras if extra.get("execution_time") is not None), None),
    )


def product_ids(arguments: Row) -> list[str]:
    """Ids a call names."""
    named = arguments.get("product_ids") or arguments.get("product_id") or ""
    parts = named if isinstance(named, list) else str(named).split(",")
    return [name for name in dict.fromkeys(str(part).strip() for part in parts) if name]


def shape(run: Run, _: object) -> str | None:
    """Pairing, one answer that can be read, an end."""
    if any(call.get("result") is None for _, call in run.calls):
        return "unpaired_call"
    answers = [call for _, call in run.calls if call["name"] == "recommend_product"]
    if len(answers) != 1:
        return "recommend_count"
    if not product_ids(answers[0]["parameters"]):
        return "unparseable_arguments"
    last = {call["name"] for call in run.steps[-1].get("tool_call") or ()}
    return None if last & {"recommend_product", "terminate"} else "think_then_stop"


def success(judgement: Judgement) -> str | None:
    """SN15's word."""
    good = judgement.success
    if good is None:
        good = judgement.score >= 1.0 if judgement.score is not None else judgement.status == "SUCCESS"
    if not good:
        return "not_successful"
    return "reasoning_low" if (judgement.reasoning_score or 1.0) < 0.5 else None


def message_of(reply: Row) -> Row | None:
    """The assistant's message; None where it was dropped or never came."""
    choices = (reply.get("response") or {}).get("choices")
    return choices[0]["message"] if choices else None


def calls_of(message: Row, loads: Loads) -> tuple[list[Row], str]:
    """Calls of a reply, and text that should be one and could not be read."""
    calls, broken = [], ""
    for native in message.get("tool_calls") or ():
        calls.append({"name": native["function"]["name"], "parameters": loads(native["function"]["arguments"])})
    content = message.get("content") or ""
    opening, closing = ("<tool_call>", "</tool_call>") if "<tool_call>" in content else ("```json", "```")
    for block in content.split(opening)[1:]:
        text = block.split(closing)[0]
        try:
            value = loads(text)
        except ValueError:
            broken += text
            continue
        calls += value if isinstance(value, list) else [value]
    return calls, broken


def key_of(call: Row, spell: Callable[[Any], Any]) -> tuple[str, Any]:
    """The same for calls that mean the same."""
    arguments = call.get("parameters") or call.get("arguments") or {}
    plain = {key: value for key, value in sorted(arguments.items()) if value not in ("", None) and str(value) != "1"}
    return call["name"], spell({key: ",".join(map(str, v)) if isinstance(v, list) else v for key, v in plain.items()})


def belief(run: Run, judgement: Judgement, loads: Loads, spell: Callable[[Any], Any]) -> str | None:
    """Who issued the calls, and whether the logs agree."""
    messages = [message_of(reply) for reply in run.replies]
    waiting: dict[tuple[str, Any], deque[int]] = defaultdict(deque)
    unread = ""
    for place, message in enumerate(messages):
        if message is not None:
            calls, broken = calls_of(message, loads)
            unread += broken
            for call in calls:
                waiting[key_of(call, spell)].append(place)
    holders = []
    for _, call in run.calls:
        queue = waiting.get(key_of(call, spell))
        holders.append(queue.popleft() if queue else None)
    is_unread = any(held is None and call["name"] in unread for held, (_, call) in zip(holders, run.calls, strict=True))
    reported = judgement.inference_total or 0
    unbacked, backed = backing(run)
    if contradicted(run, judgement, messages, unbacked, backed):
        return "contradicted"
    dropped = any(m is None and r.get("status_code") is not None for m, r in zip(messages, run.replies, strict=True))
    is_open = len(run.replies) != reported or dropped or is_unread or unbacked
    prompts = prompt_sizes(run, messages, holders, spell)
    grown = grows(prompts)
    short = any(8 * tokens < len(run.query) + shown for tokens, shown in prompts)
    if any(holder is not None for holder in holders):
        if grown is False and short:
            return "class_echoed"
        if None in holders and not is_open:
            return "class_mixed"
        if None in holders:
            return "class_unknown"
    elif is_open or not run.calls:
        return "class_unknown"
    else:
        return "class_sub_task" if run.replies else "class_scripted"
    usage = [reply["response"].get("usage") for reply, m in zip(run.replies, messages, strict=True) if m is not None]
    tight = any(8 * tokens < len(run.query) + shown / 4 for tokens, shown in prompts)
    lacking = unbacked or tight or grown is False or any(not (u and u.get("completion_tokens")) for u in usage)
    return "unsupported" if lacking else None


def asked_text(params: Row) -> str:
    """Words of a search."""
    return " ".join(unquote_plus(unquote_plus(params.get("q") or params.get("query") or "")).split()).lower()


def backing(run: Run) -> tuple[int, int]:
    """Shown results without a logged search, and with one."""
    asked = {asked_text(search["params"] or {}) for search in run.searches}
    viewed = {name for search in run.searches for name in product_ids(search["params"] or {})}
    unbacked = backed = 0
    for _, call in run.calls:
        if call["name"] in LOGGED and call.get("result") and not isinstance(call["result"], str):
            text = asked_text(call["parameters"])
            found = text in asked if text else viewed.issuperset(product_ids(call["parameters"]))
            backed, unbacked = backed + found, unbacked + (not found)
    return unbacked, backed


def contradicted(run: Run, judgement: Judgement, messages: list[Row | None], unbacked: int, backed: int) -> bool:
    """Counts, times and sizes that cannot all be true."""
    if len(run.replies) != (judgement.inference_total or 0):
        return True
    seconds = run.seconds if judgement.execution_seconds is None else judgement.execution_seconds
    if seconds is not None:
        if run.seconds is not None and abs(run.seconds - seconds) > 0.1 * max(run.seconds, seconds) + 0.1:
            return True
        lines = [*run.replies, *run.searches]
        if lines:
            start = min(line["timestamp"] - (line.get("duration_ms") or 0.0) for line in lines)
            if (max(line["timestamp"] for line in lines) - start) / 1000 > seconds * 1.1 + 0.1:
                return True
    if run.replies and unbacked and not backed:
        return True
    return any(
        len(message["content"] or "") > 16 * (reply["response"]["usage"]["completion_tokens"] + 1)
        for reply, message in zip(run.replies, messages, strict=True)
        if message is not None and message.get("content")
    )


def prompt_sizes(
    run: Run, messages: list[Row | None], holders: list[int | None], spell: Callable[[Any], Any]
) -> list[tuple[int, int]]:
    """For each reply that issued calls its prompt's tokens, and the bytes of results before its step."""
    sizes, seen, shown, done = [], set(), 0, 0
    firsts: dict[int, int] = {}
    for place, (step, _) in enumerate(run.calls):
        firsts.setdefault(step, place)
    for place, holder in enumerate(holders):
        if holder is None or holder in seen:
            continue
        seen.add(holder)
        tokens = ((run.replies[holder].get("response") or {}).get("usage") or {}).get("prompt_tokens")
        if tokens is None:
            continue
        before = firsts[run.calls[place][0]]
        for _, call in run.calls[done:before]:
            shown += len(spell(call["result"]))
        done = max(done, before)
        sizes.append((tokens, shown))
    return sizes


def grows(prompts: list[tuple[int, int]]) -> bool | None:
    """Whether a prompt grew with the results; None: too few results."""
    later = [(tokens - prompts[0][0], shown - prompts[0][1]) for tokens, shown in prompts]
    later = [(more, shown) for more, shown in later if shown >= 400]
    return any(8 * more >= shown / 4 for more, shown in later) if later else None


def rest(run: Run, spell: Callable[[Any], Any]) -> str | None:
    """Loop, too many answers, ids out of nowhere, format."""
    keys = Counter(key_of(call, spell) for _, call in run.calls)
    if keys and max(keys.values()) >= 3:
        return "loop"
    answers = [call for _, call in run.calls if call["name"] == "recommend_product"]
    named = product_ids(answers[-1]["parameters"]) if answers else []
    if len(named) > 4 or (len(named) > 1 and run.query and not any(word in run.query.lower() for word in SEVERAL)):
        return "over_recommend"
    shown: set[str] = set()
    texts: list[str] = [run.query]
    for _, call in run.calls:
        if call["name"] in ("view_product_information", "recommend_product"):
            for name in product_ids(call["parameters"]):
                if name not in shown and not any(name in text for text in texts):
                    return "ungrounded_id"
        result = call.get("result")
        for product in result if isinstance(result, list) else ():
            if isinstance(product, dict):
                shown.add(str(product.get("product_id")))
        texts.append(result if isinstance(result, str) else "")
    is_odd = any(not step.get("tool_call") and not step.get("response") for step in run.steps)
    return "defective_format" if is_odd or any(not call["name"] for _, call in run.calls) else None


def over_budget(run: Run, spell: Callable[[Any], Any], count: Callable[[str], int]) -> bool:
    """More tokens than the budget. Counts only where bytes alone do not tell."""
    parts = [OPENING, "<|im_start|>", run.query]
    parts += [(message_of(reply) or {}).get("content") or "" for reply in run.replies]
    for _, call in run.calls:
        for value in (call["parameters"], call.get("result")):
            text = spell(value)
            parts.append(text if isinstance(text, str) else text.decode())
    text = "\n".join(parts)
    if len(text.encode()) <= BUDGET or tokens_at_most(text, count) <= BUDGET:
        return False
    return count(text) > BUDGET
