"""OffsetForLeaderEpoch, versions 0 to 4 (KIP-101, KIP-320).

The response has the end offset of a leader epoch. From this offset a consumer or a follower finds where its log or
position diverges from the leader's log.

Permissions: ClusterAction on the cluster, which followers have, or Describe on the topic.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import NO_NAMES, denied_topics, is_cluster_allowed
from kafkapy.server.request_context import RequestContext
from kafkapy.types import TopicPartition

RequestedPartition = OffsetForLeaderEpochRequest.OffsetForLeaderPartition
EpochEndOffset = OffsetForLeaderEpochResponse.EpochEndOffset


def offset_for_leader_epoch_error(
    request: OffsetForLeaderEpochRequest, version: int, error: Error, message: str | None
) -> OffsetForLeaderEpochResponse:
    return _response(request, lambda topic, requested: EpochEndOffset(error_code=error, partition=requested.partition))


@serves(ApiKey.OFFSET_FOR_LEADER_EPOCH, 0, 4, on_error=offset_for_leader_epoch_error)
def handle_offset_for_leader_epoch(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    manager = context.services.replica_manager
    denied = NO_NAMES
    if not is_cluster_allowed(context, Operation.CLUSTER_ACTION, log_if_denied=False):
        denied = denied_topics(context, Operation.DESCRIBE, (topic.topic for topic in request.topics))

    def answer(topic: str, requested: RequestedPartition) -> EpochEndOffset:
        if topic in denied:
            return EpochEndOffset(error_code=Error.TOPIC_AUTHORIZATION_FAILED, partition=requested.partition)
        try:
            end = manager.offset_for_leader_epoch(
                TopicPartition(topic, requested.partition), requested.current_leader_epoch, requested.leader_epoch
            )
        except ApiError as error:
            return EpochEndOffset(error_code=error.error, partition=requested.partition)
        return EpochEndOffset(partition=requested.partition, leader_epoch=end.epoch, end_offset=end.offset)

    return _response(request, answer)


def _response(
    request: OffsetForLeaderEpochRequest, answer: Callable[[str, RequestedPartition], EpochEndOffset]
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[answer(topic.topic, requested) for requested in topic.partitions]
            )
            for topic in request.topics
        ]
    )
