"""Operations on share groups (KIP-932): describe, and list, set and delete their start offsets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from kafkapy.client.admin.lookups import AdminLookups, as_partition_keys, as_partitions
from kafkapy.client.admin.requests import AdminRequest, constant, error_of, top_level_error
from kafkapy.client.admin.results import Results
from kafkapy.client.cluster import Node
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from kafkapy.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from kafkapy.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from kafkapy.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from kafkapy.types import TopicPartition, by_topic

K = TypeVar("K")
V = TypeVar("V")


class ShareMemberDescription(NamedTuple):
    """A member of a share group and its partitions, which other members may share."""

    member_id: str
    client_id: str
    host: str
    epoch: int
    rack: str | None
    topics: tuple[str, ...]
    partitions: tuple[TopicPartition, ...]


class ShareGroupDescription(NamedTuple):
    """A share group; `state` is Empty, Stable or Dead."""

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[ShareMemberDescription, ...]
    coordinator: Node


class SharePartitionOffset(NamedTuple):
    """The start offset of a share group in a partition: the first offset whose record the group has not finished.

    `lag` is the number of records from `start_offset` on that the group has not finished. `leader_epoch` and `lag` are
    None if they are not known.
    """

    start_offset: int
    leader_epoch: int | None = None
    lag: int | None = None


ShareOffsets = dict[TopicPartition, SharePartitionOffset | None]


class ShareGroupOperations(AdminLookups):
    """Operations on share groups. `list_groups` lists them, and `delete_groups` deletes them."""

    def describe_share_groups(
        self, groups: Iterable[str], *, timeout: float | None = None
    ) -> Results[str, ShareGroupDescription]:
        """Describes share groups. Blocks.

        A group of another type, or one that does not exist, has the error GROUP_ID_NOT_FOUND.
        """
        return self._request_of_groups(
            groups,
            ApiKey.SHARE_GROUP_DESCRIBE,
            lambda keys: ShareGroupDescribeRequest(group_ids=keys),
            lambda result, node: error_of(result) or _share_group(result, node),
            timeout,
        )

    def list_share_group_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None] | Iterable[str],
        *,
        timeout: float | None = None,
    ) -> Results[str, ShareOffsets]:
        """Returns the start offset of each partition of each group; None if it is not known yet or cannot be read.
        Blocks.

        `groups` maps each group to the partitions to return (None: all), or is a sequence of groups, whose partitions
        are all returned.
        """
        wanted = dict(groups) if isinstance(groups, Mapping) else dict.fromkeys(groups)
        kind = DescribeShareGroupOffsetsRequest

        def make_group(group: str) -> DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup:
            partitions = wanted[group]
            topics = None
            if partitions is not None:
                topics = [
                    kind.DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=numbers)
                    for topic, numbers in by_topic(as_partitions(partitions)).items()
                ]
            return kind.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)

        return self._request_of_groups(
            wanted,
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
            lambda keys: kind(groups=[make_group(key) for key in keys]),
            lambda result, node: error_of(result) or _offsets(result),
            timeout,
        )

    def alter_share_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> Results[TopicPartition, None]:
        """Sets start offsets of a share group, which is created if it does not exist. Blocks.

        The error of the whole operation is NON_EMPTY_GROUP if the group has members.
        """
        wanted = as_partition_keys(offsets)
        kind = AlterShareGroupOffsetsRequest
        request = kind(
            group_id=group,
            topics=[
                kind.AlterShareGroupOffsetsRequestTopic(
                    topic_name=topic,
                    partitions=[
                        kind.AlterShareGroupOffsetsRequestPartition(
                            partition_index=number, start_offset=wanted[TopicPartition(topic, number)]
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(wanted).items()
            ],
        )

        def read(response: Any) -> Results[TopicPartition, None]:
            found: Results[TopicPartition, None] = Results()
            for topic in response.responses:
                for each in topic.partitions:
                    found.put(TopicPartition(topic.topic_name, each.partition_index), error_of(each))
            return found

        return self._request_of_share_group(group, ApiKey.ALTER_SHARE_GROUP_OFFSETS, request, read, timeout)

    def delete_share_group_offsets(
        self, group: str, topics: Iterable[str], *, timeout: float | None = None
    ) -> Results[str, None]:
        """Deletes the offsets of a share group for whole topics. Blocks.

        The error of the whole operation is NON_EMPTY_GROUP if the group has members.
        """
        kind = DeleteShareGroupOffsetsRequest
        named = [kind.DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics]

        def read(response: Any) -> Results[str, None]:
            found: Results[str, None] = Results()
            for topic in response.responses:
                found.put(topic.topic_name, error_of(topic))
            return found

        request = kind(group_id=group, topics=named)
        return self._request_of_share_group(group, ApiKey.DELETE_SHARE_GROUP_OFFSETS, request, read, timeout)

    def _request_of_groups(
        self,
        groups: Iterable[str],
        key: ApiKey,
        build: Callable[[list[str]], Any],
        read: Callable[[Any, Node], Any],
        timeout: float | None,
    ) -> Results[str, Any]:
        """Sends a request to each coordinator of some of the groups, and returns the result of each group. Blocks.

        `build(groups)` makes the request for the groups of one coordinator. `read(group, coordinator)` converts a
        group's struct of the response to the result of this group.
        """
        coordinators: dict[str, int] = {}

        def make_request(node_id: int, keys: list[str]) -> AdminRequest:
            coordinators.update(dict.fromkeys(keys, node_id))
            return AdminRequest(self._broker(node_id), key, constant(build(keys)))

        def read_response(response: Any, keys: Collection[str]) -> Results[str, Any]:
            results: Results[str, Any] = Results()
            for result in response.groups:
                node = self._network.cluster.nodes[coordinators[result.group_id]]
                results.put(result.group_id, read(result, node))
            return results

        return self._request_by_key(
            list(groups), self._find_coordinators(), make_request, read_response, self._deadline_ms(timeout)
        )

    def _request_of_share_group(
        self, group: str, key: ApiKey, request: Any, read: Callable[[Any], Results[K, V]], timeout: float | None
    ) -> Results[K, V]:
        """Sends `request` to the coordinator of one group, blocks, and returns `read(response)`.

        Raises the error of the response as a whole.
        """

        def make_request(node_id: int, keys: list[str]) -> AdminRequest:
            return AdminRequest(self._broker(node_id), key, constant(request), top_level_error)

        def read_response(response: Any, keys: Collection[str]) -> Results[str, Results[K, V]]:
            results: Results[str, Results[K, V]] = Results()
            results.put(group, read(response))
            return results

        deadline_ms = self._deadline_ms(timeout)
        return self._request_by_key([group], self._find_coordinators(), make_request, read_response, deadline_ms)[group]


def _share_group(result: Any, coordinator: Node) -> ShareGroupDescription:
    members = tuple(
        ShareMemberDescription(
            each.member_id,
            each.client_id,
            each.client_host,
            each.member_epoch,
            each.rack_id,
            tuple(each.subscribed_topic_names),
            tuple(
                TopicPartition(topic.topic_name, number)
                for topic in each.assignment.topic_partitions
                for number in topic.partitions
            ),
        )
        for each in result.members
    )
    return ShareGroupDescription(
        result.group_id,
        result.group_state,
        result.group_epoch,
        result.assignment_epoch,
        result.assignor_name,
        members,
        coordinator,
    )


def _offsets(result: Any) -> ShareOffsets:
    found: ShareOffsets = {}
    for topic in result.topics:
        for each in topic.partitions:
            is_known = not each.error_code and each.start_offset >= 0
            found[TopicPartition(topic.topic_name, each.partition_index)] = (
                SharePartitionOffset(
                    each.start_offset,
                    each.leader_epoch if each.leader_epoch >= 0 else None,
                    each.lag if each.lag >= 0 else None,
                )
                if is_known
                else None
            )
    return found
