"""A node of a sandbox, run as a child process of the supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kafkapy.sandbox.layout import NodePlan
from kafkapy.tools.server_start import READY_TEXT

_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
NEVER_STARTED, RUNNING, PAUSED, ENDED = "not started", "running", "paused", "ended"


class NodeProcess:
    """The process of one node. Only its parent process, the supervisor, sends it signals: a parent can tell whether its
    child still exists, so that no signal reaches another process with a reused id. Not thread-safe."""

    def __init__(self, plan: NodePlan, directory: Path, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """`directory` is the node's folder, which has its `server.properties`. `command` is the command line that runs
        the program `kafkapy`, and `environment` its environment."""
        self.plan = plan
        self.directory = directory
        self.output = directory / "node.log"
        self._command = [*command, "broker", "start", "--config", str(directory / "server.properties")]
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._output_start = 0
        self._is_ready = False
        self._is_paused = False
        self.is_expected_to_end = False

    @property
    def is_running(self) -> bool:
        """True while the process exists, even if it is paused."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.is_running else None

    @property
    def state(self) -> str:
        """The state as the command `status` shows it, such as "running" or "ended (SIGKILL)"."""
        if self._process is None:
            return NEVER_STARTED
        if self.is_running:
            return PAUSED if self._is_paused else RUNNING
        code = self._process.returncode
        return f"{ENDED} ({signal.Signals(-code).name if code < 0 else code})"

    def start(self) -> None:
        """Starts the process. On Linux, it receives SIGTERM when the supervisor ends."""
        assert not self.is_running
        with self.output.open("ab") as output:
            self._output_start = output.tell()
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,  # Ctrl-C goes to the supervisor only
                preexec_fn=_end_with_parent(),
            )
        self._is_ready = self._is_paused = self.is_expected_to_end = False

    def is_ready(self) -> bool:
        """Returns True once the node has printed that it is ready."""
        if not self._is_ready:
            with self.output.open("rb") as output:
                output.seek(self._output_start)
                self._is_ready = READY_TEXT.encode() in output.read()
        return self._is_ready

    def last_line(self) -> str:
        """Returns the last line that the process has printed, or a remark that it printed nothing."""
        lines = self.output.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it printed nothing"

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the process, if it exists. If a paused process gets a signal that ends it, it is also
        resumed, because it would not end otherwise."""
        if self._process is None or not self.is_running:
            return
        self.is_expected_to_end = self.is_expected_to_end or number in (signal.SIGTERM, signal.SIGKILL)
        self._process.send_signal(number)
        if number == signal.SIGSTOP:
            self._is_paused = True
        elif self._is_paused:
            if number != signal.SIGCONT:
                self._process.send_signal(signal.SIGCONT)
            self._is_paused = False


def _end_with_parent() -> Callable[[], None] | None:
    """Returns a function that makes a new process receive SIGTERM when the supervisor ends; None if the system is not
    Linux."""
    if sys.platform != "linux":
        return None
    import ctypes

    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def apply() -> None:
        prctl(_END_WITH_PARENT, signal.SIGTERM)
        if os.getppid() != parent:  # the supervisor ended before the call of prctl
            os._exit(1)

    return apply
