"""The operations that list, describe and delete groups, and the operations on offsets and members of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from kafkapy._core.bytes.wire import Reader
from kafkapy.compat.kafka.admin.acls import with_operation_names
from kafkapy.compat.kafka.admin.partitions import PartitionOperations
from kafkapy.compat.kafka.admin.requests import as_dict, error_class, error_text, raise_error
from kafkapy.compat.kafka.enum_helper import EnumHelper
from kafkapy.compat.kafka.protocol.consumer import OffsetSpec, OffsetTimestamp
from kafkapy.compat.kafka.structs import OffsetAndMetadata, TopicPartition
from kafkapy.errors import ApiError, Error, ProtocolViolation
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.data_records import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafkapy.protocol.messages.delete_groups import DeleteGroupsRequest
from kafkapy.protocol.messages.describe_groups import DescribeGroupsRequest
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest
from kafkapy.protocol.messages.list_groups import ListGroupsRequest
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.protocol.messages.offset_delete import OffsetDeleteRequest
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest
from kafkapy.types import TopicPartition as ClientPartition
from kafkapy.types import by_topic

_CONSUMER_VERSION = 3


class GroupState(EnumHelper, str, Enum):  # noqa: UP042  # as the original, whose str() has the class's name
    """The states of groups."""

    UNKNOWN = "Unknown"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"


class GroupType(EnumHelper, str, Enum):  # noqa: UP042  # as the original, whose str() has the class's name
    """The types of groups."""

    UNKNOWN = "Unknown"
    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"


class MemberToRemove:
    """A member to remove from its group: a dynamic one by `member_id`, a static one by `group_instance_id`."""

    __slots__ = ("group_instance_id", "member_id", "reason")

    def __init__(
        self, member_id: str | None = None, group_instance_id: str | None = None, reason: str | None = None
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason

    def _values(self) -> tuple[str | None, ...]:
        return self.member_id, self.group_instance_id, self.reason

    def __repr__(self) -> str:
        return (
            f"<MemberToRemove member_id={self.member_id}, group_instance_id={self.group_instance_id}, "
            f"reason={self.reason}>"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemberToRemove) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())


class GroupOperations(PartitionOperations):
    """The methods of KafkaAdminClient for groups."""

    def list_groups(
        self,
        broker_ids: Iterable[int] | None = None,
        states_filter: Iterable[Any] | None = None,
        types_filter: Iterable[Any] | None = None,
    ) -> list[dict[str, Any]]:
        """Returns the groups that brokers coordinate, by default all brokers, as dicts with the fields of the response.

        The filters select groups by state and by type; None selects all.
        """
        states = [GroupState.value_for(each) for each in states_filter or ()]
        types = [GroupType.value_for(each) for each in types_filter or ()]

        def build(version: int) -> ListGroupsRequest:
            for wanted, least in (
                (states, ListGroupsRequest.FIRST_VERSION_WITH_STATES_FILTER),
                (types, ListGroupsRequest.FIRST_VERSION_WITH_TYPES_FILTER),
            ):
                if wanted and version < least:
                    raise ApiError(Error.UNSUPPORTED_VERSION, "The broker is too old for this filter of groups.")
            request = ListGroupsRequest()
            if states:
                request.states_filter = states
            if types:
                request.types_filter = types
            return request

        found = []
        for broker in self._broker_ids() if broker_ids is None else broker_ids:
            response = self._ask(ApiKey.LIST_GROUPS, build, broker)
            raise_error(response.error_code, None)
            found += [as_dict(each) for each in response.groups]
        return found

    def describe_groups(
        self,
        group_ids: Iterable[str],
        group_coordinator_id: int | None = None,
        include_authorized_operations: bool = False,
    ) -> dict[str, dict[str, Any]]:
        """Returns a dict for each group, with the fields of the response.

        The members' subscriptions and assignments are decoded. The permitted operations are always included.
        `group_coordinator_id` is the broker to ask, by default the coordinator.
        """
        found = {}
        for node, ids in self._coordinators(list(group_ids), node=group_coordinator_id).items():
            response = self._ask(ApiKey.DESCRIBE_GROUPS, _describe_request(ids), node)
            for group in response.groups:
                described = as_dict(group)
                for member, decoded in zip(group.members, described["members"], strict=True):
                    decoded["member_metadata"] = _decoded(ConsumerProtocolSubscription, member.member_metadata)
                    decoded["member_assignment"] = _decoded(ConsumerProtocolAssignment, member.member_assignment)
                with_operation_names(described, "authorized_operations")
                described["error"] = error_text(described.pop("error_code"), described.pop("error_message", None))
                found[group.group_id] = described
        return found

    def delete_groups(self, group_ids: Iterable[str], group_coordinator_id: int | None = None) -> dict[str, str]:
        """Deletes groups; returns "OK" or the name of the error class for each group id."""
        found = {}
        for node, ids in self._coordinators(list(group_ids), node=group_coordinator_id).items():
            response = self._ask(ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=ids), node)
            for each in response.results:
                found[each.group_id] = error_class(each.error_code).__name__ if each.error_code else "OK"
        return found

    # Offsets

    def list_group_offsets(self, group_specs: Any) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """Returns the committed offsets of groups, by group and partition.

        `group_specs` is the id of a group, a list of ids, or a dictionary from ids to partitions (None: all
        partitions).
        """
        if isinstance(group_specs, str):
            specs: Mapping[str, Any] = {group_specs: None}
        else:
            specs = group_specs if isinstance(group_specs, Mapping) else dict.fromkeys(group_specs)
        if not specs:
            raise ValueError("Empty group_specs!")
        found = {}
        for node, ids in self._coordinators(list(specs)).items():
            for group_id in ids:
                request = _fetch_request(group_id, specs[group_id])
                response = self._ask(ApiKey.OFFSET_FETCH, request, node)
                found[group_id] = _offsets(response.groups[0] if response.groups else response, group_id)
        return found

    def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group_coordinator_id: int | None = None,
    ) -> dict[TopicPartition, Any]:
        """Commits offsets for a group without members. Returns the error class of each partition.

        The class is NoError after a success. `group_coordinator_id` is the broker to ask; None means the coordinator of
        the group.
        """
        if not offsets:
            return {}
        (node,) = self._coordinators([group_id], node=group_coordinator_id)
        response = self._ask(ApiKey.OFFSET_COMMIT, _commit_request(group_id, offsets), node)
        return {
            TopicPartition(topic.name, each.partition_index): error_class(each.error_code)
            for topic in response.topics
            for each in topic.partitions
        }

    def reset_group_offsets(
        self, group_id: str, offset_specs: Mapping[TopicPartition, Any], group_coordinator_id: int | None = None
    ) -> dict[TopicPartition, dict[str, Any]]:
        """Commits an offset for each partition: a number, or the offset that an OffsetSpec or OffsetTimestamp selects.

        An offset before the first offset of the log is replaced by the first offset. An offset after the end of the
        log, or a negative one, is replaced by the end offset; the look-up of a timestamp after the last record returns
        a negative offset. Returns a dict for each partition, with the class of its error (`error`) and the committed
        offset (`offset`). `group_coordinator_id` is the broker to ask; None means the coordinator of the group.
        """
        if not offset_specs:
            return {}
        for partition, spec in offset_specs.items():
            if not isinstance(spec, int):
                raise TypeError(f"Unsupported reset target for {partition}: {spec!r}")
        looked_up = {
            each: spec for each, spec in offset_specs.items() if isinstance(spec, OffsetSpec | OffsetTimestamp)
        }
        current = self.list_group_offsets({group_id: list(offset_specs)})[group_id]
        earliest = self.list_partition_offsets(dict.fromkeys(offset_specs, OffsetSpec.EARLIEST))
        latest = self.list_partition_offsets(dict.fromkeys(offset_specs, OffsetSpec.LATEST))
        found = self.list_partition_offsets(looked_up) if looked_up else {}
        wanted: dict[TopicPartition, OffsetAndMetadata] = {}
        for each, spec in offset_specs.items():
            offset = found[each].offset if each in found else int(spec)
            end = latest[each].offset
            inside = end if offset < 0 or offset > end else max(offset, earliest[each].offset)
            wanted[each] = current.get(each, OffsetAndMetadata(0, "", None))._replace(offset=inside)
        errors = self.alter_group_offsets(group_id, wanted, group_coordinator_id)
        return {each: {"error": error, "offset": wanted[each].offset} for each, error in errors.items()}

    def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], group_coordinator_id: int | None = None
    ) -> dict[TopicPartition, Any]:
        """Deletes committed offsets. Returns the error class of each partition.

        The class is NoError after a success. `group_coordinator_id` is the broker to ask; None means the coordinator of
        the group.
        """
        wanted = list(partitions)
        if not wanted:
            return {}
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=[
                OffsetDeleteRequest.OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[
                        OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=number) for number in numbers
                    ],
                )
                for name, numbers in by_topic(ClientPartition(*each) for each in wanted).items()
            ],
        )
        (node,) = self._coordinators([group_id], node=group_coordinator_id)
        response = self._ask(ApiKey.OFFSET_DELETE, request, node)
        raise_error(response.error_code, None)
        return {
            TopicPartition(topic.name, each.partition_index): error_class(each.error_code)
            for topic in response.topics
            for each in topic.partitions
        }

    # Members

    def remove_group_members(
        self, group_id: str, members: Iterable[MemberToRemove], group_coordinator_id: int | None = None
    ) -> dict[str, Any]:
        """Removes members from a group.

        Returns a dictionary from each member to its error class, which is NoError after a success. The key is the
        member id, or the group instance id if the response has no member id.

        `group_coordinator_id` is the broker to ask; None means the coordinator of the group.
        """
        wanted = list(members)
        if not wanted:
            return {}

        def build(version: int) -> LeaveGroupRequest:
            if version < LeaveGroupRequest.FIRST_VERSION_WITH_MEMBERS:
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker cannot remove members of a group.")
            request = LeaveGroupRequest(group_id=group_id, members=[])
            for each in wanted:
                member = LeaveGroupRequest.MemberIdentity(
                    member_id=each.member_id or "", group_instance_id=each.group_instance_id
                )
                if version >= LeaveGroupRequest.FIRST_VERSION_WITH_REASON:
                    member.reason = each.reason
                request.members.append(member)
            return request

        (node,) = self._coordinators([group_id], node=group_coordinator_id)
        response = self._ask(ApiKey.LEAVE_GROUP, build, node)
        raise_error(response.error_code, None)
        return {each.member_id or each.group_instance_id: error_class(each.error_code) for each in response.members}


def _describe_request(group_ids: Sequence[str]) -> Any:
    def build(version: int) -> DescribeGroupsRequest:
        request = DescribeGroupsRequest(groups=list(group_ids))
        if version >= DescribeGroupsRequest.FIRST_VERSION_WITH_INCLUDE_AUTHORIZED_OPERATIONS:
            request.include_authorized_operations = True
        return request

    return build


def _decoded(kind: Any, data: bytes) -> Any:
    """Returns a member's subscription or assignment, whose message class is `kind`, as a dict.

    Empty or unreadable bytes are returned unchanged.
    """
    if not data:
        return data
    try:
        reader = Reader(data)
        version = reader.read_int16()
        return {"version": version, **as_dict(kind.read(reader, min(max(version, 0), _CONSUMER_VERSION)))}
    except ProtocolViolation:
        return data


def _fetch_request(group_id: str, partitions: Iterable[TopicPartition] | None) -> Any:
    topics = None if partitions is None else by_topic(ClientPartition(*each) for each in partitions)

    def build(version: int) -> OffsetFetchRequest:
        request = OffsetFetchRequest
        if version < OffsetFetchRequest.FIRST_VERSION_WITH_GROUPS:
            listed = [
                request.OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
                for name, numbers in (topics or {}).items()
            ]
            return request(group_id=group_id, topics=None if topics is None else listed)
        grouped = [
            request.OffsetFetchRequestTopics(name=name, partition_indexes=numbers)
            for name, numbers in (topics or {}).items()
        ]
        group = request.OffsetFetchRequestGroup(group_id=group_id, topics=None if topics is None else grouped)
        return request(groups=[group])

    return build


def _offsets(group: Any, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
    raise_error(group.error_code, f"The offsets of group {group_id} cannot be read")
    found = {}
    for topic in group.topics:
        for each in topic.partitions:
            raise_error(each.error_code, f"The offset of {topic.name}-{each.partition_index} cannot be read")
            found[TopicPartition(topic.name, each.partition_index)] = OffsetAndMetadata(
                each.committed_offset, each.metadata, each.committed_leader_epoch
            )
    return found


def _commit_request(group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Any:
    def build(version: int) -> OffsetCommitRequest:
        request = OffsetCommitRequest(group_id=group_id, topics=[])
        topics: dict[str, Any] = {}
        for partition, each in offsets.items():
            topic = topics.setdefault(
                partition.topic, OffsetCommitRequest.OffsetCommitRequestTopic(name=partition.topic, partitions=[])
            )
            committed = OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=partition.partition,
                committed_offset=each.offset or 0,
                committed_metadata=each.metadata,
            )
            if (
                version >= OffsetCommitRequest.FIRST_VERSION_WITH_COMMITTED_LEADER_EPOCH
                and each.leader_epoch is not None
            ):
                committed.committed_leader_epoch = each.leader_epoch
            topic.partitions.append(committed)
        request.topics = list(topics.values())
        return request

    return build
