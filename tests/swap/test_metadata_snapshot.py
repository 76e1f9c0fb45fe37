"""A broker starts from a metadata snapshot of the other: topics, configuration, quotas and SCRAM credentials."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka, run_tool
from tests.server_process import ServerProcess
from tests.swap.dump import dump_everything
from tests.swap.harness import SwappedHarness
from tests.swap.swap import HEAP, end

CONFIG_TOOL = "kafka.admin.ConfigCommand"
SMALL = {"metadata.log.max.record.bytes.between.snapshots": "2000"}


class Users:
    """Quotas and credentials, set and read with Apache Kafka's own tool."""

    def __init__(self, kafka: Path) -> None:
        self.kafka = kafka
        self.rates: dict[str, int] = {}

    def write(self, bootstrap: str) -> None:
        name, rate = f"user-{len(self.rates)}", 1000 * (len(self.rates) + 1)
        for added in (f"producer_byte_rate={rate}", "SCRAM-SHA-256=[iterations=4096,password=secret]"):
            self._tool(bootstrap, "--alter", "--entity-type", "users", "--entity-name", name, "--add-config", added)
        self.rates[name] = rate

    def check(self, bootstrap: str) -> None:
        said = self._tool(bootstrap, "--describe", "--entity-type", "users") if self.rates else ""
        for name, rate in self.rates.items():
            assert f"Quota configs for user-principal '{name}' are producer_byte_rate={rate}.0" in said, said
            assert f"SCRAM credential configs for user-principal '{name}' are SCRAM-SHA-256=iterations=4096" in said, (
                said
            )

    def _tool(self, bootstrap: str, *arguments: str) -> str:
        done = run_tool(self.kafka, CONFIG_TOOL, "--bootstrap-server", bootstrap, *arguments)
        return done.stdout.decode()


@pytest.mark.timeout(400)
def test_each_begins_at_a_snapshot_of_the_other(kafka_43: Path, tmp_path: Path) -> None:
    kafka = ApacheKafka(kafka_43, tmp_path, dynamic=True, heap=HEAP, properties=SMALL)
    ours = BrokerProcess(tmp_path, config=kafka.config, port=kafka.port)
    harness, users = SwappedHarness(), Users(kafka_43)
    turns: list[ServerProcess] = [ours, kafka, ours]
    last = 0
    for server in turns:
        server.start()
        try:
            harness.check(server.bootstrap)
            users.check(server.bootstrap)
            users.write(server.bootstrap)
            harness.write(server.bootstrap)
            users.check(server.bootstrap)
        finally:
            end(server, killed=False)
        newest = newest_snapshot(kafka.log_dirs[0])
        assert newest > last, "this broker has made no snapshot: the next one would begin at the old one"
        last = newest
    harness.check_directories(kafka.log_dirs)
    dump_everything(kafka_43, kafka.log_dirs)


def newest_snapshot(log_dir: Path) -> int:
    """Returns the end offset of the newest snapshot, 0 without one."""
    names = [path.name for path in (log_dir / "__cluster_metadata-0").glob("*-*.checkpoint")]
    return max((int(name.partition("-")[0]) for name in names), default=0)
