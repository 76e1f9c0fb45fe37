"""One shell of a newcomer, which keeps its variables, functions and folder from block to block."""

from __future__ import annotations

import time

from tests.documents.newcomer import Newcomer

_END = "=== end of the block, status"


class Shell:
    """A bash process that runs one block after the other. A context manager; ends with its standard input."""

    def __init__(self, newcomer: Newcomer) -> None:
        self._process = newcomer.opens_shell()
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self._input.close()
        self._process.wait(30)
        self._output.close()

    def types(self, text: str) -> str:
        """Runs a block and returns what it prints. Raises AssertionError if its last command fails."""
        self._input.write(f'{text.rstrip()}\necho "{_END} $?"\n')
        self._input.flush()
        lines = []
        for line in self._output:
            if line.startswith(_END):
                assert line.split()[-1] == "0", f"{text}\n{''.join(lines)}"
                return "".join(lines)
            lines.append(line)
        raise AssertionError(f"the shell has ended\n{text}\n{''.join(lines)}")

    def repeats(self, text: str, until: str, timeout_s: float = 120) -> None:
        """Repeats a command until its output contains `until`. Raises AssertionError with the last output after the
        time-out."""
        deadline = time.monotonic() + timeout_s
        while until not in (printed := self.types(text)):
            assert time.monotonic() < deadline, printed
            time.sleep(0.2)
