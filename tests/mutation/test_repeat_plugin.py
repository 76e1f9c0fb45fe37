"""A second run of a test that fails, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.mutation.__main__ import ROOT

TESTS = """
import pytest

made = []

@pytest.fixture(scope="module")
def number():
    made.append(0)
    return len(made)

def test_first(number):
    assert number > {fails_up_to}

def test_second(number):
    assert number == {expected}
"""


@pytest.mark.parametrize(
    ("fails_up_to", "expected", "passes"),
    [
        (0, 1, True),  # the fixture of the module is made once
        (1, 2, True),  # the second run has a new fixture
        (2, 3, False),
    ],
)
def test_only_a_test_that_fails_twice_is_reported(tmp_path, fails_up_to, expected, passes):
    file = tmp_path / "test_sample.py"
    file.write_text(TESTS.format(fails_up_to=fails_up_to, expected=expected))
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(tmp_path), "-p"]
    command += ["tests.mutation.repeat_plugin", "-rfE", "-q", str(file)]
    # The caller's options would change the report that is read here.
    variables = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert ("2 passed" if passes else "1 failed, 1 passed") in done.stdout, done.stdout
    assert ("test_sample.py::test_first" in done.stdout) is not passes
