"""A client library of another language or release, used through its program in programs/ (see PROTOCOL.md there)."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from tests.clients.client import GroupClient
from tests.clients.records import SentRecord

DEADLINE_SECONDS = 150
FIELDS_OF_A_RECORD = 6


class ProgramClient(GroupClient):
    """Owns the program's process, which the first command starts and all further commands use. Not thread-safe.

    After a failure the process is killed, and the next command starts another one. The program's standard error is
    written to the file `log`.
    """

    def __init__(self, name: str, command: list[str], log: Path) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._process: subprocess.Popen[str] | None = None

    def produce(self, bootstrap: str, topic: str, codec: str, records: Sequence[SentRecord]) -> None:
        lines = "".join(f"{record.line()}\n" for record in records)
        self._ask(f"produce\t{bootstrap}\t{topic}\t{codec}\t{len(records)}\n{lines}")

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[SentRecord]:
        return self._ask(f"consume\t{bootstrap}\t{topic}\t{partitions}\t{count}\t-\n")

    def consume_in_group(
        self, bootstrap: str, topic: str, group: str, count: int, partitions: int = 1
    ) -> list[SentRecord]:
        """Reads as a member of a group; before 0.9 a client has no coordinator and reads `partitions` partitions."""
        return self._ask(f"consume\t{bootstrap}\t{topic}\t{partitions}\t{count}\t{group}\n")

    def close(self) -> None:
        if self._process is not None:
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
            self._process.kill()
            self._process.wait()
            self._process = None

    def _ask(self, request: str) -> list[SentRecord]:
        """Sends a request and returns the records of the response. Raises AssertionError with the program's log."""
        process = self._running()
        timer = threading.Timer(DEADLINE_SECONDS, process.kill)
        timer.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(request)
            process.stdin.flush()
            return self._answer(process.stdout)
        except BaseException:
            self.close()
            raise
        finally:
            timer.cancel()

    def _answer(self, output: IO[str]) -> list[SentRecord]:
        received: list[SentRecord] = []
        for line in output:
            if line.startswith("ok\t"):
                return received
            if line.startswith("error\t"):
                output.read()  # waits until the program has ended, so that the log is complete
                raise AssertionError(f"{self.name}: {line}{self._last_words()}")
            # some releases also write their logging to standard output
            if line.count("\t") == FIELDS_OF_A_RECORD - 1:
                received.append(SentRecord.from_line(line))
        raise AssertionError(f"{self.name} ended, {len(received)} records read:\n{self._last_words()}")

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            with self._log.open("w") as log:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
                )
        return self._process

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]
