"""Helpers of the tests: a service in a thread, and the committed records of a topic."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kafkapy.client.reliable.topic_scan import all_partitions, scan

PATIENCE_S = 60.0


@contextmanager
def running(run: Callable[[], object], stop: Callable[[], object]) -> Iterator[list[BaseException]]:
    """Returns a context manager, within which `run` runs in a thread; an error of the thread fails the test."""
    errors: list[BaseException] = []

    def target() -> None:
        try:
            run()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    try:
        yield errors
    finally:
        stop()
        thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert not errors, errors


def wait_until(condition: Callable[[], object], errors: list[BaseException] = []) -> None:  # noqa: B006
    """Waits for a condition; fails after a minute, or if the service's thread has ended with an error."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert not errors, errors
        assert time.monotonic() < deadline_s, "the condition was not met within a minute"
        time.sleep(0.02)


def records_of(bootstrap: str, topic: str):
    """Returns the committed records of a topic."""
    properties = {"bootstrap.servers": bootstrap}
    return list(scan(properties, dict.fromkeys(all_partitions(properties, topic))))


def values_of(bootstrap: str, topic: str) -> list[bytes]:
    """Returns the values of the committed records of a topic."""
    return [each.value for each in records_of(bootstrap, topic)]
