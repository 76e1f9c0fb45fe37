"""The records of a share partition that are in flight, and the transitions of their states. This module uses no clock
and no log.

    AVAILABLE -- acquire --> ACQUIRED (delivery count + 1) -- accept --> ACKNOWLEDGED
        ^                       |  |  |
        +-- release, expiry ----+  |  +-- reject, gap ----------------> ARCHIVED
                                   +-- release, expiry at the limit --> ARCHIVED

The window [start offset, end offset) is covered by runs without gaps. A run is a range of offsets with one state; it is
split when a part of it changes. A change that has to be stored first is *pending*: until `commit` or `roll_back` the
records can neither be acquired nor acknowledged. Offsets inside of the window for which the log has no records are
runs with the state ARCHIVED that are not counted (`is_hole`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import IntEnum

from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.replica.share.persister import DeliveryState, StateBatch

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = DeliveryState
NO_DEADLINE = -1


class AckType(IntEnum):
    """The types of acknowledgement of an acquired record, with their numbers in the protocol."""

    GAP = 0  # the log has no record with this offset
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class AckBatch(NamedTuple):
    """An acknowledgement: one type for all offsets from `first` to `last`, or a type for each."""

    first: int
    last: int
    types: Sequence[int]


class Acquired(NamedTuple):
    """Offsets that a member has acquired, and how often they have been delivered, this time included."""

    first: int
    last: int
    delivery_count: int


class Run:
    """A range of offsets with one state. `pending` is the state that is being stored, or None.

    `count` is the number of deliveries. `batch_size` is the number of records that were first acquired together, and 0
    for a hole: offsets at which the log has no records. `change` is the list of all runs with the same pending change.
    When one of these runs is split, its second half is added to the list.
    """

    __slots__ = ("batch_size", "change", "count", "deadline_ms", "first", "last", "member", "pending", "state")

    def __init__(
        self,
        first: int,
        last: int,
        state: DeliveryState,
        count: int,
        batch_size: int,
        member: str | None = None,
        deadline_ms: int = NO_DEADLINE,
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count
        self.batch_size = batch_size
        self.member = member
        self.deadline_ms = deadline_ms
        self.pending: DeliveryState | None = None
        self.change: list[Run] | None = None

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def is_hole(self) -> bool:
        return self.batch_size == 0

    @property
    def is_terminal(self) -> bool:
        return self.state is ACKNOWLEDGED or self.state is ARCHIVED

    def settle(self, state: DeliveryState) -> None:
        """Sets the state of the run; after this no member has acquired it, and it has no pending change."""
        self.state = state
        self.member = None
        self.deadline_ms = NO_DEADLINE
        self.pending = self.change = None


class InFlightRecords:
    """The window of a share partition. Only the thread that owns it may use it.

    Invariants: the runs (ranges of offsets with one state) cover [start_offset, end_offset) in order and without gaps;
    the first run is not terminal (acknowledged or archived), unless a change is pending; only acquired runs have a
    member, a deadline or a pending change. `complete_count` is the number of records in the window whose state or
    pending state is terminal; offsets without a record do not count.
    """

    __slots__ = ("_may_be_available", "complete_count", "runs", "start_offset")

    def __init__(self, start_offset: int, batches: Iterable[StateBatch] = ()) -> None:
        """Restores the window from the stored `batches`. Records between two batches have the state AVAILABLE."""
        self.start_offset = start_offset
        self.runs: list[Run] = []
        self.complete_count = 0
        self._may_be_available = True
        for batch in batches:
            first = max(batch.first_offset, start_offset)
            if batch.last_offset < first:
                continue
            if first > self.end_offset:
                self._append(self.end_offset, first - 1, AVAILABLE, 0)
            self._append(first, batch.last_offset, DeliveryState(batch.state), batch.delivery_count)
        self.complete_count = sum(run.size for run in self.runs if run.is_terminal)
        self.advance()

    def _append(self, first: int, last: int, state: DeliveryState, count: int) -> None:
        self.runs.append(Run(first, last, state, count, last - first + 1))

    # -- queries

    @property
    def end_offset(self) -> int:
        """The offset after the last offset of the window."""
        return self.runs[-1].last + 1 if self.runs else self.start_offset

    @property
    def in_flight_count(self) -> int:
        """The number of offsets in the window, from `start_offset` to `end_offset`, which is exclusive."""
        return self.end_offset - self.start_offset

    def next_fetch_offset(self) -> int:
        """Returns the first offset that may be acquired."""
        if self._may_be_available:
            for run in self.runs:
                if run.state is AVAILABLE:
                    return run.first
            self._may_be_available = False
        return self.end_offset

    def can_acquire(self, max_in_flight: int) -> bool:
        """Returns whether a record may be acquired: an available record of the window, or a new one while the window
        has fewer than `max_in_flight` offsets."""
        return self.in_flight_count < max_in_flight or self.next_fetch_offset() != self.end_offset

    def earliest_deadline_ms(self) -> int | None:
        """Returns the earliest end of an acquisition lock, or None if there is none.

        Records with a pending change are left out, because their locks can expire only if the change fails.
        """
        held = (run.deadline_ms for run in self.runs if run.state is ACQUIRED and run.pending is None)
        return min(held, default=None)

    # -- acquiring

    def acquire(
        self,
        member: str,
        batches: Sequence[tuple[int, int]],
        fetch_offset: int,
        deadline_ms: int,
        *,
        max_records: int,
        max_in_flight: int,
        limit: int,
        batch_size: int,
        is_exact: bool = False,
    ) -> list[Acquired]:
        """Acquires records for the member and returns their offsets in order. The locks end at `deadline_ms`.

        `batches` are the first and last offsets of the log's batches that were read from `fetch_offset` on. Acquires
        whole batches of the log, with about `max_records` records. If `is_exact`, acquires no more than `max_records`,
        which may end inside of a batch. The window grows to about `max_in_flight` offsets at most. `limit` is the
        largest delivery count. New records are acquired in ranges of about `batch_size`.

        Records that have been delivered more often are acquired in smaller numbers. At the last delivery each record is
        acquired alone, so that a record that makes its consumers fail does not affect other records.
        """
        first, last = batches[0][0], batches[-1][1]
        self._archive_missing(fetch_offset, first)
        wanted = min(max_records, max_in_flight - self.in_flight_count)
        end = self.end_offset
        if wanted <= 0 and fetch_offset < end:
            # The window is full, but records within it are available again.
            last, wanted = min(last, end - 1), max_records
        if wanted <= 0 or last < self.start_offset:
            return []
        acquired, is_throttled = self._acquire_in_window(member, first, last, deadline_ms, wanted, limit, is_exact)
        wanted -= sum(each.last - each.first + 1 for each in acquired)
        if wanted > 0 and last >= end and not is_throttled:
            acquired += self._acquire_after_window(member, batches, deadline_ms, wanted, batch_size, is_exact)
        return acquired

    def _archive_missing(self, fetch_offset: int, first: int) -> None:
        """Archives the available records from `fetch_offset` to `first`, the first offset that was read from the log.

        The log no longer has these records.
        """
        if first <= fetch_offset or fetch_offset >= self.end_offset:
            return
        for run in self._between(fetch_offset, first - 1):
            if run.state is AVAILABLE:
                run.settle(ARCHIVED)
                self.complete_count += run.size
        self.advance()

    def withdraw(self, member: str, acquired: Iterable[Acquired]) -> None:
        """Makes records that the member has acquired available again, because they are not sent to it. The delivery is
        not counted."""
        for each in acquired:
            for run in self._between(max(each.first, self.start_offset), each.last):
                if run.state is ACQUIRED and run.member == member and run.pending is None:
                    run.settle(AVAILABLE)
                    run.count -= 1
                    self._may_be_available = True

    def _acquire_in_window(
        self, member: str, first: int, last: int, deadline_ms: int, wanted: int, limit: int, is_exact: bool
    ) -> tuple[list[Acquired], bool]:
        """Acquires about `wanted` available records of the window, from `first` to `last`. If `is_exact`, acquires no
        more than `wanted`. `limit` is the largest delivery count; the locks end at `deadline_ms`.

        Returns the acquired offsets, and True if no further records may be acquired together with them, because they
        have been delivered often.
        """
        acquired: list[Acquired] = []
        if not self._may_be_available or last < self.start_offset:
            return acquired, False
        throttled_from = max(2, -(-limit // 2))  # the delivery count from which fewer records are acquired together
        index = self._index(max(first, self.start_offset))
        if index < len(self.runs) and self.runs[index].first < first:
            self._split(index, first)
            index += 1
        while index < len(self.runs) and wanted > 0:
            run = self.runs[index]
            if run.first > last:
                break
            if run.state is AVAILABLE:
                is_throttled = run.count >= throttled_from
                if is_throttled and acquired:
                    return acquired, True
                most = min(run.last, last) - run.first + 1
                if is_throttled:
                    is_last = limit > 2 and run.count == limit - 1
                    most = 1 if is_last else min(most, max(1, run.batch_size >> (run.count - throttled_from + 1)))
                if is_exact:
                    most = min(most, wanted)
                self._split(index, run.first + most)
                run.state, run.count, run.member, run.deadline_ms = ACQUIRED, run.count + 1, member, deadline_ms
                acquired.append(Acquired(run.first, run.last, run.count))
                wanted -= run.size
                if is_throttled:
                    return acquired, True
            index += 1
        return acquired, False

    def _acquire_after_window(
        self,
        member: str,
        batches: Sequence[tuple[int, int]],
        deadline_ms: int,
        wanted: int,
        batch_size: int,
        is_exact: bool,
    ) -> list[Acquired]:
        """Acquires about `wanted` records after the window for `member`. If `is_exact`, acquires no more than `wanted`.

        `batches` are the first and last offsets of the log's batches. The records are acquired in ranges of about
        `batch_size` records; if `is_exact`, in one range. Their locks end at `deadline_ms`. The window grows to the end
        of the log's batch that contains the last acquired record.
        """
        end = self.end_offset
        new = [(max(base, end), last) for base, last in batches if last >= end]
        first = new[0][0]
        if not self.runs:
            self.start_offset = first
        elif first > end:
            self.runs.append(Run(end, first - 1, ARCHIVED, 0, 0))
        ranges: list[tuple[int, int]] = []
        range_first = first
        last = first - 1
        for base, batch_last in new:
            if base - range_first >= batch_size and not is_exact:
                ranges.append((range_first, base - 1))
                range_first = base
            last = batch_last
            if last - first + 1 >= wanted:
                break
        last_acquired = min(last, first + wanted - 1) if is_exact else last
        ranges.append((range_first, last_acquired))
        size = last - first + 1
        for each_first, each_last in ranges:
            self.runs.append(Run(each_first, each_last, ACQUIRED, 1, each_last - each_first + 1, member, deadline_ms))
        if last_acquired < last:
            self.runs.append(Run(last_acquired + 1, last, AVAILABLE, 0, size))
            self._may_be_available = True
        return [Acquired(each_first, each_last, 1) for each_first, each_last in ranges]

    def archive_acquired(self, first: int, last: int) -> None:
        """Archives acquired records that the group must not receive, because their transaction was aborted."""
        for run in self._between(max(first, self.start_offset), min(last, self.end_offset - 1)):
            if run.state is ACQUIRED and run.pending is None:
                run.settle(ARCHIVED)
                self.complete_count += run.size

    # -- acknowledging

    def prepare(self, member: str, batches: Iterable[AckBatch], limit: int, renewed_deadline_ms: int) -> list[Run]:
        """Marks the changes that the member's acknowledgements cause as pending, and returns the runs (ranges of
        offsets with one state) that they change.

        The type RENEW renews the lock of a record at once, until `renewed_deadline_ms`; `limit` is the largest delivery
        count. Offsets below the start offset are ignored. Raises ApiError, after which nothing has changed:
        INVALID_REQUEST for offsets that have not been acquired yet, and INVALID_RECORD_STATE for records that the
        member does not have, or that have a pending change.
        """
        prepared: list[Run] = []
        renewed: list[Run] = []
        batches = list(batches)
        for batch in batches:
            self._check_acquired(member, batch.first, batch.last)
        try:
            for batch in batches:
                for first, last, ack_type in _ranges(batch):
                    found = self._acquired_by(member, first, last)
                    if ack_type == AckType.RENEW:
                        renewed += found
                    else:
                        self._mark_pending(found, ack_type, limit, prepared)
        except ApiError:
            self.roll_back(prepared)
            raise
        for run in renewed:
            run.deadline_ms = renewed_deadline_ms
        return prepared

    def prepare_release(self, member: str, limit: int) -> list[Run]:
        """Marks the release of all records that the member has acquired as pending, and returns their runs: ranges of
        offsets with one state.

        Records that have been delivered `limit` times are archived instead of released.
        """
        prepared: list[Run] = []
        held = [run for run in self.runs if run.state is ACQUIRED and run.member == member and run.pending is None]
        self._mark_pending(held, AckType.RELEASE, limit, prepared)
        return prepared

    def _check_acquired(self, member: str, first: int, last: int) -> None:
        """Raises ApiError unless the member has acquired the records from `first` to `last`, and no change of them is
        pending. Offsets before the window and offsets without a record are accepted. Changes nothing."""
        if last < self.start_offset:
            return
        if last >= self.end_offset:
            message = "Batch record not found. The last offset in request is past acquired records."
            raise ApiError(Error.INVALID_REQUEST, message)
        for index in range(self._index(max(first, self.start_offset)), len(self.runs)):
            if self.runs[index].first > last:
                return
            _check_owner(self.runs[index], member)

    def _acquired_by(self, member: str, first: int, last: int) -> list[Run]:
        """Returns the runs (ranges of offsets with one state) from `first` to `last`, except offsets without a record.

        Raises ApiError if a change of one of these records is pending. `_check_acquired` has already been called for
        each acknowledged batch. It does not find a record that two of the batches contain, because the change of this
        record becomes pending only when the first of the two batches is handled.
        """
        if last < self.start_offset:
            return []
        found = [run for run in self._between(max(first, self.start_offset), last) if not run.is_hole]
        for run in found:
            _check_owner(run, member)
        return found

    def _mark_pending(self, runs: Iterable[Run], ack_type: int, limit: int, prepared: list[Run]) -> None:
        """Marks the change of each run (a range of offsets with one state) by an acknowledgement as pending.

        `ack_type` is the type of the acknowledgement. Appends the runs to `prepared`. Records that have been delivered
        `limit` times are archived instead of released.
        """
        for run in runs:
            if ack_type == AckType.ACCEPT:
                run.pending = ACKNOWLEDGED
            elif ack_type == AckType.RELEASE and run.count < limit:
                run.pending = AVAILABLE
            else:
                run.pending = ARCHIVED
            if run.pending is not AVAILABLE:
                self.complete_count += run.size
            run.change = prepared
            prepared.append(run)

    def commit(self, prepared: Iterable[Run]) -> None:
        """Applies the pending changes, which have been stored."""
        for run in prepared:
            if run.pending is not None:
                self._may_be_available = self._may_be_available or run.pending is AVAILABLE
                run.settle(run.pending)
        self.advance()

    def roll_back(self, prepared: Iterable[Run]) -> None:
        """Discards the pending changes, which could not be stored. The members keep the records until their locks
        expire."""
        for run in prepared:
            if run.pending is not None and run.pending is not AVAILABLE and run.first >= self.start_offset:
                self.complete_count -= run.size
            run.pending = run.change = None

    # -- time and the start of the log

    def expire(self, monotonic_ms: int, limit: int) -> list[StateBatch]:
        """Makes records whose locks have ended available again, or archives them after `limit` deliveries.

        Returns the new states, which have to be stored.
        """
        changed = []
        for run in self.runs:
            if run.state is ACQUIRED and run.pending is None and run.deadline_ms <= monotonic_ms:
                run.settle(AVAILABLE if run.count < limit else ARCHIVED)
                if run.state is ARCHIVED:
                    self.complete_count += run.size
                self._may_be_available = True
                changed.append(StateBatch(run.first, run.last, run.state, run.count))
        return changed

    def move_start(self, start_offset: int) -> None:
        """Drops the records below the offset, because the log no longer has them."""
        if start_offset <= self.start_offset:
            return
        if start_offset >= self.end_offset:
            self.runs.clear()
            self.complete_count = 0
        else:
            index = self._index(start_offset)
            if self.runs[index].first < start_offset:
                self._split(index, start_offset)
                index += 1
            self._drop(index)
        self.start_offset = start_offset
        self.advance()

    # -- the window

    def advance(self) -> None:
        """Removes the runs at the start of the window whose records are acknowledged or archived, and moves the start
        offset past them."""
        number = 0
        runs = self.runs
        while number < len(runs) and runs[number].is_terminal:
            number += 1
        if number:
            end = self.end_offset
            self._drop(number)
            self.start_offset = runs[0].first if runs else end

    def _drop(self, number: int) -> None:
        """Removes the first `number` runs of the window. A run is a range of offsets with one state."""
        for run in self.runs[:number]:
            if not run.is_hole and (run.is_terminal or run.pending in (ACKNOWLEDGED, ARCHIVED)):
                self.complete_count -= run.size
        del self.runs[:number]

    def _index(self, offset: int) -> int:
        """Returns the index of the run that contains the offset, or the number of runs if the offset is after all of
        them. A run is a range of offsets with one state."""
        if offset >= self.end_offset:
            return len(self.runs)
        return bisect_right(self.runs, offset, key=_first) - 1

    def _split(self, index: int, offset: int) -> None:
        """Splits the run with this index, so that a second run with the same state begins at `offset`. Does nothing if
        `offset` is after the run. A run is a range of offsets with one state."""
        run = self.runs[index]
        if offset > run.last:
            return
        rest = Run(offset, run.last, run.state, run.count, run.batch_size, run.member, run.deadline_ms)
        rest.pending, rest.change = run.pending, run.change
        if run.change is not None:
            run.change.append(rest)
        run.last = offset - 1
        self.runs.insert(index + 1, rest)

    def _between(self, first: int, last: int) -> list[Run]:
        """Returns the runs from `first` to `last`. A run is a range of offsets with one state.

        Splits the runs that extend beyond these offsets.
        """
        if last < first or first >= self.end_offset:
            return []
        index = self._index(first)
        if self.runs[index].first < first:
            self._split(index, first)
            index += 1
        found = []
        while index < len(self.runs) and self.runs[index].first <= last:
            self._split(index, last + 1)
            found.append(self.runs[index])
            index += 1
        return found


def _check_owner(run: Run, member: str) -> None:
    """Raises ApiError INVALID_RECORD_STATE unless the member has acquired the run and no change of it is pending.
    Accepts a hole, a run of offsets at which the log has no records.
    """
    if run.is_hole:
        return
    if run.state is not ACQUIRED or run.pending is not None:
        message = "The batch cannot be acknowledged. The batch is not in the acquired state."
        raise ApiError(Error.INVALID_RECORD_STATE, message)
    if run.member != member:
        raise ApiError(Error.INVALID_RECORD_STATE, "Member is not the owner of batch record")


def _first(run: Run) -> int:
    return run.first


def _ranges(batch: AckBatch) -> Iterable[tuple[int, int, int]]:
    """Yields (first, last, type) of each range of offsets with the same type."""
    types = batch.types
    if len(types) == 1:
        yield batch.first, batch.last, types[0]
        return
    start = 0
    for number in range(1, len(types) + 1):
        if number == len(types) or types[number] != types[start]:
            yield batch.first + start, batch.first + number - 1, types[start]
            start = number
