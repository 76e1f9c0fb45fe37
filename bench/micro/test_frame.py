"""Frames: 1,000 of 200 bytes in one buffer."""

from kafkapy._core.bytes.frame import split_frames

BUFFER = (len(bytes(196)).to_bytes(4, "big") + bytes(196)) * 1_000


def test_split(benchmark):
    frames, _ = benchmark(split_frames, BUFFER, 1 << 20)
    assert len(frames) == 1_000
