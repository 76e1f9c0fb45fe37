"""Operations on the committed offsets of groups: list, set, delete."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kafkapy.client.admin.lookups import AdminLookups, as_partition_keys, as_partitions
from kafkapy.client.admin.requests import AdminRequest, constant, error_of, top_level_error
from kafkapy.client.admin.results import Results
from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.protocol.messages.offset_delete import OffsetDeleteRequest
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest
from kafkapy.types import TopicPartition, by_topic

Offsets = dict[TopicPartition, OffsetAndMetadata]


class GroupOffsetOperations(AdminLookups):
    """Operations on the offsets of groups."""

    def list_group_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None] | Iterable[str],
        *,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> Results[str, Offsets]:
        """Returns the committed offsets of each group; a partition without a committed offset is left out. Blocks.

        `groups` maps each group to the partitions to return (None: all), or is a sequence of groups, whose partitions
        are all returned. With `require_stable` the call waits for transactions that are committing offsets.
        """
        wanted = dict(groups) if isinstance(groups, Mapping) else dict.fromkeys(groups)
        partitions = {group: None if each is None else as_partitions(each) for group, each in wanted.items()}

        def make_request(node_id: int, keys: list[str]) -> AdminRequest:
            (group,) = keys

            def build(version: int) -> OffsetFetchRequest:
                return _offset_fetch(group, partitions[group], require_stable, version)

            return AdminRequest(self._broker(node_id), ApiKey.OFFSET_FETCH, build)

        def read_response(response: Any, keys: Collection[str]) -> Results[str, Offsets]:
            (group,) = keys
            results: Results[str, Offsets] = Results()
            results.put(group, _read_offsets(response.groups[0] if response.groups else response))
            return results

        deadline_ms = self._deadline_ms(timeout)
        return self._request_by_key(
            list(wanted), self._find_coordinators(), make_request, read_response, deadline_ms, one_key_each=True
        )

    def alter_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], *, timeout: float | None = None
    ) -> Results[TopicPartition, None]:
        """Sets the committed offsets of these partitions for a group; an offset is that of the next record to read.
        Blocks.

        The error is UNKNOWN_MEMBER_ID if the group has members.
        """
        committed = {
            topic_partition: OffsetAndMetadata(offset) if isinstance(offset, int) else offset
            for topic_partition, offset in as_partition_keys(offsets).items()
        }

        def make_request(node_id: int, keys: list[str]) -> AdminRequest:
            return AdminRequest(
                self._broker(node_id),
                ApiKey.OFFSET_COMMIT,
                lambda version: _offset_commit(group, committed, version),
                _coordinator_error,
            )

        return self._request_of_group(group, make_request, self._deadline_ms(timeout))

    def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> Results[TopicPartition, None]:
        """Deletes the committed offsets of these partitions from a group. Blocks.

        The error is GROUP_SUBSCRIBED_TO_TOPIC for a partition whose topic a member of the group is subscribed to.
        """
        topics = [
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=topic,
                partitions=[
                    OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=number) for number in numbers
                ],
            )
            for topic, numbers in by_topic(as_partitions(partitions)).items()
        ]

        def make_request(node_id: int, keys: list[str]) -> AdminRequest:
            request = OffsetDeleteRequest(group_id=group, topics=topics)
            return AdminRequest(self._broker(node_id), ApiKey.OFFSET_DELETE, constant(request), top_level_error)

        return self._request_of_group(group, make_request, self._deadline_ms(timeout))

    def _request_of_group(self, group: str, make_request: Any, deadline_ms: int) -> Results[TopicPartition, None]:
        """Sends a request to the group's coordinator and returns the result of each partition. Blocks.

        `make_request(node_id, groups)` returns the AdminRequest for the coordinator with this broker id; `groups` is
        a list with this group only.
        """

        def read_response(response: Any, keys: Collection[str]) -> Results[str, Results[TopicPartition, None]]:
            result: Results[TopicPartition, None] = Results()
            for topic in response.topics:
                for each in topic.partitions:
                    result.put(TopicPartition(topic.name, each.partition_index), error_of(each))
            results: Results[str, Results[TopicPartition, None]] = Results()
            results.put(group, result)
            return results

        return self._request_by_key([group], self._find_coordinators(), make_request, read_response, deadline_ms)[group]


# Retriable errors that a coordinator returns for every partition.
_COORDINATOR_ERRORS = frozenset(
    (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR)
)


def _coordinator_error(response: Any) -> ApiError | None:
    codes = (error_of(each) for topic in response.topics for each in topic.partitions)
    return next((each for each in codes if each is not None and each.error in _COORDINATOR_ERRORS), None)


def _offset_fetch(
    group: str, partitions: Collection[TopicPartition] | None, require_stable: bool, version: int
) -> OffsetFetchRequest:
    if require_stable and version < 7:
        raise ApiError(Error.UNSUPPORTED_VERSION, "The broker cannot wait for transactions that commit offsets.")
    if partitions is None and version < 2:
        raise ApiError(Error.UNSUPPORTED_VERSION, "The broker cannot list all offsets of a group.")
    topics = None if partitions is None else by_topic(partitions)
    if version >= 8:
        named = [
            OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=numbers)
            for topic, numbers in (topics or {}).items()
        ]
        requested = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None if topics is None else named)
        return OffsetFetchRequest(groups=[requested], require_stable=require_stable)
    old = [
        OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
        for topic, numbers in (topics or {}).items()
    ]
    return OffsetFetchRequest(group_id=group, topics=None if topics is None else old, require_stable=require_stable)


def _read_offsets(result: Any) -> Offsets | ApiError:
    found: Offsets = {}
    error = error_of(result)
    for topic in result.topics:
        for each in topic.partitions:
            error = error or error_of(each)
            if each.committed_offset >= 0:
                found[TopicPartition(topic.name, each.partition_index)] = OffsetAndMetadata(
                    each.committed_offset, each.metadata or "", each.committed_leader_epoch
                )
    return error or found


def _offset_commit(group: str, offsets: Offsets, version: int) -> OffsetCommitRequest:
    topics = [
        OffsetCommitRequest.OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequest.OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=offsets[TopicPartition(topic, number)].offset,
                    committed_leader_epoch=offsets[TopicPartition(topic, number)].leader_epoch if version >= 6 else -1,
                    committed_metadata=offsets[TopicPartition(topic, number)].metadata,
                )
                for number in numbers
            ],
        )
        for topic, numbers in by_topic(offsets).items()
    ]
    return OffsetCommitRequest(group_id=group, topics=topics)
