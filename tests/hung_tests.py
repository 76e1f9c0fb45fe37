"""Ends of test processes and of whole runs that make no progress, so that a run always ends and names the test."""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Generator

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

# pytest-timeout acts first; its timer needs the interpreter, which a hanging extension may hold.
DELAY_AFTER_PYTEST_TIMEOUT_S = 30.0
NO_PROGRESS_STATUS = 3
STANDARD_ERROR = 2


def limit_s(item: pytest.Item) -> float:
    """Returns the seconds that pytest-timeout gives a test: its marker's, the command line's or the configuration's."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0] if marker else item.config.getoption("timeout") or item.config.getini("timeout"))


class HungTestKiller:
    """Ends this process with the stacks of all threads if a test exceeds its limit and pytest-timeout did not act.

    pytest-timeout cannot act while an extension holds the interpreter lock, nor after the test has failed, when its
    fixtures are finalized.
    """

    def __init__(self, delay_s: float = DELAY_AFTER_PYTEST_TIMEOUT_S) -> None:
        self._delay_s = delay_s
        self._limit_s = 0.0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._limit_s = limit_s(item) + self._delay_s
        self._arm(item.config)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(trylast=True)
    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector) -> None:
        """Sets the limit again, because pytest removes it at every failure for the sake of debuggers."""
        if isinstance(node, pytest.Item):
            self._arm(node.config)

    def _arm(self, config: pytest.Config) -> None:
        # Without pytest's own faulthandler (a run with sanitizers), the stacks go to the descriptor of standard error.
        stderr = config.stash.get(fault_handler_stderr_fd_key, STANDARD_ERROR)
        faulthandler.dump_traceback_later(self._limit_s, file=stderr, exit=True)


class StalledRunKiller:
    """Ends a whole run in which no test has begun or ended for `silence_s` seconds, and names the tests that run."""

    def __init__(self, silence_s: float) -> None:
        self._silence_s = silence_s
        self._running: dict[str, float] = {}
        self._last_progress = time.monotonic()

    @pytest.hookimpl
    def pytest_sessionstart(self) -> None:
        threading.Thread(target=self._watch, name="stalled-run-killer", daemon=True).start()

    @pytest.hookimpl
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._last_progress = self._running[nodeid] = time.monotonic()

    @pytest.hookimpl
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._last_progress = time.monotonic()
        self._running.pop(nodeid, None)

    def _watch(self) -> None:
        while (rest := self._last_progress + self._silence_s - time.monotonic()) > 0:
            time.sleep(rest)
        lines = [f"No test began or ended for {self._silence_s:.0f} s. These tests have begun and not ended:"]
        lines += self._running or ["none"]
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, "\n".join([*lines, ""]).encode())
        os._exit(NO_PROGRESS_STATUS)
