"""DescribeLogDirs, versions 0 to 5, and AlterReplicaLogDirs, versions 0 to 2 (KIP-113).

DescribeLogDirs returns the logs and the free space of each log directory. AlterReplicaLogDirs moves logs between the
directories of a broker.

Permissions: Describe on the cluster to describe log directories, Alter on the cluster to move logs.
"""

from __future__ import annotations

from kafkapy.config.cordoned_directories import is_cordoned
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from kafkapy.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kafkapy.replica.partition import Partition
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.request_context import RequestContext
from kafkapy.storage.log import Log
from kafkapy.storage.log_manager import DirectoryDescription
from kafkapy.types import TopicPartition

INVALID_OFFSET_LAG = -1

LogDirectoryAnswer = DescribeLogDirsResponse.DescribeLogDirsResult


def describe_log_dirs_error(
    request: DescribeLogDirsRequest, version: int, error: Error, message: str | None
) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(error_code=error)


@serves(ApiKey.DESCRIBE_LOG_DIRS, 0, 5, on_error=describe_log_dirs_error)
def handle_describe_log_dirs(context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    check_cluster(context, Operation.DESCRIBE)
    services = context.services
    wanted: set[TopicPartition] | None = None
    if request.topics is not None:
        wanted = {TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions}
    cordoned = services.config.cordoned_log_dirs
    return DescribeLogDirsResponse(
        results=[
            _describe(context, described, wanted, is_cordoned=is_cordoned(described.directory.path, cordoned))
            for described in services.log_manager.describe_directories()
        ]
    )


def _describe(
    context: RequestContext, described: DirectoryDescription, wanted: set[TopicPartition] | None, *, is_cordoned: bool
) -> LogDirectoryAnswer:
    directory = described.directory
    if not directory.is_online:
        return LogDirectoryAnswer(error_code=Error.KAFKA_STORAGE_ERROR, log_dir=directory.path, is_cordoned=is_cordoned)
    found: list[tuple[TopicPartition, int, Log | None]] = [(each, size, None) for each, size in described.sizes.items()]
    found += [(each, future.size, future) for each, future in described.futures.items()]
    topics: dict[str, DescribeLogDirsResponse.DescribeLogDirsTopic] = {}
    for topic_partition, size, future in found:
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
                offset_lag=_offset_lag(context, topic_partition, future),
                is_future_key=future is not None,
            )
        )
    return LogDirectoryAnswer(
        log_dir=directory.path,
        topics=list(topics.values()),
        total_bytes=described.total_bytes,
        usable_bytes=described.usable_bytes,
        is_cordoned=is_cordoned,
    )


def _offset_lag(context: RequestContext, topic_partition: TopicPartition, future: Log | None) -> int:
    """Returns by how many offsets `future` is behind the current log; -1 if this broker does not host the partition.

    If `future` is None, returns by how many offsets the current log is behind its high watermark.
    """
    partition: Partition | None = context.services.replica_manager.partitions.get(topic_partition)
    if partition is None:
        return INVALID_OFFSET_LAG
    if future is not None:
        return partition.log.log_end_offset - future.log_end_offset
    return max(0, partition.log.high_watermark - partition.log.log_end_offset)


def alter_replica_log_dirs_error(
    request: AlterReplicaLogDirsRequest, version: int, error: Error, message: str | None
) -> AlterReplicaLogDirsResponse:
    return _altered(dict.fromkeys(_wanted_directories(request), error))


@serves(ApiKey.ALTER_REPLICA_LOG_DIRS, 0, 2, on_error=alter_replica_log_dirs_error, blocking=True)
def handle_alter_replica_log_dirs(
    context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Starts moves on the handler pool, because future logs are created before the response, as in Kafka."""
    check_cluster(context, Operation.ALTER)
    return _altered(context.services.alter_log_dirs.alter(_wanted_directories(request)))


def _wanted_directories(request: AlterReplicaLogDirsRequest) -> dict[TopicPartition, str]:
    """Returns the requested directory of each partition; if a partition is repeated, its last directory counts."""
    return {
        TopicPartition(topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }


def _altered(results: dict[TopicPartition, Error]) -> AlterReplicaLogDirsResponse:
    topics: dict[str, AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = {}
    for topic_partition, error in results.items():
        topic = topics.get(topic_partition.topic)
        if topic is None:
            topic = topics[topic_partition.topic] = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult(
                topic_name=topic_partition.topic, partitions=[]
            )
        topic.partitions.append(
            AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult(
                partition_index=topic_partition.partition, error_code=error
            )
        )
    return AlterReplicaLogDirsResponse(results=list(topics.values()))
