"""Verifies that a transactional write belongs to its producer's open transaction before it is appended (KIP-890).

A write of a newer client adds the partition to the transaction. For an older client, which has to add partitions
itself, the coordinator is asked whether the client has done so. Neither is needed for a partition that already holds
records of the open transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum

from kafkapy.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from kafkapy.coordinator.transaction.transaction_metadata import TRANSACTION_VERSION_2
from kafkapy.coordinator.transaction.transaction_requests import ProducerIdAndEpoch
from kafkapy.errors import ApiError, Error
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.types import Clock, TopicPartition

OnVerified = Callable[[Mapping[TopicPartition, Error]], None]


class ClientSupport(Enum):
    """The support of a client for transaction verification, which follows from the version of its request."""

    VERIFY = 0  # expects INVALID_TXN_STATE for a failed verification
    VERIFY_ABORTABLE = 1  # accepts TRANSACTION_ABORTABLE for a failed verification
    ADD_PARTITIONS = 2  # leaves adding partitions to the broker


class TransactionVerification:
    """The verification of transactional writes with the transaction coordinator. Reactor thread only.

    The callback of `check` has to append before it returns. The coordinator runs on the same thread, so nothing can end
    the transaction between the verification and the append. Apache Kafka appends on another thread and therefore lets
    the log check a VerificationGuard.
    """

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        replica_manager: ReplicaManager,
        schedule: Schedule,
        clock: Clock,
        is_enabled: Callable[[], bool],
        *,
        retry_backoff_ms: int,
        retry_backoff_max_ms: int,
    ) -> None:
        self._coordinator = coordinator
        self._replica_manager = replica_manager
        self._schedule = schedule
        self._clock = clock
        self._is_enabled = is_enabled
        self._retry_backoff_ms = retry_backoff_ms
        self._retry_backoff_max_ms = retry_backoff_max_ms

    def check(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        support: ClientSupport,
        on_verified: OnVerified,
    ) -> None:
        """Calls `on_verified` once with the error of each partition; NONE permits the write.

        The call may be made before this method returns.
        """
        results = dict.fromkeys(partitions, Error.NONE)
        unverified = frozenset(each for each in partitions if not self._has_open_transaction(each, producer))
        if not unverified or (support is not ClientSupport.ADD_PARTITIONS and not self._is_enabled()):
            on_verified(results)
        elif support is ClientSupport.ADD_PARTITIONS:
            deadline_ms = self._clock.monotonic_ms() + self._retry_backoff_max_ms
            self._add(transactional_id, producer, unverified, results, deadline_ms, on_verified)
        else:
            results.update(self._verify(transactional_id, producer, unverified, support))
            on_verified(results)

    def _has_open_transaction(self, topic_partition: TopicPartition, producer: ProducerIdAndEpoch) -> bool:
        partition = self._replica_manager.partitions.get(topic_partition)
        entry = None if partition is None else partition.log.producers.entries.get(producer.producer_id)
        return (
            entry is not None
            and entry.transaction_first_offset >= 0
            and entry.producer_epoch == producer.producer_epoch
        )

    def _verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        support: ClientSupport,
    ) -> dict[TopicPartition, Error]:
        try:
            found = self._coordinator.verify_partitions(transactional_id, producer, partitions)
        except ApiError as error:
            return dict.fromkeys(partitions, error_for_client(error.error, support))
        return {partition: error_for_client(error, support) for partition, error in found.items()}

    def _add(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        results: dict[TopicPartition, Error],
        deadline_ms: int,
        on_verified: OnVerified,
    ) -> None:
        def answer(error: Error) -> None:
            if error is Error.CONCURRENT_TRANSACTIONS and self._clock.monotonic_ms() < deadline_ms:
                # The previous transaction is being completed; a short wait here is shorter than the client's backoff.
                self._schedule(
                    self._retry_backoff_ms,
                    lambda: self._add(transactional_id, producer, partitions, results, deadline_ms, on_verified),
                )
                return
            results.update(dict.fromkeys(partitions, error_for_client(error, ClientSupport.ADD_PARTITIONS)))
            on_verified(results)

        self._coordinator.add_partitions(transactional_id, producer, partitions, TRANSACTION_VERSION_2, answer)


_COORDINATOR_UNAVAILABLE = frozenset(
    {Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR}
)


def error_for_client(error: Error, support: ClientSupport) -> Error:
    """Translates an error of the transaction coordinator into one that the producer expects from a Produce request.

    PRODUCER_FENCED becomes INVALID_PRODUCER_EPOCH. While the coordinator is not available, the producer gets
    NOT_ENOUGH_REPLICAS, so that it tries again. TRANSACTION_ABORTABLE becomes INVALID_TXN_STATE for
    clients with VERIFY. CONCURRENT_TRANSACTIONS becomes NOT_ENOUGH_REPLICAS unless the client has ADD_PARTITIONS. Other
    errors are returned unchanged.
    """
    if error is Error.PRODUCER_FENCED:
        return Error.INVALID_PRODUCER_EPOCH
    if error is Error.TRANSACTION_ABORTABLE and support is ClientSupport.VERIFY:
        return Error.INVALID_TXN_STATE
    if error in _COORDINATOR_UNAVAILABLE:
        return Error.NOT_ENOUGH_REPLICAS
    if error is Error.CONCURRENT_TRANSACTIONS and support is not ClientSupport.ADD_PARTITIONS:
        return Error.NOT_ENOUGH_REPLICAS
    return error
