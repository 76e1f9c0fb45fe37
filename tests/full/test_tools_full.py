"""Every command line of side_by_side.py, compared with Apache Kafka's tools."""

from __future__ import annotations

import pytest

from tests.tools.conftest import broker, host, places  # noqa: F401 fixtures
from tests.tools.side_by_side import CASES, check


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.tool} {case.words[:60]}")
def test_as_apache_kafkas_tool(host, places, case):  # noqa: F811
    check(host, case, places)
