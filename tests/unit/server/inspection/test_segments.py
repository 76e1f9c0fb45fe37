"""The pages on segments and on the place of an offset, compared with the log that the test has written."""

import json
import os
from types import SimpleNamespace

import pytest

from kafkapy.server.inspection.refusal import Refusal
from kafkapy.server.inspection.segments import describe_partition, place_of, segments_page
from tests.harness.log import NOW_MS, LogHarness, batch

SMALL = {"segment.bytes": 1 << 20, "index.interval.bytes": 0}


def no_pace():
    """The test's thread needs no pauses."""


@pytest.fixture
def log(tmp_path):
    """A log of several segments: 40 batches of three records, whose sizes grow."""
    log = LogHarness(tmp_path).log(SMALL)
    for number in range(40):
        log.append_as_leader(batch(3, timestamp=NOW_MS + 1000 * number, value=b"v" * (40_000 + number)), 0)
    assert len(log.segments) > 3
    return log


def partition_of(log):
    return SimpleNamespace(log=log, is_leader=True, leader_epoch=4)


def test_a_partition_has_the_sum_of_its_segments(tmp_path, log):
    described = describe_partition(partition_of(log))
    assert described["size_bytes"] == sum(each.stat().st_size for each in tmp_path.joinpath("t-0").glob("*.log"))
    assert (described["log_start_offset"], described["log_end_offset"]) == (0, 120)
    assert described["segments"] == len(log.segments)


def test_the_segments_are_contiguous_in_offsets_and_positions(log):
    page = segments_page(log, 0, 100, no_pace)
    found = page["segments"]
    assert page["next"] is None
    assert [each["base_offset"] for each in found] == list(log.segments.base_offsets)
    assert [each["next_offset"] for each in found] == [*log.segments.base_offsets[1:], 120]
    position = 0
    for each in found:
        assert each["position"] == position
        position += each["size_bytes"]
    assert [each["is_active"] for each in found] == [*[False] * (len(found) - 1), True]


def test_timestamps_and_index_sizes_are_those_of_the_files(log):
    page = segments_page(log, 0, 100, no_pace)
    for each, following in zip(page["segments"], [*page["segments"][1:], {"base_offset": 120}], strict=True):
        assert each["first_batch_timestamp_ms"] == NOW_MS + 1000 * (each["base_offset"] // 3) + 2
        assert each["max_timestamp_ms"] == NOW_MS + 1000 * (following["base_offset"] // 3 - 1) + 2
        batches = (following["base_offset"] - each["base_offset"]) // 3
        assert each["offset_index_bytes"] in (8 * (batches - 1), 8 * batches)
        assert each["time_index_bytes"] >= 12


def test_a_closed_segment_is_read_from_its_files(tmp_path, log):
    expected = segments_page(log, 0, 100, no_pace)["segments"][0]
    log.close()
    reopened = LogHarness(tmp_path, is_clean=True).log(SMALL, recovery_point=120)
    assert reopened.segments.first._time_index is None
    assert segments_page(reopened, 0, 1, no_pace)["segments"] == [expected]


def test_pages_follow_each_other(log):
    whole = segments_page(log, 0, 100, no_pace)["segments"]
    found, start = [], 0
    while start is not None:
        page = segments_page(log, start, 2, no_pace)
        assert len(page["segments"]) <= 2
        found += page["segments"]
        start = page["next"]
    assert found == whole


def test_a_page_begins_with_the_segment_that_contains_the_start(log):
    base = log.segments.base_offsets[2]
    assert segments_page(log, base + 1, 1, no_pace)["segments"][0]["base_offset"] == base
    assert segments_page(log, 10**12, 5, no_pace)["segments"][0]["is_active"]


def test_every_offset_has_the_place_of_its_batch(log):
    for offset in range(120):
        place = place_of(log, offset)
        segment = log.segments[log.segments.index_of(offset)]
        position, size, base_offset, last_offset = segment.find(offset)
        assert place["segment"]["base_offset"] == segment.base_offset
        assert place["position"] == position
        found = place["batch"]
        assert (found["size_bytes"], found["base_offset"], found["last_offset"]) == (size, base_offset, last_offset)
        assert found["records"] == 3
        assert place["position_in_log"] == position + sum(
            each.size for each in log.segments if each.base_offset < segment.base_offset
        )


def test_a_batch_shows_its_producer_and_codec(tmp_path):
    log = LogHarness(tmp_path).log()
    keywords = {"producer_id": 77, "producer_epoch": 2, "base_sequence": 0, "is_transactional": True}
    log.append_as_leader(batch(4, value=b"x" * 1000, compression=1, **keywords), 5)
    found = place_of(log, 2)["batch"]
    assert found["codec"] == "gzip"
    assert (found["producer_id"], found["producer_epoch"], found["base_sequence"]) == (77, 2, 0)
    assert found["is_transactional"] is True
    assert found["is_control"] is False
    assert found["leader_epoch"] == 5
    assert found["records"] == 4
    json.dumps(found)


@pytest.mark.parametrize("offset", [120, 10**15])
def test_an_offset_outside_of_the_log_is_refused(log, offset):
    with pytest.raises(Refusal, match="from 0 to 119 on this broker") as refused:
        place_of(log, offset)
    assert refused.value.status == 404


def test_a_segment_that_was_deleted_meanwhile_is_refused(log):
    os.rename(log.segments.first.path(".log"), log.segments.first.path(".log") + ".deleted")
    for read in (lambda: place_of(log, 0), lambda: segments_page(log, 0, 100, no_pace)):
        with pytest.raises(Refusal, match="was deleted meanwhile") as refused:
            read()
        assert refused.value.status == 404


def test_a_damaged_segment_is_refused(log):
    path = log.segments.first.path(".log")
    with open(path, "r+b") as file:
        file.seek(8)
        file.write(b"\xff\xff\xff\xff")
    with pytest.raises(Refusal, match="is damaged") as refused:
        place_of(log, 0)
    assert refused.value.status == 503
