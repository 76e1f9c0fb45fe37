"""One pass of the log cleaner over one log: it maps each dirty key to its newest offset, then removes older records.

A pass runs on a thread of the log cleaner, and reads the segment files through its own descriptors. The Log object is
read and changed only on the thread that owns the log, which the pass calls for this purpose. Offsets, order and
timestamps of records do not change. The log is complete at every moment, so that a pass may stop at any point.
"""

import os
from collections.abc import Callable, Sequence

from kafkapy._core.broker_state.batch_filter import CORRUPT, DONE, FULL, BatchFilter, collect_batch, collect_keys
from kafkapy._core.bytes.compression import LARGEST_DECOMPRESSED_BYTES, DecompressionError, decompress
from kafkapy._core.bytes.offset_map import OffsetMap
from kafkapy._core.bytes.record_batch import BATCH_MAGIC, MAGIC_AT, OVERHEAD, RecordBatch
from kafkapy._core.bytes.segment_scan import find_batch
from kafkapy.named_tuple import NamedTuple
from kafkapy.storage.cleaned_segment import CleanedSegment, SegmentsChanged, remove_cleaned_files, swap_in
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log import Log
from kafkapy.storage.log_cleaner_grouping import SegmentSizes, group_segments
from kafkapy.storage.log_cleaner_manager import LogCleanerManager
from kafkapy.storage.log_cleaner_old_formats import collect_old_message, filter_old_message
from kafkapy.storage.log_cleaner_reader import CleanerBuffer, CorruptSegment
from kafkapy.storage.log_cleaner_selection import LogToClean
from kafkapy.storage.log_cleaner_transactions import CleanedTransactions
from kafkapy.storage.log_segment import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    LogSegment,
)
from kafkapy.storage.segment_reader import batch_size, scan_old_entries
from kafkapy.storage.transaction_index import AbortedTransaction


class ActiveProducer(NamedTuple):
    """A producer whose state the log stores; `last_data_offset` is -1 if the log has only markers of the producer."""

    producer_id: int
    producer_epoch: int
    last_data_offset: int


class LogSnapshot(NamedTuple):
    """The state of a log at the beginning of a pass.

    `segments` has the segments without the active one, `aborted` all aborted transactions of the log, and `producers`
    the producers by producer id; `truncations` counts the truncations of the log so far.
    """

    segments: Sequence[LogSegment]
    aborted: Sequence[AbortedTransaction]
    producers: dict[int, ActiveProducer]
    truncations: int


class CleaningTools(NamedTuple):
    """The buffers and functions that all passes of a cleaner thread share.

    `offsets` maps the keys of one pass to their newest offsets. `count_bytes(n)` counts n bytes read or written, and
    waits if they exceed the rate. `check()` raises CleaningAborted when the thread must stop. `schedule(ms, work)` runs
    `work` after a delay.
    """

    offsets: OffsetMap
    buffer: CleanerBuffer
    manager: LogCleanerManager
    filesystem: Filesystem
    count_bytes: Callable[[int], None]
    check: Callable[[], None]
    schedule: Callable[[int, Callable[[], None]], object]


class CleaningResult(NamedTuple):
    """The statistics of a pass; the next pass begins at `end_offset`.

    `truncations` is the value of `log.truncations` when the pass began.
    """

    end_offset: int
    truncations: int
    bytes_read: int
    bytes_written: int
    records_read: int
    records_kept: int
    keyless_records: int


