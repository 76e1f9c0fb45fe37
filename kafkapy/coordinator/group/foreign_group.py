"""Groups in the log whose protocols are not served by this broker: share and streams groups."""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.coordinator.group.classic.classic_group import GroupState
from kafkapy.coordinator.group.classic.classic_member import SyncResponder
from kafkapy.coordinator.group.classic.classic_responses import UNKNOWN_MEMBER_ID, join_error
from kafkapy.coordinator.group.classic.join_call import JoinCall
from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.group.offset_requests import CommitCall
from kafkapy.coordinator.record import EMPTY_RESULT, CoordinatorRecord, CoordinatorResult
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.describe_groups import DescribeGroupsResponse
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkapy.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


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


class ShareGroup(ForeignGroup):
    """A share group (KIP-932). It has no committed offsets, and does not become a group of another protocol."""

    __slots__ = ()
    group_type = "share"
    is_replaceable = False

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        raise ApiError(Error.GROUP_ID_NOT_FOUND)

    def validate_offset_deletion(self) -> None:
        raise ApiError(Error.GROUP_ID_NOT_FOUND)


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
FOREIGN_GROUPS: dict[int, type[ShareGroup] | type[StreamsGroup]] = {
    **dict.fromkeys((10, 11, 12, 13, 14, 15), ShareGroup),
    **dict.fromkeys((17, 18, 19, 20, 21, 22, 23), StreamsGroup),
}
# The record whose presence means that the group exists.
GROUP_EPOCH_KEYS = frozenset({11, 17})


class ForeignProtocol:
    """The classic APIs of foreign groups, which have no members that could be served. It has no state."""

    def join(self, group: ForeignGroup, call: JoinCall) -> CoordinatorResult[None]:
        call.respond(join_error(UNKNOWN_MEMBER_ID, Error.INCONSISTENT_GROUP_PROTOCOL))
        return EMPTY_RESULT

    def sync(
        self, group: ForeignGroup, request: SyncGroupRequest, respond: SyncResponder
    ) -> CoordinatorResult[SyncGroupResponse]:
        raise ApiError(Error.UNKNOWN_MEMBER_ID)

    def heartbeat(self, group: ForeignGroup, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
        raise ApiError(Error.UNKNOWN_MEMBER_ID)

    def leave(
        self, group: ForeignGroup, leaving: Sequence[LeaveGroupRequest.MemberIdentity]
    ) -> CoordinatorResult[LeaveGroupResponse]:
        raise ApiError(Error.UNKNOWN_MEMBER_ID)

    def on_commit(self, group: ForeignGroup, member_id: str) -> None:
        """Does nothing: members of foreign groups have no sessions."""

    def on_loaded(self, group: ForeignGroup) -> None:
        """Does nothing: foreign groups have no timers."""

    def on_unloaded(self, group: ForeignGroup) -> None:
        """Does nothing: no request of a member waits for a response."""

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
