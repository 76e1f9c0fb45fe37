"""Opens a partition directory as a Log, after a clean stop or an unclean one.

After an unclean stop recovery reads every batch from the segment of the recovery point on, verifies its checksum, and
rebuilds indexes, leader epochs and producers. The first torn, damaged or missing batch ends the log: recovery truncates
its segment there and deletes later segments. A power failure may take the end of a rolled segment although records of
the next segment reached the disk. After a clean stop only the batches after the last index entry are read.
"""

import logging
import os
from collections.abc import Iterable

from kafkapy.decimal_text import is_number
from kafkapy.storage.checkpoint import MalformedCheckpoint
from kafkapy.storage.cleaned_segment import CLEANED_SUFFIX, SWAP_SUFFIX
from kafkapy.storage.leader_epoch_cache import LeaderEpochCache
from kafkapy.storage.log import Log
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_directory import LogDirectory
from kafkapy.storage.log_ports import LogPorts
from kafkapy.storage.log_segment import (
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    LogSegment,
)
from kafkapy.storage.log_segments import LogSegments
from kafkapy.storage.producer_replay import account_for, replay_producers, restore_batches
from kafkapy.storage.producer_snapshot import SUFFIX as SNAPSHOT_SUFFIX
from kafkapy.storage.producer_state import ProducerStateManager
from kafkapy.storage.rebuilt_indexes import RebuiltIndexes
from kafkapy.storage.segment_reader import scan_segment
from kafkapy.storage.transaction_index import CorruptTransactionIndex
from kafkapy.types import ZERO_UUID, TopicPartition

logger = logging.getLogger("kafka.log.LogLoader")

INDEX_SUFFIXES = SEGMENT_SUFFIXES[1:]
SIZED_SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)
BASE_OFFSET_DIGITS = 20
ALL_OFFSETS = 2**63

# The time between two messages about the progress of one log's recovery.
PROGRESS_PERIOD_MS = 5000

# Recovery takes a producer snapshot before each of the last two segments, and otherwise before the next segment after
# this number of bytes.
SEGMENTS_WITH_SNAPSHOT = 2
BYTES_PER_SNAPSHOT = 64 << 20