class CleaningPass:
    """One pass, which owns the log's `.cleaned` files while it runs. Used once, by one thread."""

    def __init__(self, log: Log, to_clean: LogToClean, tools: CleaningTools, wall_ms: int) -> None:
        self._log = log
        self._to_clean = to_clean
        self._tools = tools
        self._wall_ms = wall_ms
        self._config = log.config
        self._snapshot = LogSnapshot((), (), {}, 0)
        self._bytes_read = 0
        self._bytes_written = 0

    def run(self) -> CleaningResult:
        """Cleans the log. After an error, the segments that were replaced before it remain cleaned.

        Raises CleaningAborted or SegmentsChanged if a later pass must repeat the work, OSError if the disk failed, and
        CorruptSegment, ApiError or ValueError if the log cannot be cleaned.
        """
        self._snapshot = self._tools.manager.on_owner(self._take_snapshot)
        try:
            end_offset = self._build_map()
            assert end_offset <= self._to_clean.first_uncleanable_offset, (end_offset, self._to_clean)
            return self._clean(end_offset)
        except FileNotFoundError as error:
            if any(each.is_deleted or each not in self._log.segments for each in self._snapshot.segments):
                raise SegmentsChanged(f"{error.filename} was deleted while it was cleaned") from error
            raise
        finally:
            self._tools.offsets.release()

    def _take_snapshot(self) -> LogSnapshot:
        log = self._log
        segments = list(log.segments)
        has_aborted = any(name.endswith(TRANSACTION_INDEX_SUFFIX) for name in os.listdir(log.path))
        aborted = log.collect_aborted_transactions(segments[0].base_offset, log.log_end_offset) if has_aborted else []
        producers = {}
        for producer_id, entry in log.producers.entries.items():
            last = entry.last_batch
            last_offset = last.last_offset if last is not None else -1
            producers[producer_id] = ActiveProducer(producer_id, entry.producer_epoch, last_offset)
        return LogSnapshot(segments[:-1], aborted, producers, log.truncations)

    def _check(self) -> None:
        self._tools.check()
        self._tools.manager.check(self._log.topic_partition)

    # -- the map -------------------------------------------------------------------------------------------------

    def _build_map(self) -> int:
        """Maps the keys of dirty records (not cleaned before) to their newest offsets, until the map is full.

        Returns the offset before which all dirty records are in the map; records from this offset on are kept.
        """
        start, end = self._to_clean.first_dirty_offset, self._to_clean.first_uncleanable_offset
        offsets = self._tools.offsets
        offsets.clear(end - start)
        transactions = CleanedTransactions()
        transactions.add_aborted(found for found in self._snapshot.aborted if found.last_offset >= start)
        segments = self._snapshot.segments
        for number, segment in enumerate(segments):
            next_base = segments[number + 1].base_offset if number + 1 < len(segments) else end
            if next_base <= start or segment.base_offset >= end:
                continue
            self._check()
            if not self._collect_segment(segment, start, end, transactions):
                break
        return max(start, offsets.latest_offset + 1)

    def _collect_segment(self, segment: LogSegment, start: int, end: int, transactions: CleanedTransactions) -> bool:
        """Adds the keys of the segment's records with offsets in [start, end) to the map.

        `transactions` has the transactions of the batches read so far; records of aborted transactions are left out.
        Returns False if no further segment is to be read, because the map is full or `end` is reached.
        """
        offsets = self._tools.offsets
        has_room = True

        def visit(view: memoryview, length: int) -> int | None:
            nonlocal has_room
            self._check()
            at = 0
            while True:
                at, why = collect_keys(offsets, view, at, length, start, end)
                if why == DONE:
                    return at
                if why == FULL:
                    has_room = False
                    return None
                if why == CORRUPT:
                    raise CorruptSegment(f"{path}: a corrupt batch after offset {offsets.latest_offset}")
                size = batch_size(bytes(view[at : at + 12]))
                if size > length - at:
                    return at
                if not self._collect_special(view[at : at + size], start, end, transactions):
                    has_room = False
                    return None
                at += size

        path = segment.path(LOG_SUFFIX)
        position = position_of(path, segment.size, start) if segment.base_offset < start else 0
        if position is not None:
            self._tools.buffer.read(path, position, segment.size, visit)
        return has_room

    def _collect_special(self, data: memoryview, start: int, end: int, transactions: CleanedTransactions) -> bool:
        offsets = self._tools.offsets
        if data[MAGIC_AT] < BATCH_MAGIC:
            message = bytes(data)
            entries, _ = scan_old_entries(message, 0, True)
            if not entries:
                raise CorruptSegment(f"a corrupt message in {self._log.topic_partition}")
            last_offset = entries[-1].last_offset
            if last_offset >= end:
                return False
            return collect_old_message(offsets, message, last_offset, start, end)
        batch = RecordBatch(data)
        batch.ensure_valid()
        if batch.base_offset >= end:
            return False
        if batch.is_control:
            transactions.is_useless(batch)
        elif not transactions.is_aborted(batch):
            return collect_batch(offsets, data, 0, opened(batch), start)
        if batch.last_offset >= start:
            offsets.note_offset(batch.last_offset)
        return True

    # -- cleaning ------------------------------------------------------------------------------------------------

    def _clean(self, end_offset: int) -> CleaningResult:
        config, snapshot = self._config, self._snapshot
        remove_cleaned_files(self._log.path, self._tools.filesystem)
        uncleanable = self._to_clean.first_uncleanable_offset
        segments = {segment.base_offset: segment for segment in snapshot.segments if segment.base_offset < end_offset}
        batch_filter = BatchFilter(
            self._tools.offsets,
            wall_ms=self._wall_ms,
            delete_retention_ms=config.delete_retention_ms,
            round_end=uncleanable,
            last_data_offsets=[
                (producer.last_data_offset, producer.producer_id)
                for producer in snapshot.producers.values()
                if producer.last_data_offset >= 0
            ],
        )
        sizes = [sizes_of(segment) for segment in segments.values()]
        groups = group_segments(sizes, config.segment_bytes, config.segment_index_bytes, uncleanable)
        clean = [segment for base, segment in segments.items() if base < self._to_clean.first_dirty_offset]
        last_clean_ms = modified_ms(clean[-1]) if clean else 0
        transactions = CleanedTransactions()
        transactions.add_aborted(snapshot.aborted)
        for group in groups:
            self._check()
            cleaner = GroupCleaner(self._log, batch_filter, transactions, snapshot, self._tools, self._check)
            cleaner.tombstones_before_ms = last_clean_ms - config.delete_retention_ms
            cleaner.clean([segments[each.base_offset] for each in group])
            self._bytes_read += cleaner.bytes_read
            self._bytes_written += cleaner.bytes_written
        return CleaningResult(
            end_offset,
            snapshot.truncations,
            self._bytes_read,
            self._bytes_written,
            batch_filter.records_read,
            batch_filter.records_kept,
            batch_filter.keyless_records,
        )


