"""The figures that the benchmark reads from /proc, here for the process of the test."""

import os
import time

import pytest

from bench import process_figures

PID = os.getpid()


def test_time_memory_and_threads_of_this_process():
    assert process_figures.cpu_seconds(PID) > 0
    assert process_figures.memory_mb(PID, peak=True) >= process_figures.memory_mb(PID) > 1
    assert PID in process_figures.thread_ids(PID)


def test_a_sleep_is_a_wake_up():
    before = process_figures.wake_ups(PID)
    time.sleep(0.001)
    assert process_figures.wake_ups(PID) > before


def test_an_unknown_value_is_an_error():
    with pytest.raises(RuntimeError, match="NoSuchKey"):
        process_figures.status_value(PID, "NoSuchKey:")
