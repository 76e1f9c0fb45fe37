"""Every command line of the admin client's tools, compared with Apache Kafka's tools."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker_process import BrokerProcess
from tests.peers import kafka_directory
from tests.tools.admin_comparisons import REST, SAMPLE
from tests.tools.admin_tool_harness import AdminToolHarness, member_of
from tests.tools.comparison import Comparison
from tests.tools.tool_host import ToolHost


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminToolHarness]:
    classes, files = tmp_path_factory.mktemp("classes"), tmp_path_factory.mktemp("files")
    with (
        BrokerProcess(tmp_path_factory.mktemp("broker")) as broker,
        ToolHost(kafka_directory("4.3.0"), classes) as host,
    ):
        made = AdminToolHarness(host, broker.bootstrap, files)
        with member_of(broker.bootstrap, "active", "orders-active"):
            yield made


@pytest.mark.timeout(120)
@pytest.mark.parametrize("comparison", [*SAMPLE, *REST], ids=lambda each: f"{each.tool} {each.words}")
def test_same_as_apache_kafkas(harness: AdminToolHarness, comparison: Comparison) -> None:
    harness.compare(comparison)
