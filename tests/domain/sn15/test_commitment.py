"""Seed commitments: an honest record is verified, no other is, and what is not published yet is not held against it."""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.sn15.commitment import (
    QUICKNET,
    Check,
    Commitment,
    CommitmentState,
    Result,
    compile_salt,
    first_round,
    read,
    round_time,
    verify,
)

CLOSES = datetime(2026, 9, 14, 19, 0, tzinfo=UTC)
OFFSET = 600
CHAIN = {Check.SECRET, Check.RANDOMNESS, Check.WORLD_SEED}
REVEALED = ("drand_signature", "drand_randomness", "secret", "world_seed", "world_pack_sha256", "rejected_attempts")


@dataclass(frozen=True)
class Honest:
    """The record of a race, made as the rules say."""

    secret: bytes
    signature: bytes

    def record(self) -> dict[str, Any]:
        randomness = hashlib.sha256(self.signature).digest()
        # Unix time 1692803367 is round 1; at 1789412400 + 600 s, 96609633 s later: 96609633 / 3 = 32203211 rounds on.
        number = (int(CLOSES.timestamp()) + OFFSET - 1692803367 + 2) // 3 + 1
        return {
            "race_id": "r",
            "scheme": "commit-then-beacon",
            "secret_sha256": hashlib.sha256(self.secret).hexdigest(),
            "drand_chain_hash": QUICKNET,
            "drand_offset_seconds": OFFSET,
            "drand_round": number,
            "drand_round_time": datetime.fromtimestamp(1692803367 + 3 * (number - 1), UTC).isoformat(),
            "committed_at": (CLOSES - timedelta(hours=16)).isoformat(),
            "revealed": True,
            "drand_signature": self.signature.hex(),
            "drand_randomness": randomness.hex(),
            "secret": self.secret.hex(),
            "world_seed": hashlib.sha256(self.secret + randomness).hexdigest(),
            "world_pack_sha256": "ab" * 32,
            "rejected_attempts": [{"attempt": 0, "reason": "too easy", "archive_sha256": None}, {"attempt": 1}],
        }

    def before(self) -> dict[str, Any]:
        """The same while the race is on."""
        return self.record() | dict.fromkeys(REVEALED) | {"revealed": False}


honest = st.builds(Honest, st.binary(min_size=1, max_size=64), st.binary(min_size=48, max_size=48))
SOME = Honest(b"a secret", b"s" * 48)


def checked(*records: dict[str, Any] | None, closes: datetime | None = CLOSES) -> tuple[str, dict[str, str]]:
    verification = verify([None if record is None else read(record) for record in records], closes)
    assert verification is not None
    return verification.state.value, {check.value: result.value for check, result in verification.checks.items()}


@given(honest)
def test_an_honest_record_is_verified_once_it_is_revealed(made: Honest) -> None:
    state, checks = checked(made.before())
    assert state == "committed"
    assert {name for name, result in checks.items() if result == "unchecked"} == {
        *("secret", "randomness", "world_seed", "attempts", "drand_signature")
    }
    state, checks = checked(made.before(), made.record())
    assert state == "verified"
    assert checks.pop("drand_signature") == "unchecked"
    assert set(checks.values()) == {"holds"}


@given(
    honest, st.sampled_from(["secret", "secret_sha256", "world_seed", "drand_signature", "drand_randomness"]), st.data()
)
def test_one_changed_digit_contradicts(made: Honest, name: str, data: st.DataObject) -> None:
    record = made.record()
    digits = record[name]
    place = data.draw(st.integers(0, len(digits) - 1))
    record[name] = digits[:place] + ("0" if digits[place] != "0" else "1") + digits[place + 1 :]
    state, checks = checked(record)
    assert state == "contradicted"
    assert "fails" in {checks[check] for check in CHAIN}


@given(honest, honest)
def test_another_secret_than_was_committed_to_contradicts(one: Honest, other: Honest) -> None:
    state, checks = checked(one.before(), other.record())
    same = one.secret == other.secret
    assert state == ("verified" if same else "contradicted")
    assert checks["unchanged"] == ("holds" if same else "fails")


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"drand_round": 1}, "round"),
        ({"drand_round_time": CLOSES.isoformat()}, "round_time"),
        ({"committed_at": (CLOSES + timedelta(hours=1)).isoformat()}, "committed_first"),
        ({"rejected_attempts": [{"attempt": 1}]}, "attempts"),
    ],
)
def test_a_record_against_the_rules_contradicts(change: dict[str, Any], check: str) -> None:
    state, checks = checked(SOME.record() | change)
    assert (state, checks[check]) == ("contradicted", "fails")


def test_what_was_withdrawn_or_taken_back_contradicts() -> None:
    assert checked(SOME.before(), None)[1]["unchanged"] == "fails"
    assert checked(SOME.record(), SOME.before())[0] == "contradicted"
    assert checked(None, SOME.before())[0] == "committed"
    assert verify([None], CLOSES) is None
    assert verify([], CLOSES) is None


def test_the_round_may_follow_the_close_of_qualifying_until_the_beacon_is_recorded() -> None:
    early = SOME.before() | {"drand_round": 7, "drand_round_time": round_time(7).isoformat()}
    assert checked(early, SOME.record())[0] == "verified"
    drawn = early | {"drand_signature": SOME.signature.hex()}
    assert checked(drawn, SOME.record())[1]["unchanged"] == "fails"


def test_what_cannot_be_read_is_not_held_against_it() -> None:
    state, checks = checked(SOME.record() | {"secret": "not hex", "drand_round": "seven"}, closes=None)
    assert state == "committed"
    assert {checks[check] for check in ("secret", "world_seed", "round", "round_time")} == {"unchecked"}


def test_a_network_nobody_here_knows_has_no_rounds() -> None:
    _, checks = checked(SOME.record() | {"drand_chain_hash": "ff" * 32})
    assert (checks["round"], checks["round_time"], checks["committed_first"]) == ("unchecked", "unchecked", "holds")


@given(st.integers(0, 10**9))
def test_the_first_round_is_the_first_that_is_not_too_early(seconds: int) -> None:
    at = datetime.fromtimestamp(1692803367 - 10 + seconds, UTC)
    number = first_round(at)
    assert round_time(number) >= at
    assert number == 1 or round_time(number - 1) < at


@given(st.binary(min_size=32, max_size=32), st.text(max_size=8), st.integers(0, 99))
def test_the_salt_of_an_attempt_is_the_published_formula(seed: bytes, race_id: str, attempt: int) -> None:
    message = b"oro-world:" + race_id.encode() + b":" + str(attempt).encode()
    assert compile_salt(seed.hex(), race_id, attempt) == hmac.digest(seed, message, "sha256").hex()


@given(st.dictionaries(st.sampled_from(Commitment.__struct_fields__), st.from_type(object) | st.text() | st.integers()))
def test_any_record_is_read_and_checked(record: dict[str, Any]) -> None:
    verification = verify([read(record)], CLOSES)
    assert verification is not None
    assert verification.checks.keys() == set(Check)
    assert verification.state is not CommitmentState.VERIFIED
    assert msgspec.json.encode(verification.checks[Check.DRAND_SIGNATURE]) == b'"unchecked"'
    assert verification.checks[Check.DRAND_SIGNATURE] is Result.UNCHECKED
