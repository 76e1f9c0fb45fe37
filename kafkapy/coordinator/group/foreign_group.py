"""A group of a kind that is not served here (share and streams groups), found in the log."""

from __future__ import annotations

# Record types by the version in front of the key; those not named belong to no group we know how to show.
SHARE_GROUP_TYPE = "share"
STREAMS_GROUP_TYPE = "streams"
GROUP_TYPES = {
    **dict.fromkeys((10, 11, 12, 13, 14, 15), SHARE_GROUP_TYPE),
    **dict.fromkeys((17, 18, 19, 20, 21, 22, 23), STREAMS_GROUP_TYPE),
}
# The record whose presence means that the group exists.
GROUP_EPOCH_KEYS = frozenset({11, 17})


class ForeignGroup:
    """Owns the keys of the group's records that are not deleted. Owner thread only.

    Its members cannot reach this broker, so the group counts as empty and an administrator can delete it. A share group
    has no offsets of its own and cannot become a group of another protocol. The offsets of a streams group can be read,
    changed and deleted, and a classic member's join takes the group over by deleting `keys`.
    """

    __slots__ = ("group_id", "group_type", "keys")

    def __init__(self, group_id: str, group_type: str) -> None:
        self.group_id = group_id
        self.group_type = group_type
        self.keys: dict[bytes, None] = {}

    @property
    def is_share_group(self) -> bool:
        return self.group_type == SHARE_GROUP_TYPE


def key_type(key: bytes) -> int:
    """The record type in front of a key; raises ValueError when the key is too short to hold one."""
    if len(key) < 2:
        raise ValueError("a coordinator key without a type")
    return int.from_bytes(key[:2], "big", signed=True)


def group_id_of(key: bytes) -> str:
    """Every one of these keys begins with the group id: int16 type, int16 length, UTF-8 bytes."""
    length = int.from_bytes(key[2:4], "big", signed=True)
    if length < 0 or len(key) < 4 + length:
        raise ValueError("a coordinator key with a torn group id")
    return key[4 : 4 + length].decode()
