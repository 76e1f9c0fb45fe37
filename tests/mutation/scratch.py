"""A copy of the working tree in which one mutant at a time is built and tested."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.mutation.pytest_server import TIMED_OUT

_LEFT_OUT = shutil.ignore_patterns(
    *(".git", ".venv", ".peers", ".hypothesis", ".*_cache", "__pycache__", "dist", "results", "*.egg-info")
)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+\.py(?:::.*?)?)(?: - .*)?$", re.MULTILINE)
_PYTEST = ("-q", "-n", "0", "-m", "not peer and not full")
_USAGE_ERROR, _NOTHING_COLLECTED = 4, 5


class PytestRun(NamedTuple):
    """`failed` names the first test that failed twice; it is empty if all passed or the time ran out."""

    passed: bool
    timed_out: bool
    failed: str
    output: str


class Scratch:
    """Owns the copy below `folder`. The working tree is only read."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder / "tree"
        if self.root.exists():
            shutil.rmtree(self.root)
        shutil.copytree(root, self.root, ignore=_LEFT_OUT, symlinks=True)
        self._kept = folder / "kept"
        self._mutated = folder / "mutated"
        self._built: tuple[str, str] | None = None
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.root), str(self.root / "spark_jobs")]),
            "OPENBLAS_NUM_THREADS": "1",  # a thread would not survive the fork of a run
            "LINES_OF_TESTS": str(folder / "lines.json"),
            "KAFKAPY_PEERS": os.environ.get("KAFKAPY_PEERS") or str(root / ".peers"),
            "PYTEST_XDIST_AUTO_NUM_WORKERS": "1",
        }
        imported = self._run([sys.executable, "-c", "import kafkapy; print(kafkapy.__file__)"], 60)
        if not imported.output.startswith(str(self.root)):
            raise RuntimeError(f"the copy would test another tree: {imported.output}")
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.mutation.pytest_server"],
            cwd=self.root,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def apply(self, path: str, source: str) -> bool:
        """Writes the mutated file and its extension; returns False if it does not compile.

        The extension of the latest mutant is kept, because a mutant is tested at least twice if a test fails.
        """
        file = self.root / path
        _copy(self._files_of(file), self._kept)
        if self._built == (path, source):
            _copy_back(self._mutated, self._files_of(file))
            return True
        file.write_text(source)
        if file.suffix != ".pyx":
            return _compiles(source)
        if not self._run([sys.executable, "-m", "tests.mutation.build_one", path], 900).passed:
            return False
        _copy(self._files_of(file), self._mutated)
        self._built = path, source
        return True

    def restore(self, path: str) -> None:
        """Brings back the file and what was built from it, with their times, so that nothing is rebuilt."""
        _copy_back(self._kept, self._files_of(self.root / path))

    def _files_of(self, file: Path) -> list[Path]:
        """Returns the file and what is built from it: the C source, and the extension in place and in `build`."""
        if file.suffix != ".pyx":
            return [file]
        built = self.root.glob(f"build/lib*/{file.parent.relative_to(self.root)}/{file.stem}.*.so")
        return [file, file.with_suffix(".c"), *sorted(file.parent.glob(f"{file.stem}.*.so")), *sorted(built)]

    def test(self, tests: tuple[str, ...], limit_s: float) -> PytestRun:
        """Runs tests up to the first that fails twice, without those that need Apache Kafka."""
        return self._pytest(("-p", "tests.mutation.repeat_plugin", "-x", "-rfE", "--tb=line", *tests), limit_s)

    def measure(self, tests: tuple[str, ...]) -> dict[str, Any]:
        """Runs tests under the coverage plugin, and returns what the plugin wrote."""
        lines = Path(self._environment["LINES_OF_TESTS"])
        lines.unlink(missing_ok=True)
        run = self._pytest(("-p", "tests.mutation.coverage_plugin", *tests), 3600)
        if not lines.exists():
            raise RuntimeError(run.output[-2000:])
        found: dict[str, Any] = json.loads(lines.read_text())
        return found

    def _pytest(self, arguments: tuple[str, ...], limit_s: float) -> PytestRun:
        assert self._server.stdin is not None and self._server.stdout is not None
        output = self._kept.with_suffix(".txt")
        request = {"arguments": [*_PYTEST, *arguments], "output": str(output), "limit_s": limit_s}
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        status = int(self._server.stdout.readline())
        text = output.read_text(errors="replace")
        if status == _USAGE_ERROR and "not found: " in text:
            raise LookupError(f"these tests do not exist: {arguments}\n{text[-2000:]}")
        failed = _FAILED.search(text) if status != TIMED_OUT else None
        return PytestRun(status in (0, _NOTHING_COLLECTED), status == TIMED_OUT, failed[1] if failed else "", text)

    def _run(self, command: list[str], limit_s: float) -> PytestRun:
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return PytestRun(False, True, "", process.communicate()[0])
        return PytestRun(process.returncode == 0, False, "", output)


def _copy(files: list[Path], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for number, each in enumerate(files):
        shutil.copy2(each, folder / str(number))


def _copy_back(folder: Path, files: list[Path]) -> None:
    for number, each in enumerate(files):
        shutil.copy2(folder / str(number), each)


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True
