"""Offset index: appending entries and looking them up among 100,000."""

from kafkapy._core.bytes.offset_index import OffsetIndex


def test_append(benchmark, tmp_path):
    index = OffsetIndex(str(tmp_path / "index"), 0, 10_485_760)
    offset = 0

    def append():
        nonlocal offset
        if index.is_full:
            index.truncate()
        offset += 1
        index.append(offset, 0)

    benchmark(append)


def test_lookup(benchmark, tmp_path):
    index = OffsetIndex(str(tmp_path / "index"), 0, 10_485_760)
    for offset in range(100_000):
        index.append(offset * 10, offset)
    assert benchmark(index.lookup, 654_321) == (654_320, 65_432)
