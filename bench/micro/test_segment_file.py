"""Segment file: appending and reading 1 KiB and 1 MiB."""

import pytest

from kafkapy._core.bytes.segment_file import SegmentFile

SIZES = pytest.mark.parametrize("size", [1_024, 1_048_576])


@pytest.fixture
def segment(tmp_path):
    file = SegmentFile(str(tmp_path / "segment.log"), create=True)
    yield file
    file.close()


@SIZES
def test_append(benchmark, segment, size):
    buffers = [bytes(size // 4)] * 4

    def append():
        segment.append(buffers)
        if segment.size > 1 << 28:
            segment.truncate(0)

    benchmark(append)


@SIZES
def test_pread(benchmark, segment, size):
    segment.append([bytes(size)])
    benchmark(segment.pread, 0, size)


def test_slice(benchmark, segment):
    segment.append([bytes(100)])
    benchmark(segment.slice, 10, 50)
