"""Secrets and personal data: found as they are written, and nothing found in what shops write."""

import gzip
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.rows.records import build_row, texts
from service.domain.rows.scanning import SECRETS, Kind, masked, scan
from tests.domain.sample_rows import problem, shopping_trajectory, shopping_verdict, source

# Put together here, so that no text of this file looks like one.
KEY = "sk-" + "a1B2" * 8
EXAMPLES = {
    Kind.API_KEY: [KEY, "hf_" + "aB3" * 11, "ghp_" + "a1" * 18, "AKIA" + "AB12" * 4, "AIza" + "aB_3x" * 7],
    Kind.TOKEN: ["eyJ" + "a" * 12 + ".eyJ" + "b" * 12 + "." + "c" * 12, "Bearer " + "a1" * 12],
    Kind.PRIVATE_KEY: ["-----BEGIN " + "OPENSSH PRIVATE KEY-----", "-----BEGIN " + "PRIVATE KEY-----"],
    Kind.SIGNED_URL: ["https://h/x?X-Amz-Signature=" + "0a" * 32, "https://h/x?sv=1&sig=" + "aB%2F" * 10],
    Kind.EMAIL: ["seller.name+x@shop-mail.example.ph"],
    Kind.PHONE: ["+63 917 555 0134", "+44 (0)20 7946 0958", "+1-202-555-0147"],
    # The check digit of 4111 1111 1111 111x: doubled 4,1,1,.. give 8+7*2 = 22 and the others 7 without x, so x is 1.
    Kind.CARD: ["4111 1111 1111 1111", "3782-822463-10005"],
}
HARMLESS = [
    "product_id 5035687794, 4867210933000213 pcs, size 30-45CM, SKU 4111111111111111",
    "priced from 180 to 505 PHP, call +5 stars, 2024-2025 model, 1200 x 800 x 600",
    "task-oriented, risk-averse sk-ii serum, @home, a@b, user@localhost, 3.5 @ 12V",
    "4111 1111 1111 1112",
    "Bearer bonds, bearer of good news about furniture-and-lighting/handles",
    "ghost lamp, sky-high, hf_radio, xoxo",
    "?sig=short, signature=none",
    "tel 0917 555 0134",
]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, found in EXAMPLES.items() for text in found])
def test_each_kind_is_found_where_it_stands(kind: Kind, text: str) -> None:
    (found,) = scan(["nothing", f"see ({text}), please"])
    assert (found.kind, found.text) == (kind, 1)
    assert text.endswith(f"see ({text}), please"[found.start : found.end]) or kind is Kind.SIGNED_URL


@pytest.mark.parametrize("text", HARMLESS)
def test_what_shops_write_is_none(text: str) -> None:
    assert list(scan([text])) == []
    assert masked(text) == text


@pytest.mark.parametrize("kind", [Kind.EMAIL, Kind.PHONE, Kind.CARD])
def test_personal_data_is_masked_and_secrets_are_not(kind: Kind) -> None:
    for text in EXAMPLES[kind]:
        assert masked(f"write to {text}!") == f"write to [{kind.value}]!"
    assert masked(KEY) == KEY


@given(st.text(max_size=80))
def test_what_was_masked_holds_no_personal_data(text: str) -> None:
    assert {found.kind for found in scan([masked(text)])} <= SECRETS


@given(st.from_regex(r"(?:a?[@+ -]?[0-9.]{0,5}){0,300}", fullmatch=True))
def test_long_texts_of_its_own_signs_take_no_time(text: str) -> None:
    list(scan([text * 20]))


def test_rows_are_masked_wherever_somebody_wrote() -> None:
    mail = EXAMPLES[Kind.EMAIL][0]
    trajectory = shopping_trajectory(query=f"a kettle, answer to {mail}")
    call = msgspec.structs.replace(
        trajectory.steps[0].calls[0], arguments={"q": mail}, result=[{"product_id": "77", "seller": mail}]
    )
    step = msgspec.structs.replace(trajectory.steps[0], calls=(call,), think=mail)
    trajectory = msgspec.structs.replace(trajectory, steps=(step, *trajectory.steps[1:]), inferences=())
    row = build_row(trajectory, shopping_verdict(), problem(query=None), source(), len)
    written = list(texts(row))
    assert not any(mail in text for text in written)
    assert sum("[email]" in text for text in written) == 4
    search = next(use for message in row.messages for use in message.tool_calls or ())
    assert json.loads(search.function.arguments) == {"q": "[email]"}


@pytest.mark.shared
def test_nothing_is_found_in_the_recorded_dialogues(shared_data: Path) -> None:
    bodies = [gzip.decompress(path.read_bytes()).decode() for path in sorted((shared_data / "runs").glob("*/output.*"))]
    assert len(bodies) > 10
    assert [found for body in bodies for line in body.splitlines() for found in scan([line])] == []
