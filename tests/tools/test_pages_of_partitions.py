"""The option `--partition-size-limit-per-response` limits the broker's responses, so that more requests are sent."""

from __future__ import annotations

from pathlib import Path

from tests.operations.watched_broker import WatchedBroker
from tests.tools.tool_host import run_ours

REQUESTS = "kafka_network_requestmetrics_requests_total"


def test_describe_asks_for_so_many_partitions_at_once(tmp_path: Path) -> None:
    with WatchedBroker(tmp_path) as broker:

        def topics(*words: str) -> str:
            done = run_ours("topics", "--bootstrap-server", broker.bootstrap, *words)
            assert (done.code, done.err) == (0, "")
            return done.out

        def asked() -> float:
            return sum(broker.page().values(REQUESTS, request="DescribeTopicPartitions"))

        topics("--create", "--topic", "paged", "--partitions", "7")
        whole = topics("--describe", "--topic", "paged")
        before = asked()
        assert topics("--describe", "--topic", "paged", "--partition-size-limit-per-response", "2") == whole
        assert asked() - before == 4
