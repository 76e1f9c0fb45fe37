"""Runs pytest once for each line of JSON on standard input, in a fork of a process that has imported pytest already.

The imports of pytest and Hypothesis take longer than most runs. kafkapy and the tests are not imported before the fork.
A request is `{"arguments": [...], "output": path, "limit_s": seconds}`; the answer is a line with the exit status, or
with -1 if the time ran out. A run has a session of its own, which is killed at its end with all that it started.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

IMPORTED = ("hypothesis.strategies", "pytest_timeout", "xdist.plugin")
TIMED_OUT = -1
_POLL_S = 0.02


def main() -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            run(request["arguments"], Path(request["output"]))
        print(status_of(child, request["limit_s"]), flush=True)


def run(arguments: list[str], output: Path) -> None:
    """Runs pytest and ends the process."""
    os.setsid()
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(written, 1)
    os.dup2(written, 2)
    status = 70
    try:
        status = int(pytest.main(arguments))
        sys.stdout.flush()
    finally:
        os._exit(status)


def status_of(child: int, limit_s: float) -> int:
    """Waits for the child, kills what is left of its session, and returns its status.

    A time in which this process was stopped counts only for a second.
    """
    elapsed_s, before = 0.0, time.monotonic()
    timed_out = False
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        now = time.monotonic()
        elapsed_s, before = elapsed_s + min(1.0, now - before), now
        if elapsed_s > limit_s:
            timed_out = True
            break
        time.sleep(_POLL_S)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return TIMED_OUT if timed_out else status if status >= 0 else 128 - status


if __name__ == "__main__":
    main()
