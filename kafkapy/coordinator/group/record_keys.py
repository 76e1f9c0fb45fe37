"""Reads the type and the group id from the key of a record, without decoding the rest of the key."""

from __future__ import annotations


def key_type(key: bytes) -> int:
    """Returns the record type, the first two bytes of a key; raises ValueError when the key is shorter."""
    if len(key) < 2:
        raise ValueError("a coordinator key without a type")
    return int.from_bytes(key[:2], "big", signed=True)


def group_id_of(key: bytes) -> str:
    """Returns the group id in a key; raises ValueError if the id is truncated.

    Every key of a group's records begins with the type (int16), the length of the id (int16), and the id in UTF-8.
    """
    length = int.from_bytes(key[2:4], "big", signed=True)
    if length < 0 or len(key) < 4 + length:
        raise ValueError("a coordinator key whose group id is truncated")
    return key[4 : 4 + length].decode()
