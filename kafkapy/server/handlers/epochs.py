"""OffsetForLeaderEpoch: where a leader epoch ended, so that a consumer or follower finds where logs part (KIP-320)."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafkapy.server.api_registry import serves
from kafkapy.server.request_context import RequestContext
from kafkapy.types import TopicPartition

Asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition
EpochEndOffset = OffsetForLeaderEpochResponse.EpochEndOffset


def offset_for_leader_epoch_error(
    request: OffsetForLeaderEpochRequest, version: int, error: Error, message: str | None
) -> OffsetForLeaderEpochResponse:
    return _response(request, lambda topic, asked: EpochEndOffset(error_code=error, partition=asked.partition))


@serves(ApiKey.OFFSET_FOR_LEADER_EPOCH, 0, 4, on_error=offset_for_leader_epoch_error)
def offset_for_leader_epoch(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    manager = context.services.replica_manager

    def answer(topic: str, asked: Asked) -> EpochEndOffset:
        try:
            end = manager.offset_for_leader_epoch(
                TopicPartition(topic, asked.partition), asked.current_leader_epoch, asked.leader_epoch
            )
        except ApiError as error:
            return EpochEndOffset(error_code=error.error, partition=asked.partition)
        return EpochEndOffset(partition=asked.partition, leader_epoch=end.epoch, end_offset=end.offset)

    return _response(request, answer)


def _response(
    request: OffsetForLeaderEpochRequest, answer: Callable[[str, Asked], EpochEndOffset]
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[answer(topic.topic, asked) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )
