"""Claimed requests against the proxy's log: what fits, what is missing, and what others could have asked."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.attribution.witness import (
    LATEST_MS,
    MOST_NEIGHBOURHOODS,
    Claim,
    Fit,
    Rival,
    Served,
    Span,
    WitnessRule,
    claims,
    compare,
    neighbourhoods,
)
from service.domain.trajectory import ExecutionKind, parse

T = 1_777_921_205_400
"""When the claimed request ended; the log of a second begins 400 ms before."""
FIND, INFER = "/search/find_product", "/inference/chat/completions"
ALWAYS = Span(T - 10**9, T + 10**9)


def search(end_ms: int = T, q: str = "waist+bag", **changes: Any) -> Claim:
    made = Claim(True, FIND, end_ms, {"q": q, "page": "1"}, 200, 1_000, True)
    return made._replace(**changes)


def inference(end_ms: int = T, **changes: Any) -> Claim:
    return Claim(False, INFER, end_ms, {}, 200, 1_000, True)._replace(**changes)


def served(claim: Claim, **changes: Any) -> Served:
    made = Served(claim.end_ms // 1_000 * 1_000, 1_000, "GET", claim.path, claim.arguments, 200, 900, None, None)
    return made._replace(**changes)


def fits(claimed: list[Claim], lines: list[Served], covered: Span = ALWAYS, rivals: list[Rival] = []) -> list[str]:  # noqa: B006
    record = compare(claimed, sorted(lines, key=lambda line: line.at_ms), covered, rivals)
    return [*record["searches"], *record["inferences"]]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Fit.MATCHED),
        ({"at_ms": T - 400 + 2_000}, Fit.MATCHED),  # 1.6 s later than claimed, within the slack of 2 s
        ({"at_ms": T + 2_001, "resolution_ms": 1}, Fit.UNMATCHED),
        ({"at_ms": T - 2_001, "resolution_ms": 1}, Fit.MATCHED),  # it ended within 1 ms of that
        ({"at_ms": T - 2_002, "resolution_ms": 1}, Fit.UNMATCHED),
        ({"path": "/search/other"}, Fit.UNMATCHED),
        ({"arguments": {"q": "shoes", "page": "1"}}, Fit.UNMATCHED),
        ({"arguments": {"q": "waist bag", "page": "1", "price": ""}}, Fit.MATCHED),  # unquoted once more; empty
        ({"status": 503}, Fit.UNMATCHED),
        ({"status": None}, Fit.MATCHED),
        ({"body_bytes": 166}, Fit.SIZE_DIFFERS),  # under a sixth of 1,000 characters
        ({"body_bytes": 167}, Fit.MATCHED),
        ({"body_bytes": 2_003}, Fit.SIZE_DIFFERS),
        ({"body_bytes": None}, Fit.MATCHED),
    ],
)
def test_one_claim_and_one_line(changes: dict[str, Any], expected: Fit) -> None:
    assert fits([search()], [served(search(), **changes)]) == [expected]


def test_a_line_stands_for_one_claim() -> None:
    assert fits([search(), search(T + 1)], [served(search())]) == [Fit.MATCHED, Fit.UNMATCHED]
    assert fits([search(), search(T + 1)], [served(search()), served(search())]) == [Fit.MATCHED, Fit.MATCHED]


def test_claims_of_no_reply_and_outside_the_log() -> None:
    assert fits([search(has_reply=False)], []) == [Fit.NO_REPLY]
    assert fits([search()], [], Span(T + 2_001, T + 9_000)) == [Fit.NOT_COVERED]
    assert fits([search()], [], Span(T - 9_000, T - 2_001)) == [Fit.NOT_COVERED]
    assert fits([search()], [], Span(T - 9_000, T - 2_000)) == [Fit.UNMATCHED]


@pytest.mark.parametrize(
    ("claim", "rival", "expected"),
    [
        (inference(), Rival(Span(T - 5, T + 5), is_same_problem=False), Fit.AMBIGUOUS),
        (inference(), Rival(Span(T + 5, T + 9), is_same_problem=False), Fit.MATCHED),
        (search(), Rival(Span(T - 5, T + 5), is_same_problem=False), Fit.MATCHED),
        (search(), Rival(Span(T - 5, T + 5), is_same_problem=True), Fit.AMBIGUOUS),
    ],
)
def test_what_others_could_have_asked_is_ambiguous(claim: Claim, rival: Rival, expected: Fit) -> None:
    assert fits([claim], [served(claim)], rivals=[rival]) == [expected]
    assert fits([claim], [], rivals=[rival]) == [Fit.UNMATCHED]


def test_claims_close_together_are_looked_up_together() -> None:
    far = T + 200_000
    expected = [Span(T - 3_000, T + 62_000), Span(far - 3_000, far + 2_000)]
    assert neighbourhoods([search(far), search(), search(T + 60_000), search(0), search(10**15)]) == expected
    assert neighbourhoods([search(has_reply=False)]) == []
    scattered = [search(T + number * 10**6) for number in range(200)]
    assert len(neighbourhoods(scattered)) == MOST_NEIGHBOURHOODS


def log_line(path: str, timestamp: Any, **extra: Any) -> dict[str, Any]:
    return {"kind": "summary", "path": path, "timestamp": timestamp, "status_code": 200, **extra}


def test_claims_are_in_the_order_of_the_trajectory() -> None:
    lines = [
        log_line(INFER, 30, response={"choices": []}),
        log_line(FIND, 20, params={"q": "a", "page": 1, "sort": None}, response_truncated=True, response_length=2_500),
        log_line("/metrics", 15),
        log_line("/search/view_product_information", 10, status_code=None),
    ]
    payload = json.dumps([{"extra_info": {"proxy_calls": lines}}]).encode()
    view, find, infer = claims(payload)
    assert find == Claim(True, FIND, 20, {"q": "a", "page": "1"}, 200, 2_500, True)
    assert (view.has_reply, infer.is_search, infer.characters) == (False, False, len('{"choices": []}'))
    parsed = parse(payload, ExecutionKind.LEGACY)
    assert [one.timestamp_ms for one in parsed.searches] == [view.end_ms, find.end_ms]
    assert [one.timestamp_ms for one in parsed.inferences] == [infer.end_ms]


def test_arguments_that_no_client_sends_fit_nothing() -> None:
    deep: Any = "a"
    for _ in range(400):
        deep = [deep]
    params = {"q": deep, "page": 10**300, "price": True, "sort": 1.5, "shop_id": ""}
    payload = json.dumps([{"extra_info": {"proxy_calls": [log_line(FIND, T, params=params)]}}]).encode()
    (claim,) = claims(payload)
    assert claim.arguments == {"q": "\0", "page": "\0", "price": "True", "sort": "1.5", "shop_id": ""}
    assert fits([claim], [served(claim, arguments={})]) == [Fit.UNMATCHED]


@given(st.binary(max_size=100))
def test_any_payload_has_claims_that_can_be_compared(payload: bytes) -> None:
    compare(claims(payload), [], ALWAYS, [])


MOMENTS = st.integers(-3, 12).map(lambda step: T + 500 * step)
CLAIMS = st.builds(lambda at, q: search(at, q), MOMENTS, st.sampled_from("ab"))
LINES = st.builds(lambda at, q: served(search(at, q)), MOMENTS, st.sampled_from("ab"))


@given(st.lists(CLAIMS, max_size=4), st.lists(LINES, max_size=4))
def test_as_many_claims_are_matched_as_can_be(claimed: list[Claim], lines: list[Served]) -> None:
    """Against a search through every pairing."""
    claimed.sort(key=lambda claim: claim.end_ms)
    found = sum(fit == Fit.MATCHED for fit in fits(claimed, lines))
    assert found == most_pairs(claimed, lines)


def most_pairs(claimed: list[Claim], lines: list[Served]) -> int:
    if not claimed:
        return 0
    first, *rest = claimed
    best = most_pairs(rest, lines)
    for place, line in enumerate(lines):
        is_near = line.at_ms - 2_000 <= first.end_ms <= line.at_ms + 3_000
        if is_near and line.arguments == first.arguments:
            best = max(best, 1 + most_pairs(rest, lines[:place] + lines[place + 1 :]))
    return best


def test_the_rule_has_a_digest() -> None:
    assert WitnessRule().digest == WitnessRule().digest
    assert WitnessRule(slack_ms=1).digest != WitnessRule().digest


@pytest.mark.shared
def test_recorded_claims_fit_what_a_server_would_have_sent(shared_data: Path) -> None:
    """Compact UTF-8, as SN15's search server and model providers send, lies within the sizes that are allowed."""
    for path in sorted((shared_data / "runs").glob("ref_*/output.jsonl.gz")):
        for row in map(json.loads, gzip.decompress(path.read_bytes()).splitlines()[:40]):
            dialogue = row["dialogue"] or []
            logged = [call for step in dialogue for call in step["extra_info"].get("proxy_calls", [])]
            logged.sort(key=lambda call: call["timestamp"])
            claimed = claims(json.dumps(dialogue).encode())
            assert len(claimed) == len(logged)
            lines = [
                served(claim, body_bytes=size(call))
                for claim, call in zip(claimed, logged, strict=True)
                if claim.has_reply
            ]
            assert set(fits(claimed, lines, Span(0, LATEST_MS))) <= {Fit.MATCHED, Fit.NO_REPLY}


def size(call: dict[str, Any]) -> int | None:
    if "response" not in call:
        return None
    return len(json.dumps(call["response"], ensure_ascii=False, separators=(",", ":")).encode())


def test_claims_are_numbered_as_the_trajectory_numbers_its_log_whatever_paths_say() -> None:
    """A path that names both is an inference to each: else one line would shift what is witnessed by one."""
    paths = ["/inference/search/x", "/search/find_product", "/search/inference/y", "/inference/chat/completions", "/z"]
    lines = [{"path": path, "timestamp": T + at, "status_code": 200} for at, path in enumerate(paths)]
    payload = json.dumps([{"extra_info": {"proxy_calls": lines}}]).encode()
    trajectory = parse(payload, ExecutionKind.LEGACY)
    claimed = claims(payload)
    assert [claim.end_ms for claim in claimed if claim.is_search] == [line.timestamp_ms for line in trajectory.searches]
    assert [claim.end_ms for claim in claimed if not claim.is_search] == [
        line.timestamp_ms for line in trajectory.inferences
    ]
    assert len(trajectory.searches) == 1
