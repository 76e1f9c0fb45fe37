"""Operations on groups: list, describe, delete, and remove members."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from kafkapy.client.admin.lookups import AdminLookups
from kafkapy.client.admin.requests import AdminRequest, constant, error_of, top_level_error
from kafkapy.client.admin.results import Results
from kafkapy.client.cluster import Node
from kafkapy.client.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from kafkapy.errors import ApiError, Error, ProtocolViolation
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkapy.protocol.messages.delete_groups import DeleteGroupsRequest
from kafkapy.protocol.messages.describe_groups import DescribeGroupsRequest
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest
from kafkapy.protocol.messages.list_groups import ListGroupsRequest
from kafkapy.types import TopicPartition

CLASSIC, CONSUMER = "Classic", "Consumer"
# ConsumerGroupDescribe returns these for a group that may be a classic one.
_NOT_OF_THIS_PROTOCOL = frozenset((Error.GROUP_ID_NOT_FOUND, Error.UNSUPPORTED_VERSION))


class GroupListing(NamedTuple):
    """The name and kind of a group.

    `state` is "" before Apache Kafka 2.6; `type` (Classic, Consumer, Share, Streams) is "" before 3.8. `protocol_type`
    is "" for a group that only has committed offsets.
    """

    group_id: str
    protocol_type: str
    state: str
    type: str

    @property
    def is_simple(self) -> bool:
        """Returns whether the group only has committed offsets and never had members."""
        return self.protocol_type == ""


class MemberDescription(NamedTuple):
    """A member of a group and its partitions.

    `target` are the partitions that the coordinator has assigned and that the member will have after the rebalance;
    `topics` and `topic_pattern` are what the member is subscribed to; `is_classic` is True for a member that uses the
    classic protocol. In a classic group `rack`, `epoch`, `target`, `topics`, `topic_pattern` and `is_classic` are None.
    `topic_pattern` is also None for a member that has not subscribed with a pattern.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]
    rack: str | None = None
    epoch: int | None = None
    target: tuple[TopicPartition, ...] | None = None
    is_classic: bool | None = None
    topics: tuple[str, ...] | None = None
    topic_pattern: str | None = None


class GroupDescription(NamedTuple):
    """A group of the classic or consumer protocol.

    `state` is Kafka's name: Stable, Empty, PreparingRebalance, Reconciling, Dead and so on. `epoch` is the group's
    epoch and `assignment_epoch` the group epoch for which the target assignment was computed; both are None in a
    classic group.
    """

    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    members: tuple[MemberDescription, ...]
    coordinator: Node
    epoch: int | None = None
    assignment_epoch: int | None = None


