"""The transaction coordinator of this broker: runs each request on the shard of its transactional id, and responds when
the change is durable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Protocol, TypeVar

from kafkapy.coordinator.coordinator_log import CoordinatorLog
from kafkapy.coordinator.partitioning import coordinator_partition
from kafkapy.coordinator.record import CoordinatorResult
from kafkapy.coordinator.runtime import CoordinatorRuntime, ErrorResponder
from kafkapy.coordinator.transaction.end_of_transaction import EndRequest
from kafkapy.coordinator.transaction.marker_delivery import MarkerWriter
from kafkapy.coordinator.transaction.transaction_config import TransactionConfig
from kafkapy.coordinator.transaction.transaction_metadata import TransactionMetadata
from kafkapy.coordinator.transaction.transaction_requests import (
    InitCall,
    ProducerIdAndEpoch,
    ProducerResponse,
)
from kafkapy.coordinator.transaction.transaction_shard import TransactionShard
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.internal_topics import TRANSACTION_STATE_TOPIC
from kafkapy.purgatory.delayed_operation import TimerEntry
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.replica.partition import Partition
from kafkapy.types import NO_SEQUENCE, Clock, TopicPartition

R = TypeVar("R")
Respond = Callable[[ProducerResponse], None]
OnPartitions = Callable[["dict[TopicPartition, Error]"], None]


class ProducerIds(Protocol):
    def generate(self, on_producer_id: Callable[[int | Error], None]) -> None: ...


class TransactionCoordinator:
    """The transaction coordinator; owns the runtime of `__transaction_state`. Only the reactor's thread may use it;
    nothing blocks.

    Each method for a request takes a callback and calls it exactly once, perhaps before the method returns.
    """

    def __init__(
        self,
        config: TransactionConfig,
        *,
        log: CoordinatorLog,
        schedule: Schedule,
        clock: Clock,
        producer_ids: ProducerIds,
        marker_writer: MarkerWriter,
        transaction_version: Callable[[], int],
        partition_count: Callable[[], int | None] = lambda: None,
    ) -> None:
        """Creates a coordinator that leads no partition yet.

        `transaction_version` returns the finalized level of transaction.version. `partition_count` returns the number
        of partitions of `__transaction_state`, or None before the topic exists.
        """
        self._config = config
        self._schedule = schedule
        self._producer_ids = producer_ids
        self._partition_count = partition_count
        self._timeout_timer: TimerEntry | None = None
        self._expiration_timer: TimerEntry | None = None
        self._runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            TRANSACTION_STATE_TOPIC,
            log=log,
            make_shard=lambda context: TransactionShard(context, config, transaction_version, marker_writer),
            schedule=schedule,
            clock=clock,
            load_buffer_bytes=config.load_buffer_bytes,
            base_sequence=NO_SEQUENCE,  # as in Apache Kafka's transaction log
            on_elected=self._start_timers,
        )

    # -- leadership

    def partition_for(self, transactional_id: str) -> int:
        return coordinator_partition(transactional_id, self._partition_count() or self._config.partition_count)

    def elect(self, partition: int, leader_epoch: int) -> None:
        """Begins to load the partition of `__transaction_state`, which this broker now leads. The load is made in short
        slices, between which the reactor's thread does other work."""
        self._runtime.elect(partition, leader_epoch)

    def is_coordinator_of(self, partition: int) -> bool:
        """Returns whether this broker coordinates the transactional ids of this partition of `__transaction_state`,
        even if its log is still being loaded."""
        return self._runtime.is_coordinator_of(partition)

    def resign(self, partition: int) -> None:
        self._runtime.resign(partition)

    def on_leadership(self, led: Iterable[Partition], followed: Iterable[Partition]) -> None:
        """Begins to load the partitions in `led`, which this broker leads now, and unloads the partitions in
        `followed`, which it no longer leads. Partitions of topics other than `__transaction_state` are ignored."""
        self._runtime.on_leadership(led, followed)

    def shutdown(self) -> None:
        for timer in (self._timeout_timer, self._expiration_timer):
            if timer is not None:
                timer.cancel()
        self._timeout_timer = self._expiration_timer = None
        self._runtime.shutdown()

    # -- time

    def _start_timers(self) -> None:
        if self._expiration_timer is None:
            self._expiration_timer = self._schedule(self._config.expiration_check_interval_ms, self._expire)
        self._watch_timeouts()

    def _watch_timeouts(self) -> None:
        """Starts the timer that aborts transactions after their time-out, unless the timer is running."""
        if self._timeout_timer is None:
            self._timeout_timer = self._schedule(self._config.timeout_check_interval_ms, self._abort_timed_out)

    def _abort_timed_out(self) -> None:
        """Aborts the transactions that have timed out. Starts the timer of the next check if transactions are open or
        partitions are being loaded."""
        self._timeout_timer = None
        is_watching = self._runtime.is_any_loading
        for partition, shard in self._runtime.loaded_partitions():
            for transactional_id in shard.timed_out_transactions():
                self._runtime.execute_unanswered(
                    partition, partial(TransactionShard.abort_timed_out, transactional_id=transactional_id)
                )
            is_watching = is_watching or shard.has_open_transactions
        if is_watching:
            self._watch_timeouts()

    def _expire(self) -> None:
        self._expiration_timer = self._schedule(self._config.expiration_check_interval_ms, self._expire)
        self._runtime.execute_on_all(lambda shard: shard.expire())

    # -- requests

    def init_producer_id(self, call: InitCall, respond: Respond) -> None:
        if not call.transactional_id:
            respond(ProducerResponse(Error.INVALID_REQUEST))
        elif not 0 < call.timeout_ms <= self._config.max_timeout_ms:
            respond(ProducerResponse(Error.INVALID_TRANSACTION_TIMEOUT))
        else:
            self._with_producer_id(
                call.transactional_id,
                lambda shard: shard.needs_producer_id(call),
                lambda shard, producer_id: shard.init_producer_id(call, producer_id),
                respond,
            )

    def end(self, transactional_id: str, request: EndRequest, respond: Respond) -> None:
        if not transactional_id:
            respond(ProducerResponse(Error.INVALID_REQUEST))
            return
        self._with_producer_id(
            transactional_id,
            lambda shard: shard.needs_next_producer_id(transactional_id, request),
            lambda shard, producer_id: shard.end(transactional_id, request, producer_id),
            respond,
        )

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        client_transaction_version: int,
        respond: Callable[[Error], None],
    ) -> None:
        """Adds the partitions to the producer's transaction.

        Calls `respond` with NONE when all partitions are added, or with the error if no partition could be added.
        `client_transaction_version` is 2 for clients that use KIP-890, otherwise 0.
        """
        if not transactional_id:
            respond(Error.INVALID_REQUEST)
            return
        self._watch_timeouts()
        self._execute(
            transactional_id,
            lambda shard: shard.add_partitions(transactional_id, producer, partitions, client_transaction_version),
            respond,
            lambda error, _: respond(error),
        )

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: frozenset[TopicPartition]
    ) -> dict[TopicPartition, Error]:
        """Returns the error of each of `partitions`: NONE if the partition is in the producer's transaction, and
        otherwise TRANSACTION_ABORTABLE.

        Raises ApiError if the transactional id does not belong to the producer, or this broker cannot serve the id.
        """
        if not transactional_id:
            raise ApiError(Error.INVALID_REQUEST)
        shard = self._runtime.shard(self.partition_for(transactional_id))
        missing = shard.missing_partitions(transactional_id, producer, partitions)
        return {each: Error.TRANSACTION_ABORTABLE if each in missing else Error.NONE for each in partitions}

    def _with_producer_id(
        self,
        transactional_id: str,
        needs_id: Callable[[TransactionShard], bool],
        operation: Callable[[TransactionShard, int], CoordinatorResult[ProducerResponse]],
        respond: Respond,
    ) -> None:
        """Calls `operation(shard, producer_id)` on the shard of the transactional id; `respond` gets its response or
        the error.

        `producer_id` is a new producer id if `needs_id(shard)` returns True, otherwise -1.
        """

        def refuse(error: Error, message: str | None = None) -> None:
            respond(ProducerResponse(error))

        def run(producer_id: int | Error) -> None:
            if isinstance(producer_id, Error):
                refuse(producer_id)
                return
            self._execute(transactional_id, lambda shard: operation(shard, producer_id), respond, refuse)

        try:
            is_needed = needs_id(self._runtime.shard(self.partition_for(transactional_id)))
        except ApiError as error:
            refuse(error.error)
            return
        if is_needed:
            self._producer_ids.generate(run)
        else:
            run(-1)

    # -- administration

    def find(self, transactional_id: str) -> TransactionMetadata:
        """Returns the metadata of the transactional id.

        Raises ApiError: INVALID_REQUEST for an empty id, TRANSACTIONAL_ID_NOT_FOUND, NOT_COORDINATOR or
        COORDINATOR_LOAD_IN_PROGRESS.
        """
        if not transactional_id:
            raise ApiError(Error.INVALID_REQUEST)
        metadata = self._runtime.shard(self.partition_for(transactional_id)).transactions.get(transactional_id)
        if metadata is None:
            raise ApiError(Error.TRANSACTIONAL_ID_NOT_FOUND)
        return metadata

    def transactions(self) -> Iterator[tuple[str, TransactionMetadata]]:
        """Returns (transactional id, metadata) of each transactional id in the partitions that this broker leads.

        Raises ApiError COORDINATOR_LOAD_IN_PROGRESS while one of the partitions is loading.
        """
        if self._runtime.is_any_loading:
            raise ApiError(Error.COORDINATOR_LOAD_IN_PROGRESS)
        return (each for _, shard in self._runtime.loaded_partitions() for each in shard.transactions.items())

    def all_transactions(self) -> Iterator[TransactionMetadata]:
        """Yields the metadata of each transactional id of all loaded partitions. Any thread may call it."""
        for _, shard in self._runtime.loaded_partitions():
            yield from list(shard.transactions.values())

    def _execute(
        self,
        transactional_id: str,
        operation: Callable[[TransactionShard], CoordinatorResult[R]],
        on_response: Callable[[R], None],
        refuse: ErrorResponder,
    ) -> None:
        self._runtime.execute(self.partition_for(transactional_id), operation, on_response, refuse)
