"""Rule sets are data: named, versioned, and any change of a number is a change of digest."""

import msgspec

from service.domain.rules import PAPER_2606_10064, RULE_SETS, SLUICE_1
from service.tokenizer import TOKEN_COUNT_METHOD


def test_rule_sets_are_found_by_name() -> None:
    assert {"sluice-1": SLUICE_1, "paper-2606.10064": PAPER_2606_10064} == RULE_SETS


def test_every_field_moves_the_digest() -> None:
    digests = {SLUICE_1.digest, PAPER_2606_10064.digest}
    for name, value in msgspec.to_builtins(SLUICE_1).items():
        other = not value if isinstance(value, bool) else f"{value}x" if isinstance(value, str) else ("x",)
        if isinstance(value, int | float) and not isinstance(value, bool):
            other = value + 1
        digests.add(msgspec.structs.replace(SLUICE_1, **{name: other}).digest)
    # one more digest for each field, beside the two that ship
    assert len(digests) == 2 + len(msgspec.to_builtins(SLUICE_1))


def test_what_we_chose_for_the_paper_is_marked_and_exists() -> None:
    assert set(PAPER_2606_10064.ours) <= set(PAPER_2606_10064.__struct_fields__)
    assert set(SLUICE_1.ours) <= set(SLUICE_1.__struct_fields__)


def test_the_named_token_count_is_the_one_that_ships() -> None:
    assert SLUICE_1.token_method == PAPER_2606_10064.token_method == TOKEN_COUNT_METHOD
