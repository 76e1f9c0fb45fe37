"""A service of kafkapy, or a program of the tests, in a process of its own."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.broker_process import ROOT
from tests.server_process import ServerProcess


class ToolProcess(ServerProcess):
    """`python -m MODULE WORDS`; the module is kafkapy unless `module` names another."""

    ready_line = re.compile(r"\bready$", re.MULTILINE)

    def __init__(self, directory: Path, words: list[str], module: str = "kafkapy") -> None:
        super().__init__(directory, 1)  # it has no port
        self._words = words
        self._module = module

    def command(self) -> list[str]:
        return [sys.executable, "-m", self._module, *self._words]

    def _working_directory(self) -> Path:
        return ROOT
