"""The appends of a follower's log: batches of a leader, which carry their offsets and leader epochs.

A *run* is a sequence of batches that one write appends to one segment. There are two implementations with equal
results. `examine_fetched` makes runs with one object for each batch, and defines the expected results. The class
`_core.gate.follower_append.FetchedBatches` is a faster run in compiled code, without an object for each batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from kafkapy._core.broker_state.log_state import LogLimits
from kafkapy._core.bytes.record_batch import BATCH_MAGIC, LOG_OVERHEAD, MAGIC_AT, SMALLEST_LENGTH, BatchSummary
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.storage.log_reader import LogReader
from kafkapy.storage.log_results import AppendInfo
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.producer_state import ProducerStateManager
from kafkapy.storage.rebuilt_indexes import LARGEST_RELATIVE_OFFSET
from kafkapy.storage.segment_reader import SMALLEST_BATCH, batch_size, scan_chunk

if TYPE_CHECKING:
    from kafkapy.storage.log_config import LogConfig
    from kafkapy.storage.log_directory import LogDirectory
    from kafkapy.storage.log_ports import LogPorts

# No batch has a higher leader epoch.
HIGHEST_EPOCH = 2**31 - 1
_LEADER_EPOCH_AT = 12

Records = memoryview | bytes
# Accounts for one batch of `Records`, at its position there.
AccountForBatch = Callable[[BatchSummary, Records], None]


class FetchedRun(Protocol):
    """Consecutive fetched batches with ascending offsets, few enough for one segment.

    The object refers to the bytes of the fetched response. These bytes must not change while the object is used.
    """

    @property
    def base_offset(self) -> int: ...
    @property
    def first_batch_end(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...

    def epochs_after(self, epoch: int) -> list[tuple[int, int]]:
        """Returns (epoch, start offset), in order, of each leader epoch that begins in the run and is above `epoch`."""

    def append_to(self, segment: LogSegment, limits: LogLimits) -> None:
        """Writes and indexes the run. Raises OSError, in which case no batch is visible."""

    def account_for(self, producers: ProducerStateManager, account_for_batch: AccountForBatch) -> None:
        """Updates the state of the producers with the batches of the run.

        An implementation either changes `producers` itself or calls `account_for_batch(batch, records)` for each batch.
        Raises OSError if an aborted transaction cannot be written to the transaction index.
        """


class SummarizedRun:
    """A FetchedRun that stores a summary (offsets, size, epoch, producer) of each batch as an object. The object does
    not change after its construction.
    """

    __slots__ = ("_batches", "_records")

    def __init__(self, records: Records, batches: Sequence[BatchSummary | Any]) -> None:
        self._records = records
        self._batches = batches

    @property
    def base_offset(self) -> int:
        return self._batches[0].base_offset

    @property
    def first_batch_end(self) -> int:
        return self._batches[0].last_offset + 1

    @property
    def next_offset(self) -> int:
        return self._batches[-1].last_offset + 1

    @property
    def size(self) -> int:
        last = self._batches[-1]
        return last.position + last.size - self._batches[0].position

    @property
    def max_timestamp(self) -> int:
        return max([batch.max_timestamp for batch in self._batches])

    def epochs_after(self, epoch: int) -> list[tuple[int, int]]:
        found = []
        for batch in self._batches:
            if batch.partition_leader_epoch > epoch:
                epoch = batch.partition_leader_epoch
                found.append((epoch, batch.base_offset))
        return found

    def append_to(self, segment: LogSegment, limits: LogLimits) -> None:
        first = self._batches[0].position
        segment.append(memoryview(self._records)[first : first + self.size], self._batches)

    def account_for(self, producers: ProducerStateManager, account_for_batch: AccountForBatch) -> None:
        for batch in self._batches:
            if batch.producer_id >= 0:
                account_for_batch(batch, self._records)


def examine_fetched(records: Records, leader_epoch: int, segment_bytes: int) -> list[SummarizedRun]:
    """Validates fetched batches and returns them as runs; an incomplete batch at the end is ignored.

    The runs end before the first batch of an epoch above `leader_epoch`: the leader appended that batch after it had
    served the fetch (KAFKA-18723). Raises ApiError CORRUPT_MESSAGE for a damaged batch, and OFFSET_OUT_OF_RANGE for
    offsets that do not ascend.
    """
    batches: list[BatchSummary | Any] = []
    view = memoryview(records)
    position, expected = 0, 0
    while position < len(view):
        found, valid = scan_chunk(view[position:], position, True)
        if not valid:
            check_tail(view[position:], leader_epoch)
            break
        for batch in found:
            if batch.partition_leader_epoch > leader_epoch:
                return split_runs(records, batches, segment_bytes)
            if batch.base_offset < expected:
                raise out_of_order(batch.base_offset, expected)
            expected = batch.last_offset + 1
            batches.append(batch)
        position += valid
    return split_runs(records, batches, segment_bytes)


def check_tail(tail: memoryview, leader_epoch: int) -> None:
    """Raises ApiError CORRUPT_MESSAGE unless `tail`, the fetched bytes after the last valid batch, may be ignored.

    `tail` may be ignored if it is an incomplete batch or begins with a batch of an epoch above `leader_epoch`.
    """
    if len(tail) < LOG_OVERHEAD:
        return
    size = batch_size(bytes(tail[:LOG_OVERHEAD]))
    if size - LOG_OVERHEAD >= SMALLEST_LENGTH:
        if len(tail) <= MAGIC_AT or (tail[MAGIC_AT] <= BATCH_MAGIC and size > len(tail)):
            return
        if tail[MAGIC_AT] == BATCH_MAGIC and size >= SMALLEST_BATCH:
            epoch = int.from_bytes(tail[_LEADER_EPOCH_AT:MAGIC_AT], "big", signed=True)
            if epoch > leader_epoch:
                return
    raise corrupt_batch()


def split_runs(records: Records, batches: list[BatchSummary | Any], segment_bytes: int) -> list[SummarizedRun]:
    """Divides `batches` into as few runs as possible, each within the size and the range of offsets of one segment."""
    runs: list[SummarizedRun] = []
    start, size = 0, 0
    for index, batch in enumerate(batches):
        if index > start and (
            size + batch.size > segment_bytes
            or batch.last_offset - batches[start].base_offset > LARGEST_RELATIVE_OFFSET
        ):
            runs.append(SummarizedRun(records, batches[start:index]))
            start, size = index, 0
        size += batch.size
    if batches:
        runs.append(SummarizedRun(records, batches[start:]))
    return runs


def corrupt_batch() -> ApiError:
    return ApiError(Error.CORRUPT_MESSAGE, "Found a damaged batch in fetched records")


def out_of_order(base_offset: int, expected: int) -> ApiError:
    return ApiError(
        Error.OFFSET_OUT_OF_RANGE, f"Out of order offsets in fetched records: {base_offset} after {expected}"
    )


class FollowerAppends(LogReader):
    """The methods of Log that append the batches that a follower has fetched; the subclass Log has the attributes.
    Only the thread that owns it may use it."""

    __slots__ = ()

    if TYPE_CHECKING:
        config: LogConfig
        directory: LogDirectory
        _ports: LogPorts

        def _segment_for(
            self, size: int, max_timestamp: int, base_offset: int, last_offset: int, wall_ms: int
        ) -> LogSegment: ...
        def _account_for(self, batch: BatchSummary, records: memoryview | bytearray | bytes) -> None: ...
        def _restart_at(self, offset: int, log_start_offset: int) -> None: ...
        def _complete_append(self, next_offset: int) -> None: ...
        def _fail(self, action: str, error: OSError) -> NoReturn: ...

    def append_as_follower(self, records: Records, leader_epoch: int = HIGHEST_EPOCH) -> AppendInfo | None:
        """Appends the leader's batches with epochs up to `leader_epoch`; returns None if there is no whole batch.

        Raises StorageError, and ApiError CORRUPT_MESSAGE for a damaged batch or OFFSET_OUT_OF_RANGE for offsets that do
        not ascend or are below the log end offset.
        """
        return self.append_runs(examine_fetched(records, leader_epoch, self.config.segment_bytes))

    def append_runs(self, runs: Sequence[FetchedRun]) -> AppendInfo | None:
        """Appends runs with their offsets and epochs, each with one write; returns None if `runs` is empty.

        Raises StorageError, and ApiError OFFSET_OUT_OF_RANGE if the batches begin below the log end offset. There is
        one exception: if this log is empty and its start offset is inside the first batch, because DeleteRecords has
        increased the start offset, the batches are accepted. The log's only segment is then replaced by a segment that
        begins with the first batch.
        """
        if not runs:
            return None
        first = runs[0]
        end_offset = self.log_end_offset
        if not self.directory.is_online:
            raise StorageError(self.directory.path, f"the log directory of {self.topic_partition} is offline")
        try:
            if first.base_offset < end_offset:
                if end_offset != self.log_start_offset or first.first_batch_end <= end_offset:
                    raise ApiError(
                        Error.OFFSET_OUT_OF_RANGE,
                        f"Unexpected offset in append to {self.topic_partition}: {first.base_offset} is less than the "
                        f"next offset {end_offset}",
                    )
                self._restart_at(first.base_offset, self.log_start_offset)
            wall_ms = self._ports.clock.wall_ms()
            for run in runs:
                self._append_run(run, wall_ms)
        except OSError as error:
            self._fail("append to", error)
        next_offset = self.log_end_offset
        return AppendInfo(
            first.base_offset,
            next_offset - 1,
            -1,
            self.log_start_offset,
            max([run.max_timestamp for run in runs]),
            next_offset - first.base_offset,
        )

    def _append_run(self, run: FetchedRun, wall_ms: int) -> None:
        next_offset = run.next_offset
        for epoch, start_offset in run.epochs_after(self.leader_epochs.latest_epoch):
            self.leader_epochs.assign(epoch, start_offset)
        segment = self._segment_for(run.size, run.max_timestamp, run.base_offset, next_offset - 1, wall_ms)
        run.append_to(segment, self.config)
        run.account_for(self.producers, self._account_for)
        self._complete_append(next_offset)

    # -- the leader's offsets ------------------------------------------------------------------------------------

    def follow_high_watermark(self, high_watermark: int) -> bool:
        """Sets the high watermark to the leader's, limited to the offsets of this log; returns whether it changed.

        It may decrease, because a new leader's high watermark may be lower than the former leader's.
        """
        followed = max(self.log_start_offset, min(high_watermark, self.log_end_offset))
        if followed == self.high_watermark:
            return False
        self.high_watermark = followed
        return True

    def follow_log_start_offset(self, log_start_offset: int) -> bool:
        """Increases the log start offset to the leader's, `log_start_offset`; returns whether it changed.

        An offset above this log's high watermark is ignored, because the log has not fetched the records before it yet.
        """
        if not self.log_start_offset < log_start_offset <= self.high_watermark:
            return False
        return self.maybe_increment_log_start_offset(log_start_offset)

    if TYPE_CHECKING:

        def maybe_increment_log_start_offset(self, offset: int) -> bool: ...
