"""A newcomer's machine: a network of its own, in which port 9092 is free, an empty home, and the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.documents.blocks import ROOT

_LOOPBACK_UP = """
import fcntl, os, socket, struct, sys
with socket.socket() as any_socket:
    name = struct.pack("16sh22x", b"lo", 0x1 | 0x40)  # IFF_UP | IFF_RUNNING
    fcntl.ioctl(any_socket, 0x8914, name)  # SIOCSIFFLAGS
os.execvp(sys.argv[1], sys.argv[1:])
"""


class Newcomer:
    """Types the blocks of a page into one shell after the other, in a folder that looks like a clone.

    Owns a network namespace, which lives as long as the process that `__enter__` starts. Everything that was started
    ends with `__exit__`.
    """

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.clone = directory / "clone"
        self.home.mkdir()
        self.clone.mkdir()
        for entry in ROOT.iterdir():
            if entry.name not in (".git", "build", "dist"):
                (self.clone / entry.name).symlink_to(entry)
        self._logs = directory / "logs"
        self._logs.mkdir()
        self._environment = {
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PATH": os.environ["PATH"],
            "PYTHONPATH": "",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        self._background: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Newcomer:
        command = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-c", _LOOPBACK_UP, "cat"]
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._holder.stdin is not None and self._holder.stdout is not None
        self._holder.stdin.write(b"up\n")
        self._holder.stdin.flush()
        assert self._holder.stdout.readline() == b"up\n", "unshare(1) cannot make a network namespace for the test"
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._background):  # the broker is the last to end: its clients may need it for theirs
            process.terminate()
            process.wait(30)
        assert self._holder.stdin is not None
        self._holder.stdin.close()
        self._holder.wait(30)

    def types(self, text: str, kind: str = "sh", timeout_s: float = 60) -> str:
        """Runs a block to its end and returns what it prints. Raises AssertionError if its exit status is not 0."""
        done = subprocess.run(
            self._command(text, kind),
            cwd=self.clone,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done.stdout

    def leaves_running(self, text: str, until: str, kind: str = "sh", timeout_s: float = 60) -> subprocess.Popen[bytes]:
        """Runs a command in the background; returns its process once `until` is in its output."""
        log_path = self._logs / str(len(self._background))
        with log_path.open("wb") as output:
            process = subprocess.Popen(
                self._command(f"exec {text}" if kind == "sh" else text, kind),
                cwd=self.clone,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._background.append(process)
        deadline = time.monotonic() + timeout_s
        while until not in log_path.read_text(errors="replace"):
            assert process.poll() is None, log_path.read_text(errors="replace")
            assert time.monotonic() < deadline, log_path.read_text(errors="replace")
            time.sleep(0.05)
        return process

    def opens_shell(self) -> subprocess.Popen[str]:
        """Returns a shell that reads commands from its standard input."""
        return subprocess.Popen(
            self._command("exec bash", "sh"),
            cwd=self.clone,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def activates(self, line: str) -> None:
        """Runs the line that activates the environment, and keeps the path that it sets for what follows."""
        self._environment["PATH"] = self.types(f"{line}\necho $PATH").strip().splitlines()[-1]

    def _command(self, text: str, kind: str) -> list[str]:
        program = ["python", "-c", text] if kind == "python" else ["bash", "-euo", "pipefail", "-c", text]
        return ["nsenter", f"--target={self._holder.pid}", "--user", "--net", "--preserve-credentials", *program]
