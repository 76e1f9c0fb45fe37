"""Operations on log directories: describe them, and move replicas between the directories of a broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkapy.client.admin.lookups import AdminLookups
from kafkapy.client.admin.requests import AdminRequest, constant, error_of, top_level_error
from kafkapy.client.admin.results import Results
from kafkapy.errors import ApiError
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from kafkapy.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kafkapy.types import TopicPartition, by_topic


class ReplicaInfo(NamedTuple):
    """A replica in a log directory: its size in bytes, and its lag behind the high watermark in records.

    If `is_future` is True, it is a copy that the broker makes to move a replica to this directory; `offset_lag` is then
    the number of records by which the copy is behind the replica that it will replace.
    """

    size: int
    offset_lag: int
    is_future: bool


class LogDirDescription(NamedTuple):
    """A log directory; `error` is set if it is offline, otherwise None.

    `total_bytes` and `usable_bytes` are the size and the free space of its file system, -1 before Apache Kafka 3.3. A
    cordoned directory gets no new partitions.
    """

    error: ApiError | None
    replicas: dict[TopicPartition, ReplicaInfo]
    total_bytes: int
    usable_bytes: int
    is_cordoned: bool


class Replica(NamedTuple):
    """A partition's replica on a broker."""

    topic: str
    partition: int
    broker: int


class LogDirOperations(AdminLookups):
    """Operations on log directories."""

    def describe_log_dirs(
        self, brokers: Iterable[int] | None = None, *, timeout: float | None = None
    ) -> Results[int, dict[str, LogDirDescription]]:
        """Returns, for each broker (None: all), its log directories by path, with their replicas. Blocks."""
        deadline_ms = self._deadline_ms(timeout)
        wanted = list(self._brokers(deadline_ms) if brokers is None else dict.fromkeys(brokers))
        requests = {
            node_id: AdminRequest(
                self._broker(node_id),
                ApiKey.DESCRIBE_LOG_DIRS,
                lambda version: DescribeLogDirsRequest(topics=None),
                top_level_error,
            )
            for node_id in wanted
        }
        self._send_all(list(requests.values()), deadline_ms)
        results: Results[int, dict[str, LogDirDescription]] = Results()
        for node_id, request in requests.items():
            if request.error is not None:
                results.errors[node_id] = request.error
            else:
                results.values[node_id] = {result.log_dir: _directory(result) for result in request.response.results}
        return results

    def alter_replica_log_dirs(
        self, directories: Mapping[Replica, str], *, timeout: float | None = None
    ) -> Results[Replica, None]:
        """Starts to move replicas to other log directories (absolute paths) of their brokers. Blocks.

        Returns when the brokers have started to move the replicas; `describe_log_dirs` shows the progress. A replica
        that does not exist yet has the error REPLICA_NOT_AVAILABLE, and its broker will create the replica in that
        directory.
        """
        by_broker: dict[int, dict[str, list[TopicPartition]]] = {}
        for replica, path in directories.items():
            topic, number, broker = replica
            by_broker.setdefault(broker, {}).setdefault(path, []).append(TopicPartition(topic, number))
        requests = {}
        for broker, moves in by_broker.items():
            message = AlterReplicaLogDirsRequest(dirs=[_move(path, moved) for path, moved in moves.items()])
            requests[broker] = AdminRequest(self._broker(broker), ApiKey.ALTER_REPLICA_LOG_DIRS, constant(message))
        self._send_all(list(requests.values()), self._deadline_ms(timeout))
        results: Results[Replica, None] = Results()
        for broker, request in requests.items():
            if request.error is not None:
                for moved in by_broker[broker].values():
                    results.errors.update(
                        {Replica(*topic_partition, broker): request.error for topic_partition in moved}
                    )
                continue
            for topic in request.response.results:
                for result in topic.partitions:
                    results.put(Replica(topic.topic_name, result.partition_index, broker), error_of(result))
        return results


def _directory(result: Any) -> LogDirDescription:
    replicas = {
        TopicPartition(topic.name, each.partition_index): ReplicaInfo(
            each.partition_size, each.offset_lag, each.is_future_key
        )
        for topic in result.topics
        for each in topic.partitions
    }
    return LogDirDescription(error_of(result), replicas, result.total_bytes, result.usable_bytes, result.is_cordoned)


def _move(path: str, partitions: Iterable[TopicPartition]) -> AlterReplicaLogDirsRequest.AlterReplicaLogDir:
    topics = [
        AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=topic, partitions=numbers)
        for topic, numbers in by_topic(partitions).items()
    ]
    return AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=path, topics=topics)
