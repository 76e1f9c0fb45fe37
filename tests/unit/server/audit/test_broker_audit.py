"""Counting from logs, positions, and what happens after errors and changes of leaders."""

from __future__ import annotations

from collections import Counter

import pytest

from kafkapy._core.broker_state.client_notes import ClientNames, ClientNotes
from kafkapy._core.bytes.message_set import build_message_set
from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy._core.bytes.segment_file import SegmentFile
from kafkapy.errors import ApiError, Error
from kafkapy.server.audit.audited_logs import Leadership, LogPart
from kafkapy.server.audit.broker_audit import REFRESH_MS, BrokerAudit
from kafkapy.types import TopicPartition
from tests.mock_clock import MockClock

PARTITION = TopicPartition("t", 0)
REPORT_MS = 10_000


class Logs:
    """Logs in files that this broker leads."""

    def __init__(self, directory) -> None:
        self.names = ClientNames()
        self.notes = ClientNotes(self.names)
        self.file = SegmentFile(str(directory / "log"), create=True)
        self.led = {PARTITION: Leadership(1, 0, 0)}
        self.end_offset = 0
        self.first_offset = 0
        self.forgotten: dict[TopicPartition, int] = {}

    def append(self, data: bytes, end_offset: int, client: bytes = b"") -> None:
        self.notes.note_append(self.end_offset, client)
        self.file.append([data])
        self.end_offset = end_offset

    def records(self, count: int, timestamp: int = 0, client: bytes = b"", **settings) -> None:
        """Appends a batch of `count` records."""
        builder = RecordBatchBuilder(self.end_offset, **settings)
        for _ in range(count):
            builder.append(timestamp, None, b"value")
        self.append(builder.build(), self.end_offset + count, client)

    def leaderships(self):
        return dict(self.led)

    def read(self, positions, most):
        parts = {}
        for partition, serial, offset in positions:
            leadership = self.led.get(partition)
            if leadership is not None and leadership.serial == serial and offset < self.end_offset:
                start = max(offset, self.first_offset)
                clients = self.notes.runs_between(start, self.end_offset)
                parts[partition] = LogPart(self.file.slice(0, self.file.size), start, self.end_offset, clients, [])
        return parts

    def forget(self, positions):
        self.forgotten.update(positions)


class Writer:
    """Stores counts and positions as one transaction does, or fails."""

    def __init__(self) -> None:
        self.is_open = False
        self.error: Exception | None = None
        self.stored: dict[TopicPartition, int] = {}
        self.counts: Counter[tuple[str, str, int]] = Counter()
        self.writes = 0

    def open(self) -> None:
        self.is_open = True

    def positions(self, partitions):
        return {each: self.stored.get(each) for each in partitions}

    def write(self, counts, positions) -> None:
        counts = list(counts)
        if self.error is not None:
            raise self.error
        self.writes += 1
        self.stored.update(positions)
        for count in counts:
            self.counts[count.tier, count.client, count.bucket_ms] += count.number

    def close(self) -> None:
        self.is_open = False


@pytest.fixture
def logs(tmp_path):
    return Logs(tmp_path)


@pytest.fixture
def clock():
    return MockClock()


def make(logs, writer, clock) -> BrokerAudit:
    return BrokerAudit(logs, writer, lambda work: work(), clock)


def test_counts_are_written_with_the_positions_after_ten_seconds(logs, clock):
    writer = Writer()
    audit = make(logs, writer, clock)
    logs.records(3, 5, b"a")
    audit.step()  # stores the first position of the partition at once
    assert writer.stored == {PARTITION: 3} and writer.counts == {("appended", "a", 0): 3}
    logs.records(2, 12_000, b"b")
    audit.step()
    assert writer.stored == {PARTITION: 3}
    clock.advance(REPORT_MS)
    audit.step()
    assert writer.counts == {("appended", "a", 0): 3, ("appended", "b", 10_000): 2}
    assert writer.stored == logs.forgotten == {PARTITION: 5}
    clock.advance(REPORT_MS)
    audit.step()
    assert writer.writes == 2  # nothing new, nothing written
    writer.stored.clear()
    clock.advance(REFRESH_MS)
    audit.step()
    assert writer.writes == 3 and writer.stored == {PARTITION: 5}  # before the position expires


def test_a_partition_without_a_position_is_counted_from_the_beginning_of_the_leadership(logs, clock):
    writer = Writer()
    logs.records(4)
    logs.led[PARTITION] = Leadership(1, 4, 0)
    logs.records(2)
    make(logs, writer, clock).step()
    assert writer.counts == {("appended", "", 0): 2}


