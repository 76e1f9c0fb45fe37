"""Calls of Maven, pip and other programs that fetch packages, and the folders that they fill once for all runs."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

# The seconds of each attempt, since a registry may not answer. Together they are less than the limit of a test.
ATTEMPTS_S = (150.0, 250.0, 350.0)


def fetch(
    command: Sequence[str],
    directory: Path | None = None,
    variables: Mapping[str, str] | None = None,
    attempts_s: Sequence[float] = ATTEMPTS_S,
) -> None:
    """Runs a command that fetches packages, in a directory and with further environment variables.

    It is run again if it fails or exceeds the seconds of its attempt. Raises RuntimeError with the command's last
    output if no attempt succeeds, or if the command's program is not installed.
    """
    if shutil.which(command[0]) is None:
        raise RuntimeError(f"the tests need {command[0]}; ./run-tests installs it, or says what to install")
    environment = {**os.environ, **(variables or {})}
    failure = ""
    for seconds in attempts_s:
        try:
            done = subprocess.run(
                command, cwd=directory, env=environment, capture_output=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired as error:
            failure = f"{error}"
            continue
        if done.returncode == 0:
            return
        output = (done.stdout + done.stderr).decode("utf-8", "replace")
        failure = f"{' '.join(command)} ended with {done.returncode}:\n{output[-4000:]}"
    raise RuntimeError(failure)


def made_once(directory: Path, make: Callable[[], None]) -> Path:
    """Returns the directory after `make` has filled it: once for all runs, while other processes wait."""
    complete = directory / ".complete"
    if not complete.exists():
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not complete.exists():
                make()
                complete.touch()
    return directory
