"""Was a race's world seed fixed before its randomness was known? Checks the published record; asks nobody.

A race's organiser publishes `sha256(secret)` beforehand, waits for a round of the drand beacon, and reveals the secret
when the race is over. All hashes, seeds and signatures are hex on the wire and bytes in every formula. Two things are
not checked here: the beacon's BLS signature (`DRAND_SIGNATURE` always stays unchecked, so a made-up signature passes),
and whether the race's world was really compiled from the seed.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

QUICKNET = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"
"""Chain hash of the drand network whose rounds are known here."""
QUICKNET_GENESIS = datetime(2023, 8, 23, 15, 9, 27, tzinfo=UTC)
"""When its round 1 was published: 1692803367 in Unix time."""
QUICKNET_PERIOD = timedelta(seconds=3)
LAST_ROUND = 10**10
"""Some 950 years of rounds: numbers beyond are wrong, and would overflow."""


class CommitmentState(StrEnum):
    """Where a race's commitment stands."""

    COMMITTED = "committed"
    """Published, not wholly revealed, and so far without a fault."""
    VERIFIED = "verified"
    """Revealed, and every hash of the chain from the secret to the world seed holds."""
    CONTRADICTED = "contradicted"
    """At least one check fails."""


class Check(StrEnum):
    """One thing that must be true of an honest commitment."""

    SECRET = "secret"
    """sha256(secret) is the hash that was published beforehand."""
    RANDOMNESS = "randomness"
    """drand_randomness is sha256(drand_signature)."""
    WORLD_SEED = "world_seed"
    """world_seed is sha256(secret || drand_randomness)."""
    ROUND = "round"
    """drand_round is the first at or after the close of qualifying plus the offset."""
    ROUND_TIME = "round_time"
    """drand_round_time is when that round is published."""
    COMMITTED_FIRST = "committed_first"
    """The hash is dated before the beacon's round."""
    ATTEMPTS = "attempts"
    """The rejected attempts are numbered from 0 without a gap."""
    UNCHANGED = "unchanged"
    """Nothing that was published once has been replaced or withdrawn since."""
    DRAND_SIGNATURE = "drand_signature"
    """The signature is the beacon's own. Never checked here: any drand client can."""


