"""A pytest plugin that runs a test that fails a second time, and reports only what the second run did.

All fixtures are finalized before the second run, those of the module and of the session as well.
"""

from __future__ import annotations

import pytest
from _pytest.runner import call_and_report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = _run(item, nextitem)
    if any(each.failed for each in reports):
        reports = _run(item, nextitem)
    for each in reports:
        item.ihook.pytest_runtest_logreport(report=each)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _run(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    if isinstance(item, pytest.Function):
        item._initrequest()
    reports = [call_and_report(item, "setup", log=False)]
    if reports[0].passed:
        reports.append(call_and_report(item, "call", log=False))
    has_failed = any(each.failed for each in reports)
    reports.append(call_and_report(item, "teardown", log=False, nextitem=None if has_failed else nextitem))
    return reports
