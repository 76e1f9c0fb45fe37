"""A server as a subprocess, with its log in a file; it is ended by a signal."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.ports import free_port

POLL_SECONDS = 0.005


def _hear_hangups() -> None:
    """Restores the default action of SIGHUP, which a process below `nohup` inherits as ignored."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class ServerProcess(ABC):
    """One server on loopback that can be started, stopped and killed any number of times. Not thread-safe.

    `log_path` collects the output of all its runs.
    """

    ready_line: re.Pattern[str]
    start_timeout_s = 30.0
    stop_timeout_s = 20.0

    def __init__(self, directory: Path, port: int | None) -> None:
        self.directory = directory
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port() if port is None else port
        self.log_path = directory / "server.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"localhost:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the server was not started"
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @abstractmethod
    def command(self) -> list[str]:
        """Returns the words of the command line that starts the server."""

    def environment(self) -> dict[str, str] | None:
        """Returns the environment of the process; None means that of this process."""
        return None

    def start(self) -> Self:
        """Starts the server and waits until it is ready. Raises AssertionError with its log if it does not."""
        assert not self.is_running, "the server is running already"
        began = self._log_size()
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment(),
                cwd=self._working_directory(),
                preexec_fn=_hear_hangups,
            )
        deadline = time.monotonic() + self.start_timeout_s
        while not self.ready_line.search(self.log(began)):
            if self.process.poll() is not None:
                raise AssertionError(f"exit {self.process.returncode} while starting:\n{self.log(began)[-8000:]}")
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"not ready after {self.start_timeout_s} s:\n{self.log(began)[-8000:]}")
            time.sleep(POLL_SECONDS)
        return self

    def stop(self) -> int:
        """Ends the server by SIGTERM and returns its exit status (negative: the signal that ended it)."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """Ends the server by SIGKILL and returns its exit status."""
        return self._end(signal.SIGKILL)

    def restart(self) -> Self:
        self.stop()
        return self.start()

    def log(self, position: int = 0) -> str:
        """Returns the server's log from byte `position` on."""
        if not self.log_path.exists():
            return ""
        with self.log_path.open("rb") as log:
            log.seek(position)
            return log.read().decode("utf-8", "replace")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_running:
            self.stop()

    def _end(self, number: signal.Signals) -> int:
        assert self.process is not None, "the server was not started"
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(self.stop_timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            message = f"still running {self.stop_timeout_s} s after {number.name}:\n{self.log()[-8000:]}"
            raise AssertionError(message) from None

    def _log_size(self) -> int:
        return self.log_path.stat().st_size if self.log_path.exists() else 0

    def _working_directory(self) -> Path | None:
        return None
