"""The average of recent durations."""

from __future__ import annotations

from math import isnan

from kafkapy.metrics.duration_window import DurationWindow


def test_durations_count_for_one_to_two_windows() -> None:
    window = DurationWindow(0, 100)
    assert window.average(0) == 0
    assert isnan(window.average_and_maximum(0)[0])
    window.add(10, 50)
    window.add(30, 150)
    assert window.average_and_maximum(199) == (20, 30)
    assert window.average(250) == 30
    assert window.average(300) == 0