class GroupCleaner:
    """The cleaning of one group of segments, which are merged into one. Owns the cleaned segment. Used once."""

    def __init__(
        self,
        log: Log,
        batch_filter: BatchFilter,
        transactions: CleanedTransactions,
        snapshot: LogSnapshot,
        tools: CleaningTools,
        check: Callable[[], None],
    ) -> None:
        self._log = log
        self._filter = batch_filter
        self._transactions = transactions
        self._producers = snapshot.producers
        self._truncations = snapshot.truncations
        self._tools = tools
        self._check = check
        self.bytes_read = 0
        self.bytes_written = 0
        self.tombstones_before_ms = 0  # tombstones of magic 0 and 1 in an older segment are removed

    def clean(self, segments: Sequence[LogSegment]) -> None:
        """Merges the segments into one cleaned segment, which then replaces them in the log.

        Raises CleaningAborted or SegmentsChanged if a later pass must repeat the work, OSError if the disk failed, and
        CorruptSegment, ApiError or ValueError if the log cannot be cleaned. After an error `.cleaned` files are left,
        which the next pass or start deletes.
        """
        log, filesystem = self._log, self._tools.filesystem
        base_offset = segments[0].base_offset
        created_ms = segments[0].created_ms
        cleaned = CleanedSegment.create(log.path, base_offset, log.config, filesystem, created_ms)
        try:
            cleaned.open_for_append()
            for segment in segments:
                self._clean_into(segment, cleaned)
            for aborted in self._transactions.kept:
                cleaned.transaction_index.append(aborted)
            self._transactions.kept.clear()
            cleaned.finish(os.stat(segments[-1].path(LOG_SUFFIX)).st_mtime_ns)
        finally:
            cleaned.close(trim=False)
        filesystem.sync_directory(log.path)
        self._check()
        renamed = self._tools.manager.on_owner(lambda: swap_in(log, cleaned, segments, filesystem, self._truncations))
        filesystem.sync_directory(log.path)
        self._tools.schedule(log.config.file_delete_delay_ms, lambda: unlink_all(filesystem, renamed))

    def _clean_into(self, segment: LogSegment, cleaned: CleanedSegment) -> None:
        path = segment.path(LOG_SUFFIX)
        keeps_tombstones = modified_ms(segment) > self.tombstones_before_ms

        def visit(view: memoryview, length: int) -> int:
            self._check()
            at = 0
            while True:
                at, why = self._filter.filter_plain(view, at, length)
                if why == CORRUPT:
                    raise CorruptSegment(f"{path}: a corrupt batch")
                size = batch_size(bytes(view[at : at + 12])) if why != DONE else 0
                if why == DONE or size > length - at:
                    break
                self._clean_special(view[at : at + size], cleaned, keeps_tombstones)
                at += size
            self._write(cleaned)
            self.bytes_read += at
            return at

        self._tools.buffer.read(path, 0, segment.size, visit)

    def _write(self, cleaned: CleanedSegment) -> None:
        written = self._filter.write_to(cleaned, self._log.config.index_interval_bytes)
        self.bytes_written += written
        self._tools.count_bytes(written)

    def _clean_special(self, data: memoryview, cleaned: CleanedSegment, keeps_tombstones: bool) -> None:
        if data[MAGIC_AT] < BATCH_MAGIC:
            self._write(cleaned)
            written = filter_old_message(self._filter, bytes(data), cleaned, keeps_tombstones=keeps_tombstones)
            self.bytes_written += written
            self._tools.count_bytes(written)
            return
        batch = RecordBatch(data)
        batch.ensure_valid()
        if batch.is_control:
            self._clean_control(batch, data)
            return
        is_aborted = self._transactions.is_aborted(batch)
        keep_empty = self._filter.keeps_empty(data, 0)
        if not is_aborted or keep_empty:
            self._filter.filter_batch(
                data, 0, opened(batch), discard=is_aborted, keep_empty=keep_empty, begin_horizon=False
            )

    def _clean_control(self, batch: RecordBatch, data: memoryview) -> None:
        """Writes a control batch to the cleaned segment, or leaves it out; `data` are the bytes of the whole batch.

        A marker is left out if no record of its transaction remains and its delete horizon has passed. It is replaced
        by an empty batch, however, if its batch is the last one that may be cleaned, or if the log has only markers and
        no records of the producer.
        """
        is_useless = self._transactions.is_useless(batch)
        discard = is_useless and batch.has_delete_horizon and batch.base_timestamp <= self._filter.wall_ms
        producer = self._producers.get(batch.producer_id)
        keep_empty = batch.last_offset + 1 == self._filter.round_end or (
            producer is not None and producer.last_data_offset < 0 and producer.producer_epoch == batch.producer_epoch
        )
        if not discard or keep_empty:
            self._filter.filter_batch(
                data, 0, opened(batch), discard=discard, keep_empty=keep_empty, begin_horizon=is_useless
            )


