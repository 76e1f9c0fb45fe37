"""The grouping of segments that the log cleaner merges."""

from kafkapy.storage.log_cleaner_grouping import SegmentSizes, group_segments

GB = 1 << 30
MANY = 10**9


def sizes(*log_sizes, index=0, time_index=0, step=100):
    return [SegmentSizes(number * step, size, index, time_index) for number, size in enumerate(log_sizes)]


def grouped(segments, max_size=GB, max_index_size=MANY, end_offset=10**6):
    return [[each.size for each in group] for group in group_segments(segments, max_size, max_index_size, end_offset)]


def test_the_example_of_the_book():
    parts = [int(share * 10) for share in (0.4, 0.4, 0.3, 0.7, 0.3, 1)]
    assert grouped(sizes(*parts), 10) == [[4, 4], [3, 7], [3], [10]]


def test_nothing():
    assert grouped([]) == []


def test_a_segment_that_is_too_large_stands_alone():
    assert grouped(sizes(1, 20, 1), 10) == [[1], [20], [1]]


def test_indexes_count_too():
    assert grouped(sizes(1, 1, 1, 1, index=4), max_index_size=8) == [[1, 1], [1, 1]]
    assert grouped(sizes(1, 1, 1, 1, time_index=4), max_index_size=11) == [[1, 1], [1, 1]]


def test_offsets_stay_within_32_bits_of_the_base():
    wide = sizes(1, 1, 1, step=2**30)
    assert grouped(wide, end_offset=3 * 2**30) == [[1, 1], [1]]
    assert grouped(sizes(1, 1, step=2**31 - 10), end_offset=2**31) == [[1, 1]]
    assert grouped(sizes(1, 1, step=2**31 - 10), end_offset=2**31 + 1) == [[1], [1]]


def test_an_empty_segment_has_no_last_offset():
    assert grouped(sizes(1, 0, step=2**31 - 10), end_offset=2**32) == [[1, 0]]
