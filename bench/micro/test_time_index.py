"""Time index: appending entries and looking them up among 100,000."""

from kafkapy._core.bytes.time_index import TimeIndex


def test_append(benchmark, tmp_path):
    index = TimeIndex(str(tmp_path / "index"), 0, 10_485_760)
    offset = 0

    def append():
        nonlocal offset
        if index.is_full:
            index.truncate()
        offset += 1
        index.maybe_append(offset, offset)

    benchmark(append)


def test_lookup(benchmark, tmp_path):
    index = TimeIndex(str(tmp_path / "index"), 0, 10_485_760)
    for offset in range(100_000):
        index.maybe_append(offset * 10, offset)
    assert benchmark(index.lookup, 654_321) == (654_320, 65_432)
