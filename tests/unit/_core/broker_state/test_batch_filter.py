"""The keys that the log cleaner collects from a chunk of a segment."""

from __future__ import annotations

import pytest

from kafkapy._core.broker_state.batch_filter import DONE, FULL, collect_keys
from kafkapy._core.bytes.offset_map import OffsetMap
from kafkapy._core.bytes.record_batch import RecordBatchBuilder


def batch(offset, key):
    builder = RecordBatchBuilder(base_offset=offset)
    builder.append(1, key, b"value")
    return bytes(builder.build())


@pytest.fixture
def offsets():
    offsets = OffsetMap(1 << 16)
    offsets.clear()
    return offsets


def test_keys_are_collected_up_to_the_end_offset(offsets):
    chunk = batch(0, b"a") + batch(1, b"b") + batch(2, b"c")
    second = len(batch(0, b"a"))
    assert collect_keys(offsets, chunk, 0, len(chunk), 0, 1) == (second, FULL)
    assert (offsets.get(b"a"), offsets.get(b"b"), offsets.latest_offset) == (0, -1, 0)
    assert collect_keys(offsets, chunk, second, len(chunk), 0, 3) == (len(chunk), DONE)
    assert (offsets.get(b"c"), offsets.latest_offset) == (2, 2)


def test_keys_below_the_start_offset_are_left_out(offsets):
    chunk = batch(4, b"a") + batch(5, b"b")
    assert collect_keys(offsets, chunk, 0, len(chunk), 5, 9) == (len(chunk), DONE)
    assert (offsets.get(b"a"), offsets.get(b"b")) == (-1, 5)
