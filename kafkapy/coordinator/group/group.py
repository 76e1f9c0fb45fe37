"""The interface through which a shard uses its groups, whatever their protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from kafkapy.coordinator.group.classic.classic_member import SyncResponder
from kafkapy.coordinator.group.classic.join_call import JoinCall
from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.group.offset_requests import CommitCall
from kafkapy.coordinator.record import CoordinatorRecord, CoordinatorResult
from kafkapy.errors import Error
from kafkapy.protocol.messages.describe_groups import DescribeGroupsResponse
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkapy.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class Group(Protocol):
    """The interface of one group's state, whatever the type of the group. Only the thread that owns it may use it,
    except `state_name`."""

    group_id: str

    # -- listings

    @property
    def group_type(self) -> str:
        """The type in ListGroups: classic, consumer, share or streams."""

    @property
    def protocol_type(self) -> str | None:
        """The protocol type in ListGroups; None for a classic group whose protocol type no member has set yet."""

    @property
    def state_name(self) -> str:
        """The state in ListGroups. Any thread may read it."""

    def describe_classic(self) -> DescribeGroupsResponse.DescribedGroup:
        """Returns the response of DescribeGroups; raises ApiError GROUP_ID_NOT_FOUND if the group is not classic."""

    # -- offsets

    def validate_commit(self, call: CommitCall) -> Sequence[Error]:
        """Returns the error of each offset, or an empty sequence when all may be committed. Raises ApiError when none
        may be committed."""

    def validate_transactional_commit(self, call: CommitCall) -> Sequence[Error]:
        """Returns the error of each offset of a TxnOffsetCommit, or an empty sequence when all may be committed. Raises
        ApiError when none may be committed.

        Requests of clients from before KIP-447 name no member; in that case no member is validated.
        """

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raises ApiError when the member may not fetch the group's offsets, or when the group is a share group, which
        has no committed offsets. `member_id` is None if the request names no member."""

    def validate_offset_deletion(self) -> None:
        """Raises ApiError when OffsetDelete is refused for the whole group: NON_EMPTY_GROUP for a classic group with
        members that are not consumers, and GROUP_ID_NOT_FOUND for a share group, which has no committed offsets."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Returns whether a member subscribes to the topic, or may do so because its subscription cannot be read.

        OffsetDelete does not delete the offsets of such a topic.
        """

    def retention_start_ms(self, topic: str, committed: CommittedOffset) -> int | None:
        """Returns the wall-clock time (ms) from which the retention of the offset `committed` counts.

        Returns None while a member may consume the topic, because the offset does not expire in that time.
        """

    # -- deletion

    @property
    def is_unused(self) -> bool:
        """True if the group is deleted when its last committed offset has been removed."""

    @property
    def is_replaceable(self) -> bool:
        """True if a classic group replaces this group when the first member of the classic protocol joins."""

    def validate_deletion(self) -> None:
        """Raises ApiError NON_EMPTY_GROUP when DeleteGroups must not delete the group."""


G = TypeVar("G", bound=Group, contravariant=True)


class GroupProtocol(Protocol[G]):
    """The interface of the handlers of all groups of one type (classic, consumer, share or streams): the classic
    requests, the timers and the deletion. The shard owns the groups. Only the thread that owns it may use it."""

    def join(self, group: G, call: JoinCall) -> CoordinatorResult[None]:
        """Handles JoinGroup; the response is sent by `call.respond`, now or later."""

    def sync(self, group: G, request: SyncGroupRequest, respond: SyncResponder) -> CoordinatorResult[SyncGroupResponse]:
        """Handles SyncGroup. If the result has no response, `respond` is called with the response later. Raises
        ApiError if the request is refused."""

    def heartbeat(self, group: G, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
        """Handles Heartbeat. Raises ApiError if the request is refused."""

    def leave(
        self, group: G, leaving: Sequence[LeaveGroupRequest.MemberIdentity]
    ) -> CoordinatorResult[LeaveGroupResponse]:
        """Handles LeaveGroup. Raises ApiError if the whole request is refused."""

    def on_commit(self, group: G, member_id: str) -> None:
        """Handles the event that a valid OffsetCommit of the member has arrived; `member_id` is "" for an
        administrator."""

    def on_loaded(self, group: G) -> None:
        """Starts the timers of a group that was read from the log: each member has one session timeout to send a
        heartbeat."""

    def on_unloaded(self, group: G) -> None:
        """Responds NOT_COORDINATOR to the waiting requests of the group's members. Called when this broker no longer
        leads the group's partition."""

    def tombstones(self, group: G) -> list[CoordinatorRecord]:
        """Returns the records that delete the group. They do not delete its committed offsets."""