class Result(StrEnum):
    """What became of a check."""

    HOLDS = "holds"
    FAILS = "fails"
    UNCHECKED = "unchecked"
    """What it needs is not published yet, or cannot be read."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """A world that was compiled and rejected."""

    attempt: int | None = None
    reason: str | None = None
    archive_sha256: str | None = None


class Commitment(msgspec.Struct, frozen=True, kw_only=True):
    """The published record of one race. None: not published yet."""

    scheme: str | None = None
    secret_sha256: str | None = None
    drand_chain_hash: str | None = None
    drand_offset_seconds: int | None = None
    drand_round: int | None = None
    drand_round_time: datetime | None = None
    committed_at: datetime | None = None
    revealed: bool = False
    drand_signature: str | None = None
    drand_randomness: str | None = None
    secret: str | None = None
    world_seed: str | None = None
    world_pack_sha256: str | None = None
    rejected_attempts: tuple[Attempt, ...] | None = None


_FIXED = ("scheme", "secret_sha256", "drand_chain_hash", "drand_offset_seconds", "committed_at")
"""Published when the race is made."""
_FIXED_BY_BEACON = ("drand_round", "drand_round_time", "drand_signature", "drand_randomness")
"""The round follows the close of qualifying until the beacon is recorded, and stands from then on."""
_FIXED_BY_REVEAL = ("secret", "world_seed", "world_pack_sha256", "rejected_attempts")
_CHAIN = (Check.SECRET, Check.RANDOMNESS, Check.WORLD_SEED)


class Verification(NamedTuple):
    """The state of a commitment, and each check by name."""

    state: CommitmentState
    checks: Mapping[Check, Result]


def verify(history: Sequence[Commitment | None], qualifying_closes_at: datetime | None) -> Verification | None:
    """Check a race's commitment as it stands now.

    Args:
        history: every state of the record that was seen, oldest first; None where the source had none.
        qualifying_closes_at: as the race gives it; None where it does not.

    Returns:
        None for a race that never had one.
    """
    published = [record for record in history if record is not None]
    if not published:
        return None
    record = published[-1]
    withdrawn = history[-1] is None
    replaced = any(_replaced(before, after) for before, after in pairwise(published))
    checks = {
        Check.SECRET: _hashes([record.secret], record.secret_sha256),
        Check.RANDOMNESS: _hashes([record.drand_signature], record.drand_randomness),
        Check.WORLD_SEED: _hashes([record.secret, record.drand_randomness], record.world_seed),
        Check.ROUND: _round(record, qualifying_closes_at),
        Check.ROUND_TIME: _equal(_published_at(record), record.drand_round_time),
        Check.COMMITTED_FIRST: _committed_first(record),
        Check.ATTEMPTS: _attempts(record.rejected_attempts),
        Check.UNCHANGED: Result.FAILS if withdrawn or replaced else Result.HOLDS,
        Check.DRAND_SIGNATURE: Result.UNCHECKED,
    }
    if Result.FAILS in checks.values():
        return Verification(CommitmentState.CONTRADICTED, checks)
    whole = record.revealed and all(checks[check] is Result.HOLDS for check in _CHAIN)
    return Verification(CommitmentState.VERIFIED if whole else CommitmentState.COMMITTED, checks)


def compile_salt(world_seed: str, race_id: str, attempt: int) -> str:
    """Salt (64 hex digits) of the race's `attempt`-th compilation, counted from 0.

    Raises:
        ValueError: `world_seed` is no hex.
    """
    message = f"oro-world:{race_id}:{attempt}".encode()
    return hmac.new(bytes.fromhex(world_seed), message, hashlib.sha256).hexdigest()


def round_time(number: int) -> datetime:
    """When a quicknet round, counted from 1, is published."""
    return QUICKNET_GENESIS + (number - 1) * QUICKNET_PERIOD


def first_round(at: datetime) -> int:
    """The first quicknet round that is published at `at` or later."""
    return max(1, 1 - (QUICKNET_GENESIS - at) // QUICKNET_PERIOD)


def read(source: Mapping[str, Any]) -> Commitment:
    """A record as it came, field by field: one of the wrong type counts as not published."""
    told: dict[str, Any] = {}
    for field in msgspec.structs.fields(Commitment):
        try:
            told[field.name] = msgspec.convert(source.get(field.name), field.type)
        except (msgspec.ValidationError, OverflowError):
            continue
    moments = {name: value for name, value in told.items() if isinstance(value, datetime)}
    return Commitment(**told | {name: _utc(value) for name, value in moments.items()})


def qualifying_closes_at(race: Mapping[str, Any]) -> datetime | None:
    """When qualifying for a race closes, as its listing says; None where it does not."""
    try:
        return _utc(msgspec.convert(race.get("qualifying_closes_at"), datetime))
    except msgspec.ValidationError:
        return None


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _hashes(parts: Sequence[str | None], expected: str | None) -> Result:
    """Whether sha256 over the parts, one after the other, is what was published."""
    raw = [_bytes(part) for part in parts]
    wanted = _bytes(expected)
    if wanted is None or None in raw:
        return Result.UNCHECKED
    digest = hashlib.sha256(b"".join(part for part in raw if part is not None)).digest()
    return Result.HOLDS if digest == wanted else Result.FAILS


def _bytes(text: str | None) -> bytes | None:
    try:
        return None if not text else bytes.fromhex(text)
    except ValueError:
        return None


def _quicknet(record: Commitment) -> int | None:
    """The round's number, where it is one of the network that is known here and its time can be told."""
    number = record.drand_round
    known = record.drand_chain_hash == QUICKNET and number is not None and 1 <= number <= LAST_ROUND
    return number if known else None


def _published_at(record: Commitment) -> datetime | None:
    number = _quicknet(record)
    return None if number is None else round_time(number)


def _round(record: Commitment, qualifying_closes_at: datetime | None) -> Result:
    number, offset = _quicknet(record), record.drand_offset_seconds
    if number is None or offset is None or qualifying_closes_at is None:
        return Result.UNCHECKED
    try:
        return _equal(first_round(qualifying_closes_at + timedelta(seconds=offset)), number)
    except OverflowError:
        return Result.FAILS


def _committed_first(record: Commitment) -> Result:
    due_at = _published_at(record) or record.drand_round_time
    if due_at is None or record.committed_at is None:
        return Result.UNCHECKED
    return Result.HOLDS if record.committed_at < due_at else Result.FAILS


def _attempts(rejected: Sequence[Attempt] | None) -> Result:
    if rejected is None:
        return Result.UNCHECKED
    return _equal([attempt.attempt for attempt in rejected], list(range(len(rejected))))


def _equal(found: object, expected: object) -> Result:
    if found is None or expected is None:
        return Result.UNCHECKED
    return Result.HOLDS if found == expected else Result.FAILS


def _replaced(before: Commitment, after: Commitment) -> bool:
    """Whether something that stood for good has another value now, or none."""
    names = _FIXED + (_FIXED_BY_BEACON if before.drand_signature is not None else ()) + _FIXED_BY_REVEAL
    return any(
        getattr(before, name) is not None and getattr(before, name) != getattr(after, name) for name in names
    ) or (before.revealed and not after.revealed)
