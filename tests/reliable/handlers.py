"""Handlers that run in child processes of the tests."""

from __future__ import annotations

import os
import signal
import time

from kafkapy.client.reliable import Delivery, Failure, Output, delayed


def misbehave(delivery: Delivery) -> Output | None:
    """Misbehaves as the beginning of the value says: raises, fails, hangs, kills its process, or returns nonsense.

    For any other value it returns a copy of the record for the topic that the key names.
    """
    value = delivery.value or b""
    if value.startswith(b"raise"):
        raise RuntimeError("this record cannot be handled")
    if value.startswith(b"fail"):
        raise Failure("no retry helps")
    if value.startswith(b"hang"):
        time.sleep(3600)
    if value.startswith(b"die"):
        os.kill(os.getpid(), signal.SIGKILL)
    if value.startswith(b"nonsense"):
        return 17  # type: ignore[return-value]
    print("a handler may print")
    return Output((delivery.key or b"").decode(), value)


def delay_or_fail(delivery: Delivery) -> Output | None:
    """Sends most records to the topic `final` by the delay queue; some fail at first, always, or kill the process."""
    number = int((delivery.value or b"").split(b"-")[1])
    if number % 10 == 3:
        raise RuntimeError("this record is never handled")
    if number % 10 == 5 and delivery.attempt < 3:
        raise RuntimeError("this record is handled later")
    if number % 100 == 77:
        os.kill(os.getpid(), signal.SIGKILL)
    return delayed("final", delivery.value, delivery.key, delay_ms=number * 37 % 3000)