def test_after_an_error_counting_begins_at_the_stored_position(logs, clock):
    writer = Writer()
    audit = make(logs, writer, clock)
    logs.records(3, client=b"a")
    audit.step()
    logs.records(4, client=b"a")
    clock.advance(REPORT_MS)
    writer.error = ApiError(Error.NOT_ENOUGH_REPLICAS)
    with pytest.raises(ApiError):
        audit.step()
    audit._begin_again()
    writer.error = None
    logs.records(5, client=b"a")
    audit.step(is_last=False)
    clock.advance(REPORT_MS)
    audit.step()
    assert writer.counts == {("appended", "a", 0): 12} and writer.stored == {PARTITION: 12}


def test_another_process_continues_at_the_stored_position(logs, clock):
    writer = Writer()
    make(logs, writer, clock).step()
    logs.records(3)
    writer.error = ApiError(Error.NOT_ENOUGH_REPLICAS)
    with pytest.raises(ApiError):
        make(logs, writer, clock).step()
    writer.error = None
    again = make(logs, writer, clock)
    again.step()
    again.step(is_last=True)
    assert writer.counts == {("appended", "", 0): 3}


def test_a_partition_that_another_broker_leads_is_dropped_with_its_counts(logs, clock):
    writer = Writer()
    audit = make(logs, writer, clock)
    audit.step()
    logs.records(3)
    audit.step()
    leadership = logs.led.pop(PARTITION)
    clock.advance(REPORT_MS)
    audit.step()
    assert not writer.counts
    writer.stored[PARTITION] = 2  # by the other leader
    logs.led[PARTITION] = leadership._replace(serial=2, counts_from_ms=clock.monotonic_ms() + 1)
    audit.step(is_last=True)
    assert not writer.counts  # the other leader may still write
    clock.advance(1)
    audit.step()
    audit.step(is_last=True)
    assert writer.counts == {("appended", "", 0): 1}


def test_the_counts_of_a_partition_that_was_lost_within_a_step_are_not_written(logs, clock):
    writer = Writer()
    audit = make(logs, writer, clock)
    audit.step()
    logs.records(3)
    read = logs.read

    def read_and_lose(positions, most):
        parts = read(positions, most)
        logs.led.clear()
        return parts

    logs.read = read_and_lose
    audit.step(is_last=True)
    assert not writer.counts and writer.stored == {PARTITION: 0}


def test_messages_of_old_formats_are_counted(logs, clock):
    writer = Writer()
    logs.append(build_message_set([(0, -1, None, b"a")], magic=0), 1)
    logs.append(build_message_set([(1, 12_000, None, b"b"), (2, 25_000, None, b"c")], magic=1, compression=1), 3)
    logs.records(1, 25_000)
    make(logs, writer, clock).step()
    assert writer.counts == {("appended", "", -10_000): 1, ("appended", "", 10_000): 1, ("appended", "", 20_000): 2}
    assert writer.stored == {PARTITION: 4}


def test_a_batch_that_is_larger_than_the_memory_is_counted(logs, clock):
    writer = Writer()
    builder = RecordBatchBuilder(0)
    builder.append(0, None, bytes(3 << 20))
    logs.append(builder.build(), 1)
    logs.records(1)
    make(logs, writer, clock).step()
    assert writer.counts == {("appended", "", 0): 2}


def test_records_that_were_deleted_before_they_were_counted_are_reported(logs, clock, caplog):
    writer = Writer()
    logs.records(5)
    logs.first_offset = 3
    make(logs, writer, clock).step()
    assert "from offset 0 to 3 were deleted" in caplog.text
    assert writer.counts == {("appended", "", 0): 2}


def test_a_damaged_log_is_not_counted_any_more(logs, clock, caplog, tmp_path):
    writer = Writer()
    audit = make(logs, writer, clock)
    audit.step()
    logs.records(3)
    logs.append(bytes(100), 4)
    audit.step()
    audit.step(is_last=True)
    assert "t-0 is not counted any more" in caplog.text
    assert not writer.counts and writer.stored == {PARTITION: 0}
    logs.file = SegmentFile(str(tmp_path / "other"), create=True)
    logs.end_offset = 0
    logs.records(2, client=b"b")
    logs.led = {TopicPartition("t", 1): Leadership(2, 0, 0)}
    audit.step()
    assert sum(writer.counts.values()) == 2  # without those of the damaged log
