"""Miners named by a keyed hash of their hotkeys: the same everywhere under one salt, and nobody's without it."""

import hmac

PREFIX = "salted:"
DIGITS = 32
"""Hex digits kept: 128 bits, so that no two of any number of miners meet."""


def salted(hotkey: str, salt: str) -> str:
    """The name of a miner under a salt: HMAC-SHA256 (RFC 2104), shortened."""
    return PREFIX + hmac.digest(salt.encode(), hotkey.encode(errors="replace"), "sha256").hex()[:DIGITS]
