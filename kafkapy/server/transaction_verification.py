"""Verifies that a transactional write belongs to its producer's open transaction before it is appended (KIP-890).

A write of a newer client adds the partition to the transaction. For an older client, which has to add partitions
itself, the coordinator is asked whether the client has done so. Neither is needed for a partition that already holds
records of the open transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from kafkapy.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from kafkapy.coordinator.transaction.transaction_metadata import TRANSACTION_VERSION_2
from kafkapy.coordinator.transaction.transaction_requests import ProducerIdAndEpoch
from kafkapy.errors import ApiError, Error
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.types import Clock, TopicPartition

if TYPE_CHECKING:
    from kafkapy.server.remote_transactions import RemoteTransactionCoordinators

OnVerified = Callable[[Mapping[TopicPartition, Error]], None]


class ClientSupport(Enum):
    """The support of a client for transaction verification (KIP-890), which follows from the version of its request.

    A failed verification is INVALID_TXN_STATE for VERIFY and TRANSACTION_ABORTABLE for VERIFY_ABORTABLE; a client with
    ADD_PARTITIONS lets the broker add the partitions of its writes to the transaction.
    """

    VERIFY = 0  # expects INVALID_TXN_STATE for a failed verification
    VERIFY_ABORTABLE = 1  # accepts TRANSACTION_ABORTABLE for a failed verification
    ADD_PARTITIONS = 2  # leaves adding partitions to the broker


class TransactionVerification:
    """The verification of transactional writes with the transaction coordinator. Only the reactor's thread may use it.

    The function `on_verified` that is passed to `check` has to append the records before it returns. A coordinator on
    this broker runs on the same thread, so that nothing can end the transaction between the coordinator's answer and
    the append. A coordinator on another broker may end the transaction while its answer is on the way. The write is
    therefore refused if a transaction marker was written to the partition since the verification began (Apache Kafka's
    VerificationGuard). This check is not needed if the coordinator was asked to add the partition to the transaction,
    because each transaction of such a client has an epoch of its own.

    The log stores the first sequence number of each write before the write is verified. If the verification of a
    producer's first write fails, for example because the coordinator cannot be reached, the log then refuses the
    producer's second write instead of appending it as the first one.
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
        find_coordinator: Callable[[str], int | None] = lambda transactional_id: None,
        make_remote: Callable[[], RemoteTransactionCoordinators] | None = None,
    ) -> None:
        """`find_coordinator` returns the id of the other broker that coordinates a transactional id. It returns None if
        this broker is the coordinator, or if the coordinator is not known.

        `make_remote` returns the object that sends requests to coordinators on other brokers; it is called when the
        first request has to be sent. If `is_enabled` returns False, partitions are not verified; they are only added to
        transactions, for clients with ADD_PARTITIONS.
        """
        self._coordinator = coordinator
        self._replica_manager = replica_manager
        self._schedule = schedule
        self._clock = clock
        self._is_enabled = is_enabled
        self._retry_backoff_ms = retry_backoff_ms
        self._retry_backoff_max_ms = retry_backoff_max_ms
        self._find_coordinator = find_coordinator
        self._make_remote = make_remote

    @cached_property
    def _remote(self) -> RemoteTransactionCoordinators:
        assert self._make_remote is not None
        return self._make_remote()

    def check(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        support: ClientSupport,
        on_verified: OnVerified,
        first_sequence: Callable[[TopicPartition], int] | None = None,
    ) -> None:
        """Verifies a transactional write to `partitions`, or adds them to the transaction if the client has
        ADD_PARTITIONS.

        `on_verified` is called once, with {partition: error}; the error NONE permits the write. It may be called before
        this method returns. `first_sequence(partition)` returns the sequence number of the first record that is to be
        written to the partition; it is called for each partition without records of the open transaction.
        `first_sequence` is None if the caller has no sequence numbers.
        """
        results = dict.fromkeys(partitions, Error.NONE)
        unverified = frozenset(each for each in partitions if not self._has_open_transaction(each, producer))
        if first_sequence is not None:
            for each in unverified:
                partition = self._replica_manager.partitions.get(each)
                if partition is not None:
                    partition.log.producers.begin_verification(*producer, first_sequence(each))
        if not unverified or (support is not ClientSupport.ADD_PARTITIONS and not self._is_enabled()):
            on_verified(results)
        elif support is ClientSupport.ADD_PARTITIONS:
            deadline_ms = self._clock.monotonic_ms() + self._retry_backoff_max_ms
            self._add(transactional_id, producer, unverified, results, deadline_ms, on_verified)
        else:
            self._verify(transactional_id, producer, unverified, support, results, on_verified)

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
        results: dict[TopicPartition, Error],
        on_verified: OnVerified,
    ) -> None:
        broker_id = self._find_coordinator(transactional_id)
        if broker_id is None:
            try:
                found = self._coordinator.verify_partitions(transactional_id, producer, partitions)
            except ApiError as error:
                found = dict.fromkeys(partitions, error.error)
            results.update((each, error_for_client(error, support)) for each, error in found.items())
            on_verified(results)
            return
        before = {each: self._producer_epochs_and_time(each, producer) for each in partitions}

        def answer(errors: Mapping[TopicPartition, Error]) -> None:
            for each, error in errors.items():
                is_ended = before[each] != self._producer_epochs_and_time(each, producer)
                if is_ended and not error and not self._has_open_transaction(each, producer):
                    results[each] = Error.INVALID_TXN_STATE
                else:
                    results[each] = error_for_client(error, support)
            on_verified(results)

        self._ask(broker_id, transactional_id, producer, partitions, answer, verify_only=True)

    def _producer_epochs_and_time(
        self, topic_partition: TopicPartition, producer: ProducerIdAndEpoch
    ) -> tuple[int, ...]:
        """Returns (producer epoch, coordinator epoch, last timestamp) of the producer in a partition.

        Returns () if the partition has no entry of the producer. If two calls return the same, no transaction marker
        was written to the partition between them.
        """
        partition = self._replica_manager.partitions.get(topic_partition)
        entry = None if partition is None else partition.log.producers.entries.get(producer.producer_id)
        return () if entry is None else (entry.producer_epoch, entry.coordinator_epoch, entry.last_timestamp)

    def _add(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        results: dict[TopicPartition, Error],
        deadline_ms: int,
        on_verified: OnVerified,
    ) -> None:
        def answer(errors: Mapping[TopicPartition, Error]) -> None:
            is_early = Error.CONCURRENT_TRANSACTIONS in errors.values()
            if is_early and self._clock.monotonic_ms() < deadline_ms:
                # The previous transaction is being completed; a short wait here is shorter than the client's backoff.
                self._schedule(
                    self._retry_backoff_ms,
                    lambda: self._add(transactional_id, producer, partitions, results, deadline_ms, on_verified),
                )
                return
            support = ClientSupport.ADD_PARTITIONS
            results.update((each, error_for_client(error, support)) for each, error in errors.items())
            on_verified(results)

        broker_id = self._find_coordinator(transactional_id)
        if broker_id is not None:
            self._ask(broker_id, transactional_id, producer, partitions, answer, verify_only=False)
            return
        self._coordinator.add_partitions(
            transactional_id,
            producer,
            partitions,
            TRANSACTION_VERSION_2,
            lambda error: answer(dict.fromkeys(partitions, error)),
        )

    def _ask(
        self,
        broker_id: int,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        on_result: OnVerified,
        *,
        verify_only: bool,
    ) -> None:
        from kafkapy.server.remote_transactions import TransactionPartitions

        asked = TransactionPartitions(transactional_id, producer, partitions, verify_only)
        self._remote.ask(broker_id, asked, on_result)


# OPERATION_NOT_ATTEMPTED means that the coordinator refused another partition of the same request.
_COORDINATOR_UNAVAILABLE = frozenset(
    {
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
        Error.NETWORK_EXCEPTION,
        Error.REQUEST_TIMED_OUT,
        Error.BROKER_NOT_AVAILABLE,
        Error.OPERATION_NOT_ATTEMPTED,
    }
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