def opened(batch: RecordBatch) -> memoryview | bytes:
    """Returns the decompressed records of a batch. Raises CorruptSegment."""
    records = batch.data[OVERHEAD:]
    if not batch.compression or not batch.record_count:
        return records
    try:
        return decompress(batch.compression, records, LARGEST_DECOMPRESSED_BYTES)
    except (DecompressionError, ValueError) as error:
        raise CorruptSegment(f"the batch at offset {batch.base_offset} does not decompress: {error}") from error


def position_of(path: str, size: int, offset: int) -> int | None:
    """Returns the position of the batch that holds `offset` or, if there is none, of the next batch. Returns None if no
    batch follows.

    `path` is a `.log` file, of which only the first `size` bytes are searched. Raises OSError.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = find_batch(fd, 0, size, offset)
        return None if found is None else found[0]
    finally:
        os.close(fd)


def sizes_of(segment: LogSegment) -> SegmentSizes:
    """Returns the sizes of the segment's files. Raises OSError."""
    index, time_index = (os.stat(segment.path(suffix)).st_size for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX))
    return SegmentSizes(segment.base_offset, segment.size, index, time_index)


def modified_ms(segment: LogSegment) -> int:
    """Returns the modification time of the segment (ms). Raises OSError."""
    return os.stat(segment.path(LOG_SUFFIX)).st_mtime_ns // 1_000_000


def unlink_all(filesystem: Filesystem, paths: Sequence[str]) -> None:
    """Deletes files. Raises OSError."""
    for path in paths:
        filesystem.unlink(path)
