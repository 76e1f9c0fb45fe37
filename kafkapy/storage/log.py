"""A partition's log: append, roll, flush, truncate, delete.

An append validates its batches in one native pass, writes their offsets and leader epoch into them in place, and writes
them to the active segment with one system call. All batches below `recovery_point` are durable; recovery checks the
batches above it after an unclean stop. log_reader contains the methods that read, follower_appends the appends of a
follower; log_recovery opens a log.
"""

import errno
import logging
import os
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import NoReturn

from kafkapy._core.bytes.record_batch import (
    BATCH_MAGIC,
    MAGIC_AT,
    BatchSummary,
    RecordBatch,
    assign_offsets,
    validate_batches,
)
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.storage.control_record import end_transaction_marker
from kafkapy.storage.follower_appends import FollowerAppends
from kafkapy.storage.leader_epoch_cache import LeaderEpochCache
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_directory import LogDirectory
from kafkapy.storage.log_ports import LogPorts
from kafkapy.storage.log_results import AppendInfo
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.log_segments import LogSegments
from kafkapy.storage.producer_replay import account_for, replay_producers, restore_batches
from kafkapy.storage.producer_state import ProducerStateManager
from kafkapy.storage.recompression import recompress
from kafkapy.storage.retention import SegmentFacts, deletable_segments
from kafkapy.storage.transaction_index import CorruptTransactionIndex
from kafkapy.storage.up_conversion import up_convert
from kafkapy.types import ZERO_UUID, TopicPartition

logger = logging.getLogger("kafka.log.UnifiedLog")

# Guards the recovery point of every log: a flush on any thread may increase it, and a truncation decreases it.
RECOVERY_POINT_LOCK = Lock()

# Held while a partition directory is renamed: a flush that does not find a file tries again with the new name.
RENAME_LOCK = Lock()


