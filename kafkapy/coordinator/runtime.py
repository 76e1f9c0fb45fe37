"""The single writer of each partition of an internal topic: runs operations, appends their records, and responds.

    request -> operation(shard) -> (records, response)
                    records -> log (acks=all) -> replay into the shard
                    high watermark passes them  -> response

A shard is the state of one partition in memory. When this broker becomes the leader of a partition, it begins to load
the shard, and refuses requests with COORDINATOR_LOAD_IN_PROGRESS until the load has ended. When it loses the
leadership, it unloads the shard, and refuses the requests that still wait with NOT_COORDINATOR. All code here runs on
one thread, the reactor's, and nothing blocks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.coordinator.coordinator_log import CoordinatorLog
from kafkapy.coordinator.loader import PartitionLoader
from kafkapy.coordinator.record import CoordinatorResult, StateChange
from kafkapy.coordinator.shard import CoordinatorShard, ShardContext
from kafkapy.errors import ApiError, Error
from kafkapy.purgatory.delayed_operation import TimerEntry
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.replica.partition import Partition
from kafkapy.types import Clock, TopicPartition

logger = logging.getLogger("kafka.coordinator.runtime")

S = TypeVar("S", bound=CoordinatorShard)
R = TypeVar("R")
ErrorResponder = Callable[[Error, "str | None"], None]

# The coordinator's error for each error of an append: find the coordinator again, retry, or give up. Other errors pass
# unchanged.
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


class ActivePartition(ShardContext, Generic[S]):
    """A partition that this broker leads: its shard, its timers and its state. Only the thread that owns it may use it.

    The states are loading -> active -> resigned, or loading -> failed. A failed partition refuses requests with
    NOT_COORDINATOR until the next election.
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

    def schedule(self, key: str, delay_ms: int, operation: Callable[[], CoordinatorResult[Any]]) -> None:
        self.cancel(key)

        def expire() -> None:
            # A timer that expired in the same moment may have cancelled or replaced this one.
            if self._timers.get(key) is entry:
                del self._timers[key]
                self.run(operation)

        entry = self._timers[key] = self._runtime.schedule(delay_ms, expire)

    def schedule_unless_scheduled(
        self, key: str, delay_ms: int, operation: Callable[[], CoordinatorResult[Any]]
    ) -> None:
        if not self.is_scheduled(key):
            self.schedule(key, delay_ms, operation)

    def is_scheduled(self, key: str) -> bool:
        return key in self._timers

    def run(self, operation: Callable[[], CoordinatorResult[Any]]) -> None:
        if not self.is_resigned:
            self._runtime.run(self, lambda _: operation(), ignore_response, _log_timer_error)

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
    """The coordinator of one internal topic on this broker. For each partition that the broker leads it has a shard,
    which is the state of the partition in memory. Only the thread that owns the coordinator may use it."""

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
        on_elected: Callable[[], None] = lambda: None,
    ) -> None:
        """Creates the coordinator of the internal topic `topic`, which leads no partition yet.

        `make_shard` is called with the object through which the new shard runs and schedules operations.
        `load_buffer_bytes` is the most that a load reads at a time. `base_sequence` is the base sequence of every
        batch; it differs between Apache Kafka's coordinators. `on_elected` is called after each election of this
        broker.
        """
        self.topic = topic
        self.log = log
        self.make_shard = make_shard
        self.schedule = schedule
        self.clock = clock
        self._load_buffer_bytes = load_buffer_bytes
        self._base_sequence = base_sequence
        self._on_elected = on_elected
        self._partitions: dict[int, ActivePartition[S]] = {}

    # -- leadership

    def on_leadership(self, led: Iterable[Partition], followed: Iterable[Partition]) -> None:
        """Begins to load the partitions in `led`, which this broker leads now, and unloads the partitions in
        `followed`, which it no longer leads. Called by the replica manager.

        Partitions of other topics are ignored.
        """
        for partition in followed:
            if partition.topic_partition.topic == self.topic:
                self.resign(partition.topic_partition.partition)
        for partition in led:
            if partition.topic_partition.topic == self.topic:
                self.elect(partition.topic_partition.partition, partition.leader_epoch)

    def elect(self, partition: int, leader_epoch: int) -> None:
        """Begins to load the partition, unless it is loaded already, and calls `on_elected`. `leader_epoch` is the
        epoch in which this broker has become the leader of the partition."""
        self._elect(partition, leader_epoch)
        self._on_elected()

    def _elect(self, partition: int, leader_epoch: int) -> None:
        """Begins to load the partition. Does nothing if this was done for the same or a higher leader epoch before.

        If the partition is loaded already, only its leader epoch changes. If an earlier load has not ended, it is
        stopped, and a new load begins.
        """
        current = self._partitions.get(partition)
        if current is not None:
            if current.leader_epoch >= leader_epoch:
                return
            if not current.is_loading:
                # The same leader in a newer epoch: the shard has the state of the log already.
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
        """Unloads the partition, which this broker no longer leads. Unknown partitions are ignored."""
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
        except Exception as error:  # A damaged partition must not stop the broker.
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
        """Returns the partition's shard; raises ApiError NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS."""
        return self._active(partition).shard

    def loaded_partitions(self) -> Iterator[tuple[int, S]]:
        """Yields (partition, shard) of each loaded shard. Any thread may call it."""
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
        self,
        partition: int,
        operation: Callable[[S], CoordinatorResult[R]],
        on_response: Callable[[R], None],
        on_error: ErrorResponder,
    ) -> None:
        """Runs `operation(shard)` on the partition's shard. Calls `on_response(response)` when the records are
        committed, or `on_error(error, message)`; never both.

        Calls neither function if the result has no response, because a callback of the request (JoinGroup, SyncGroup)
        sends the response later.
        """
        try:
            active = self._active(partition)
        except ApiError as error:
            on_error(error.error, error.message)
            return
        self.run(active, operation, on_response, on_error)

    def execute_on_all(self, operation: Callable[[S], CoordinatorResult[Any]]) -> None:
        """Runs `operation(shard)` on each loaded shard, without a response. Errors are ignored, because the caller runs
        the operation again at its next interval."""
        for partition, _ in self.loaded_partitions():
            self.execute_unanswered(partition, operation)

    def execute_unanswered(self, partition: int, operation: Callable[[S], CoordinatorResult[Any]]) -> None:
        """Runs `operation(shard)` on the partition's shard, without a response. Errors are ignored."""
        self.execute(partition, operation, ignore_response, _ignore_error)

    def run(
        self,
        active: ActivePartition[S],
        operation: Callable[[S], CoordinatorResult[R]],
        on_response: Callable[[R], None],
        on_error: ErrorResponder,
    ) -> None:
        """Runs `operation(shard)`, appends its records, and calls `on_response(response)` when they are committed, or
        `on_error(error, message)` after a failure."""
        try:
            result = operation(active.shard)
        except ApiError as error:
            on_error(error.error, error.message)
            return
        _check(result)
        if not result.records:
            if result.on_committed is not None:
                result.on_committed(Error.NONE)
            if result.response is not None:
                on_response(result.response)
            return
        self._append(active, result, on_response, on_error)

    def end_transaction(
        self, partition: int, marker: bytes, producer_id: int, *, committed: bool, on_done: Callable[[Error], None]
    ) -> None:
        """Appends the marker batch of a transaction to the partition and applies the marker to the shard.

        `on_done` gets the error of the append unchanged; it is not translated to a coordinator's error.
        """
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
        self,
        active: ActivePartition[S],
        result: CoordinatorResult[R],
        on_response: Callable[[R], None],
        on_error: ErrorResponder,
    ) -> None:
        """Appends the records of the result, and replays them into the shard, the partition's state in memory.

        Calls `on_response` when the records are committed, or `on_error(error, message)` if they could not be written.
        """
        try:
            base_offset = self.log.log_end_offset(active.partition)
        except ApiError as failure:
            _settle(active, result, APPEND_ERRORS.get(failure.error, failure.error), on_response, on_error)
            return
        # The log may call back before `append` returns; the response must still come after the replay.
        outcome: list[Error] = []
        is_replayed = False
        is_settled = False

        def on_outcome(error: Error) -> None:
            nonlocal is_settled
            if not is_replayed:
                outcome.append(error)
                return
            assert not is_settled, f"an append to {active.partition} was committed twice"
            is_settled = True
            _settle(active, result, APPEND_ERRORS.get(error, error), on_response, on_error)

        batch = build_batch(result, base_offset, self.clock.wall_ms(), self._base_sequence)
        self.log.append(active.partition, batch, on_outcome)
        end_offset = self._log_end_offset(active)
        if end_offset > base_offset:
            assert end_offset >= base_offset + len(result.records), (
                f"{active.partition} ends at {end_offset} after {len(result.records)} records at {base_offset}"
            )
            if result.state_change is StateChange.REPLAY:
                self._replay(active, result, base_offset)
        is_replayed = True
        for error in outcome:
            on_outcome(error)

    def _replay(self, active: ActivePartition[S], result: CoordinatorResult[R], base_offset: int) -> None:
        producer_id = -1 if result.producer is None else result.producer[0]
        for delta, record in enumerate(result.records):
            active.shard.replay(base_offset + delta, producer_id, record.key, record.value)

    def _log_end_offset(self, active: ActivePartition[S]) -> int:
        try:
            return self.log.log_end_offset(active.partition)
        except ApiError:
            return -1  # Leadership or the directory was lost during the append: there is nothing to replay.


