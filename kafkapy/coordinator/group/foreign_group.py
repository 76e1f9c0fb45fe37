"""Groups in the log whose protocols are not served by this broker: streams groups."""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.coordinator.group.classic.classic_group import GroupState
from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.group.no_classic_members import NoClassicMembers
from kafkapy.coordinator.group.offset_requests import CommitCall
from kafkapy.coordinator.record import CoordinatorRecord
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.describe_groups import DescribeGroupsResponse


class ForeignGroup:
    """A group whose protocol this broker does not serve; only the keys of its records are stored. Owner thread only.

    The broker refuses the requests of its members, so that the group counts as empty and an administrator can delete
    it.
    """

    __slots__ = ("group_id", "keys")
    group_type: str
    is_replaceable: bool

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.keys: dict[bytes, None] = {}

    @property
    def protocol_type(self) -> str:
        return self.group_type

    @property
    def state_name(self) -> str:
        return GroupState.EMPTY.value

    def describe_classic(self) -> DescribeGroupsResponse.DescribedGroup:
        raise ApiError(Error.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a classic group.")

    def validate_commit(self, call: CommitCall) -> Sequence[Error]:
        raise ApiError(Error.GROUP_ID_NOT_FOUND)

    def validate_transactional_commit(self, call: CommitCall) -> Sequence[Error]:
        return self.validate_commit(call)

    def is_subscribed_to(self, topic: str) -> bool:
        return False

    def retention_start_ms(self, topic: str, committed: CommittedOffset) -> int | None:
        return committed.commit_timestamp_ms

    @property
    def is_unused(self) -> bool:
        return False

    def validate_deletion(self) -> None:
        """Does nothing, because the group counts as empty."""


class StreamsGroup(ForeignGroup):
    """A streams group (KIP-1071). Administrators may change its offsets. When a classic member joins, a classic group
    replaces it."""

    __slots__ = ()
    group_type = "streams"
    is_replaceable = True

    def validate_commit(self, call: CommitCall) -> Sequence[Error]:
        if call.names_member:
            raise ApiError(Error.UNKNOWN_MEMBER_ID)
        return ()

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is not None or member_epoch >= 0:
            raise ApiError(Error.UNKNOWN_MEMBER_ID)

    def validate_offset_deletion(self) -> None:
        """Does nothing, because the group counts as empty."""


# Record types by the version in front of the key. Records of other types belong to no group that this broker knows.
FOREIGN_GROUPS: dict[int, type[StreamsGroup]] = {
    **dict.fromkeys((17, 18, 19, 20, 21, 22, 23), StreamsGroup),
}
# The record whose presence means that the group exists.
GROUP_EPOCH_KEYS = frozenset({17})


class ForeignProtocol(NoClassicMembers):
    """The classic APIs of foreign groups, which have no members that could be served. It has no state."""

    def on_loaded(self, group: ForeignGroup) -> None:
        """Does nothing: foreign groups have no timers."""

    def tombstones(self, group: ForeignGroup) -> list[CoordinatorRecord]:
        """Returns the tombstones of the group's records; the epoch record is last, because its deletion removes the
        group."""
        keys = sorted(group.keys, key=lambda key: key_type(key) in GROUP_EPOCH_KEYS)
        return [CoordinatorRecord(key, None) for key in keys]


FOREIGN_PROTOCOL = ForeignProtocol()


def key_type(key: bytes) -> int:
    """Returns the record type, the first two bytes of a key; raises ValueError when the key is shorter."""
    if len(key) < 2:
        raise ValueError("a coordinator key without a type")
    return int.from_bytes(key[:2], "big", signed=True)


def group_id_of(key: bytes) -> str:
    """Returns the group id of a key. Every group key begins with int16 type, int16 length, and the id in UTF-8."""
    length = int.from_bytes(key[2:4], "big", signed=True)
    if length < 0 or len(key) < 4 + length:
        raise ValueError("a coordinator key whose group id is cut off")
    return key[4 : 4 + length].decode()
