"""Rule sets are data: named, versioned, and any change of a number is a change of digest."""

from typing import Any

import msgspec
import pytest

from service.domain import trajectory
from service.domain.attribution import replies
from service.domain.canonical import digest
from service.domain.filter.rules import EVIDENCE_1, PAPER_2606_10064, RULE_SETS, SLUICE_1, EvidenceRule, RuleSet
from service.tokenizer import TOKEN_COUNT_METHOD


def test_rule_sets_are_found_by_name() -> None:
    assert {"sluice-1": SLUICE_1, "paper-2606.10064": PAPER_2606_10064} == RULE_SETS


def changed(value: Any) -> Any:
    """Another value of the same type."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "x"
        case EvidenceRule():
            return msgspec.structs.replace(value, bytes_per_token=value.bytes_per_token + 1)
        case _:
            return ("x",)


@pytest.mark.parametrize("name", RuleSet.__struct_fields__)
def test_every_field_moves_the_digest(name: str) -> None:
    other = msgspec.structs.replace(SLUICE_1, **{name: changed(getattr(SLUICE_1, name))})
    assert len({SLUICE_1.digest, PAPER_2606_10064.digest, other.digest}) == 3


@pytest.mark.parametrize("name", EvidenceRule.__struct_fields__)
def test_every_number_of_evidence_moves_the_digest(name: str) -> None:
    evidence = msgspec.structs.replace(EVIDENCE_1, **{name: changed(getattr(EVIDENCE_1, name))})
    assert msgspec.structs.replace(SLUICE_1, evidence=evidence).digest != SLUICE_1.digest


def test_what_we_chose_for_the_paper_is_marked_and_exists() -> None:
    for rules in (PAPER_2606_10064, SLUICE_1):
        choosable = {*rules.__struct_fields__, *(f"gates.{gate}" for gate in rules.gates)}
        assert set(rules.ours) <= choosable


def test_the_named_token_count_is_the_one_that_ships() -> None:
    assert SLUICE_1.token_method == PAPER_2606_10064.token_method == TOKEN_COUNT_METHOD


def test_a_changed_cap_is_a_new_parser() -> None:
    # The caps are in no digest themselves: whoever changes one gives the parser, which is, a new version.
    caps = (trajectory.LARGEST_PAYLOAD_BYTES, trajectory.MOST_PARTS, trajectory.DEEPEST, replies.MAX_DEPTH)
    assert (SLUICE_1.parser, *caps) == ("sluice-parser/2", 4_194_304, 2_000, 64, 12)
    # search, view, answer and logged tools of both harvested kinds
    harvested = (trajectory.ExecutionKind.LEGACY, trajectory.ExecutionKind.ENVPACK)
    assert (
        digest([trajectory.TOOLS[kind] for kind in harvested])
        == "ec97ab446de1cf1969d7af66736f7e8020739d857c9feb74a4f2d833f394788f"
    )
