"""Reading a log: bounds within and across segments, positions of offsets, aborted transactions of a range."""

import tracemalloc

import pytest

from kafkapy._core.bytes.compression import ZSTD
from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from tests.harness.log import NOW_MS, LogHarness, batch, values_of


@pytest.fixture
def log(tmp_path):
    """Returns a log of three segments with bases 0, 4 and 8, each with two batches of two records; offsets 0 to 11."""
    log = LogHarness(tmp_path).log({"index.interval.bytes": 0})
    for number in range(6):
        if number in (2, 4):
            log.roll()
        log.append_as_leader(batch(2, timestamp=NOW_MS + 10 * number), 0)
    log.high_watermark = 12
    return log


@pytest.fixture
def size(log):
    return log.size // 6


@pytest.mark.parametrize(
    ("offset", "max_offset", "expected"),
    [
        (0, None, (0, 4)),
        (0, 4, (0, 4)),
        (0, 3, (0, 2)),
        (0, 2, (0, 2)),
        (2, 4, (2, 4)),
        (3, None, (2, 4)),
        (4, 5, None),
        (4, 6, (4, 6)),
        (8, 100, (8, 12)),
        (12, None, None),
        (6, 6, None),
    ],
)
def test_a_read_ends_at_the_segment_and_at_the_greatest_offset(log, offset, max_offset, expected):
    found = [number for number, _ in values_of(log.read(offset, 1 << 20, max_offset=max_offset))]
    assert found == (list(range(*expected)) if expected else [])


@pytest.mark.parametrize(
    ("max_bytes", "min_one_message", "batches", "is_incomplete"),
    [(0, True, 1, False), (0, False, 0, True), (1, True, 1, False), (-1, False, 0, True)],
)
def test_a_read_with_little_room(log, size, max_bytes, min_one_message, batches, is_incomplete):
    data = log.read(0, max_bytes, min_one_message=min_one_message)
    assert len(data.records) == batches * size
    assert data.first_entry_incomplete is is_incomplete


def test_a_read_of_exactly_one_batch_is_complete(log, size):
    assert not log.read(0, size, min_one_message=False).first_entry_incomplete
    data = log.read(0, size - 1, min_one_message=False)
    assert data.first_entry_incomplete
    assert len(data.records) == size - 1


def test_positions_of_offsets(log, size):
    assert log.offset_metadata(0) == (0, 0, 0)
    assert log.offset_metadata(3) == (3, 0, size)
    assert log.offset_metadata(4) == (4, 4, 0)
    assert log.offset_metadata(12) == log.end_offset_metadata == (12, 8, 2 * size)
    assert log.offset_metadata(13) == (13, -1, -1)
    assert log.offset_metadata(-1) == (-1, -1, -1)


@pytest.mark.parametrize(
    ("start", "end", "batches"),
    [(0, 0, 0), (0, 2, 1), (0, 4, 2), (2, 10, 4), (2, 12, 5), (4, 2, 0), (0, 13, 0), (13, 14, 0)],
)
def test_bytes_between_two_offsets(log, size, start, end, batches):
    assert log.position_delta(log.offset_metadata(start), log.offset_metadata(end)) == batches * size


def test_a_search_by_timestamp_does_not_collect_the_records_of_a_batch(tmp_path):
    builder = RecordBatchBuilder(compression=ZSTD)
    for number in range(100_000):
        builder.append(NOW_MS + number, None, b"")
    log = LogHarness(tmp_path).log()
    log.append_as_leader(bytearray(builder.build()), 0)
    log.high_watermark = 100_000
    tracemalloc.start()
    try:
        found = log.fetch_offset_by_timestamp(NOW_MS + 99_999)
        assert (found.timestamp, found.offset) == (NOW_MS + 99_999, 99_999)
        assert log.fetch_max_timestamp() == found
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


def test_a_search_by_timestamp_begins_at_the_log_start_offset(log):
    log.maybe_increment_log_start_offset(3)
    assert log.fetch_offset_by_timestamp(0)[:2] == (NOW_MS + 11, 3)
    assert log.fetch_offset_by_timestamp(NOW_MS + 51)[:2] == (NOW_MS + 51, 11)
    assert log.fetch_offset_by_timestamp(NOW_MS + 52) is None


def test_aborted_transactions_of_a_range_in_several_segments(tmp_path):
    harness = LogHarness(tmp_path)
    log = harness.log()
    for number in range(3):
        keywords = {"producer_id": number, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
        log.append_as_leader(batch(2, **keywords), 0)
        log.append_as_leader(harness.marker(number, 0, commit=False), 0, from_client=False)
        log.roll()
    found = [(0, 0, 2, 3), (1, 3, 5, 6), (2, 6, 8, 9)]
    assert log.collect_aborted_transactions(0, 9) == found
    assert log.collect_aborted_transactions(0, 3) == found[:1]
    assert log.collect_aborted_transactions(3, 4) == found[1:2]
    assert log.collect_aborted_transactions(7, 9) == found[2:]
    assert log.collect_aborted_transactions(9, 9) == []
    log.append_as_leader(batch(), 0)
    assert log.collect_aborted_transactions(0, 10) == found
    assert [segment.is_free_of_aborted for segment in log.segments] == [False, False, False, True]
