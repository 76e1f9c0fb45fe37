"""The common base of consumer, share and streams groups, whose members have epochs. This module uses no clock and no
log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.group.group import Group
from kafkapy.coordinator.group.member_state import MemberState
from kafkapy.coordinator.group.offset_requests import CommitCall, OffsetToCommit
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.describe_groups import DescribeGroupsResponse

# The epoch of a new group, before its first record.
INITIAL_EPOCH = 1


class Member(Protocol):
    """The fields that the members of consumer, share and streams groups have in common."""

    @property
    def member_epoch(self) -> int: ...


class CommittingMember(Member, Protocol):
    """The fields that the members of consumer and streams groups have in common.

    These members commit offsets, and reach their target assignments in several steps. `state` is the member's progress
    toward its target assignment.
    """

    @property
    def state(self) -> MemberState: ...


M = TypeVar("M", bound=Member)
C = TypeVar("C", bound=CommittingMember)
K = TypeVar("K", bound="MemberGroup[Any]")


class MemberGroup(Generic[M]):
    """A group whose members have epochs. It changes only when records are replayed. Only the thread that owns it may
    use it.

    `metadata_hash` is the digest of the metadata of the group's topics. `checked_topics` is the object with the topics
    of the cluster (`MetadataImage.topics`) with which the digest was last compared. As long as the newest metadata have
    the same object, no topic has changed, and the digest need not be computed again.
    """

    group_type: str

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = INITIAL_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = INITIAL_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, M] = {}
        self.checked_topics: object = None

    @property
    def is_empty(self) -> bool:
        return not self.members

    def member(self, member_id: str) -> M:
        """Returns the member with this id; raises ApiError UNKNOWN_MEMBER_ID if there is none."""
        member = self.members.get(member_id)
        if member is None:
            message = f"Member {member_id} is not a member of group {self.group_id}."
            raise ApiError(Error.UNKNOWN_MEMBER_ID, message)
        return member

    def validate_deletion(self) -> None:
        if not self.is_empty:
            raise ApiError(Error.NON_EMPTY_GROUP)

    def describe_classic(self) -> DescribeGroupsResponse.DescribedGroup:
        raise ApiError(Error.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a classic group.")


class CommittingGroup(MemberGroup[C], ABC):
    """A group whose members commit offsets. The members reach their target assignments in several steps, because a
    partition must be released by one member before it is assigned to another."""

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """Returns whether a member consumes the topic."""

    @abstractmethod
    def assignment_epoch_of(self, member: C, entry: OffsetToCommit) -> int | None:
        """Returns the epoch in which the partition of the offset `entry` was assigned to the member, or None if the
        member does not have the partition."""

    @property
    def is_replaceable(self) -> bool:
        return self.is_empty

    @property
    def is_unused(self) -> bool:
        return self.is_empty

    @property
    def state_name(self) -> str:
        """The state in the descriptions of the group and in ListGroups. Any thread may read it."""
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        if all(is_reconciled(member, self.assignment_epoch) for member in self.members.copy().values()):
            return "Stable"
        return "Reconciling"

    def validate_commit(self, call: CommitCall) -> Sequence[Error]:
        """Returns the error of each offset, or an empty sequence when all may be committed.

        An older member epoch is accepted for a partition that the member already had in that epoch (KIP-1251). Raises
        ApiError: UNKNOWN_MEMBER_ID if the member is not in the group, UNSUPPORTED_VERSION if the request has a version
        below 9 and the member does not use the classic protocol, ILLEGAL_GENERATION if a member of the classic protocol
        has another epoch.
        """
        if call.generation_id < 0 and self.is_empty:
            return ()  # An administrator commits the offsets.
        member = self.member(call.member_id)
        if not call.is_new_protocol and not self.may_commit_as_classic(member):
            raise ApiError(Error.UNSUPPORTED_VERSION)
        return self.commit_errors(member, call)

    def may_commit_as_classic(self, member: C) -> bool:
        """Returns whether the member may commit by OffsetCommit versions 0 to 8, as classic members do.

        This base class returns False; consumer groups override the method, because they may have classic members.
        """
        return False

    def validate_transactional_commit(self, call: CommitCall) -> Sequence[Error]:
        """Returns the error of each offset of a TxnOffsetCommit, or an empty sequence when all may be committed.

        The error of an offset that must not be committed in the epoch of the request is ILLEGAL_GENERATION. Raises
        ApiError: UNKNOWN_MEMBER_ID if the request names a member that is not in the group, ILLEGAL_GENERATION if a
        member of the classic protocol has another epoch.
        """
        if not call.names_member or (call.generation_id < 0 and self.is_empty):
            return ()
        errors = self.commit_errors(self.member(call.member_id), call)
        return [Error.ILLEGAL_GENERATION if error is Error.STALE_MEMBER_EPOCH else error for error in errors]

    def commit_errors(self, member: C, call: CommitCall) -> Sequence[Error]:
        """Returns the error of each offset; empty if the request has the member's current epoch.

        With an older epoch, an offset is accepted only if the member has had its partition since that epoch (KIP-1251).
        """
        epoch = call.generation_id
        if epoch == member.member_epoch:
            return ()
        is_old = epoch < member.member_epoch
        return [
            Error.NONE if is_old and self._had_partition(member, epoch, entry) else Error.STALE_MEMBER_EPOCH
            for entry in call.offsets
        ]

    def _had_partition(self, member: C, epoch: int, entry: OffsetToCommit) -> bool:
        since = self.assignment_epoch_of(member, entry)
        return since is not None and epoch >= since

    def validate_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raises ApiError UNKNOWN_MEMBER_ID if the request names a member that is not in the group, and
        STALE_MEMBER_EPOCH if the member has another epoch.

        A request without a member id must have a negative epoch; otherwise raises UNKNOWN_SERVER_ERROR, as Kafka does.
        """
        if member_id is None and epoch < 0:
            return
        if member_id is None:
            # Apache Kafka responds with this error when a request has an epoch and no member id.
            raise ApiError(Error.UNKNOWN_SERVER_ERROR)
        if epoch != self.member(member_id).member_epoch:
            raise ApiError(Error.STALE_MEMBER_EPOCH)

    def validate_offset_deletion(self) -> None:
        """Does nothing: the group permits OffsetDelete at any time, for topics that no member consumes."""

    def retention_start_ms(self, topic: str, committed: CommittedOffset) -> int | None:
        """Returns the time at which the offset was committed (milliseconds since 1970), or None while a member consumes
        the topic, because the offset does not expire in that time."""
        return None if self.is_subscribed_to(topic) else committed.commit_timestamp_ms


def existing_group(groups: Mapping[str, Group], group_id: str, kind: type[K]) -> K:
    """Returns the group `group_id` in `groups`. Raises ApiError GROUP_ID_NOT_FOUND if it does not exist or is not an
    object of the class `kind`."""
    group = groups.get(group_id)
    if group is None:
        raise ApiError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    return of_kind(group, kind)


def of_kind(group: Group | MemberGroup[Any], kind: type[K]) -> K:
    """Returns `group`. Raises ApiError GROUP_ID_NOT_FOUND if it is not an object of the class `kind`."""
    if not isinstance(group, kind):
        raise ApiError(Error.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a {kind.group_type} group.")
    return group


def is_reconciled(member: CommittingMember, assignment_epoch: int) -> bool:
    """Returns True if the member has all partitions or tasks of its target assignment of `assignment_epoch`."""
    return member.state is MemberState.STABLE and member.member_epoch == assignment_epoch
