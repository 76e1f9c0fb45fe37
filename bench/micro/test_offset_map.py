"""Offset map: putting 10,000 keys, and getting one."""

from kafkapy._core.bytes.offset_map import OffsetMap

KEYS = [b"key-%d" % index for index in range(10_000)]


def filled() -> OffsetMap:
    offsets = OffsetMap(1 << 20)
    offsets.clear()
    for offset, key in enumerate(KEYS):
        offsets.put(key, offset)
    return offsets


def test_put(benchmark):
    benchmark(filled)


def test_get(benchmark):
    assert benchmark(filled().get, b"key-777") == 777
