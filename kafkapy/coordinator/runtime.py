"""Single writer per partition of an internal topic: run an operation, append its records, replay, answer at commit.

    request -> operation(shard) -> (records, response)
                    records -> log (acks=all) -> replay into the shard
                    high watermark passes them  -> response

Leadership of a partition starts a load (COORDINATOR_LOAD_IN_PROGRESS meanwhile); losing it unloads the shard and
everything that still waits is answered NOT_COORDINATOR. Everything happens on the owner thread; nothing blocks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.coordinator.coordinator_log import CoordinatorLog
from kafkapy.coordinator.loader import PartitionLoader
from kafkapy.coordinator.record import CoordinatorResult
from kafkapy.coordinator.shard import CoordinatorShard, ShardContext
from kafkapy.errors import ApiError, Error
from kafkapy.types import Clock, TopicPartition

logger = logging.getLogger("kafka.coordinator.runtime")

S = TypeVar("S", bound=CoordinatorShard)
Responder = Callable[[Any], None]
ErrorResponder = Callable[[Error, "str | None"], None]
Operation = Callable[[S], CoordinatorResult]

# What a failed append means to the caller: look again, wait, or give up. Others pass unchanged.
APPEND_ERRORS = {
    Error.UNKNOWN_TOPIC_OR_PARTITION: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Error.COORDINATOR_NOT_AVAILABLE,
    Error.REQUEST_TIMED_OUT: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_LEADER_OR_FOLLOWER: Error.NOT_COORDINATOR,
    Error.KAFKA_STORAGE_ERROR: Error.NOT_COORDINATOR,
    Error.MESSAGE_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
    Error.RECORD_LIST_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
    Error.INVALID_FETCH_SIZE: Error.UNKNOWN_SERVER_ERROR,
}


class TimerEntry(Protocol):
    def cancel(self) -> object: ...


Schedule = Callable[[int, Callable[[], None]], TimerEntry]


class ActivePartition(ShardContext, Generic[S]):
    """One led partition: its shard, its timers and whether it may serve. Owner thread only.

    loading -> active -> resigned, or loading -> failed (answers NOT_COORDINATOR until the next election).
    """

    def __init__(self, runtime: CoordinatorRuntime[S], partition: TopicPartition, leader_epoch: int) -> None:
        self.clock = runtime.clock
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.is_loading = True
        self.is_resigned = False
        self._runtime = runtime
        self._timers: dict[str, TimerEntry] = {}
        self.shard: S = runtime.make_shard(self)

    def schedule(self, key: str, delay_ms: int, operation: Callable[[], CoordinatorResult]) -> None:
        self.cancel(key)

        def expire() -> None:
            # A timer that expired in the same moment may have cancelled or replaced this one.
            if self._timers.get(key) is entry:
                del self._timers[key]
                self.run(operation)

        entry = self._timers[key] = self._runtime.schedule(delay_ms, expire)

    def schedule_unless_there(self, key: str, delay_ms: int, operation: Callable[[], CoordinatorResult]) -> None:
        if key not in self._timers:
            self.schedule(key, delay_ms, operation)

    def run(self, operation: Callable[[], CoordinatorResult]) -> None:
        if not self.is_resigned:
            self._runtime.run(self, lambda _: operation(), _ignore_response, _log_timer_error)

    def cancel(self, key: str) -> None:
        entry = self._timers.pop(key, None)
        if entry is not None:
            entry.cancel()

    def committed_offset(self) -> int:
        return self._runtime.log.high_watermark(self.partition)

    def resign(self) -> None:
        self.is_resigned = True
        for entry in self._timers.values():
            entry.cancel()
        self._timers.clear()
        if not self.is_loading:
            self.shard.on_unloaded()


class CoordinatorRuntime(Generic[S]):
    """Owns the shards of one internal topic on this broker. Owner thread only."""

    def __init__(
        self,
        topic: str,
        *,
        log: CoordinatorLog,
        make_shard: Callable[[ShardContext], S],
        schedule: Schedule,
        clock: Clock,
        load_buffer_bytes: int,
        base_sequence: int = 0,
    ) -> None:
        """`base_sequence` is what the batches say: Apache Kafka's coordinators differ in it."""
        self.topic = topic
        self.log = log
        self.make_shard = make_shard
        self.schedule = schedule
        self.clock = clock
        self._load_buffer_bytes = load_buffer_bytes
        self._base_sequence = base_sequence
        self._partitions: dict[int, ActivePartition[S]] = {}

    # -- leadership

    def elect(self, partition: int, leader_epoch: int) -> None:
        """This broker leads the partition from `leader_epoch` on: loads it unless that is done already."""
        current = self._partitions.get(partition)
        if current is not None:
            if current.leader_epoch >= leader_epoch:
                return
            if not current.is_loading:
                # The same leader in a newer epoch: the state is the log's already.
                current.leader_epoch = leader_epoch
                return
            current.resign()
        active = ActivePartition(self, TopicPartition(self.topic, partition), leader_epoch)
        self._partitions[partition] = active
        try:
            loader = PartitionLoader(self.log, active.partition, active.shard, self.clock, self._load_buffer_bytes)
        except ApiError as error:
            self._fail_load(active, error)
            return
        self._load(active, loader)

    def resign(self, partition: int) -> None:
        """This broker no longer leads the partition. Unknown partitions are ignored."""
        active = self._partitions.pop(partition, None)
        if active is not None:
            active.resign()

    def shutdown(self) -> None:
        for partition in list(self._partitions):
            self.resign(partition)

    def _load(self, active: ActivePartition[S], loader: PartitionLoader) -> None:
        if active.is_resigned:
            return
        try:
            finished = loader.step()
        except Exception as error:  # one bad partition must not end the broker; it answers NOT_COORDINATOR
            self._fail_load(active, error)
            return
        if not finished:
            self.schedule(0, lambda: self._load(active, loader))
            return
        active.is_loading = False
        active.shard.on_loaded()

    def _fail_load(self, active: ActivePartition[S], error: Exception) -> None:
        logger.error(
            "Failed to load metadata from %s with epoch %d.", active.partition, active.leader_epoch, exc_info=error
        )
        active.is_resigned = True
        if self._partitions.get(active.partition.partition) is active:
            del self._partitions[active.partition.partition]

    # -- requests

    def shard(self, partition: int) -> S:
        """The loaded shard; raises ApiError NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS."""
        return self._active(partition).shard

    def loaded_partitions(self) -> Iterator[tuple[int, S]]:
        """The shards that serve, by partition. Any thread."""
        for partition, active in self._partitions.copy().items():
            if not active.is_loading:
                yield partition, active.shard

    def is_coordinator_of(self, partition: int) -> bool:
        """Returns whether this broker coordinates the partition, whose log may still be loading."""
        return partition in self._partitions

    @property
    def is_any_loading(self) -> bool:
        return any(active.is_loading for active in self._partitions.values())

    def execute(
        self, partition: int, operation: Operation[S], on_response: Responder, on_error: ErrorResponder
    ) -> None:
        """Runs `operation` on the partition's shard. One of the two callbacks is called once, unless the operation
        parked the caller (its result has no response)."""
        try:
            active = self._active(partition)
        except ApiError as error:
            on_error(error.error, error.message)
            return
        self.run(active, operation, on_response, on_error)

    def run(
        self, active: ActivePartition[S], operation: Operation[S], on_response: Responder, on_error: ErrorResponder
    ) -> None:
        try:
            result = operation(active.shard)
        except ApiError as error:
            on_error(error.error, error.message)
            return
        if not result.records:
            if result.on_append is not None:
                result.on_append(Error.NONE)
            if result.response is not None:
                on_response(result.response)
            return
        self._append(active, result, on_response, on_error)

    def end_transaction(
        self, partition: int, marker: bytes, producer_id: int, *, committed: bool, on_done: Callable[[Error], None]
    ) -> None:
        """Appends a transaction's marker to the partition and lets the shard know; the log's own error comes back."""
        try:
            active = self._active(partition)
            base_offset = self.log.log_end_offset(active.partition)
        except ApiError as error:
            on_done(error.error)
            return
        self.log.append(active.partition, marker, on_done)
        if self._log_end_offset(active) > base_offset:
            active.shard.replay_end_of_transaction(base_offset, producer_id, committed)

    def _active(self, partition: int) -> ActivePartition[S]:
        active = self._partitions.get(partition)
        if active is None:
            raise ApiError(Error.NOT_COORDINATOR)
        if active.is_loading:
            raise ApiError(Error.COORDINATOR_LOAD_IN_PROGRESS)
        return active

    def _append(
        self, active: ActivePartition[S], result: CoordinatorResult, on_response: Responder, on_error: ErrorResponder
    ) -> None:
        try:
            base_offset = self.log.log_end_offset(active.partition)
        except ApiError as failure:
            _settle(active, result, APPEND_ERRORS.get(failure.error, failure.error), on_response, on_error)
            return
        # The log may answer before `append` returns; the answer must still come after the replay.
        outcome: list[Error] = []
        is_replayed = False

        def on_committed(error: Error) -> None:
            if is_replayed:
                _settle(active, result, APPEND_ERRORS.get(error, error), on_response, on_error)
            else:
                outcome.append(error)

        batch = build_batch(result, base_offset, self.clock.now_ms(), self._base_sequence)
        self.log.append(active.partition, batch, on_committed)
        if result.replay and self._log_end_offset(active) > base_offset:
            producer_id = -1 if result.producer is None else result.producer[0]
            for delta, record in enumerate(result.records):
                active.shard.replay(base_offset + delta, producer_id, record.key, record.value)
        is_replayed = True
        if outcome:
            on_committed(outcome[0])

    def _log_end_offset(self, active: ActivePartition[S]) -> int:
        try:
            return self.log.log_end_offset(active.partition)
        except ApiError:
            return -1  # leadership or the directory went away during the append: nothing is to be replayed


def build_batch(result: CoordinatorResult, base_offset: int, now_ms: int, base_sequence: int) -> bytes:
    producer_id, producer_epoch = result.producer or (-1, -1)
    builder = RecordBatchBuilder(
        base_offset,
        base_sequence=base_sequence,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=result.producer is not None,
    )
    for record in result.records:
        builder.append(now_ms, record.key, record.value)
    return bytes(builder.build())


def _settle(
    active: ActivePartition[Any],
    result: CoordinatorResult,
    error: Error,
    on_response: Responder,
    on_error: ErrorResponder,
) -> None:
    if active.is_resigned:
        error = Error.NOT_COORDINATOR
    if result.on_append is not None:
        result.on_append(error)
    if error is Error.NONE:
        if result.response is not None:
            on_response(result.response)
    elif result.response is not None:
        on_error(error, None)
    elif result.on_append is None:
        logger.warning("Could not write %d records to %s: %s", len(result.records), active.partition, error.name)


def _ignore_response(response: Any) -> None:
    """A timer has nobody to answer."""


def _log_timer_error(error: Error, message: str | None) -> None:
    logger.warning("A coordinator timer could not write its records: %s %s", error.name, message or "")
