"""DescribeLogDirs: what lies in each log directory, and how much room is left."""

from __future__ import annotations

from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kafkapy.replica.partition import Partition
from kafkapy.server.api_registry import serves
from kafkapy.server.request_context import RequestContext
from kafkapy.storage.log_manager import DirectoryDescription
from kafkapy.types import TopicPartition

INVALID_OFFSET_LAG = -1

LogDirectoryAnswer = DescribeLogDirsResponse.DescribeLogDirsResult


def describe_log_dirs_error(
    request: DescribeLogDirsRequest, version: int, error: Error, message: str | None
) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(error_code=error)


@serves(ApiKey.DESCRIBE_LOG_DIRS, 0, 5, on_error=describe_log_dirs_error)
def describe_log_dirs(context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    services = context.services
    wanted: set[TopicPartition] | None = None
    if request.topics is not None:
        wanted = {TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions}
    cordoned = set(services.config["cordoned.log.dirs"] or ())
    return DescribeLogDirsResponse(
        results=[
            _describe(context, described, wanted, is_cordoned="*" in cordoned or described.directory.path in cordoned)
            for described in services.log_manager.describe_directories()
        ]
    )


def _describe(
    context: RequestContext, described: DirectoryDescription, wanted: set[TopicPartition] | None, *, is_cordoned: bool
) -> LogDirectoryAnswer:
    directory = described.directory
    if not directory.is_online:
        return LogDirectoryAnswer(error_code=Error.KAFKA_STORAGE_ERROR, log_dir=directory.path, is_cordoned=is_cordoned)
    topics: dict[str, DescribeLogDirsResponse.DescribeLogDirsTopic] = {}
    for topic_partition, size in described.sizes.items():
        if wanted is not None and topic_partition not in wanted:
            continue
        topic = topics.get(topic_partition.topic)
        if topic is None:
            topic = topics[topic_partition.topic] = DescribeLogDirsResponse.DescribeLogDirsTopic(
                name=topic_partition.topic, partitions=[]
            )
        topic.partitions.append(
            DescribeLogDirsResponse.DescribeLogDirsPartition(
                partition_index=topic_partition.partition,
                partition_size=size,
                offset_lag=_offset_lag(context, topic_partition),
                is_future_key=False,
            )
        )
    return LogDirectoryAnswer(
        log_dir=directory.path,
        topics=list(topics.values()),
        total_bytes=described.total_bytes,
        usable_bytes=described.usable_bytes,
        is_cordoned=is_cordoned,
    )


def _offset_lag(context: RequestContext, topic_partition: TopicPartition) -> int:
    """How far the log lies behind the high watermark that it knows of."""
    partition: Partition | None = context.services.replica_manager.partitions.get(topic_partition)
    if partition is None:
        return INVALID_OFFSET_LAG
    return max(0, partition.log.high_watermark - partition.log.log_end_offset)
