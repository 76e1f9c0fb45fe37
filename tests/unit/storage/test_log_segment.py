"""A segment as its log uses it: index entries, timestamps, rolling, truncation, closing and deletion."""

import os

import pytest

from kafkapy._core.bytes.record_batch import scan_batches
from kafkapy.errors import ApiError, Error
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_segment import LogSegment, read_tail
from tests.harness.log import NOW_MS, batch, topic_config


def config(**overrides):
    named = {name.replace("_", "."): value for name, value in overrides.items()}
    return LogConfig(topic_config({"index.interval.bytes": 0, **named}))


def new_segment(path, base_offset=10, **overrides):
    segment = LogSegment.create(str(path), base_offset, config(**overrides), Filesystem(), NOW_MS)
    segment.open_for_append()
    return segment


def append(segment, offset, count=1, **keywords):
    records = offset.to_bytes(8, "big") + bytes(batch(count, **keywords))[8:]
    batches, _ = scan_batches(records)
    return segment.append(records, batches)


def entries_of(index):
    return [index.entry(slot) for slot in range(index.entries)]


@pytest.fixture
def segment(tmp_path):
    return new_segment(tmp_path)


def test_every_batch_but_the_first_is_indexed_without_an_interval(segment):
    positions = [append(segment, 10 + 2 * number, 2, timestamp=NOW_MS + 10 * number) for number in range(4)]
    size = positions[1]
    assert positions == [0, size, 2 * size, 3 * size]
    assert segment.size == 4 * size
    assert entries_of(segment.offset_index) == [(13, size), (15, 2 * size), (17, 3 * size)]
    assert entries_of(segment.time_index) == [(NOW_MS + 11, 13), (NOW_MS + 21, 15), (NOW_MS + 31, 17)]


