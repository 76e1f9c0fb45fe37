"""Segment scan: finding a batch, and the end, in a file of 1,000 batches."""

import pytest

from bench.micro.test_record_batch import LIMITS, build
from kafkapy._core.bytes.record_batch import assign_offsets, validate_batches
from kafkapy._core.bytes.segment_file import SegmentFile
from kafkapy._core.bytes.segment_scan import find_batch, scan_to_end


@pytest.fixture
def segment(tmp_path):
    data = bytearray(build(count=10) * 1_000)
    assign_offsets(data, validate_batches(data, **LIMITS), 0, 0)
    file = SegmentFile(str(tmp_path / "segment.log"), create=True)
    file.append([data])
    yield file
    file.close()


def test_find(benchmark, segment):
    assert benchmark(find_batch, segment.fd, 0, segment.size, 5_005)[2] == 5_000


def test_scan_to_end(benchmark, segment):
    assert benchmark(scan_to_end, segment.fd, 0, segment.size)[1] == 10_000
