"""A broker with temporary data, as a child process."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from kafkapy.client.admin import Admin

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0


class BrokerFailed(Exception):
    """A failure of the broker to start, to keep running or to end; the message includes its standard error."""


class Broker:
    """A broker on a random port of loopback. Not thread-safe; `bootstrap_servers` may be read by any thread.

    Topics are created by `create_topic`, or by the broker when a client first uses them. A stopped broker may be
    started again, any number of times; each start begins without data.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        command: Sequence[str] = (sys.executable, "-P", "-m", "kafkapy"),
    ) -> None:
        """Creates a broker that is not started.

        `settings` are keys of the broker's configuration, such as {"num.partitions": 3}. `command` is the command line
        that runs the program `kafkapy`; the default command does not import modules from the current folder.
        """
        self._command = [*command, "broker", "start", "--ephemeral", "--until-end-of-input"]
        for key, value in (settings or {}).items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            self._command.append(f"--override={key}={text}")
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._port: int | None = None
        self._creator: Admin | None = None  # creates all topics, because a connection takes ten milliseconds

    @property
    def port(self) -> int:
        """The port of the broker's first listener. Raises BrokerFailed if the broker was not started."""
        if self._port is None:
            raise BrokerFailed("the broker was not started")
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        """The address for a client's `bootstrap.servers`. Raises BrokerFailed if the broker was not started."""
        return f"localhost:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, timeout_s: float = START_TIMEOUT_S) -> Self:
        """Starts the broker and returns when it serves clients.

        Raises BrokerFailed if the broker is running already, ends by itself, or does not serve within `timeout_s`.
        """
        if self.is_running:
            raise BrokerFailed("the broker is running already")
        self._close_creator()  # of a broker that has ended by itself, at another port
        self._release()
        # A file instead of a pipe: nothing reads it while the broker runs, and a full pipe would block the broker.
        self._errors = tempfile.TemporaryFile(prefix="kafkapy-errors-")  # noqa: SIM115
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C goes to the tests only, whose end stops the broker
        )
        try:
            self._port = self._read_port(self._process, timeout_s)
        except BaseException:
            self._process.kill()
            self._release()
            raise
        return self

    def _read_port(self, process: subprocess.Popen[bytes], timeout_s: float) -> int:
        """Returns the port that the broker prints.

        Raises BrokerFailed if the broker ends before it prints a port, or has not printed one within `timeout_s`.
        """
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            line = process.stdout.readline() if selector.select(timeout_s) else None
        if line is None:
            raise BrokerFailed(f"the broker was not ready after {timeout_s:g} s\n{self.errors()}".strip())
        if not line.strip().isdigit():
            process.wait(STOP_TIMEOUT_S)
            raise BrokerFailed(f"the broker did not start (exit status {process.returncode})\n{self.errors()}".strip())
        return int(line)

    def errors(self) -> str:
        """Returns what the broker has printed to standard error so far: warnings and errors."""
        if self._errors is None:
            return ""
        return os.pread(self._errors.fileno(), 1 << 20, 0).decode(errors="replace").strip()

    def stop(self) -> None:
        """Stops the broker and removes its data; does nothing if the broker is not running.

        Raises BrokerFailed if the broker had ended by itself, ends with another exit status than 0, or does not end
        within STOP_TIMEOUT_S.
        """
        process = self._process
        if process is None:
            return
        ended = process.poll()
        try:
            self._close_creator()
            assert process.stdin is not None
            process.stdin.close()
            process.wait(STOP_TIMEOUT_S)
            if ended is not None or process.returncode != 0:
                when = "before it was stopped " if ended is not None else ""
                raise BrokerFailed(
                    f"the broker ended {when}(exit status {process.returncode})\n{self.errors()}".strip()
                )
        except subprocess.TimeoutExpired:
            process.kill()
            raise BrokerFailed(f"the broker did not end within {STOP_TIMEOUT_S:g} s\n{self.errors()}".strip()) from None
        finally:
            self._release()

    def _close_creator(self) -> None:
        creator, self._creator = self._creator, None
        if creator is not None:
            creator.close()

    def _release(self) -> None:
        """Closes the files of the process and reaps it."""
        process, self._process, self._port = self._process, None, None
        if process is not None:
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
            process.wait()
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def create_topic(self, name: str, partitions: int = -1, configs: Mapping[str, str] | None = None) -> str:
        """Creates a topic and returns its name. -1 partitions mean `num.partitions` of the broker.

        Raises ApiError if the topic exists already.
        """
        from kafkapy.client.admin import NewTopic

        if self._creator is None:
            self._creator = self.admin()
        self._creator.create_topics([NewTopic(name, partitions, configs=dict(configs or {}))]).check()
        return name

    def admin(self, **settings: Any) -> Admin:
        """Returns a new admin client that is connected to this broker; the caller closes it.

        `settings` are keys of the client's configuration in addition to `bootstrap_servers`.
        """
        from kafkapy.client.admin import Admin

        return Admin(bootstrap_servers=self.bootstrap_servers, **settings)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
