"""The records of a share partition that are in flight, one dictionary entry for each: the oracle of `in_flight`."""

from __future__ import annotations

from dataclasses import dataclass

from kafkapy.replica.share.in_flight import AckBatch, AckType
from kafkapy.replica.share.persister import DeliveryState

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = DeliveryState
TERMINAL = (ACKNOWLEDGED, ARCHIVED)


@dataclass
class SlowRecord:
    state: DeliveryState = AVAILABLE
    count: int = 0
    member: str | None = None
    deadline_ms: int = -1
    pending: DeliveryState | None = None
    is_hole: bool = False


class SlowWindow:
    """The window as a dictionary: offset -> record. The throttling of bad records is not modelled."""

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.records: dict[int, SlowRecord] = {}

    @property
    def end_offset(self) -> int:
        return max(self.records, default=self.start_offset - 1) + 1

    @property
    def complete_count(self) -> int:
        return sum(
            (each.state in TERMINAL or each.pending in TERMINAL) and not each.is_hole for each in self.records.values()
        )

    def next_fetch_offset(self) -> int:
        return next((o for o in sorted(self.records) if self.records[o].state is AVAILABLE), self.end_offset)

    def acquire(
        self,
        member: str,
        batches: list[tuple[int, int]],
        deadline_ms: int,
        max_records: int,
        max_in_flight: int,
        run_ends: set[int],
        is_exact: bool,
    ) -> list[tuple[int, int]]:
        """Returns (offset, delivery count) of each acquired record. Without `is_exact`, a run whose first record is
        acquired is acquired as a whole; `run_ends` has the last offsets of the runs."""
        first, last = batches[0][0], batches[-1][1]
        fetch_offset = self.next_fetch_offset()
        for offset in range(fetch_offset, first):
            if offset in self.records and self.records[offset].state is AVAILABLE:
                self.records[offset].state = ARCHIVED
        self.advance()
        end = self.end_offset
        wanted = min(max_records, max_in_flight - (end - self.start_offset))
        if wanted <= 0 and fetch_offset < end:
            last, wanted = min(last, end - 1), max_records
        if wanted <= 0 or last < self.start_offset:
            return []
        acquired: list[tuple[int, int]] = []
        is_whole = False
        for offset in sorted(self.records):
            record = self.records[offset]
            if first <= offset <= last and record.state is AVAILABLE and (len(acquired) < wanted or is_whole):
                record.state, record.count, record.member = ACQUIRED, record.count + 1, member
                record.deadline_ms = deadline_ms
                acquired.append((offset, record.count))
                is_whole = not is_exact and offset not in run_ends
            else:
                is_whole = False
        wanted -= len(acquired)
        if wanted > 0 and last >= end:
            new_first = next(max(base, end) for base, batch_last in batches if batch_last >= end)
            if not self.records:
                self.start_offset = new_first
            for offset in range(end, new_first) if self.records else ():
                self.records[offset] = SlowRecord(ARCHIVED, is_hole=True)
            rest = next((each for _, each in batches if each >= new_first + wanted - 1), last)
            for offset in range(new_first, rest + 1):
                if is_exact and offset >= new_first + wanted:
                    self.records[offset] = SlowRecord()
                else:
                    self.records[offset] = SlowRecord(ACQUIRED, 1, member, deadline_ms)
                    acquired.append((offset, 1))
        return acquired

    def prepare(self, member: str, batches: list[AckBatch], limit: int, renewed_ms: int) -> list[SlowRecord] | None:
        """Returns the records with a pending change, or None if the acknowledgements are refused."""
        changes: dict[int, int] = {}
        for batch in batches:
            if batch.last >= self.end_offset and batch.last >= self.start_offset:
                return None
            for number, offset in enumerate(range(batch.first, batch.last + 1)):
                record = self.records.get(offset)
                if record is None or record.is_hole:
                    continue
                if record.state is not ACQUIRED or record.pending is not None or record.member != member:
                    return None
                ack = batch.types[number] if len(batch.types) > 1 else batch.types[0]
                if changes.get(offset, AckType.RENEW) != AckType.RENEW:
                    return None
                changes[offset] = ack
        changed = []
        for offset, ack in changes.items():
            record = self.records[offset]
            if ack == AckType.RENEW:
                record.deadline_ms = renewed_ms
            else:
                record.pending = self.outcome(ack, record.count, limit)
                changed.append(record)
        return changed

    @staticmethod
    def outcome(ack: int, count: int, limit: int) -> DeliveryState:
        if ack == AckType.ACCEPT:
            return ACKNOWLEDGED
        return AVAILABLE if ack == AckType.RELEASE and count < limit else ARCHIVED

    def commit(self, changed: list[SlowRecord]) -> None:
        for record in changed:
            if record.pending is not None:
                record.state, record.pending, record.member, record.deadline_ms = record.pending, None, None, -1
        self.advance()

    def roll_back(self, changed: list[SlowRecord]) -> None:
        for record in changed:
            record.pending = None

    def expire(self, now_ms: int, limit: int) -> None:
        for record in self.records.values():
            if record.state is ACQUIRED and record.pending is None and record.deadline_ms <= now_ms:
                record.state = AVAILABLE if record.count < limit else ARCHIVED
                record.member, record.deadline_ms = None, -1

    def move_start(self, start_offset: int) -> None:
        if start_offset > self.start_offset:
            self.records = {offset: each for offset, each in self.records.items() if offset >= start_offset}
            self.start_offset = start_offset
            self.advance()

    def advance(self) -> None:
        end = self.end_offset
        while self.start_offset in self.records and self.records[self.start_offset].state in TERMINAL:
            del self.records[self.start_offset]
            self.start_offset += 1
        if not self.records:
            self.start_offset = max(self.start_offset, end)
