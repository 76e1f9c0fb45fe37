"""The idempotent and transactional producers of one log (KIP-98): sequence checks, duplicates, open transactions."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafkapy._core.broker_state.log_state import ProducersState
from kafkapy._core.broker_state.producer_table import BatchMetadata, ProducerEntry
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.producer_entry import NO_OFFSET, follows
from kafkapy.storage.producer_snapshot import CorruptSnapshot, read_snapshot, snapshot_path, write_snapshot
from kafkapy.types import NO_PRODUCER_EPOCH

if TYPE_CHECKING:
    from kafkapy.types import TopicPartition


class CompletedTransaction(NamedTuple):
    """A transaction that a marker has ended."""

    producer_id: int
    first_offset: int
    last_offset: int  # of the marker
    is_aborted: bool


class ProducerStateManager(ProducersState):
    """The producers of one log; owns its `.snapshot` files.

    The entries of the producers reflect all batches below `map_end_offset`. Invariants: every offset in `_ongoing` is
    the first offset of the open transaction of an entry; snapshot offsets rise. Only the thread that owns the log
    changes the object.
    """

    __slots__ = (
        "_filesystem",
        "_ongoing",
        "_snapshots",
        "_strays",
        "_unreplicated",
        "_unverified",
        "directory",
        "topic_partition",
    )

    def __init__(self, topic_partition: "TopicPartition", directory: str, filesystem: Filesystem) -> None:
        self.topic_partition = topic_partition
        self.directory = directory
        self.map_end_offset = 0
        self._filesystem = filesystem
        self._snapshots: list[int] = []
        self._strays: list[int] = []  # snapshots no longer used, whose files still exist
        self._ongoing: dict[int, int] = {}  # first offset, ascending -> producer id
        self._unreplicated: dict[int, int] = {}  # first -> last offset, not known to be below the high watermark
        # Producers whose first batch here is or was being verified: epoch and lowest sequence.
        self._unverified: dict[int, tuple[int, int]] = {}

    # -- checks: raise ApiError, change nothing ------------------------------------------------------------------

    def check_client_append(
        self, producer_id: int, producer_epoch: int, first_sequence: int, last_sequence: int
    ) -> BatchMetadata | None:
        """Returns the earlier batch if a client's batch is a duplicate, or None if the client's batch may be appended.

        Raises ApiError INVALID_PRODUCER_EPOCH if a newer epoch fences the producer, and OUT_OF_ORDER_SEQUENCE_NUMBER if
        sequence numbers are missing. A producer without an entry may begin with any sequence number: it is new or
        expired, or its records were deleted. But a transactional producer may not begin above the lowest sequence
        number that `begin_verification` has recorded for its epoch, because the batch with that number was not
        appended, and the producer will send it again.
        """
        entry = self.entries.get(producer_id)
        if entry is None:
            self._check_above_unverified(producer_id, producer_epoch, first_sequence)
            return None
        duplicate = entry.find_duplicate(producer_epoch, first_sequence, last_sequence)
        if duplicate is not None:
            return duplicate
        self.check_epoch(producer_id, producer_epoch)
        if entry.producer_epoch == NO_PRODUCER_EPOCH:
            return None
        if producer_epoch != entry.producer_epoch:
            if first_sequence != 0:
                raise ApiError(
                    Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Invalid sequence number for new epoch of producer {producer_id} in partition "
                    f"{self.topic_partition}: {producer_epoch} (request epoch), {first_sequence} (seq. number), "
                    f"{entry.producer_epoch} (current producer epoch)",
                )
        elif not follows(entry.last_sequence, first_sequence):
            raise ApiError(
                Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {producer_id} in partition {self.topic_partition}: "
                f"{first_sequence} (incoming seq. number), {entry.last_sequence} (current end sequence number)",
            )
        return None

    def _check_above_unverified(self, producer_id: int, producer_epoch: int, first_sequence: int) -> None:
        epoch, lowest = self._unverified.get(producer_id, (NO_PRODUCER_EPOCH, 0))
        if producer_epoch == epoch and first_sequence > lowest:
            raise ApiError(
                Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {producer_id} in partition {self.topic_partition}: "
                f"{first_sequence} (incoming seq. number), {lowest} (earliest seen sequence)",
            )

    def check_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """Raises ApiError INVALID_PRODUCER_EPOCH if the producer has already written with a newer epoch."""
        entry = self.entries.get(producer_id)
        if entry is not None and producer_epoch < entry.producer_epoch:
            raise ApiError(
                Error.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer_id} in {self.topic_partition} is {producer_epoch}, which is smaller than "
                f"the last seen epoch {entry.producer_epoch}",
            )

    def check_coordinator_epoch(self, producer_id: int, coordinator_epoch: int) -> None:
        """Raises ApiError TRANSACTION_COORDINATOR_FENCED if a coordinator with a newer epoch has already written a
        marker for the producer."""
        entry = self.entries.get(producer_id)
        if entry is not None and coordinator_epoch < entry.coordinator_epoch:
            raise ApiError(
                Error.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {producer_id} in partition {self.topic_partition}: "
                f"{coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)",
            )

    def check_transactional(self, producer_id: int, is_transactional: bool) -> None:
        """Raises ApiError INVALID_TXN_STATE if the producer has an open transaction, and `is_transactional` is False.

        `is_transactional` says whether the batch that is about to be appended belongs to a transaction.
        """
        entry = self.entries.get(producer_id)
        if entry is not None and entry.transaction_first_offset >= 0 and not is_transactional:
            raise ApiError(
                Error.INVALID_TXN_STATE,
                f"Expected transactional write from producer {producer_id} in partition {self.topic_partition}",
            )

    def begin_verification(self, producer_id: int, producer_epoch: int, first_sequence: int) -> None:
        """Records the first sequence number of a transactional batch whose transaction is about to be verified with the
        transaction coordinator. Does nothing if the producer has an entry.

        Until the producer has an entry, `check_client_append` refuses batches of the same epoch that begin above the
        lowest recorded number.
        """
        if producer_id in self.entries:
            return
        epoch, lowest = self._unverified.get(producer_id, (NO_PRODUCER_EPOCH, 0))
        if producer_epoch > epoch or (producer_epoch == epoch and first_sequence < lowest):
            self._unverified[producer_id] = (producer_epoch, first_sequence)

    # -- what was appended ---------------------------------------------------------------------------------------

    def append_data(
        self, producer_id: int, producer_epoch: int, batch: BatchMetadata, is_transactional: bool = False
    ) -> None:
        """Updates the producer's entry with a data batch that was appended to the log."""
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
            self._unverified.pop(producer_id, None)
        entry.add(producer_epoch, batch)
        if is_transactional and entry.transaction_first_offset == NO_OFFSET:
            entry.transaction_first_offset = batch.first_offset
            self._ongoing[batch.first_offset] = producer_id
            self.may_have_transactions = True
            if len(self._ongoing) == 1:
                self._mirror()

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        *,
        commit: bool,
        offset: int,
        timestamp: int,
    ) -> CompletedTransaction | None:
        """Updates the producer's entry with an end-of-transaction marker that was appended to the log.

        Returns the transaction that the marker has ended, or None if no transaction was open.
        """
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
            self._unverified.pop(producer_id, None)
        first_offset = entry.transaction_first_offset
        entry.raise_epoch(producer_epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        entry.transaction_first_offset = NO_OFFSET
        if first_offset == NO_OFFSET:
            return None
        owner = self._ongoing.pop(first_offset, None)
        assert owner == producer_id, (self.topic_partition, first_offset, owner, producer_id)
        self._unreplicated[first_offset] = offset
        self._mirror()
        return CompletedTransaction(producer_id, first_offset, offset, not commit)

    # -- last stable offset --------------------------------------------------------------------------------------

    @property
    def has_transactions(self) -> bool:
        """True if a transaction is open, or has ended at an offset that is not known to be below the high watermark."""
        found = self.may_have_transactions = bool(self._ongoing or self._unreplicated)
        return found

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Returns the least first offset of the transactions that are open or do not end below `high_watermark`.

        Returns None if there is no such transaction.
        """
        self.forget_replicated(high_watermark)
        return min([*self._ongoing, *self._unreplicated], default=None)

    def forget_replicated(self, high_watermark: int) -> None:
        """Removes ended transactions whose marker is below `high_watermark`; they no longer hold back the last stable
        offset."""
        replicated = [first for first, last in self._unreplicated.items() if last < high_watermark]
        if replicated:
            for first_offset in replicated:
                del self._unreplicated[first_offset]
            self._mirror()

    def _mirror(self) -> None:
        """Copies the offsets of the transactions to the compiled base class, which computes the last stable offset from
        these offsets.
        """
        self.set_transactions(next(iter(self._ongoing), -1), self._unreplicated)

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """Returns the last stable offset after the end of the transaction `completed`; an entry of the transaction
        index stores this offset.

        It is the first offset of the oldest other open transaction, or the offset after the marker if no other
        transaction is open.
        """
        others = [first for first in self._ongoing if first != completed.first_offset]
        return min(others, default=completed.last_offset + 1)

    # -- snapshots, truncation, expiry ---------------------------------------------------------------------------

    def set_snapshots(self, offsets: Iterable[int]) -> None:
        """Sets the offsets of the snapshot files that the directory contains."""
        self._snapshots = sorted(offsets)

    @property
    def snapshots(self) -> list[int]:
        """The offsets of the snapshots, ascending."""
        return list(self._snapshots)

    def take_snapshot(self, *, sync: bool) -> str | None:
        """Writes the producers' entries to a snapshot file, named after `map_end_offset`; returns the path of the file.

        Writes nothing and returns None if there is a snapshot at this offset or a later one already. If `sync` is True,
        the file is durable on return. Raises OSError.
        """
        if self.map_end_offset <= (self._snapshots[-1] if self._snapshots else 0):
            return None
        entries = self.entries.values()
        path = write_snapshot(self._filesystem, self.directory, self.map_end_offset, entries, sync=sync)
        self._snapshots.append(self.map_end_offset)
        return path

    def delete_snapshots(self, *, before: int = -1, after: int | None = None) -> None:
        """Deletes snapshots at offsets below `before` or above `after`. Raises OSError."""
        for offset in list(self._snapshots):
            if offset < before or (after is not None and offset > after):
                self._filesystem.unlink(snapshot_path(self.directory, offset))
                self._snapshots.remove(offset)

    def keep_snapshots_of(self, base_offsets: Iterable[int]) -> None:
        """Keeps only the last snapshot and the snapshots whose offsets are in `base_offsets`, the base offsets of the
        segments.

        The files of the other snapshots are deleted later, by `delete_strays`.
        """
        wanted = {*base_offsets, *self._snapshots[-1:]}
        self._strays += [offset for offset in self._snapshots if offset not in wanted]
        self._snapshots = [offset for offset in self._snapshots if offset in wanted]

    @property
    def has_strays(self) -> bool:
        """True if `delete_strays` has files to delete."""
        return bool(self._strays)

    def delete_strays(self) -> None:
        """Deletes the files of the snapshots that `keep_snapshots_of` has not kept. Raises OSError.

        Any thread that may wait for the disk may call it.
        """
        while self._strays:
            offset = self._strays.pop()
            if offset not in self._snapshots:
                self._filesystem.unlink(snapshot_path(self.directory, offset))

    def reload(self, log_start_offset: int, log_end_offset: int, wall_ms: int, expiration_ms: int) -> None:
        """Restores the newest valid snapshot above the log start offset and at or below the log end offset.

        Without such a snapshot there are no producers. Snapshots that are damaged or outside of these offsets are
        deleted. Producers that have no open transaction, and have appended nothing for `expiration_ms` at the present
        time `wall_ms`, are left out. The caller replays the batches from `map_end_offset` on. Raises OSError.
        """
        self.delete_snapshots(before=log_start_offset + 1, after=log_end_offset)
        self.clear(log_start_offset)
        while self._snapshots:
            offset = self._snapshots[-1]
            try:
                loaded = list(read_snapshot(self.directory, offset))
            except (CorruptSnapshot, FileNotFoundError):
                self.delete_snapshots(after=offset - 1)
                continue
            for entry in loaded:
                if entry.transaction_first_offset >= 0:
                    self._ongoing[entry.transaction_first_offset] = entry.producer_id
                    self.may_have_transactions = True
                elif wall_ms - entry.last_timestamp >= expiration_ms:
                    continue
                self.entries[entry.producer_id] = entry
            self.map_end_offset = offset
            self._ongoing = dict(sorted(self._ongoing.items()))
            self._mirror()
            return

    def clear(self, map_end_offset: int) -> None:
        """Removes all producers, and sets the attribute `map_end_offset`; the snapshot files remain."""
        self.entries.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self._unverified.clear()
        self._mirror()
        self.map_end_offset = map_end_offset

    def take_over(self, other: "ProducerStateManager") -> None:
        """Copies the state of `other`, which belongs to a log with the same records and is no longer used."""
        self.clear(other.map_end_offset)
        for producer_id, entry in other.entries.items():
            self.entries[producer_id] = entry
        self._ongoing = dict(other._ongoing)
        self._unreplicated = dict(other._unreplicated)
        self._unverified = dict(other._unverified)
        self.may_have_transactions = other.may_have_transactions
        self._mirror()

    def on_log_start_offset(self, log_start_offset: int) -> None:
        """Removes ended transactions whose marker is below the new log start offset, `log_start_offset`.

        If `map_end_offset` is lower than `log_start_offset`, sets it to `log_start_offset`.
        """
        self.forget_replicated(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, log_start_offset)

    def remove_expired(self, wall_ms: int, expiration_ms: int) -> int:
        """Removes producers that have appended nothing for `expiration_ms` and have no open transaction; returns their
        number.

        Also removes all sequence numbers that `begin_verification` has recorded, of whatever age.
        """
        self._unverified.clear()
        expired = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.transaction_first_offset < 0 and wall_ms - entry.last_timestamp >= expiration_ms
        ]
        self.entries.remove_all(expired)
        return len(expired)