class GroupOperations(AdminLookups):
    """Operations on groups as a whole."""

    def list_groups(
        self,
        *,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        protocol_types: Iterable[str] = (),
        timeout: float | None = None,
    ) -> list[GroupListing]:
        """Returns the groups of all brokers, or those of the given states, types and protocol types. Blocks."""
        deadline_ms = self._deadline_ms(timeout)
        wanted_states, wanted_types = list(states), list(types)
        wanted_protocols = frozenset(protocol_types)

        def build(version: int) -> ListGroupsRequest:
            if (wanted_states and version < 4) or (wanted_types and version < 5):
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker cannot filter groups by state or type.")
            return ListGroupsRequest(states_filter=wanted_states, types_filter=wanted_types)

        requests = [
            AdminRequest(self._broker(node_id), ApiKey.LIST_GROUPS, build, top_level_error)
            for node_id in self._brokers(deadline_ms)
        ]
        self._send_all(requests, deadline_ms)
        return [
            GroupListing(result.group_id, result.protocol_type, result.group_state, result.group_type.capitalize())
            for request in requests
            for result in request.result().groups
            if not wanted_protocols or result.protocol_type in wanted_protocols
        ]

    def describe_groups(self, groups: Iterable[str], *, timeout: float | None = None) -> Results[str, GroupDescription]:
        """Describes groups of the consumer protocol, and classic groups of consumers or without members. Blocks.

        A group that does not exist has the error GROUP_ID_NOT_FOUND; before Apache Kafka 3.9 its state is Dead instead.
        """
        deadline_ms = self._deadline_ms(timeout)
        results = self._describe_consumer_groups(list(groups), deadline_ms)
        others = [group for group, error in results.errors.items() if error.error in _NOT_OF_THIS_PROTOCOL]
        if others:
            classic = self._describe_classic_groups(others, deadline_ms)
            for group in others:
                del results.errors[group]
            results.values.update(classic.values)
            results.errors.update(classic.errors)
        return results

    def describe_classic_groups(
        self, groups: Iterable[str], *, timeout: float | None = None
    ) -> Results[str, GroupDescription]:
        """Describes groups of the classic protocol with any protocol type, such as Connect's workers. Blocks."""
        return self._describe_classic_groups(list(groups), self._deadline_ms(timeout), any_protocol=True)

    def delete_groups(self, groups: Iterable[str], *, timeout: float | None = None) -> Results[str, None]:
        """Deletes groups and their offsets. A group with members has the error NON_EMPTY_GROUP. Blocks."""

        def make_request(node_id: int, keys: list[str]) -> AdminRequest:
            request = DeleteGroupsRequest(groups_names=keys)
            return AdminRequest(self._broker(node_id), ApiKey.DELETE_GROUPS, constant(request))

        def read_response(response: Any, keys: Collection[str]) -> Results[str, None]:
            results: Results[str, None] = Results()
            for result in response.results:
                results.put(result.group_id, error_of(result))
            return results

        return self._request_by_key(
            list(groups), self._find_coordinators(), make_request, read_response, self._deadline_ms(timeout)
        )

    def remove_group_members(
        self,
        group: str,
        instance_ids: Iterable[str] | None = None,
        *,
        reason: str = "member was removed by an admin",
        timeout: float | None = None,
    ) -> Results[str, None]:
        """Removes static members of a classic group by their `group.instance.id`; None removes all members. Blocks.

        The keys of the result are instance ids, and member ids for members that are not static.
        """
        deadline_ms = self._deadline_ms(timeout)
        if instance_ids is None:
            described = self._describe_classic_groups([group], deadline_ms)[group]
            pairs = [(each.member_id, each.instance_id) for each in described.members]
        else:
            pairs = [("", each) for each in instance_ids]
        members = [
            LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=instance_id, reason=reason)
            for member_id, instance_id in pairs
        ]

        def build(version: int) -> LeaveGroupRequest:
            if version < 3:
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker does not remove members of a group.")
            return LeaveGroupRequest(group_id=group, members=members)

        def make_request(node_id: int, keys: list[str]) -> AdminRequest:
            return AdminRequest(self._broker(node_id), ApiKey.LEAVE_GROUP, build, top_level_error)

        def read_response(response: Any, keys: Collection[str]) -> Results[str, Results[str, None]]:
            removed: Results[str, None] = Results()
            for result in response.members:
                removed.put(result.group_instance_id or result.member_id, error_of(result))
            results: Results[str, Results[str, None]] = Results()
            results.put(group, removed)
            return results

        return self._request_by_key([group], self._find_coordinators(), make_request, read_response, deadline_ms)[group]

    def _describe_consumer_groups(self, groups: list[str], deadline_ms: int) -> Results[str, GroupDescription]:
        coordinators: dict[str, int] = {}

        def make_request(node_id: int, keys: list[str]) -> AdminRequest:
            coordinators.update(dict.fromkeys(keys, node_id))
            request = ConsumerGroupDescribeRequest(group_ids=keys)
            return AdminRequest(self._broker(node_id), ApiKey.CONSUMER_GROUP_DESCRIBE, constant(request))

        def read_response(response: Any, keys: Collection[str]) -> Results[str, GroupDescription]:
            results: Results[str, GroupDescription] = Results()
            for result in response.groups:
                node = self._node(coordinators[result.group_id])
                results.put(result.group_id, error_of(result) or _consumer_group(result, node))
            return results

        return self._request_by_key(groups, self._find_coordinators(), make_request, read_response, deadline_ms)

    def _describe_classic_groups(
        self, groups: list[str], deadline_ms: int, *, any_protocol: bool = False
    ) -> Results[str, GroupDescription]:
        coordinators: dict[str, int] = {}

        def make_request(node_id: int, keys: list[str]) -> AdminRequest:
            coordinators.update(dict.fromkeys(keys, node_id))
            request = DescribeGroupsRequest(groups=keys)
            return AdminRequest(self._broker(node_id), ApiKey.DESCRIBE_GROUPS, constant(request))

        def read_response(response: Any, keys: Collection[str]) -> Results[str, GroupDescription]:
            results: Results[str, GroupDescription] = Results()
            for result in response.groups:
                error = error_of(result)
                if error is None and not any_protocol and result.protocol_type not in ("", PROTOCOL_TYPE):
                    what = f"GroupId {result.group_id} is not a consumer group ({result.protocol_type})."
                    error = ApiError(Error.INCONSISTENT_GROUP_PROTOCOL, what)
                results.put(result.group_id, error or _classic_group(result, self._node(coordinators[result.group_id])))
            return results

        return self._request_by_key(groups, self._find_coordinators(), make_request, read_response, deadline_ms)

    def _node(self, node_id: int) -> Node:
        return self._network.cluster.nodes[node_id]


def _classic_group(result: Any, coordinator: Node) -> GroupDescription:
    members = tuple(
        MemberDescription(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            _assigned(result.protocol_type, each.member_assignment),
        )
        for each in result.members
    )
    return GroupDescription(
        result.group_id, CLASSIC, result.group_state, result.protocol_type, result.protocol_data, members, coordinator
    )


def _assigned(protocol_type: str, assignment: bytes) -> tuple[TopicPartition, ...]:
    """Decodes the partitions of a consumer; returns () for other protocol types, whose format is unknown."""
    if protocol_type != PROTOCOL_TYPE:
        return ()
    try:
        return tuple(decode_assignment(assignment))
    except ProtocolViolation as error:
        raise ApiError(Error.UNKNOWN_SERVER_ERROR, f"A member's assignment cannot be read: {error}") from error


def _consumer_group(result: Any, coordinator: Node) -> GroupDescription:
    def partitions(assignment: Any) -> tuple[TopicPartition, ...]:
        return tuple(
            TopicPartition(topic.topic_name, number)
            for topic in assignment.topic_partitions
            for number in topic.partitions
        )

    members = tuple(
        MemberDescription(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            partitions(each.assignment),
            each.rack_id,
            each.member_epoch,
            partitions(each.target_assignment),
            None if each.member_type < 0 else each.member_type == 0,
            tuple(each.subscribed_topic_names),
            each.subscribed_topic_regex or None,
        )
        for each in result.members
    )
    return GroupDescription(
        result.group_id,
        CONSUMER,
        result.group_state,
        PROTOCOL_TYPE,
        result.assignor_name,
        members,
        coordinator,
        result.group_epoch,
        result.assignment_epoch,
    )
