"""The tests that execute a line of Python, measured once for each target and kept in files."""

from __future__ import annotations

import ast
import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.mutation.targets import Target, target_of

FIRST_TESTS = 80
SHORTEST_LIMIT_S = 20
_AT_IMPORT = ""

Measure = Callable[[tuple[str, ...]], dict[str, Any]]


class CoveringTests:
    """Finds the narrow tests that execute a line of a Python source; safe to use from several threads.

    `measure` runs tests under `tests.mutation.coverage_plugin` and returns what the plugin wrote. The measurement of a
    target is kept below `folder` for as long as no Python source of kafkapy and no narrow test of the target changes.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._folder = folder
        self._lock = threading.Lock()
        self._measured: dict[str, dict[str, Any]] = {}

    def of(self, path: str, line: int, measure: Measure) -> tuple[tuple[str, ...], ...] | None:
        """Returns the tests that execute the statement in this line in two lists: the fastest, then the others.

        An option before them shortens the time after which pytest ends a test that does not return. Returns None where
        the measurement says nothing: in Cython sources, and in statements executed by an import.
        """
        if not path.endswith(".py"):
            return None
        target = target_of(path)
        with self._lock:
            if target.path not in self._measured:
                self._measured[target.path] = self._read_or_measure(target, measure)
        measured = self._measured[target.path]
        contexts = measured["lines"].get(path, {})
        statement = _statement_lines((self._root / path).read_text(), line)
        names = {name for each in statement for name in contexts.get(str(each), ())}
        if _AT_IMPORT in names:
            return None
        failed = set(measured["failed"])
        fastest = sorted(names - failed, key=lambda name: (measured["seconds"].get(name, 0.0), name))
        stages = []
        for tests in (fastest[:FIRST_TESTS], fastest[FIRST_TESTS:]):
            if tests:
                limit_s = min(120, int(SHORTEST_LIMIT_S + 10 * measured["seconds"].get(tests[-1], 0.0)))
                stages.append((f"--timeout={limit_s}", *tests))
        return tuple(stages)

    def passed(self, test: str) -> bool:
        """Returns whether a measurement has seen that the test passes on the unchanged tree."""
        with self._lock:
            measured = list(self._measured.values())
        return any(test in each["seconds"] and test not in each["failed"] for each in measured)

    def _read_or_measure(self, target: Target, measure: Measure) -> dict[str, Any]:
        folders = ("kafkapy", *target.narrow)
        files = {file for folder in folders for file in (self._root / folder).rglob("*.py")}
        files |= {self._root / folder for folder in folders if folder.endswith(".py")}
        digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()[:16]
        kept = self._folder / f"{target.path.replace('/', '-')}-{digest}.json"
        if not kept.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(measure(target.narrow)))
        found: dict[str, Any] = json.loads(kept.read_text())
        return found


def _statement_lines(source: str, line: int) -> range:
    """Returns the lines of the innermost statement around the line; of a compound statement, those of its head."""
    found = range(line, line + 1)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if isinstance(body, list) and body[0].lineno > node.lineno else node.end_lineno
            if last is not None and node.lineno <= line <= last:
                found = range(node.lineno, last + 1)  # the walk reaches inner statements after outer ones
    return found
