"""A share partition at the leader of its partition: the records in flight, their stored state, and their locks.

    EMPTY -- load --> INITIALIZING -- state was read --> ACTIVE
                            |                              |
                            +--- error --> FAILED          +-- the leadership or the state is lost --> FENCED

A failed or fenced share partition is removed from its table; the next fetch loads a new one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from enum import Enum, auto

from kafkapy._core.bytes.segment_file import FileRange
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.purgatory.delayed_operation import TimerEntry
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.replica.fetch import FetchIsolation
from kafkapy.replica.partition import Partition
from kafkapy.replica.share.in_flight import AckBatch, AckType, Acquired, InFlightRecords, Run
from kafkapy.replica.share.log_batches import aborted_batches, batch_headers, slice_records
from kafkapy.replica.share.offset_reset import initial_offset
from kafkapy.replica.share.persister import (
    UNINITIALIZED_START_OFFSET,
    OnDone,
    PersistedState,
    Persister,
    SharePartitionKey,
    StateBatch,
    StateWrite,
)
from kafkapy.replica.share.share_settings_port import ShareDeliverySettings
from kafkapy.types import Clock

logger = logging.getLogger("kafka.server.share.SharePartition")

# The errors of a write which mean that another leader, or a newer state of the group, has replaced this one.
_FENCING = frozenset(
    {
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.FENCED_LEADER_EPOCH,
        Error.FENCED_STATE_EPOCH,
        Error.GROUP_ID_NOT_FOUND,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


# The error that members get for each error of the share coordinator. Other errors become UNKNOWN_SERVER_ERROR, as in
# Apache Kafka.
_CLIENT_ERRORS = {
    Error.NONE: Error.NONE,
    Error.NOT_COORDINATOR: Error.COORDINATOR_NOT_AVAILABLE,
    Error.COORDINATOR_NOT_AVAILABLE: Error.COORDINATOR_NOT_AVAILABLE,
    Error.COORDINATOR_LOAD_IN_PROGRESS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.GROUP_ID_NOT_FOUND: Error.GROUP_ID_NOT_FOUND,
    Error.UNKNOWN_TOPIC_OR_PARTITION: Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.FENCED_LEADER_EPOCH: Error.NOT_LEADER_OR_FOLLOWER,
    Error.FENCED_STATE_EPOCH: Error.NOT_LEADER_OR_FOLLOWER,
}


def error_for_clients(error: Error) -> Error:
    """Returns the error that members get when the share coordinator has answered with `error`."""
    return _CLIENT_ERRORS.get(error, Error.UNKNOWN_SERVER_ERROR)


class ShareStatus(Enum):
    EMPTY = auto()
    INITIALIZING = auto()
    ACTIVE = auto()
    FAILED = auto()
    FENCED = auto()


class SharePorts:
    """The parts of the broker that share partitions use. The object does not change after its construction."""

    __slots__ = ("clock", "persister", "schedule", "settings")

    def __init__(self, persister: Persister, settings: ShareDeliverySettings, schedule: Schedule, clock: Clock) -> None:
        self.persister = persister
        self.settings = settings
        self.schedule = schedule
        self.clock = clock


class SharePartition:
    """One share partition of a partition that this broker leads. Only the thread that owns it may use it.

    `on_change` is called when records have become available or the share partition was loaded; `on_unusable` once, when
    it has failed or was fenced.
    """

    __slots__ = (
        "_load_waiters",
        "_lock_timer",
        "_on_change",
        "_on_unusable",
        "_ports",
        "error",
        "in_flight",
        "key",
        "leader_epoch",
        "lock_timeouts",
        "partition",
        "state_epoch",
        "status",
    )

    def __init__(
        self,
        key: SharePartitionKey,
        partition: Partition,
        ports: SharePorts,
        on_change: Callable[[SharePartition], None],
        on_unusable: Callable[[SharePartition], None],
    ) -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.status = ShareStatus.EMPTY
        self.error = Error.NONE
        self.state_epoch = 0
        self.in_flight = InFlightRecords(0)
        self.lock_timeouts = 0
        self._ports = ports
        self._on_change = on_change
        self._on_unusable = on_unusable
        self._lock_timer: TimerEntry | None = None

    # -- loading

    @property
    def is_active(self) -> bool:
        return self.status is ShareStatus.ACTIVE

    def load(self) -> None:
        """Reads the stored state, at the first call only."""
        if self.status is ShareStatus.EMPTY:
            self.status = ShareStatus.INITIALIZING
            self._ports.persister.read(self.key, self.leader_epoch, self._loaded)

    def _loaded(self, state: PersistedState | None, error: Error) -> None:
        """Restores the stored state, and makes the share partition active; after an error makes it failed."""
        if self.status is not ShareStatus.INITIALIZING:
            return
        if state is None:
            self._fail(error_for_clients(error))
            return
        try:
            start_offset = state.start_offset
            if start_offset == UNINITIALIZED_START_OFFSET:
                reset = self._ports.settings.offset_reset(self.key.group_id)
                start_offset = initial_offset(self.partition, reset, self._ports.clock.wall_ms())
            self.in_flight = InFlightRecords(start_offset, state.batches)
        except ApiError as refusal:
            self._fail(refusal.error)
            return
        except StorageError as failure:
            logger.error("The start offset of share partition %s cannot be read: %s", self.key, failure)
            self._fail(Error.KAFKA_STORAGE_ERROR)
            return
        except ValueError:  # a state of records that this version does not know
            logger.exception("The stored state of share partition %s is invalid", self.key)
            self._fail(Error.UNKNOWN_SERVER_ERROR)
            return
        self.state_epoch = state.state_epoch
        self.status = ShareStatus.ACTIVE
        self._on_change(self)

    def _fail(self, error: Error) -> None:
        """Ends the load with an error. Requests for this share partition then receive this error."""
        logger.warning("Share partition %s was not loaded: %s", self.key, error.name)
        self.error = error
        self.status = ShareStatus.FAILED
        self._on_unusable(self)
        self._on_change(self)

    def fence(self, error: Error) -> None:
        """Ends the use of the share partition with an error. Requests for it then receive this error."""
        if self.status in (ShareStatus.FENCED, ShareStatus.FAILED):
            return
        self.status = ShareStatus.FENCED
        self.error = error
        if self._lock_timer is not None:
            self._lock_timer.cancel()
            self._lock_timer = None
        self._on_unusable(self)
        self._on_change(self)

    # -- fetching

    @property
    def isolation(self) -> FetchIsolation:
        """The limit up to which the group reads: the last stable offset for a group with the isolation level
        read_committed, otherwise the high watermark."""
        reads_committed = self._ports.settings.reads_committed(self.key.group_id)
        return FetchIsolation.LAST_STABLE_OFFSET if reads_committed else FetchIsolation.HIGH_WATERMARK

    def can_acquire(self) -> bool:
        return self.is_active and self.in_flight.can_acquire(self._ports.settings.max_record_locks(self.key.group_id))

    def readable_bytes(self, most: int) -> int:
        """Returns about how many bytes could be acquired, at most `most`; 0 if no record could be acquired.

        Returns `most` if the log was truncated, so that a fetch is tried. Raises ApiError NOT_LEADER_OR_FOLLOWER if
        this broker does not lead the partition, and StorageError if the log cannot be read.
        """
        self.partition.check_access(-1, only_leader=True)
        log = self.partition.log
        offset = self.in_flight.next_fetch_offset()
        end_offset = self.partition.end_offset(self.isolation)
        if offset < log.log_start_offset or offset > log.log_end_offset:
            return most  # the read notices the truncation
        if offset >= end_offset:
            return 0
        if most <= 1:
            return most
        start, end = log.offset_metadata(offset), log.offset_metadata(end_offset)
        if start.segment_base_offset != end.segment_base_offset:
            return most
        return max(1, min(most, log.position_delta(start, end)))

    def fetch(
        self, member: str, max_bytes: int, max_records: int, batch_size: int, *, is_exact: bool
    ) -> tuple[FileRange | bytes, list[Acquired]]:
        """Reads records and acquires them for the member; returns their batches and the acquired offsets.

        Acquires whole batches, with about `max_records` records, in ranges of about `batch_size` records. If
        `is_exact`, acquires no more than `max_records`. If the log no longer has the
        next records, because its start or its end was removed, nothing is acquired, and the start offset of the share
        partition moves into the log. Raises ApiError NOT_LEADER_OR_FOLLOWER if this broker does not lead the partition,
        ApiError UNKNOWN_SERVER_ERROR if a transaction index is damaged, and StorageError if the log cannot be read.
        """
        self.partition.check_access(-1, only_leader=True)
        log = self.partition.log
        window = self.in_flight
        fetch_offset = window.next_fetch_offset()
        isolation = self.isolation
        end_offset = self.partition.end_offset(isolation)
        if fetch_offset < log.log_start_offset:
            window.move_start(log.log_start_offset)
            return b"", []
        if fetch_offset > log.log_end_offset:
            # The log has lost its end in an unclean election.
            self.in_flight = InFlightRecords(max(log.log_start_offset, min(window.start_offset, log.log_end_offset)))
            return b"", []
        if fetch_offset >= end_offset:
            # The high watermark of a new leader may still be behind, or a transaction may be open in records that were
            # acquired before the group changed to read_committed.
            return b"", []
        records = log.read(fetch_offset, max_bytes, max_offset=end_offset, min_one_message=True).records
        try:
            headers = batch_headers(records, max(window.end_offset, fetch_offset) + max_records - 1)
        except OSError as error:
            log.report_failed_read(error)
        if not headers:
            return b"", []
        # Before anything is acquired, because it may raise.
        aborted = (
            log.collect_aborted_transactions(headers[0].first, headers[-1].last + 1)
            if isolation is FetchIsolation.LAST_STABLE_OFFSET
            else []
        )
        group_id, settings = self.key.group_id, self._ports.settings
        monotonic_ms = self._ports.clock.monotonic_ms()
        acquired = window.acquire(
            member,
            [(header.first, header.last) for header in headers],
            fetch_offset,
            monotonic_ms + settings.record_lock_duration_ms(group_id),
            max_records=max_records,
            max_in_flight=settings.max_record_locks(group_id),
            limit=settings.delivery_count_limit(group_id),
            batch_size=batch_size,
            is_exact=is_exact,
        )
        if acquired and aborted:
            acquired = self._without_aborted(acquired, aborted_batches(headers, aborted))
        if not acquired:
            return b"", []
        self._watch_locks()
        first = next(each for each in headers if each.last >= acquired[0].first)
        last = next((each for each in reversed(headers) if each.first <= acquired[-1].last), first)
        return slice_records(records, first, last), acquired

    def _without_aborted(self, acquired: list[Acquired], aborted: list[tuple[int, int]]) -> list[Acquired]:
        """Archives the records of aborted transactions, and returns the other acquired offsets. `aborted` has the first
        and last offset of each batch of an aborted transaction.
        """
        for first, last in aborted:
            left = []
            for each in acquired:
                if last < each.first or each.last < first:
                    left.append(each)
                    continue
                self.in_flight.archive_acquired(max(first, each.first), min(last, each.last))
                if each.first < first:
                    left.append(each._replace(last=first - 1))
                if last < each.last:
                    left.append(each._replace(first=last + 1))
            acquired = left
        self.in_flight.advance()
        return acquired

    def withdraw(self, member: str, acquired: Sequence[Acquired]) -> None:
        """Makes records that the member has acquired available again, because they are not sent to it."""
        if self.is_active and acquired:
            self.in_flight.withdraw(member, acquired)
            self._on_change(self)

    # -- acknowledging

    def acknowledge(self, member: str, batches: Sequence[AckBatch], on_done: OnDone) -> None:
        """Stores the member's acknowledgements. Calls `on_done(error, message)` when they are durable, with Error.NONE
        and None, or with the error and its message if they are refused or cannot be stored.
        """
        settings, group_id = self._ports.settings, self.key.group_id
        if any(AckType.RENEW in batch.types for batch in batches) and not settings.may_renew(group_id):
            on_done(Error.INVALID_RECORD_STATE, "Renewing of acquired records is disabled.")
            return
        deadline_ms = self._ports.clock.monotonic_ms() + settings.record_lock_duration_ms(group_id)
        try:
            prepared = self.in_flight.prepare(member, batches, settings.delivery_count_limit(group_id), deadline_ms)
        except ApiError as refusal:
            on_done(refusal.error, refusal.message)
            return
        self._store(prepared, on_done)

    def release(self, member: str, on_done: OnDone) -> None:
        """Makes the records of the member available again, because its session has ended. Calls `on_done(error,
        message)` when this is stored; the error is Error.NONE if it succeeded.
        """
        limit = self._ports.settings.delivery_count_limit(self.key.group_id)
        self._store(self.in_flight.prepare_release(member, limit), on_done)

    def _store(self, prepared: list[Run], on_done: OnDone) -> None:
        """Stores the pending changes of the runs (ranges of offsets with one state), then applies them.

        Discards the changes if they cannot be stored. Calls `on_done(error, message)` in both cases.
        """
        if not prepared:
            on_done(Error.NONE, None)
            return
        window = self.in_flight
        batches = [
            StateBatch(run.first, run.last, run.state if run.pending is None else run.pending, run.count)
            for run in prepared
        ]

        def stored(error: Error, message: str | None) -> None:
            if error is Error.NONE:
                window.commit(prepared)
            else:
                window.roll_back(prepared)
                self._watch_locks()  # a lock may have ended during the write
            client_error = error_for_clients(error)
            on_done(client_error, f"Error in write state RPC. {message or error.message}" if error else None)
            if error in _FENCING:
                self.fence(client_error)
            elif self.is_active:
                self._on_change(self)

        self._write(batches, stored)

    def _write(self, batches: Sequence[StateBatch], on_done: OnDone) -> None:
        window = self.in_flight
        change = StateWrite(
            self.state_epoch, self.leader_epoch, window.start_offset, window.complete_count, sorted(batches)
        )
        self._ports.persister.write(self.key, change, on_done)

    # -- locks

    def _watch_locks(self) -> None:
        """Starts a timer for the earliest end of a lock.

        If the timer runs already, it stays as it is: when it ends, it is started again for the locks that are left.
        """
        if self._lock_timer is not None or not self.is_active:
            return
        deadline_ms = self.in_flight.earliest_deadline_ms()
        if deadline_ms is not None:
            delay_ms = max(1, deadline_ms - self._ports.clock.monotonic_ms())
            self._lock_timer = self._ports.schedule(delay_ms, self._expire_locks)

    def _expire_locks(self) -> None:
        """Ends the locks that are due. The changed states take effect at once, and are stored afterwards."""
        self._lock_timer = None
        if not self.is_active:
            return
        limit = self._ports.settings.delivery_count_limit(self.key.group_id)
        changed = self.in_flight.expire(self._ports.clock.monotonic_ms(), limit)
        if changed:
            self.lock_timeouts += sum(each.last_offset - each.first_offset + 1 for each in changed)

            def stored(error: Error, message: str | None) -> None:
                if error is not Error.NONE:
                    logger.warning("The expired locks of share partition %s were not stored: %s", self.key, error.name)
                if error in _FENCING:
                    self.fence(error_for_clients(error))

            self._write(changed, stored)
            self.in_flight.advance()
            self._on_change(self)
        self._watch_locks()
