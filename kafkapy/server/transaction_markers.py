"""Writes the markers that end transactions to their partitions, on this broker and on others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
from kafkapy.coordinator.transaction.transaction_metadata import TRANSACTION_VERSION_2
from kafkapy.coordinator.transaction.transaction_requests import TransactionMarker
from kafkapy.errors import Error
from kafkapy.metadata.internal_topics import GROUP_METADATA_TOPIC
from kafkapy.replica.partition import ALL_REPLICAS
from kafkapy.replica.partition_response import PartitionResponse
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.storage.control_record import EndTransactionMarker, build_end_transaction_marker
from kafkapy.types import Clock, TopicPartition

if TYPE_CHECKING:
    from kafkapy.server.remote_markers import RemoteMarkers

OnWritten = Callable[[Mapping[TopicPartition, Error]], None]


class LocalMarkerWriter:
    """The MarkerWriter that appends markers to the partitions that this broker leads. Only the reactor's thread may
    use it.

    The markers of `__consumer_offsets` are appended by the group coordinator, because they commit or drop its pending
    offsets.
    """

    def __init__(
        self,
        replica_manager: ReplicaManager,
        group_coordinator: GroupCoordinator,
        clock: Clock,
        timeout_ms: int,
    ) -> None:
        self._replica_manager = replica_manager
        self._group_coordinator = group_coordinator
        self._clock = clock
        self._timeout_ms = timeout_ms

    def write(self, marker: TransactionMarker, partitions: Collection[TopicPartition], on_written: OnWritten) -> None:
        """Appends the marker to each partition; calls `on_written` once, when each marker is replicated or refused.

        `on_written` gets the error of each partition, and may be called before this method returns.
        """
        results: dict[TopicPartition, Error] = {}
        if not partitions:
            on_written(results)
            return

        def done(partition: TopicPartition, error: Error) -> None:
            results[partition] = error
            if len(results) == len(partitions):
                on_written(results)

        batch = build_end_transaction_marker(
            marker.producer_id,
            marker.producer_epoch,
            EndTransactionMarker(marker.is_commit, marker.coordinator_epoch),
            self._clock.wall_ms(),
        )
        entries: dict[TopicPartition, memoryview] = {}
        for partition in partitions:
            if self._ends_next_transaction(marker, partition):
                done(partition, Error.INVALID_PRODUCER_EPOCH)
            elif partition.topic == GROUP_METADATA_TOPIC:
                self._write_offsets_marker(marker, partition, batch, done)
            else:
                entries[partition] = memoryview(bytearray(batch))

        def answer(responses: Mapping[TopicPartition, PartitionResponse]) -> None:
            for partition, response in responses.items():
                done(partition, response.error)

        if entries:
            self._replica_manager.append_records(
                self._timeout_ms, ALL_REPLICAS, entries, answer, from_client=False, internal_topics_allowed=True
            )

    def _ends_next_transaction(self, marker: TransactionMarker, topic_partition: TopicPartition) -> bool:
        """Returns whether `marker` is a repeated marker of a transaction, and the producer has begun another
        transaction since.

        A repeated marker must not end the newer transaction. From transaction version 2 on each transaction has its own
        epoch, which identifies a repeated marker. Returns False for older versions.
        """
        partition = self._replica_manager.partitions.get(topic_partition)
        if partition is None or marker.transaction_version < TRANSACTION_VERSION_2:
            return False
        entry = partition.log.producers.entries.get(marker.producer_id)
        return (
            entry is not None and entry.transaction_first_offset >= 0 and marker.producer_epoch <= entry.producer_epoch
        )

    def _write_offsets_marker(
        self,
        marker: TransactionMarker,
        partition: TopicPartition,
        batch: bytes,
        done: Callable[[TopicPartition, Error], None],
    ) -> None:
        found = self._replica_manager.find_partition(partition)
        if isinstance(found, Error):
            done(partition, found)
            return
        self._group_coordinator.end_transaction(
            partition.partition,
            batch,
            marker.producer_id,
            committed=marker.is_commit,
            on_done=lambda error: done(partition, error),
        )


# Returns the other broker that leads a partition, or None if this broker leads it or the leader is not known.
FindLeader = Callable[[TopicPartition], "int | None"]


class ClusterMarkerWriter:
    """The MarkerWriter of a transaction coordinator, for partitions on any broker. Only the reactor's thread may use
    it."""

    def __init__(
        self, local: LocalMarkerWriter, find_leader: FindLeader, make_remote: Callable[[], RemoteMarkers]
    ) -> None:
        """`find_leader(partition)` returns the id of the other broker that leads the partition, or None if this broker
        leads it or no leader is known; `local` then writes the marker.

        `make_remote` is called at the first marker for another broker, and returns the sender for all other brokers.
        """
        self._local = local
        self._find_leader = find_leader
        self._make_remote = make_remote

    @cached_property
    def _remote(self) -> RemoteMarkers:
        return self._make_remote()

    def write(self, marker: TransactionMarker, partitions: Collection[TopicPartition], on_written: OnWritten) -> None:
        """Writes the marker to each partition; calls `on_written` once, when all leaders have responded.

        `on_written` gets the error of each partition, and may be called before this method returns.
        """
        by_leader: dict[int | None, list[TopicPartition]] = {}
        for partition in partitions:
            by_leader.setdefault(self._find_leader(partition), []).append(partition)
        local = by_leader.pop(None, [])
        if not by_leader:
            self._local.write(marker, local, on_written)
            return
        results: dict[TopicPartition, Error] = {}

        def done(errors: Mapping[TopicPartition, Error]) -> None:
            results.update(errors)
            if len(results) == len(partitions):
                on_written(results)

        if local:
            self._local.write(marker, local, done)
        for broker_id, led in by_leader.items():
            assert broker_id is not None
            self._remote.write(broker_id, marker, led, done)
