"""Transactions of one client library, which a process of its own executes command by command.

A command is a line whose fields are separated by tabs; PRODUCER is a name that the test chooses:

    init PRODUCER BOOTSTRAP TRANSACTIONAL_ID TIMEOUT_MS
    begin PRODUCER, commit PRODUCER, abort PRODUCER
    send PRODUCER TOPIC VALUE...                  sends to partition 0 and waits for the acknowledgements
    offsets PRODUCER GROUP TOPIC OFFSET           adds an offset of partition 0 to the transaction
    seen BOOTSTRAP TOPIC ISOLATION                returns all values of partition 0

The response is `ok VALUE...` or `error WORDS`.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from tests.clients.legacy.installation import java_command, java_jars

FOLDER = Path(__file__).parent
DEADLINE_SECONDS = 60
JAVA_RELEASES = {"java-4.3": "4.3.0", "java-1.1": "1.1.1"}
TRANSACTORS = ("librdkafka", "aiokafka", *JAVA_RELEASES)


class Refused(Exception):
    """The client returned an error."""


class Transactor:
    """Owns the process, which is started by the first command. `directory` is for its log and compiled classes."""

    def __init__(self, name: str, directory: Path) -> None:
        self._log = directory / "program.log"
        if name in JAVA_RELEASES:
            self._command = _java(JAVA_RELEASES[name], directory / "classes")
        else:
            self._command = [sys.executable, str(FOLDER / "transactor_program.py"), name]
        self._process: subprocess.Popen[str] | None = None

    def ask(self, *words: str) -> list[str]:
        """Executes a command and returns the values of its response. Raises Refused."""
        if self._process is None:
            with self._log.open("a") as log:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
                )
        process = self._process
        timer = threading.Timer(DEADLINE_SECONDS, process.kill)
        timer.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\t".join(words) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                kind, _, rest = line.rstrip("\n").partition("\t")
                if kind == "ok":
                    return rest.split("\t") if rest else []
                if kind == "error":
                    raise Refused(rest)
        finally:
            timer.cancel()
        self.kill()
        raise AssertionError(f"{words}: the program ended:\n{self._log.read_text(errors='replace')[-4000:]}")

    def kill(self) -> None:
        """Kills the process, as a crash would, without a message to the broker."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _java(release: str, classes: Path) -> list[str]:
    jars, source = java_jars("kafka-clients", release), FOLDER / "Transactor.java"
    compiler = ["javac", "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", str(classes), str(source)]
    subprocess.run(compiler, check=True, capture_output=True, timeout=DEADLINE_SECONDS)
    return [*java_command(), "-cp", f"{classes}:{jars}/*", "Transactor"]
