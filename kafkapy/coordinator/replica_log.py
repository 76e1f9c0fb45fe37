"""A coordinator's log as the replica manager keeps it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkapy._core.segment_file import FileRange
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.replica.append import PartitionResponse
from kafkapy.replica.partition import ALL_REPLICAS, Partition
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.types import TopicPartition


class ReplicaManagerLog:
    """CoordinatorLog over the partitions that this broker leads. Owner thread only.

    `write_timeout_ms`: how long an append may wait for the in-sync replicas.
    """

    def __init__(self, replica_manager: ReplicaManager, write_timeout_ms: int) -> None:
        self._replica_manager = replica_manager
        self._write_timeout_ms = write_timeout_ms

    def log_start_offset(self, partition: TopicPartition) -> int:
        return self._led(partition).log.log_start_offset

    def log_end_offset(self, partition: TopicPartition) -> int:
        return self._led(partition).log.log_end_offset

    def high_watermark(self, partition: TopicPartition) -> int:
        return self._led(partition).log.high_watermark

    def read(self, partition: TopicPartition, offset: int, max_bytes: int) -> bytes:
        try:
            records = self._led(partition).log.read(offset, max_bytes, min_one_message=True).records
            return records.read() if isinstance(records, FileRange) else bytes(records)
        except (OSError, StorageError) as error:
            raise ApiError(Error.KAFKA_STORAGE_ERROR, f"cannot read {partition} at {offset}: {error}") from error

    def append(self, partition: TopicPartition, batch: bytes, on_committed: Callable[[Error], None]) -> None:
        def on_response(responses: Mapping[TopicPartition, PartitionResponse]) -> None:
            on_committed(responses[partition].error)

        self._replica_manager.append_records(
            self._write_timeout_ms,
            ALL_REPLICAS,
            # Offsets and the leader epoch are written into the batch in place.
            {partition: memoryview(bytearray(batch))},
            on_response,
            from_client=False,
            internal_topics_allowed=True,
        )

    def _led(self, partition: TopicPartition) -> Partition:
        found = self._replica_manager.get_partition(partition)
        if not found.is_leader:
            raise ApiError(Error.NOT_LEADER_OR_FOLLOWER)
        return found
