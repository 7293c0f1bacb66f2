"""An id by its first digits: eight at least, and only where they mean one snapshot."""

import pytest

from service.cli.naming import find
from service.errors import ErrorCode, SluiceError

ONE, OTHER = "abcdef01" + "0" * 56, "abcdef01" + "1" * 56


def test_enough_digits_name_one():
    assert find("abcdef010", [ONE, OTHER]) == ONE
    assert find("abcdef01", [OTHER]) == OTHER


def test_a_whole_id_needs_no_list():
    assert find("f" * 64, []) == "f" * 64


@pytest.mark.parametrize(
    ("given", "code", "told"),
    [
        ("abcdef0", ErrorCode.BAD_INPUT, "too short"),
        ("abcdef01", ErrorCode.BAD_INPUT, "2 snapshots' ids begin"),
        ("12345678", ErrorCode.NOT_FOUND, "no snapshot whose id begins"),
        ("ABCDEF010", ErrorCode.BAD_INPUT, "no snapshot id"),
        ("../../etc", ErrorCode.BAD_INPUT, "no snapshot id"),
        ("0" * 65, ErrorCode.BAD_INPUT, "no snapshot id"),
    ],
)
def test_others_say_why_not(given: str, code: ErrorCode, told: str):
    with pytest.raises(SluiceError, match=told) as caught:
        find(given, [ONE, OTHER])
    assert caught.value.code is code