class LogLoader:
    """The loader that opens one log; used once, by one thread."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: LogDirectory,
        path: str,
        config: LogConfig,
        ports: LogPorts,
        *,
        is_clean: bool,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        """Creates the loader of the partition directory `path`.

        `is_clean` is True if the log directory had a clean-shutdown marker; otherwise the log is recovered.
        `recovery_point` and `log_start_offset` are the values in the checkpoints, or 0 if a checkpoint has no entry for
        the partition.
        """
        self.topic_partition = topic_partition
        self.directory = directory
        self.path = path
        self.config = config
        self.ports = ports
        self.is_clean = is_clean
        self.recovery_point = recovery_point
        # No power failure has taken records below this offset: records that are missing there were compacted away.
        self.complete_before = ALL_OFFSETS if is_clean or config.is_compacted else max(recovery_point, log_start_offset)
        self.was_compacted = False  # there are gaps between batches of one segment
        self.log_start_offset = log_start_offset
        self.topic_id = topic_id
        self.leader_epochs = LeaderEpochCache(path, ports.filesystem)
        self.producers = ProducerStateManager(topic_partition, path, ports.filesystem)
        self.segments = LogSegments()
        self.sizes: dict[str, int] = {}
        self.rebuilt: list[LogSegment] = []
        self.snapshots_taken: list[str] = []

    def load(self) -> Log:
        """Reads the directory, recovers segments if needed, and returns the log. Raises OSError or StorageError."""
        wall_ms = self.ports.clock.wall_ms()
        self._list_files()
        self._load_segments(wall_ms)
        self._load_epochs()
        self.log_start_offset = max(self.log_start_offset, self.segments.first.base_offset)
        log_end_offset = self._recover(wall_ms)
        if log_end_offset < self.log_start_offset:
            logger.warning(
                "%s ends at %d, below its start offset %d: its segments are deleted, and it starts there empty",
                self.topic_partition,
                log_end_offset,
                self.log_start_offset,
            )
            log_end_offset = self._start_empty(wall_ms)
        self.leader_epochs.truncate_from_end(log_end_offset)
        self.leader_epochs.truncate_from_start(self.log_start_offset)
        log = Log(
            self.topic_partition,
            self.directory,
            self.path,
            self.config,
            self.ports,
            self.segments,
            leader_epochs=self.leader_epochs,
            producers=self.producers,
            log_start_offset=self.log_start_offset,
            log_end_offset=log_end_offset,
            recovery_point=min(self.recovery_point, log_end_offset),
            topic_id=self.topic_id,
            names_are_durable=self.is_clean and bool(self.sizes),
        )
        log.mark_unsynced(self.rebuilt, self.snapshots_taken)
        if log_end_offset - log.recovery_point >= self.config.flush_messages:
            # A killed broker wrote these records. This broker serves them and treats a retry as a duplicate, so a power
            # failure must not lose them.
            log.flush()
        return log

    # -- files ---------------------------------------------------------------------------------------------------

    def _list_files(self) -> None:
        """Lists the directory, after finishing a deletion of files or a swap of the log cleaner that was interrupted.
        Raises OSError."""
        self._scan()
        leftovers = [name for name in self.sizes if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX))]
        if leftovers:
            self._finish_deletions(leftovers)
            self._finish_swaps()
            self._scan()
        for name in [name for name in self.sizes if name.endswith(INDEX_SUFFIXES)]:
            if name.rpartition(".")[0] + LOG_SUFFIX not in self.sizes:
                logger.warning("Deleting %s, which belongs to no segment of %s", name, self.topic_partition)
                self._remove(name)

    def _scan(self) -> None:
        """Reads the names in the directory, and the sizes of `.log` files; after an unclean stop also the sizes of
        indexes."""
        sized = LOG_SUFFIX if self.is_clean else SIZED_SUFFIXES
        self.sizes = dict.fromkeys(os.listdir(self.path), 0)
        for name in self.sizes:
            if name.endswith(sized):
                self.sizes[name] = os.stat(f"{self.path}/{name}").st_size

    def _remove(self, name: str) -> None:
        self.ports.filesystem.unlink(os.path.join(self.path, name))
        self.sizes.pop(name, None)

    def _finish_deletions(self, leftovers: Iterable[str]) -> None:
        """Removes `.deleted` and `.cleaned` files, and incomplete `.swap` files. Raises OSError.

        A `.swap` file at or above the base offset of a `.cleaned` file is incomplete. It is removed durably before any
        `.cleaned` file is removed. Otherwise this start could be interrupted when only the `.swap` file is left, and
        the next start would regard it as complete.
        """
        leftovers = list(leftovers)
        first_cleaned = min((base_of(name) for name in leftovers if name.endswith(CLEANED_SUFFIX)), default=None)
        swaps = [name for name in leftovers if name.endswith(SWAP_SUFFIX)]
        for name in swaps:
            if first_cleaned is not None and base_of(name) >= first_cleaned:
                self._remove(name)
        if first_cleaned is not None:
            self.ports.filesystem.sync_directory(self.path)
        for name in leftovers:
            if name not in swaps:
                self._remove(name)

    def _finish_swaps(self) -> None:
        """Completes an interrupted cleaning: replaces the segments that each complete `.log.swap` file covers by this
        file, and then renames the `.swap` files of its indexes. Raises OSError.

        A segment is covered if its base offset is among the offsets of the `.log.swap` file; it is deleted with its
        indexes. All `.log.swap` files are renamed before the index files. As long as a `.log.swap` file exists, an
        index without the suffix therefore belongs to a replaced segment. An index `.swap` file without its `.log.swap`
        file is renamed, too, because the last start was interrupted after it had renamed the `.log.swap` file.
        """
        filesystem = self.ports.filesystem
        for name in sorted(self.sizes):
            if not name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
                continue
            base_offset = base_of(name)
            swap = os.path.join(self.path, name)
            end_offset = max(self._end_of(swap, base_offset), base_offset + 1)
            for other in list(self.sizes):
                if other.endswith(SEGMENT_SUFFIXES) and base_offset <= base_of(other) < end_offset:
                    self._remove(other)
            filesystem.rename(swap, swap.removesuffix(SWAP_SUFFIX))
            del self.sizes[name]
        for name in list(self.sizes):
            if name.endswith(SWAP_SUFFIX):
                path = os.path.join(self.path, name)
                filesystem.rename(path, path.removesuffix(SWAP_SUFFIX))
        filesystem.sync_directory(self.path)

    def _end_of(self, path: str, base_offset: int) -> int:
        """Returns the offset after the last batch of a segment file. Raises OSError."""
        file = self.ports.filesystem.open_segment(path)
        try:
            end_offset = base_offset
            for _, _, batches in scan_segment(file, 0, file.size, check_crc=False):
                end_offset = batches[-1].last_offset + 1
            return end_offset
        finally:
            file.close()

    def _load_segments(self, wall_ms: int) -> None:
        filesystem = self.ports.filesystem
        found = [
            LogSegment(self.path, base_of(name), self.config, filesystem, size=size, created_ms=wall_ms)
            for name, size in self.sizes.items()
            if name.endswith(LOG_SUFFIX) and is_base_offset(name.removesuffix(LOG_SUFFIX))
        ]
        if not found:
            found.append(LogSegment.create(self.path, self.log_start_offset, self.config, filesystem, wall_ms))
        self.segments = LogSegments(found)
        self.producers.set_snapshots(
            int(name.removesuffix(SNAPSHOT_SUFFIX))
            for name in self.sizes
            if name.endswith(SNAPSHOT_SUFFIX) and is_base_offset(name.removesuffix(SNAPSHOT_SUFFIX))
        )
        self.producers.keep_snapshots_of(self.segments.base_offsets)

    def _load_epochs(self) -> None:
        try:
            self.leader_epochs.load()
        except MalformedCheckpoint as error:
            logger.warning("Reading the leader epochs of %s from its batches: %s", self.topic_partition, error)
            self.leader_epochs.clear()
            self.is_clean = False
            self._scan()
            self.recovery_point = 0

    # -- recovery ------------------------------------------------------------------------------------------------

    def _recover(self, wall_ms: int) -> int:
        """Recovers the segments that may be damaged and loads the producers; returns the log end offset. Raises
        OSError."""
        log_end_offset = self._end_after_clean_stop() if self.is_clean else None
        suspects = self._suspects() if log_end_offset is None else []
        ports = self.ports
        if not suspects:
            if log_end_offset is None:
                log_end_offset = self.segments.active.next_offset()
            self._load_producers(log_end_offset, wall_ms)
            return log_end_offset
        self._load_producers(suspects[0].base_offset, wall_ms)
        end_offset = suspects[0].base_offset
        logger.info("Recovering %d segments of %s from offset %d", len(suspects), self.topic_partition, end_offset)
        unsaved_bytes = 0
        reported_ms = ports.clock.monotonic_ms()
        for number, segment in enumerate(suspects):
            remaining = len(suspects) - number
            if ports.clock.monotonic_ms() - reported_ms >= PROGRESS_PERIOD_MS:
                reported_ms = ports.clock.monotonic_ms()
                logger.info("Recovering %s: %d of %d segments are left", self.topic_partition, remaining, len(suspects))
            if segment.base_offset > max(end_offset, self.complete_before) and not self.was_compacted:
                logger.warning(
                    "%s ends at %d: the records before its segment %d are missing",
                    self.topic_partition,
                    end_offset,
                    segment.base_offset,
                )
                self._delete_segments_from(segment.base_offset)
                break
            self.producers.map_end_offset = segment.base_offset
            if unsaved_bytes >= BYTES_PER_SNAPSHOT or remaining <= SEGMENTS_WITH_SNAPSHOT:
                self._take_snapshot()
                unsaved_bytes = 0
            unsaved_bytes += segment.size
            self.rebuilt.append(segment)
            end_offset, truncated = self._recover_segment(segment)
            if truncated:
                logger.warning(
                    "Truncating %s at offset %d: %d damaged bytes", self.topic_partition, end_offset, truncated
                )
                self._delete_segments_from(segment.base_offset + 1)
                segment.close()
                break
            segment.close()
        end_offset = max(end_offset, self.segments.active.base_offset)
        self.producers.map_end_offset = max(self.producers.map_end_offset, end_offset)
        self.producers.delete_snapshots(after=end_offset)
        return end_offset

    def _delete_segments_from(self, offset: int) -> None:
        """Deletes the segments whose base offset is at or after `offset`, durably. Raises OSError."""
        deleted = self.segments.from_offset(offset)
        for doomed in deleted:
            logger.warning("Deleting segment %d of %s", doomed.base_offset, self.topic_partition)
            self.segments.remove(doomed)
            for path in doomed.mark_deleted():
                self.ports.filesystem.unlink(path)
        if deleted:
            self.ports.filesystem.sync_directory(self.path)

    def _end_after_clean_stop(self) -> int | None:
        """Returns the log end offset, or None if a segment must be recovered despite the clean stop. Raises OSError."""
        if not all(map(self._has_indexes, self.segments)):
            return None
        log_end_offset = self.segments.active.next_offset_if_whole()
        if log_end_offset is None:
            # Kafka does not check this, and would append after the torn bytes, where nothing can be read.
            logger.warning("The end of %s is torn, although the broker stopped cleanly", self.topic_partition)
        return log_end_offset

    def _suspects(self) -> list[LogSegment]:
        """Returns the segments to recover, oldest first.

        After an unclean stop, recovery begins with the segment that contains the recovery point, or with the first
        segment without usable indexes if that is earlier. Empty segments at the end are left out; in a compacted log,
        all empty segments are left out.

        After a clean stop, recovery begins with the first segment without usable indexes. If all segments have usable
        indexes, the active segment ends with an incomplete batch, and only this segment is recovered.
        """
        first_suspect = next((segment for segment in self.segments if not self._has_indexes(segment)), None)
        if self.is_clean:
            return self.segments.from_offset((first_suspect or self.segments.active).base_offset)
        start = self.recovery_point
        if first_suspect is not None:
            start = min(start, first_suspect.base_offset)
        found = self.segments.between(start, ALL_OFFSETS)
        while found and self._is_empty(found[-1]):
            found.pop()
        return [segment for segment in found if not (self.config.is_compacted and self._is_empty(segment))]

    def _has_indexes(self, segment: LogSegment) -> bool:
        """Returns whether the segment has usable indexes. Raises OSError.

        The offset and time index must exist unless the segment is empty; the transaction index may be missing, but
        must be readable if it exists.
        """
        stem = f"{segment.base_offset:020d}"
        if stem + TRANSACTION_INDEX_SUFFIX in self.sizes:
            try:
                segment.transaction_index.entries()
            except CorruptTransactionIndex as error:
                logger.warning("%s", error)
                return False
        return not segment.size or (stem + OFFSET_INDEX_SUFFIX in self.sizes and stem + TIME_INDEX_SUFFIX in self.sizes)

    def _is_empty(self, segment: LogSegment) -> bool:
        """Returns whether the segment needs no recovery, because its files are empty or missing and it has no
        transaction index."""
        stem = f"{segment.base_offset:020d}"
        # A power failure may lose the records but not the index of their aborted transactions.
        has_transactions = stem + TRANSACTION_INDEX_SUFFIX in self.sizes
        return not has_transactions and not any(self.sizes.get(stem + suffix) for suffix in SIZED_SUFFIXES)

    def _load_producers(self, end_offset: int, wall_ms: int) -> None:
        ports = self.ports
        self.producers.reload(self.log_start_offset, end_offset, wall_ms, ports.producer_expiration_ms)
        restore_batches(self.segments, self.producers, wall_ms)
        replay_producers(self.segments, self.producers, end_offset)

    def _take_snapshot(self) -> None:
        path = self.producers.take_snapshot(sync=False)
        if path is not None:
            self.snapshots_taken.append(path)

    def _recover_segment(self, segment: LogSegment) -> tuple[int, int]:
        """Verifies the batches of a segment, rebuilds its indexes and removes the bytes after the last valid batch.

        Returns the offset after the last valid batch, and the number of bytes removed.
        """
        name = os.path.basename(segment.path(TRANSACTION_INDEX_SUFFIX))
        if name in self.sizes:
            self._remove(name)
        indexes = RebuiltIndexes(segment.base_offset, self.config)
        position, next_offset = self._read_segment(segment, indexes)
        indexes.finish()
        segment.replace_indexes(indexes)
        return next_offset, self._cut(segment, position)

    def _read_segment(self, segment: LogSegment, indexes: RebuiltIndexes) -> tuple[int, int]:
        """Verifies the batches of a segment, and adds each valid one to indexes, leader epochs and producers.

        Returns the position and the offset after the last valid batch.
        """
        position, next_offset = 0, segment.base_offset
        for chunk, chunk_position, batches in scan_segment(segment.file, 0, segment.size, check_crc=True):
            for batch in batches:
                if batch.base_offset < next_offset or batch.last_offset < batch.base_offset:
                    return position, next_offset
                if batch.base_offset > next_offset:
                    self.was_compacted = True
                self.leader_epochs.confirm(
                    batch.partition_leader_epoch, batch.base_offset, batch.last_offset, next_offset
                )
                indexes.add(batch.position, batch.size, batch.last_offset, batch.max_timestamp)
                aborted = account_for(self.producers, batch, chunk, batch.position - chunk_position)
                if aborted is not None:
                    segment.is_free_of_aborted = False
                    segment.transaction_index.append(aborted)
                position, next_offset = batch.position + batch.size, batch.last_offset + 1
        return position, next_offset

    def _cut(self, segment: LogSegment, position: int) -> int:
        """Truncates the segment at `position`; returns the number of bytes removed. Raises OSError."""
        truncated = segment.size - position
        if truncated:
            segment.file.truncate(position)
            segment.size = position
        return truncated

    def _start_empty(self, wall_ms: int) -> int:
        """Replaces all segments with an empty one at the log start offset, and returns that offset. Raises OSError."""
        for segment in list(self.segments):
            self.segments.remove(segment)
            for path in segment.mark_deleted():
                self.ports.filesystem.unlink(path)
        filesystem = self.ports.filesystem
        self.segments.add(LogSegment.create(self.path, self.log_start_offset, self.config, filesystem, wall_ms))
        self.producers.delete_snapshots(after=-1)
        self.producers.clear(self.log_start_offset)
        self.leader_epochs.clear()
        return self.log_start_offset


def base_of(name: str) -> int:
    """Returns the base offset in a segment file's name, or -1 if it has none."""
    stem = name.split(".", 1)[0]
    return int(stem) if is_base_offset(stem) else -1


def is_base_offset(stem: str) -> bool:
    """Returns whether `stem` is an offset of 20 digits, as segment files and snapshots are named."""
    return len(stem) == BASE_OFFSET_DIGITS and is_number(stem)
