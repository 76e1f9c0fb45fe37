"""The console as a child process of the broker, for the key kafkapy.console.listener."""

from __future__ import annotations

import logging
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO

from kafkapy.config.listener import Listener, own_address
from kafkapy.errors import ConfigError

log = logging.getLogger("kafkapy.console")

# A console that was ended by a signal is started again after this time, which doubles for each end that follows soon.
FIRST_RESTART_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
# A console that has run for this time is taken to work: its next end is the first one again.
SETTLED_S = 300.0
CHILD_STOP_TIMEOUT_S = 5.0


def console_command(
    address: str, arguments: str, listeners: Sequence[Listener], metrics_file: str | None = None
) -> list[str]:
    """Returns the command that starts the console of a broker.

    `address` and `arguments` are the values of kafkapy.console.listener and kafkapy.console.arguments; `listeners` are
    the broker's listeners for clients. The console connects to the first listener without security or, if the arguments
    contain --command-config, to the first listener with the client configuration in that file. `metrics_file` is the
    broker's configuration file, if it configures a metrics listener, which the console then reads. Raises ConfigError
    if there is neither a listener without security nor --command-config, or if `arguments` cannot be divided into
    words.
    """
    try:
        words = shlex.split(arguments)
    except ValueError as error:
        raise ConfigError(f"kafkapy.console.arguments is not a list of arguments: {error}") from None
    has_config = any(word.partition("=")[0] == "--command-config" for word in words)
    server = own_address(listeners, is_secured=has_config)
    if server is None:
        raise ConfigError(
            "kafkapy.console.listener needs a listener of the security protocol PLAINTEXT, or a client's configuration "
            "for the console: set kafkapy.console.arguments=--command-config FILE"
        )
    program = [sys.executable] if getattr(sys, "frozen", False) else [sys.executable, "-m", "kafkapy"]
    own = ["--bootstrap-server", server, "--listener", address, "--until-end-of-input"]
    metrics = [] if metrics_file is None else ["--metrics", metrics_file]
    return [*program, "console", *own, *metrics, *words]


class ConsoleChild:
    """Runs the console until `stop`, and starts it again when a signal has ended it.

    A console that ends by itself is not started again, because its arguments are wrong. The standard input of the
    console is a pipe from this process; the console ends when the pipe is closed, so that it never outlives the broker.
    Its output, with the address to open, goes to `output`. Owns a thread that waits for the process.
    """

    def __init__(self, command: Sequence[str], output: IO[str]) -> None:
        self._command = list(command)
        self._output = output
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="console", daemon=True)

    @property
    def pid(self) -> int | None:
        """The id of the process; None while it does not run."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def start(self) -> None:
        """Starts the thread that runs the console's process and waits for it."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the console's process and the thread that waits for it.

        Blocks at most about CHILD_STOP_TIMEOUT_S seconds; a process that still runs then is killed.
        """
        with self._lock:
            self._stopping.set()
            process = self._process
        if process is not None:
            process.terminate()
            try:
                process.wait(CHILD_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join()

    def _run(self) -> None:
        pause_s = FIRST_RESTART_PAUSE_S
        while True:
            began_s = time.monotonic()
            status = self._run_once()
            if status is None or self._stopping.is_set():
                return
            if status >= 0:
                log.error("The console has ended with status %d and is not started again", status)
                return
            if time.monotonic() - began_s > SETTLED_S:
                pause_s = FIRST_RESTART_PAUSE_S
            log.warning("The console was ended by signal %d; it is started again in %g s", -status, pause_s)
            if self._stopping.wait(pause_s):
                return
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    def _run_once(self) -> int | None:
        """Runs the process and returns its status, which is negative after a signal.

        Returns None if the process cannot be started, or if `stop` was called before it was started.
        """
        with self._lock:
            if self._stopping.is_set():
                return None
            try:
                # A session of its own: Ctrl-C goes to the broker, which then stops the console.
                process = self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=self._output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                log.error("The console cannot be started: %s", error)
                return None
        try:
            return process.wait()
        finally:
            if process.stdin is not None:
                process.stdin.close()
