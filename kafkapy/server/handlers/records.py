"""DeleteRecords, versions 0 to 2 (KIP-107).

The handler advances the log start offset of the partitions, and responds when all replicas have advanced theirs.

Permissions: Delete on the topic.
"""

from __future__ import annotations

from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kafkapy.replica.delayed_delete_records import INVALID_LOW_WATERMARK, DeleteRecordsResult
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import denied_topics
from kafkapy.server.request_context import RequestContext
from kafkapy.types import TopicPartition


def delete_records_error(
    request: DeleteRecordsRequest, version: int, error: Error, message: str | None
) -> DeleteRecordsResponse:
    named = [
        TopicPartition(topic.name, requested.partition_index)
        for topic in request.topics
        for requested in topic.partitions
    ]
    return _response(dict.fromkeys(named, DeleteRecordsResult(error)))


@serves(ApiKey.DELETE_RECORDS, 0, 2, on_error=delete_records_error)
def handle_delete_records(context: RequestContext, request: DeleteRecordsRequest) -> None:
    manager = context.services.replica_manager
    denied = denied_topics(context, Operation.DELETE, (topic.name for topic in request.topics))
    offsets = {
        TopicPartition(topic.name, requested.partition_index): requested.offset
        for topic in request.topics
        for requested in topic.partitions
    }
    refused = {each: DeleteRecordsResult(Error.TOPIC_AUTHORIZATION_FAILED) for each in offsets if each.topic in denied}
    for each in refused:
        del offsets[each]
    manager.delete_records(
        request.timeout_ms, offsets, lambda results: context.respond(_response({**results, **refused}))
    )


def _response(results: dict[TopicPartition, DeleteRecordsResult]) -> DeleteRecordsResponse:
    topics: dict[str, DeleteRecordsResponse.DeleteRecordsTopicResult] = {}
    for topic_partition, result in results.items():
        topic = topics.get(topic_partition.topic)
        if topic is None:
            topic = topics[topic_partition.topic] = DeleteRecordsResponse.DeleteRecordsTopicResult(
                name=topic_partition.topic, partitions=[]
            )
        topic.partitions.append(
            DeleteRecordsResponse.DeleteRecordsPartitionResult(
                partition_index=topic_partition.partition,
                low_watermark=INVALID_LOW_WATERMARK if result.error else result.low_watermark,
                error_code=result.error,
            )
        )
    return DeleteRecordsResponse(topics=list(topics.values()))