class Log(FollowerAppends):
    """The log of one partition; owns the files of its directory.

    Invariants: log_start_offset <= high_watermark <= log_end_offset; recovery_point <= log_end_offset; offsets that
    this broker assigned have no gaps. A log that is in the log manager's table is changed by one thread only, its owner
    thread, which is the reactor's; but any thread may call `flush`. After an I/O error the whole log directory is
    offline and every append raises StorageError.
    """

    __slots__ = (
        "_is_deleted",
        "_names_synced",
        "_names_version",
        "_ports",
        "_truncations",
        "_unsynced_segments",
        "_unsynced_snapshots",
        "last_flush_ms",
        "path",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: LogDirectory,
        path: str,
        config: LogConfig,
        ports: LogPorts,
        segments: LogSegments,
        *,
        leader_epochs: LeaderEpochCache,
        producers: ProducerStateManager,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        topic_id: bytes = ZERO_UUID,
        names_are_durable: bool = False,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.directory = directory
        self.path = path
        self.config = config
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.high_watermark = log_start_offset
        self.recovery_point = recovery_point
        self.last_flush_ms = ports.clock.wall_ms()
        self.segments = segments
        self.leader_epochs = leader_epochs
        self.producers = producers
        self._ports = ports
        self._truncations = 0
        self._is_deleted = False
        self._names_version = 0  # incremented with every new file name in the directory
        self._names_synced = 0 if names_are_durable else -1  # the version that is durable
        self._unsynced_segments: set[LogSegment] = set()  # inactive segments whose indexes may not be durable
        self._unsynced_snapshots: set[str] = set()
        self._check_offsets()

    def _check_offsets(self) -> None:
        """Asserts the invariants of the class. It is called after every change except an append, which checks its
        offsets itself."""
        assert 0 <= self.log_start_offset <= self.high_watermark <= self.log_end_offset, self
        assert self.recovery_point <= self.log_end_offset, self
        assert self.segments.active.base_offset <= self.log_end_offset, self

    # -- append --------------------------------------------------------------------------------------------------

    def append_as_leader(
        self,
        records: memoryview | bytearray,
        leader_epoch: int,
        *,
        from_client: bool = True,
        checked: list[BatchSummary] | ApiError | None = None,
    ) -> AppendInfo:
        """Validates batches, assigns their offsets in place and appends them.

        `records` must be writable, and is used only during the call. Message sets of clients before 0.11 are converted
        first. If `from_client` is False, the broker itself writes: control batches are allowed, and sequence numbers
        are not checked. `checked` is the result of `check_records` for the same bytes, or the ApiError that it raised;
        None if it was not called. Raises ApiError with Kafka's error code if the batches are refused, and StorageError
        if the disk failed; in both cases no batch becomes visible.
        """
        if isinstance(checked, ApiError):
            raise checked
        config = self.config
        wall_ms = self._ports.clock.wall_ms()
        if from_client and len(records) > MAGIC_AT and records[MAGIC_AT] < BATCH_MAGIC:
            records = up_convert(records, config)
        batches = self._validate(records, wall_ms, from_client) if checked is None else checked
        if not batches:
            raise ApiError(Error.INVALID_RECORD, f"No record batch to append to {self.topic_partition}")
        if batches[-1].producer_id >= 0 or len(batches) > 1:
            duplicate = self._check_producers(batches, records, from_client)
            if duplicate is not None:
                return duplicate
        if config.codec >= 0 and any(batch.compression != config.codec for batch in batches):
            records = recompress(records, batches, config)
            batches = self._validate(records, wall_ms, from_client)
        append_time = wall_ms if config.stamps_append_time else -1
        first_offset = self.log_end_offset
        next_offset = assign_offsets(records, batches, first_offset, leader_epoch, append_time)
        if leader_epoch != self.leader_epochs.latest_epoch and leader_epoch >= 0:
            self.leader_epochs.assign(leader_epoch, first_offset)
        max_timestamp = self._append(records, batches, next_offset, wall_ms)
        return AppendInfo(
            first_offset, next_offset - 1, append_time, self.log_start_offset, max_timestamp, next_offset - first_offset
        )

    def check_records(self, records: memoryview) -> list[BatchSummary]:
        """Validates batches of a client and returns their summaries, the argument `checked` of `append_as_leader`.

        Raises ApiError if a batch is invalid. Any thread may call it, because it reads only the log's configuration.
        """
        return self._validate(records, self._ports.clock.wall_ms(), True)

    def _validate(self, records: memoryview | bytearray, wall_ms: int, from_client: bool) -> list[BatchSummary]:
        config = self.config
        return validate_batches(
            records,
            max_message_bytes=config.max_message_bytes,
            wall_ms=wall_ms,
            stamps_append_time=config.stamps_append_time,
            before_max_ms=config.timestamp_before_max_ms,
            after_max_ms=config.timestamp_after_max_ms,
            compacted=config.is_compacted,
            from_client=from_client,
            topic_partition=self.topic_partition,
        )

    def _append(
        self, records: memoryview | bytearray | bytes, batches: Sequence[BatchSummary], next_offset: int, wall_ms: int
    ) -> int:
        """Writes batches with assigned offsets, updates the producers, and returns the greatest timestamp.

        `next_offset` becomes the log end offset; `wall_ms` decides whether a new segment is due. Raises StorageError,
        and ApiError RECORD_LIST_TOO_LARGE for more bytes than a segment may have.
        """
        assert self.log_end_offset <= batches[0].base_offset < next_offset, (self, batches[0].base_offset, next_offset)
        if not self.directory.is_online:
            raise StorageError(self.directory.path, f"the log directory of {self.topic_partition} is offline")
        last = batches[-1]
        max_timestamp = last.max_timestamp if len(batches) == 1 else max([batch.max_timestamp for batch in batches])
        size = last.position + last.size
        if size != len(records):
            records = memoryview(records)[:size]
        if size > self.config.segment_bytes:
            raise ApiError(
                Error.RECORD_LIST_TOO_LARGE,
                f"Message batch size is {size} bytes in append to partition {self.topic_partition}, which exceeds the "
                f"maximum configured segment size of {self.config.segment_bytes}.",
            )
        try:
            segment = self._segment_for(size, max_timestamp, batches[0].base_offset, next_offset - 1, wall_ms)
            segment.append(records, batches)
            for batch in batches:
                if batch.producer_id >= 0:
                    self._account_for(batch, records)
        except OSError as error:
            self._fail("append to", error)
        self._complete_append(next_offset)
        return max_timestamp

    def _segment_for(
        self, size: int, max_timestamp: int, base_offset: int, last_offset: int, wall_ms: int
    ) -> LogSegment:
        """Returns the segment, open for append, for batches of `size` bytes with these offsets.

        Begins a new segment if the active one has no room for them or is too old at `wall_ms`. Raises OSError.
        """
        segment = self.segments.active
        if not segment.is_open_for_append:
            segment.open_for_append()
        if segment.should_roll(size, max_timestamp, last_offset, wall_ms):
            return self._roll(base_offset)
        return segment

    def _complete_append(self, next_offset: int) -> None:
        self.producers.map_end_offset = self.log_end_offset = next_offset
        if next_offset - self.recovery_point >= self.config.flush_messages:
            self.flush()

    def append_copy(self, records: memoryview, batches: Sequence[BatchSummary]) -> None:
        """Appends whole batches, of any format, to a future log, when they are copied from the current log.

        Begins a new segment only if an index is full. The caller calls `roll_at` with the base offset of each segment
        of the current log, so that the segments of both logs begin at the same offsets. Raises StorageError.
        """
        assert batches[0].base_offset >= self.log_end_offset, (self, batches[0].base_offset)
        if not self.directory.is_online:
            raise StorageError(self.directory.path, f"the log directory of {self.topic_partition} is offline")
        for batch in batches:
            if batch.partition_leader_epoch > self.leader_epochs.latest_epoch:
                self.leader_epochs.assign(batch.partition_leader_epoch, batch.base_offset)
        try:
            segment = self.segments.active
            if not segment.is_open_for_append:
                segment.open_for_append()
            if segment.has_full_index:
                segment = self._roll(self.log_end_offset)
            segment.append(records, batches)
            for batch in batches:
                if batch.producer_id >= 0:
                    self._account_for(batch, records)
        except OSError as error:
            self._fail("copy to", error)
        self.producers.map_end_offset = self.log_end_offset = batches[-1].last_offset + 1

    def report_failed_append(self, error_number: int) -> NoReturn:
        """Takes the directory offline and raises StorageError, because an append by compiled code, without `Log`'s
        methods, has failed.

        `error_number` is the errno of the failed append.
        """
        self._fail("append to", OSError(error_number, os.strerror(error_number)))

    # -- producers -----------------------------------------------------------------------------------------------

    def _check_producers(
        self, batches: Sequence[BatchSummary], records: memoryview | bytearray, from_client: bool
    ) -> AppendInfo | None:
        """Checks producer epochs of the batches, and also sequence numbers and transactions if a client wrote them.

        Returns the offsets of the earlier append if a batch is a duplicate, otherwise None. Raises ApiError.
        """
        if from_client and len(batches) > 1:
            raise ApiError(
                Error.INVALID_RECORD,
                "Produce requests are only allowed to contain exactly one record batch per partition",
            )
        producers = self.producers
        for batch in batches:
            if batch.producer_id < 0:
                continue
            if not from_client:
                producers.check_epoch(batch.producer_id, batch.producer_epoch)
                if batch.is_control:
                    marker = end_transaction_marker(RecordBatch(records, batch.position))
                    if marker is not None:
                        producers.check_coordinator_epoch(batch.producer_id, marker.coordinator_epoch)
                continue
            found = producers.check_client_append(
                batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence
            )
            if found is not None:
                return AppendInfo(
                    found.first_offset,
                    found.last_offset,
                    found.timestamp,  # as in Kafka, for both timestamp types
                    self.log_start_offset,
                    found.timestamp,
                    found.last_offset - found.first_offset + 1,
                    True,
                )
            producers.check_transactional(batch.producer_id, batch.is_transactional)
        return None

    def _account_for(self, batch: BatchSummary, records: memoryview | bytearray | bytes) -> None:
        aborted = account_for(self.producers, batch, records, batch.position)
        if batch.is_control:
            self.producers.forget_replicated(self.high_watermark)
        if aborted is None:
            return
        self.segments.active.is_free_of_aborted = False
        try:
            self.segments.active.transaction_index.append(aborted)
        except CorruptTransactionIndex as error:
            raise OSError(errno.EIO, str(error)) from error  # the next recovery rebuilds the index

    def remove_expired_producers(self) -> int:
        """Removes producers that have appended nothing for `producer.id.expiration.ms`; returns their number."""
        return self.producers.remove_expired(self._ports.clock.wall_ms(), self._ports.producer_expiration_ms)

    # -- roll, flush ---------------------------------------------------------------------------------------------

    def roll(self) -> None:
        """Begins a new active segment at the log end offset unless the active one is empty. Raises StorageError."""
        if not self.segments.active.size:
            return
        try:
            self._roll(self.log_end_offset)
        except OSError as error:
            self._fail("roll", error)

    def roll_at(self, base_offset: int) -> None:
        """Begins a new active segment at `base_offset`, or at the log end offset if that is higher. Raises
        StorageError."""
        try:
            self._roll(max(base_offset, self.log_end_offset))
        except OSError as error:
            self._fail("roll", error)

    def skip_to(self, offset: int) -> None:
        """Increases the log end offset to `offset`; the skipped offsets have no records. Raises StorageError."""
        self.roll_at(offset)
        self.producers.map_end_offset = self.log_end_offset = offset
        self._check_offsets()

    def _roll(self, base_offset: int) -> LogSegment:
        ports = self._ports
        rolled = self.segments.active
        if rolled.base_offset >= base_offset:
            return rolled
        rolled.become_inactive()
        segment = LogSegment.create(self.path, base_offset, self.config, ports.filesystem, ports.clock.wall_ms())
        segment.open_for_append()
        self.segments.add(segment)
        self._unsynced_segments.add(rolled)
        self._names_version += 1
        self.producers.map_end_offset = base_offset
        self._take_snapshot()
        written = self.log_end_offset  # lower than `base_offset` if offsets are skipped
        ports.run_in_background(lambda: self._flush_rolled(written))
        return segment

    def mark_unsynced(self, segments: Iterable[LogSegment], snapshots: Iterable[str]) -> None:
        """Records segments and producer snapshots that recovery wrote, so that the next flush makes them durable."""
        self._unsynced_segments.update(segments)
        self._unsynced_snapshots.update(snapshots)

    def _take_snapshot(self) -> None:
        path = self.producers.take_snapshot(sync=False)
        if path is not None:
            self._unsynced_snapshots.add(path)
            self._names_version += 1

    def _flush_rolled(self, end_offset: int) -> None:
        try:
            self.flush(end_offset)
        except StorageError as error:
            # The directory is offline already (on_io_error), and a background thread has no caller to inform.
            logger.error("Flush of %s failed: %s", self.topic_partition, error)

    def flush(self, end_offset: int | None = None) -> None:
        """Makes all batches below `end_offset` (default: the log end offset) durable, with the names of their files.

        The indexes of the active segment are not synced, because recovery rebuilds them. Raises StorageError. Any
        thread may call it.
        """
        path = self.path
        truncations, names_version = self._truncations, self._names_version
        # The log may have been truncated since a flush was requested.
        end_offset = self.log_end_offset if end_offset is None else min(end_offset, self.log_end_offset)
        rolled, snapshots = tuple(self._unsynced_segments), tuple(self._unsynced_snapshots)
        if self._is_deleted or (
            end_offset <= self.recovery_point and names_version == self._names_synced and not rolled
        ):
            return
        try:
            written = self.segments.between(self.recovery_point, max(end_offset, self.recovery_point + 1))
            for segment in {*written, *rolled}:
                self._flush_segment(segment)
            for snapshot in snapshots:  # the directory may have another name by now
                self._sync_snapshot(f"{self.path}/{os.path.basename(snapshot)}")
            self.leader_epochs.write(self.log_end_offset)
            if names_version != self._names_synced:
                self._ports.filesystem.sync_directory(self.path)
        except OSError as error:
            if self._was_renamed_from(path):
                self.flush(end_offset)
                return
            self._fail("flush", error)
        # Noted after the syncs: another thread that flushes at the same time must not skip what is not durable yet.
        self._names_synced = names_version
        self._unsynced_segments.difference_update(rolled)
        self._unsynced_snapshots.difference_update(snapshots)
        with RECOVERY_POINT_LOCK:
            if truncations == self._truncations and end_offset > self.recovery_point:
                assert end_offset <= self.log_end_offset, (self, end_offset)
                self.recovery_point = end_offset
        self.last_flush_ms = self._ports.clock.wall_ms()

    def _was_renamed_from(self, path: str) -> bool:
        with RENAME_LOCK:
            return self.path != path

    def _flush_segment(self, segment: LogSegment) -> None:
        try:
            segment.flush(with_indexes=not segment.is_open_for_append)
        except (FileNotFoundError, ValueError):
            if not segment.is_deleted:  # otherwise the owner has deleted the files
                raise

    def _sync_snapshot(self, path: str) -> None:
        try:
            self._ports.filesystem.sync_path(path)
        except FileNotFoundError:
            return  # the snapshot was deleted with its segment

    # -- epochs, start offset, retention -------------------------------------------------------------------------

    def assign_epoch_start_offset(self, epoch: int, offset: int) -> None:
        """Records that the leader epoch begins at `offset`."""
        self.leader_epochs.assign(epoch, offset)

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Increases the log start offset to `offset`, unless it is that high already; returns whether it changed.

        Raises ApiError OFFSET_OUT_OF_RANGE if `offset` is above the high watermark.
        """
        if offset > self.high_watermark:
            raise ApiError(
                Error.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {offset} of partition {self.topic_partition} since it is "
                f"larger than the high watermark {self.high_watermark}",
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.leader_epochs.truncate_from_start(offset)
        self.producers.on_log_start_offset(offset)
        self._check_offsets()
        return True

    def delete_old_segments(self) -> int:
        """Deletes the segments that retention no longer keeps; returns their number. Raises StorageError."""
        config, segments = self.config, self.segments
        limits = config.retention
        unlimited = not limits.delete or (limits.retention_ms < 0 and limits.retention_bytes < 0)
        if (unlimited and len(segments) == 1) or self._is_deleted or not self.directory.is_online:
            return 0
        try:
            facts = [
                SegmentFacts(segment.base_offset, segment.size, segment.largest_timestamp() if segment.size else 0)
                for segment in segments
            ]
            count = deletable_segments(
                facts,
                limits,
                wall_ms=self._ports.clock.wall_ms(),
                log_start_offset=self.log_start_offset,
                high_watermark=self.high_watermark,
                log_end_offset=self.log_end_offset,
            )
            if count == 0:
                return 0
            if count == len(segments):
                self._roll(self.log_end_offset)
            self._delete_segments(list(segments)[:count])
        except OSError as error:
            self._fail("apply retention to", error)
        self.maybe_increment_log_start_offset(segments.first.base_offset)
        self.producers.delete_snapshots(before=segments.first.base_offset)
        return count

    def _delete_segments(self, doomed: Sequence[LogSegment]) -> None:
        for segment in doomed:
            self.segments.remove(segment)
        self._delete_files(doomed)

    def _delete_files(self, doomed: Iterable[LogSegment]) -> None:
        filesystem = self._ports.filesystem
        paths = [path for segment in doomed for path in segment.mark_deleted()]

        def unlink() -> None:
            for path in paths:  # the directory may have another name by then
                filesystem.unlink(os.path.join(self.path, os.path.basename(path)))

        if paths:
            self._ports.schedule(self.config.file_delete_delay_ms, unlink)

    # -- truncate ------------------------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> bool:
        """Removes every batch whose last offset is at or above `offset`. Returns False if there was no such batch.
        Raises StorageError."""
        if offset >= self.log_end_offset:
            self.leader_epochs.truncate_from_end(max(offset, self.log_end_offset))
            return False
        if offset < self.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        try:
            self._truncations += 1  # also at the end: a copy that is made in between is recognized as outdated
            doomed = [segment for segment in self.segments if segment.base_offset > offset]
            self._delete_segments(doomed)
            active = self.segments.active
            active.truncate_to(offset, self._ports.clock.wall_ms())
            self._sync_deletion(doomed)
            end_offset = min(offset, active.next_offset())
            self._lower_ends(end_offset, min(self.log_start_offset, end_offset))
            self.leader_epochs.truncate_from_end(end_offset)
            self._reload_producers()
            self._names_version += 1
        except OSError as error:
            self._fail("truncate", error)
        self._check_offsets()
        return True

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Removes all batches; the next append gets `offset`. Raises StorageError.

        The new log start offset is `log_start_offset`, or `offset` if it is None.
        """
        try:
            self._restart_at(offset, offset if log_start_offset is None else log_start_offset)
        except OSError as error:
            self._fail("truncate", error)
        self._check_offsets()

    def _restart_at(self, offset: int, log_start_offset: int) -> None:
        self._truncations += 1
        doomed = list(self.segments)
        self._delete_files(doomed)
        created = LogSegment.create(self.path, offset, self.config, self._ports.filesystem, self._ports.clock.wall_ms())
        self.segments.replace_all(created)
        self._sync_deletion(doomed)
        self.producers.delete_snapshots(after=-1)
        self.producers.clear(offset)
        self.leader_epochs.clear()
        self._lower_ends(offset, log_start_offset)
        self._names_version += 1

    def _sync_deletion(self, deleted: Iterable[LogSegment]) -> None:
        """Makes a deletion durable, so that no power failure brings back what other records replace. Raises OSError."""
        if any(segment.size for segment in deleted):
            self._ports.filesystem.sync_directory(self.path)

    def _lower_ends(self, end_offset: int, start_offset: int) -> None:
        with RECOVERY_POINT_LOCK:
            self._truncations += 1
            is_lowered = end_offset < self.recovery_point
            self.recovery_point = min(self.recovery_point, end_offset)
        starts_earlier = start_offset < self.log_start_offset
        self.log_end_offset, self.log_start_offset = end_offset, start_offset
        self.high_watermark = max(start_offset, min(self.high_watermark, end_offset))
        if is_lowered or starts_earlier:
            self._ports.write_lowered_offsets(self.directory, starts_earlier)

    def _reload_producers(self) -> None:
        ports = self._ports
        wall_ms = ports.clock.wall_ms()
        self.producers.reload(self.log_start_offset, self.log_end_offset, wall_ms, ports.producer_expiration_ms)
        restore_batches(self.segments, self.producers, wall_ms)
        replay_producers(self.segments, self.producers, self.log_end_offset)

    # -- close ---------------------------------------------------------------------------------------------------

    def update_config(self, config: LogConfig) -> None:
        """Sets the configuration, which is used from the next append on; the active segment keeps the index size with
        which it was opened."""
        self.config = config
        for segment in self.segments:
            segment.update_config(config)

    @property
    def needs_sync(self) -> bool:
        """True if the log has changes that `close` must make durable."""
        return (
            self._names_version != self._names_synced
            or self.log_end_offset > self.recovery_point
            or bool(self._unsynced_segments)
            or self.segments.active.is_open_for_append
            or not self.leader_epochs.is_written(self.log_end_offset)
        )

    def close(self, *, sync: bool = True) -> None:
        """Truncates the preallocated files to their contents and closes them. Raises StorageError.

        If `sync` is True, also makes the log durable. Otherwise the caller syncs the file system and then calls
        `mark_flushed`.
        """
        try:
            self._take_snapshot()
            active = self.segments.active
            if active.is_open_for_append:
                active.become_inactive()
                self._unsynced_segments.add(active)
            if sync:
                self.flush()
            self.leader_epochs.write(self.log_end_offset, sync=sync)
            for segment in self.segments:
                segment.close()
        except OSError as error:
            self._fail("close", error)

    def mark_flushed(self) -> None:
        """Records that the caller has synced the file system after `close`."""
        self.recovery_point = self.log_end_offset
        self._names_synced = self._names_version
        self._unsynced_segments.clear()
        self._unsynced_snapshots.clear()

    def close_after_failure(self) -> None:
        """Closes the descriptors and writes nothing, because the directory has failed or is being deleted."""
        for segment in self.segments:
            segment.close(trim=False)

    def mark_deleted(self) -> None:
        """Records that the directory is about to be deleted.

        Retention and cleaning then skip the log, and an I/O error no longer takes the log directory offline. While the
        log is in use, only the thread that owns the log may call it; otherwise any thread may.
        """
        self._is_deleted = True

    @property
    def is_deleted(self) -> bool:
        return self._is_deleted

    def rename_to(self, path: str) -> None:
        """Renames the partition directory; the new name is not durable yet. Raises OSError.

        While the log is in use, only the thread that owns the log may call it, because that thread opens files by the
        new name afterwards.
        """
        with RENAME_LOCK:
            self._ports.filesystem.rename(self.path, path)
            self.path = path
            self.leader_epochs.directory = path
            self.producers.directory = path
            for segment in self.segments:
                segment.moved_to(path)

    def take_over(self, current: "Log") -> None:
        """Copies the configuration, producers, leader epochs, log start offset and high watermark from `current`, a log
        with the same records.

        Only the thread that owns both logs may call it.
        """
        self.update_config(current.config)
        self.producers.take_over(current.producers)
        self.leader_epochs.clear()
        for epoch, start_offset in current.leader_epochs.entries:
            self.leader_epochs.assign(epoch, start_offset)
        self.log_start_offset = current.log_start_offset
        self.high_watermark = current.high_watermark
        self._check_offsets()

    @property
    def truncations(self) -> int:
        """A number that rises with each truncation. If it has risen, batches that were read may have been replaced."""
        return self._truncations

    def _fail(self, action: str, error: OSError) -> NoReturn:
        """Takes the directory offline, unless the log is being deleted, and raises StorageError.

        `action` is the verb in the message of the StorageError, such as "append to".
        """
        directory = self.directory.path
        if not self._is_deleted:
            self._ports.on_io_error(directory, error)
        raise StorageError(directory, f"Error while trying to {action} {self.topic_partition}: {error}") from error

    def __repr__(self) -> str:
        return f"Log({self.topic_partition}, [{self.log_start_offset}, {self.log_end_offset}), {self.path!r})"
