"""The tests to run against a mutant, from a measurement made once for each target and kept in files."""

from __future__ import annotations

import ast
import hashlib
import json
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.mutation.targets import Target, own_tests, target_of

FIRST_TESTS = 80
SHORTEST_LIMIT_S, LONGEST_LIMIT_S = 40, 120  # for two runs of a test
_AT_IMPORT = ""

Measure = Callable[[tuple[str, ...]], dict[str, Any]]


class CoveringTests:
    """Chooses narrow tests for a line of a source, and their order; safe to use from several threads.

    `measure` runs tests under `tests.mutation.coverage_plugin` and returns what the plugin wrote. The measurement of a
    target is kept below `folder` for as long as no Python source of kafkapy and no narrow test of the target changes.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._folder = folder
        self._lock = threading.Lock()
        self._measured: dict[str, dict[str, Any]] = {}

    def of(self, path: str, line: int, measure: Measure) -> tuple[tuple[str, ...], ...]:
        """Returns lists of tests, to run one after the other until one fails.

        For a statement of Python these are the tests that execute it: the fastest, then the others. The measurement
        says nothing of Cython and of statements that an import executes; for these it is all narrow tests, by file:
        the file named like the source, then those that take the least time. An option before the tests shortens the
        time after which pytest ends a test that does not return.
        """
        target = target_of(path)
        with self._lock:
            if target.path not in self._measured:
                self._measured[target.path] = self._read_or_measure(target, measure)
        measured = self._measured[target.path]
        seconds: dict[str, float] = measured["seconds"]
        failed = set(measured["failed"])
        if path.endswith(".py"):
            contexts = measured["lines"].get(path, {})
            statement = _statement_lines((self._root / path).read_text(), line)
            names = {name for each in statement for name in contexts.get(str(each), ())}
            if _AT_IMPORT not in names:
                fastest = sorted(names - failed, key=lambda name: (seconds.get(name, 0.0), name))
                stages = (fastest[:FIRST_TESTS], fastest[FIRST_TESTS:])
                return tuple((_limit(tests, seconds), *tests) for tests in stages if tests)
        own = own_tests(self._root, path)
        by_file: dict[str, float] = {}
        for name, taken in seconds.items():
            file = name.partition("::")[0]
            by_file[file] = by_file.get(file, 0.0) + taken
        files = sorted(by_file, key=lambda file: (file not in own, by_file[file], file))
        return ((_limit(seconds, seconds), *files, *(f"--deselect={name}" for name in sorted(failed))),)

    def passed(self, test: str) -> bool:
        """Returns whether a measurement has seen that the test, or a test of this file, passes on the unchanged tree.

        The tests of a file that failed in the measurement are not run.
        """
        with self._lock:
            measured = list(self._measured.values())
        return any(
            name not in each["failed"]
            for each in measured
            for name in each["seconds"]
            if name == test or name.startswith(test + "::")
        )

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


def _limit(tests: Iterable[str], seconds: dict[str, float]) -> str:
    """Returns the option for the longest time that one of these tests may take."""
    longest_s = max((seconds.get(test, 0.0) for test in tests), default=0.0)
    return f"--timeout={min(LONGEST_LIMIT_S, int(SHORTEST_LIMIT_S + 10 * longest_s))}"


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
