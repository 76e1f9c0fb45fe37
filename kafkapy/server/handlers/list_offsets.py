"""ListOffsets, versions 0 to 11.

The response has, for each partition, the offset that the request asks for: the offset of the first record with a
timestamp or a later one, the earliest or the latest offset, or the offset of the record with the largest timestamp.

Version notes: version 0 returns a list of segment offsets and no timestamp; Apache Kafka 4 no longer serves it. From
version 4 on the response has leader epochs; OFFSET_NOT_AVAILABLE exists from version 5 on.

Permissions: Describe on the topic.

Not implemented: tiered storage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkapy.replica.fetch import CONSUMER_REPLICA_ID, FetchIsolation
from kafkapy.replica.list_offsets import find_offset, find_offsets_before, is_timestamp_supported
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import denied_topics
from kafkapy.server.request_context import RequestContext
from kafkapy.types import TopicPartition

DEBUGGING_REPLICA_ID = -2
EARLIEST = -2
FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE = 5
FIRST_VERSION_WITH_LEADER_EPOCH = 4

PartitionAnswer = ListOffsetsResponse.ListOffsetsPartitionResponse
Answer = Callable[[str, ListOffsetsRequest.ListOffsetsPartition], PartitionAnswer]


def list_offsets_error(
    request: ListOffsetsRequest, version: int, error: Error, message: str | None
) -> ListOffsetsResponse:
    def answer(topic: str, requested: ListOffsetsRequest.ListOffsetsPartition) -> PartitionAnswer:
        return PartitionAnswer(partition_index=requested.partition_index, error_code=error)

    return _response(request, answer)


@serves(ApiKey.LIST_OFFSETS, 0, 11, on_error=list_offsets_error)
def handle_list_offsets(context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    named = Counter(
        (topic.name, requested.partition_index) for topic in request.topics for requested in topic.partitions
    )

    denied = denied_topics(context, Operation.DESCRIBE, (topic.name for topic in request.topics))

    def answer(topic: str, requested: ListOffsetsRequest.ListOffsetsPartition) -> PartitionAnswer:
        if topic in denied:
            error = Error.TOPIC_AUTHORIZATION_FAILED
            return PartitionAnswer(partition_index=requested.partition_index, error_code=error)
        if named[topic, requested.partition_index] > 1:
            return PartitionAnswer(partition_index=requested.partition_index, error_code=Error.INVALID_REQUEST)
        try:
            return _find(context, request, topic, requested)
        except ApiError as error:
            return PartitionAnswer(
                partition_index=requested.partition_index, error_code=_code_for(error.error, context.api_version)
            )

    return _response(request, answer)


def _find(
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: str,
    requested: ListOffsetsRequest.ListOffsetsPartition,
) -> PartitionAnswer:
    version = context.api_version
    manager = context.services.replica_manager
    topic_partition = TopicPartition(topic, requested.partition_index)
    from_client = request.replica_id == CONSUMER_REPLICA_ID
    if version == 0:
        if requested.timestamp < EARLIEST:
            raise ApiError(Error.UNSUPPORTED_VERSION)
        offsets = manager.fetch_offset(
            topic_partition,
            lambda partition: find_offsets_before(
                partition,
                requested.timestamp,
                requested.max_num_offsets,
                wall_ms=context.services.clock.wall_ms(),
                from_client=from_client,
            ),
        )
        return PartitionAnswer(partition_index=requested.partition_index, old_style_offsets=offsets)
    if not is_timestamp_supported(requested.timestamp, version):
        raise ApiError(Error.UNSUPPORTED_VERSION)
    isolation = FetchIsolation.LOG_END_OFFSET
    if from_client:
        isolation = FetchIsolation.of(CONSUMER_REPLICA_ID, request.isolation_level)
    found = manager.fetch_offset(
        topic_partition,
        lambda partition: find_offset(
            partition,
            requested.timestamp,
            isolation=isolation,
            from_client=from_client,
            current_leader_epoch=requested.current_leader_epoch,
            only_leader=request.replica_id != DEBUGGING_REPLICA_ID,
        ),
    )
    return PartitionAnswer(
        partition_index=requested.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if version >= FIRST_VERSION_WITH_LEADER_EPOCH else -1,
    )


def _code_for(error: Error, version: int) -> Error:
    if error is Error.OFFSET_NOT_AVAILABLE and version < FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE:
        return Error.LEADER_NOT_AVAILABLE
    return error


def _response(request: ListOffsetsRequest, answer: Answer) -> ListOffsetsResponse:
    """Returns the response, in which `answer(topic, requested)` makes the entry of each partition of the request. If a
    partition is repeated, only its last entry counts.
    """
    return ListOffsetsResponse(
        topics=[
            ListOffsetsResponse.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    answer(topic.name, requested)
                    for requested in {requested.partition_index: requested for requested in topic.partitions}.values()
                ],
            )
            for topic in request.topics
        ]
    )
