"""A pytest plugin that writes which tests execute which lines of kafkapy's Python sources, and how long each took.

    LINES_OF_TESTS=lines.json python -m pytest -p tests.mutation.coverage_plugin tests/unit/storage

Only this process is measured, not the brokers and workers that a test starts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

_measured = coverage.Coverage(data_file=None, source=["kafkapy"], config_file=False, messages=False)
_seconds: dict[str, float] = {}
_failed: list[str] = []
_measured.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _measured.switch_context(item.nodeid)
    try:
        return (yield)
    finally:
        _measured.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if report.failed:
        _failed.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    _measured.stop()
    data = _measured.get_data()
    lines = {
        str(Path(file).relative_to(session.config.rootpath)): data.contexts_by_lineno(file)
        for file in data.measured_files()
    }
    found = {"seconds": _seconds, "failed": _failed, "lines": lines}
    Path(os.environ["LINES_OF_TESTS"]).write_text(json.dumps(found))
