"""The log of the coordinators on this broker's replicas; implements `coordinator/coordinator_log.CoordinatorLog`."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.errors import ApiError, Error
from kafkapy.replica.partition import ALL_REPLICAS, Partition
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.types import TopicPartition


class ReplicatedCoordinatorLog:
    """The CoordinatorLog of the internal topics' partitions that this broker leads. Only the reactor's thread may use
    it."""

    def __init__(self, replica_manager: ReplicaManager, append_timeout_ms: int) -> None:
        self._replica_manager = replica_manager
        self._append_timeout_ms = append_timeout_ms

    def log_start_offset(self, partition: TopicPartition) -> int:
        return self._led(partition).log.log_start_offset

    def log_end_offset(self, partition: TopicPartition) -> int:
        return self._led(partition).log.log_end_offset

    def high_watermark(self, partition: TopicPartition) -> int:
        return self._led(partition).log.high_watermark

    def read(self, partition: TopicPartition, offset: int, max_bytes: int) -> bytes:
        log = self._led(partition).log
        records = log.read(offset, max_bytes, max_offset=log.log_end_offset, min_one_message=True).records
        return records if isinstance(records, bytes) else records.read()

    def append(self, partition: TopicPartition, batch: bytes, on_committed: Callable[[Error], None]) -> None:
        self._replica_manager.append_records(
            self._append_timeout_ms,
            ALL_REPLICAS,
            {partition: memoryview(bytearray(batch))},
            lambda responses: on_committed(responses[partition].error),
            from_client=False,
            internal_topics_allowed=True,
        )

    def _led(self, topic_partition: TopicPartition) -> Partition:
        partition = self._replica_manager.get_partition(topic_partition)
        if not partition.is_leader:
            raise ApiError(Error.NOT_LEADER_OR_FOLLOWER)
        return partition
