"""Specs as users write them: what cannot be meant is named, and what is left out is as in the standing ones."""

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from service.domain.attribution.provenance import Trust
from service.domain.canonical import digest
from service.domain.policy import DEFAULT_POLICIES
from service.domain.rows.candidates import SELECTION_1
from service.domain.rows.spec import STANDING, Choice, options_of, read_options
from service.domain.rows.splits import Split
from service.domain.rows.wanted import Wanted
from service.errors import SluiceError


def test_nothing_said_is_the_standing_spec() -> None:
    assert read_options(b"", is_json=False) == read_options(b"{}", is_json=True) == STANDING
    assert STANDING.policy == SELECTION_1


def test_toml_and_json_say_the_same() -> None:
    told = {"splits": ["eval"], "wanted": {"categories": ["shop"], "max_tokens": 9}, "selection": {"keep": "all"}}
    toml = b'splits = ["eval"]\n[wanted]\ncategories = ["shop"]\nmax_tokens = 9\n[selection]\nkeep = "all"\n'
    options = read_options(toml, is_json=False)
    assert options == read_options(json.dumps(told).encode(), is_json=True)
    assert options.splits == (Split.EVAL,)
    assert options.policy == replace(SELECTION_1, keep_all=True)


def test_stored_options_are_read_back() -> None:
    options = options_of({"selection": {"min_trust": "witnessed"}, "wanted": {"since": "2026-01-02"}})
    assert options_of(msgspec.to_builtins(options)) == options
    assert options.policy.min_trust is Trust.WITNESSED


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        ({"rows": 1}, "`rows`; the spec knows rules, wanted, selection, splits, formats, salted_hotkeys"),
        ({"wanted": {"category": []}}, "wanted knows configs, kinds, classes, categories"),
        ({"selection": {"seed": 1}}, "selection knows keep, per_problem"),
        ({"rules": "mine"}, "rules cannot be 'mine'; there are sluice-1, paper-2606.10064"),
        ({"formats": ["csv"]}, "formats cannot be 'csv'; there are parquet"),
        ({"wanted": {"categories": ["boats"]}}, "wanted.categories cannot be 'boats'; there are product"),
        ({"wanted": {"classes": ["honest"]}}, "Invalid enum value 'honest' - at `$.wanted.classes[0]`"),
        ({"selection": {"keep": "worst"}}, "selection.keep cannot be 'worst'; there are best, all"),
        ({"splits": []}, "splits is empty"),
        ({"splits": ["eval", "eval"]}, "splits names one twice"),
        ({"wanted": {"configs": []}}, "wanted.configs is empty"),
        ({"wanted": {"min_reward": 1.5}}, "wanted.min_reward must be 0 to 1, not 1.5"),
        ({"wanted": {"min_reasoning": -1}}, "wanted.min_reasoning must be 0 to 1, not -1"),
        ({"wanted": {"min_reward": float("nan")}}, "wanted.min_reward must be 0 to 1"),
        ({"wanted": {"max_tokens": 0}}, "wanted.max_tokens must be 1 or more, not 0"),
        ({"selection": {"largest_share": 0.2}}, "selection.largest_share must be 0.5 to 1, not 0.2"),
        ({"wanted": {"since": "01.02.2026"}}, "wanted.since must be a day as YYYY-MM-DD"),
        ({"wanted": {"since": "20260102"}}, "wanted.since must be a day as YYYY-MM-DD"),
        ({"wanted": {"since": "2026-02-01", "until": "2026-01-31"}}, "wanted.since is after wanted.until"),
        ({"wanted": {"max_tokens": "9"}}, "Expected `int | null`, got `str` - at `$.wanted.max_tokens`"),
        ([], "Expected `object`"),
    ],
)
def test_what_cannot_be_meant_is_named(told: Any, fault: str) -> None:
    with pytest.raises(SluiceError) as raised:
        options_of(told)
    assert fault in raised.value.message


@pytest.mark.parametrize(
    ("content", "is_json"), [(b"{", True), (b"a = ", False), (b"\xff", False), (b" " * (1 << 21), False)]
)
def test_what_is_no_document_is_refused(content: bytes, is_json: bool) -> None:
    with pytest.raises(SluiceError, match="the spec is"):
        read_options(content, is_json=is_json)


def test_every_option_changes_the_spec() -> None:
    every: list[dict[str, Any]] = [
        {},
        {"rules": "paper-2606.10064"},
        {"splits": ["eval"]},
        {"formats": ["parquet"]},
        {"salted_hotkeys": True},
        *({"wanted": {name: value}} for name, value in {
            "configs": ["agentic"], "kinds": ["envpack"], "classes": ["agentic"], "categories": ["shop"],
            "races": ["r"], "since": "2026-01-01", "until": "2026-01-01", "min_reward": 1.0,
            "min_reasoning": 0.5, "unanimous": True, "max_tokens": 9,
        }.items()),
        *({"selection": {name: value}} for name, value in {
            "keep": "all", "per_problem": 1, "per_problem_family": 1, "largest_share": 1.0,
            "min_trust": "witnessed", "require_confirmed_query": False,
        }.items()),
    ]  # fmt: skip
    assert {name for each in every for name in each.get("wanted", {})} == set(Wanted.__struct_fields__)
    assert {name for each in every for name in each.get("selection", {})} == set(Choice.__struct_fields__)
    digests = {DEFAULT_POLICIES.spec(options_of(each), "b").digest for each in every}
    digests.add(DEFAULT_POLICIES.spec(STANDING, digest("other benchmarks")).digest)
    assert len(digests) == len(every) + 1
