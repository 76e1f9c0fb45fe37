"""Retention decides by time, size and log start offset, and never above the high watermark."""

from kafkapy.storage.retention import RetentionLimits, SegmentFacts, deletable_segments

BASES = (0, 11, 23)
UNLIMITED = RetentionLimits(-1, -1, delete=True)


def count(
    limits, *, bases=BASES, sizes=(100, 100, 100), times=(1000, 2000, 3000), now=10_000, start=0, high=30, end=30
):
    segments = [SegmentFacts(*facts) for facts in zip(bases, sizes, times, strict=True)]
    return deletable_segments(
        segments, limits, wall_ms=now, log_start_offset=start, high_watermark=high, log_end_offset=end
    )


def test_by_log_start_offset():
    assert count(UNLIMITED, start=25) == 2
    assert count(UNLIMITED, start=23) == 2
    assert count(UNLIMITED, start=22) == 1
    assert count(UNLIMITED, start=10) == 0
    assert count(RetentionLimits(1, 1, delete=False), start=25) == 2


def test_by_time_stops_at_the_first_that_is_young():
    assert count(RetentionLimits(7500, -1, delete=True)) == 2
    assert count(RetentionLimits(8000, -1, delete=True)) == 1
    assert count(RetentionLimits(6999, -1, delete=True)) == 3
    assert count(RetentionLimits(7500, -1, delete=True), times=(3000, 1000, 1000)) == 0
    assert count(RetentionLimits(0, -1, delete=False)) == 0


def test_by_size_never_goes_below_the_limit():
    assert count(RetentionLimits(-1, 200, delete=True)) == 1
    assert count(RetentionLimits(-1, 199, delete=True)) == 1
    assert count(RetentionLimits(-1, 201, delete=True)) == 0
    assert count(RetentionLimits(-1, 0, delete=True)) == 3


def test_nothing_above_the_high_watermark_goes():
    everything = RetentionLimits(0, 0, delete=True)
    assert count(everything, high=22) == 1
    assert count(everything, high=23) == 2
    assert count(everything, high=29) == 2
    assert count(everything, high=30) == 3


def test_an_empty_active_segment_stays():
    everything = RetentionLimits(0, -1, delete=True)
    assert count(everything, sizes=(100, 100, 0), high=23, end=23) == 2
    assert count(everything, bases=(0,), sizes=(0,), times=(0,), high=0, end=0) == 0
