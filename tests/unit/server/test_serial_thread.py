"""The thread that runs blocking work in order."""

from __future__ import annotations

import threading

import pytest

from kafkapy.server.serial_thread import SerialThread


def test_work_is_run_in_order_on_another_thread():
    faults: list[BaseException] = []
    thread = SerialThread("test", faults.append)
    gate, seen = threading.Event(), []
    assert thread.is_idle
    futures = [thread.submit(gate.wait)]
    futures += [
        thread.submit(lambda number=number: seen.append((number, threading.get_ident()))) for number in range(9)
    ]
    assert not thread.is_idle and not seen
    gate.set()
    for future in futures:
        future.result(20)
    assert thread.is_idle
    assert [number for number, _ in seen] == list(range(9))
    assert {identity for _, identity in seen} != {threading.get_ident()}
    thread.stop()
    assert not faults


def test_a_failure_is_reported_and_later_work_is_run():
    faults: list[BaseException] = []
    thread = SerialThread("test", faults.append)
    failed, later = thread.submit(lambda: 1 // 0), thread.submit(lambda: None)
    thread.stop()
    with pytest.raises(ZeroDivisionError):
        failed.result()
    assert later.result() is None
    assert [type(fault) for fault in faults] == [ZeroDivisionError]


def test_a_thread_that_was_never_needed_stops():
    SerialThread("test", lambda error: None).stop()