def test_an_entry_is_added_once_more_than_the_interval_was_written(tmp_path):
    size = len(batch())
    segment = new_segment(tmp_path, index_interval_bytes=2 * size)
    for offset in range(10, 18):
        append(segment, offset)
    assert [position // size for _, position in entries_of(segment.offset_index)] == [3, 6]


def test_batches_without_timestamps_are_not_in_the_time_index(segment):
    for offset in (10, 11, 12):
        append(segment, offset, timestamp=-1)
    assert segment.offset_index.entries == 2
    assert segment.time_index.entries == 0
    assert (segment.max_timestamp, segment.offset_of_max_timestamp) == (-1, -1)
    segment.become_inactive()
    assert segment.time_index.entries == 0
    os.utime(segment.path(".log"), ns=(0, 5_000_000))
    assert segment.largest_timestamp() == 5


def test_an_empty_segment_has_no_timestamp(tmp_path):
    segment = LogSegment.create(str(tmp_path), 10, config(), Filesystem(), NOW_MS)
    assert segment.offset_of_max_timestamp == -1
    assert segment.max_timestamp == -1
    assert (segment.next_offset(), segment.next_offset_if_whole()) == (10, 10)


def test_the_greatest_timestamp_is_that_of_the_first_batch_that_has_it(segment):
    for offset, timestamp in ((10, 5), (11, 7), (12, 7), (13, 6)):
        append(segment, offset, timestamp=timestamp)
    assert (segment.max_timestamp, segment.offset_of_max_timestamp) == (7, 11)
    assert segment.largest_timestamp() == 7
    segment.become_inactive()
    again = LogSegment(segment.directory, 10, config(), Filesystem(), size=segment.size)
    assert (again.offset_of_max_timestamp, again.max_timestamp) == (11, 7)
    assert again.largest_timestamp() == 7
    opened = LogSegment(segment.directory, 10, config(), Filesystem(), size=segment.size)
    opened.open_for_append()
    assert (opened.max_timestamp, opened.offset_of_max_timestamp) == (7, 11)


def test_batches_are_found_by_offset_and_timestamp(segment):
    positions = [append(segment, 10 + 3 * number, 2, timestamp=100 * number) for number in range(4)]
    size = positions[1]
    assert segment.find(10) == (0, size, 10, 11)
    assert segment.find(12) == (size, size, 13, 14), "there is no record at 12"
    assert segment.find(20) == (3 * size, size, 19, 20)
    assert segment.find(21) is None
    assert segment.find_timestamp(100, 10) == (size, size, 13, 14)
    assert segment.find_timestamp(100, 15) == (2 * size, size, 16, 17)
    assert segment.find_timestamp(302, 10) is None


def test_bytes_that_are_no_batch_are_corrupt(segment):
    append(segment, 10)
    append(segment, 11)
    with open(segment.path(".log"), "r+b") as file:
        file.write(bytes(16) + b"\x07")
    for search in (lambda: segment.find(10), lambda: segment.find_timestamp(NOW_MS, 10)):
        with pytest.raises(ApiError) as raised:
            search()
        assert raised.value.error is Error.CORRUPT_MESSAGE
        assert segment.path(".log") in str(raised.value)


def test_the_end_is_found_from_the_last_index_entry(segment):
    for offset in (10, 11, 12):
        append(segment, offset)
    size = segment.size
    segment.close()
    for found in (segment, LogSegment(segment.directory, 10, config(), Filesystem(), size=size)):
        before = len(os.listdir("/proc/self/fd"))
        assert (found.next_offset(), found.next_offset_if_whole()) == (13, 13)
        assert len(os.listdir("/proc/self/fd")) == before
        assert found.is_open_for_append is False
    os.truncate(segment.path(".log"), size - 1)
    torn = LogSegment(segment.directory, 10, config(), Filesystem(), size=size - 1)
    assert torn.next_offset_if_whole() is None


def test_an_index_entry_behind_the_end_is_not_believed(segment):
    for offset in (10, 11, 12):
        append(segment, offset)
    segment.close()
    size = segment.size // 3
    os.truncate(segment.path(".log"), size)
    short = LogSegment(segment.directory, 10, config(), Filesystem(), size=size)
    assert short.next_offset_if_whole() == 11
    assert short.offset_index.entries == 0, "the index was emptied"
    assert os.path.getsize(short.path(".index")) == 0


@pytest.mark.parametrize(
    ("overrides", "elapsed_ms", "timestamp", "expected"),
    [
        ({"segment_ms": 1000}, 0, NOW_MS + 1000, False),
        ({"segment_ms": 1000}, 0, NOW_MS + 1001, True),
        ({"segment_ms": 1000}, 5000, NOW_MS, False),
        ({"segment_ms": 1000}, 1000, -1, False),
        ({"segment_ms": 1000}, 1001, -1, True),
        ({"segment_bytes": 1 << 20}, 0, NOW_MS, False),
    ],
)
def test_rolling_by_time(tmp_path, overrides, elapsed_ms, timestamp, expected):
    """The timestamps of records decide; the wall clock is used only for batches without timestamps."""
    segment = new_segment(tmp_path, **overrides)
    assert not segment.should_roll(100, NOW_MS + 10**9, 10, NOW_MS + 10**9), "an empty segment is not rolled"
    append(segment, 10, timestamp=NOW_MS)
    assert segment.should_roll(100, timestamp, 11, NOW_MS + elapsed_ms) is expected


def test_rolling_by_size(tmp_path):
    segment = new_segment(tmp_path, segment_bytes=1 << 20)
    append(segment, 10)
    room = (1 << 20) - segment.size
    assert not segment.should_roll(room, NOW_MS, 11, NOW_MS)
    assert segment.should_roll(room + 1, NOW_MS, 11, NOW_MS)


@pytest.mark.parametrize(("index_bytes", "count"), [(36, 3), (24, 2), (12, 1)])
def test_rolling_by_a_full_index(tmp_path, index_bytes, count):
    """The last of the 12-byte entries of the time index is reserved for the end of the segment."""
    small = config()
    small.segment_index_bytes = index_bytes
    segment = LogSegment.create(str(tmp_path), 20, small, Filesystem(), NOW_MS)
    segment.open_for_append()
    appended = 0
    while not segment.should_roll(100, NOW_MS, 20 + appended, NOW_MS):
        append(segment, 20 + appended, timestamp=NOW_MS + appended)
        appended += 1
        assert appended < 10
    assert appended == count
    assert segment.has_full_index


def test_truncation_removes_batches_entries_and_timestamps(segment):
    for offset in range(10, 16):
        append(segment, offset, timestamp=NOW_MS + offset)
    size = segment.size // 6
    segment.truncate_to(13, NOW_MS + 500)
    assert segment.size == segment.file.size == 3 * size
    assert entries_of(segment.offset_index) == [(11, size), (12, 2 * size)]
    assert segment.max_timestamp == NOW_MS + 12
    assert segment.offset_of_max_timestamp == 12
    assert segment.created_ms == NOW_MS
    append(segment, 13, timestamp=NOW_MS + 20)
    assert segment.find(13)[0] == 3 * size
    segment.truncate_to(10, NOW_MS + 500)
    assert (segment.size, segment.max_timestamp, segment.created_ms) == (0, -1, NOW_MS + 500)
    assert segment.offset_index.entries == segment.time_index.entries == 0
    append(segment, 10, timestamp=5)
    assert not segment.should_roll(1, 5 + segment._config.segment_ms, 11, NOW_MS), "the first timestamp is the new one"


def test_a_truncation_finds_the_greatest_timestamp_behind_the_last_entry(tmp_path):
    segment = new_segment(tmp_path, index_interval_bytes=10_000)
    for offset, timestamp in ((10, 5), (11, 9), (12, 20)):
        append(segment, offset, timestamp=timestamp)
    segment.truncate_to(12, NOW_MS)
    assert (segment.max_timestamp, segment.offset_of_max_timestamp) == (9, 11)


def test_an_inactive_segment_is_cut_to_its_content(segment):
    for offset in (10, 11, 12):
        append(segment, offset, timestamp=NOW_MS - offset)
    assert os.path.getsize(segment.path(".index")) > 1 << 20
    segment.become_inactive()
    assert not segment.is_open_for_append
    assert os.path.getsize(segment.path(".index")) == 16
    assert entries_of(segment.time_index) == [(NOW_MS - 10, 10)]
    segment.become_inactive()
    segment.close()
    assert segment._file is None
    assert os.path.getsize(segment.path(".timeindex")) == 12


def test_a_close_without_trim_writes_nothing(segment):
    append(segment, 10)
    append(segment, 11)
    segment.close(trim=False)
    assert not segment.is_open_for_append
    assert os.path.getsize(segment.path(".index")) > 1 << 20


def test_a_deleted_segment_is_closed_and_renamed(segment):
    append(segment, 10)
    renamed = segment.mark_deleted()
    stem = os.path.join(segment.directory, f"{10:020d}")
    assert renamed == [f"{stem}{suffix}.deleted" for suffix in (".log", ".index", ".timeindex")]
    assert sorted(os.path.join(segment.directory, name) for name in os.listdir(segment.directory)) == sorted(renamed)
    assert segment._file is None


def test_a_moved_segment_reopens_its_files_by_their_new_names(segment, tmp_path):
    append(segment, 10)
    append(segment, 11)
    os.rename(segment.directory, tmp_path.with_name("moved"))
    segment.moved_to(str(tmp_path.with_name("moved")))
    for file in (segment.file, segment._offset_index, segment._time_index):
        assert file.path.startswith(str(tmp_path.with_name("moved")))
    segment.close()
    assert segment.find(11) is not None


def test_the_last_entry_of_an_index_file(tmp_path):
    path = tmp_path / "index"
    assert read_tail(str(path), 8) == b""
    path.write_bytes(b"1234567")
    assert read_tail(str(path), 8) == b""
    path.write_bytes(b"12345678abcdefgh!!")
    assert read_tail(str(path), 8) == b"abcdefgh"
