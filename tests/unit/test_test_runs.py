"""Runs of pytest with the scheduler and the limits of our tests, on small tests that hang or end their process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.package_managers import fetch, made_once

ROOT = Path(__file__).parents[2]
CONFTEST = """\
from pathlib import Path

from tests.failed_tests import FailedTests
from tests.hung_tests import HungTestKiller, StalledRunKiller
from tests.scheduling import FileScheduling

def pytest_configure(config):
    config.pluginmanager.register(HungTestKiller(delay_s=2))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailedTests(Path("failed")))
        config.pluginmanager.register(StalledRunKiller({silence}))

def pytest_xdist_make_scheduler(config, log):
    return FileScheduling(config, log)
"""
PASSING = "def test_one():\n    pass\n\ndef test_two():\n    pass\n"
ENDS_ITS_PROCESS = "import os\n\ndef test_that_ends_its_process():\n    os._exit(1)\n\ndef test_after():\n    pass\n"


def run(
    directory: Path, files: dict[str, str], *options: str, silence: float = 100.0
) -> subprocess.CompletedProcess[str]:
    """Runs the tests of the files in two processes."""
    (directory / "conftest.py").write_text(CONFTEST.format(silence=silence))
    for name, content in files.items():
        (directory / name).write_text(content)
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", "-v", "-o", "timeout=60", *options]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    variables.pop("PYTEST_XDIST_WORKER", None)
    command += ["-p", "no:cacheprovider", "-p", "no:kafkapy", "-c", os.devnull, "--rootdir", str(directory), "."]
    return subprocess.run(
        command, cwd=directory, env=variables, capture_output=True, text=True, timeout=200, check=False
    )


def test_a_run_ends_if_a_process_dies_before_the_last_test_of_a_file(tmp_path: Path):
    files = {f"test_{number}.py": PASSING for number in range(6)}
    done = run(tmp_path, {"test_0_first.py": ENDS_ITS_PROCESS, "test_1_first.py": ENDS_ITS_PROCESS, **files})
    assert "2 failed, 14 passed" in done.stdout, done.stdout + done.stderr
    assert sorted((tmp_path / "failed").read_text().split()) == [
        "test_0_first.py::test_that_ends_its_process",
        "test_1_first.py::test_that_ends_its_process",
    ]


def test_a_run_ends_if_the_last_test_ends_its_process(tmp_path: Path):
    done = run(tmp_path, {"test_a.py": PASSING, "test_b.py": "import os\n\ndef test_last():\n    os._exit(1)\n"})
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr


HANGING_FINALIZER = """\
import ctypes
import pytest

@pytest.fixture
def held():
    yield
    ctypes.PyDLL(None).sleep(1000)  # keeps the interpreter lock

def test_that_fails_and_hangs(held):
    assert False
"""


def test_a_test_that_hangs_after_its_failure_ends(tmp_path: Path):
    done = run(tmp_path, {"test_a.py": HANGING_FINALIZER, "test_b.py": PASSING}, "-o", "timeout=1")
    assert "test_that_fails_and_hangs" in (tmp_path / "failed").read_text(), done.stdout + done.stderr
    assert "held" in done.stdout + done.stderr


def test_a_run_without_the_faulthandler_of_pytest_works(tmp_path: Path):
    """The run with sanitizers, whose own handlers of signals must stay."""
    done = run(tmp_path, {"test_a.py": PASSING, "test_b.py": PASSING}, "-p", "no:faulthandler")
    assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_a_run_without_progress_ends_and_names_its_tests(tmp_path: Path):
    hanging = "import time\n\ndef test_that_waits():\n    time.sleep(1000)\n"
    done = run(tmp_path, {"test_a.py": hanging, "test_b.py": PASSING}, silence=15.0)
    assert done.returncode == 3
    message = "No test began or ended for 15 s. These tests have begun and not ended:\ntest_a.py::test_that_waits\n"
    assert message in done.stderr


def test_a_fetch_that_fails_is_repeated(tmp_path: Path):
    script = "echo one >>attempts; [ $(wc -l <attempts) = 3 ]"
    fetch(["sh", "-c", script], tmp_path)
    assert (tmp_path / "attempts").read_text() == "one\n" * 3


def test_a_fetch_that_stalls_is_repeated(tmp_path: Path):
    script = "echo $NAME >>attempts; [ $(wc -l <attempts) = 2 ] || exec sleep 1000"
    fetch(["sh", "-c", script], tmp_path, {"NAME": "value"}, attempts_s=[0.5, 60])
    assert (tmp_path / "attempts").read_text() == "value\n" * 2


def test_the_last_failure_of_a_fetch_is_reported(tmp_path: Path):
    with pytest.raises(RuntimeError, match="ended with 7:\nno such package"):
        fetch(["sh", "-c", "echo no such package >&2; exit 7"], tmp_path, attempts_s=[60, 60])
    with pytest.raises(RuntimeError, match="the tests need no-such-program"):
        fetch(["no-such-program"])


def test_a_directory_is_filled_once(tmp_path: Path):
    made = []
    for _ in range(2):
        assert made_once(tmp_path / "a", lambda: made.append(1)) == tmp_path / "a"
    assert made == [1]
    with pytest.raises(RuntimeError, match="failed"):
        made_once(tmp_path / "b", fail)
    assert made_once(tmp_path / "b", lambda: made.append(2)) == tmp_path / "b"
    assert made == [1, 2]


def fail() -> None:
    raise RuntimeError("it failed")
