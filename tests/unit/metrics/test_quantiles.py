"""Quantiles computed from buckets, and their window."""

import math
from itertools import pairwise

import pytest

from kafkapy._core.reactor.reactor import bucket_bounds
from kafkapy.metrics.quantiles import MOST_KEPT, Window, quantile


def test_between_the_bounds():
    bounds = [1.0, 2.0, 4.0]
    assert quantile(0.5, [0, 10, 0, 0], bounds) == 1.5
    assert quantile(1.0, [0, 10, 0, 0], bounds) == 2.0
    assert quantile(0.5, [10, 0, 10, 0], bounds) == 1.0
    assert quantile(0.75, [10, 0, 10, 0], bounds) == 3.0
    assert quantile(0.99, [0, 0, 0, 5], bounds) == 4.0  # the last one has no end
    assert math.isnan(quantile(0.5, [0, 0, 0, 0], bounds))


def test_bounds_of_the_reactors_buckets_rise_by_a_quarter_at_most():
    bounds = bucket_bounds()
    assert bounds[:8] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert bounds == sorted(set(bounds))
    assert all(later / bound <= 1.25 for bound, later in pairwise(bounds[3:]))
    assert bounds[-1] > 100_000_000


def test_the_window_compares_with_the_oldest_of_the_last_minute():
    window = Window("start", 0.0, 60.0)
    assert window.before(5.0) == (0.0, "start")
    for second in range(10, 200, 10):
        window.keep(float(second), f"at {second}")
    assert window.before(190.0) == (130.0, "at 130")
    assert window.before(1000.0) == (190.0, "at 190")  # nobody asked meanwhile
    assert window.before(1000.0) == (190.0, "at 190")


@pytest.mark.parametrize("interval_s", [0.01, 1.0, 15.0])
def test_the_window_keeps_a_bounded_number(interval_s):
    window = Window(0, 0.0, 60.0)
    now_s = 0.0
    for number in range(3000):
        now_s += interval_s
        since_s, _ = window.before(now_s)
        window.keep(now_s, number)
        assert len(window._kept) <= MOST_KEPT + 2
    assert now_s - since_s <= 60 + max(interval_s, 60 / MOST_KEPT) + 1e-6
