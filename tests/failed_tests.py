"""A list of the failed tests of a run, from which a second run can repeat them."""

from __future__ import annotations

from pathlib import Path

import pytest


class FailedTests:
    """Appends the id of each test that failed to a file, one a line, as `pytest @FILE` reads them.

    The file also has the tests that ended their process. Errors in fixtures count as failures. The file does not have
    test files that cannot be collected.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: set[str] = set()
        path.write_text("")

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and report.nodeid not in self._found:
            self._found.add(report.nodeid)
            with self._path.open("a") as file:
                file.write(f"{report.nodeid}\n")