def build_batch(result: CoordinatorResult[Any], base_offset: int, wall_ms: int, base_sequence: int) -> bytes:
    """Returns the result's records encoded as one batch. The batch is transactional if the result names a producer."""
    producer_id, producer_epoch = result.producer or (-1, -1)
    builder = RecordBatchBuilder(
        base_offset,
        base_sequence=base_sequence,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=result.producer is not None,
    )
    for record in result.records:
        builder.append(wall_ms, record.key, record.value)
    return bytes(builder.build())


def ignore_response(response: object) -> None:
    """Ignores the response; used as the response callback of an operation for which no client waits."""


def _ignore_error(error: Error, message: str | None) -> None:
    """Ignores the error; used as the error callback of an operation that is repeated regularly."""


def _check(result: CoordinatorResult[Any]) -> None:
    """Asserts that a result whose changes are made at the commit (ON_COMMIT) has an `on_committed` callback to make
    them, and that the changes of a transactional result are made by replaying its records."""
    if result.state_change is StateChange.ON_COMMIT:
        assert result.on_committed is not None, "a change on commit needs on_committed"
    if result.producer is not None:
        assert result.state_change is StateChange.REPLAY, "records of a transaction take effect with its marker"


def _settle(
    active: ActivePartition[Any],
    result: CoordinatorResult[R],
    error: Error,
    on_response: Callable[[R], None],
    on_error: ErrorResponder,
) -> None:
    """Ends an operation: calls `on_committed` of the result with `error`, the outcome of the append. Then calls
    `on_response` if the outcome is NONE, and otherwise `on_error`.

    If the broker no longer leads the partition, the outcome is NOT_COORDINATOR. If the result has no response, neither
    `on_response` nor `on_error` is called.
    """
    if active.is_resigned:
        error = Error.NOT_COORDINATOR
    if result.on_committed is not None:
        result.on_committed(error)
    if error is Error.NONE:
        if result.response is not None:
            on_response(result.response)
    elif result.response is not None:
        on_error(error, None)
    elif result.on_committed is None:
        logger.warning("Could not write %d records to %s: %s", len(result.records), active.partition, error.name)


def _log_timer_error(error: Error, message: str | None) -> None:
    logger.warning("A coordinator timer could not write its records: %s %s", error.name, message or "")
