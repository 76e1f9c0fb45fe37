"""One directory, passed back and forth between Apache Kafka and kafkapy."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka, kafka_directory
from tests.server_process import ServerProcess
from tests.swap.dump import dump_everything
from tests.swap.harness import SwappedHarness

HEAP = ("-Xmx512M",)


class Variant(NamedTuple):
    """One course of the test. With `dynamic` the directory is formatted with --standalone; with `made_by_kafkapy`
    kafkapy formats it (always dynamic); with `killed` each broker is ended by kill -9."""

    version: str = "4.3.0"
    dynamic: bool = False
    log_dirs: int = 1
    made_by_kafkapy: bool = False
    killed: bool = False

    def __str__(self) -> str:
        maker = "kafkapy" if self.made_by_kafkapy else self.version
        quorum = "dynamic" if self.dynamic else "static"
        return f"{maker}-{quorum}-{self.log_dirs}dirs-{'killed' if self.killed else 'stopped'}"


def pass_back_and_forth(variant: Variant, directory: Path) -> None:
    """Starts Apache Kafka and kafkapy in turn on one directory. Each broker serves what the brokers before it wrote,
    and writes more. Nothing may be lost or become a stray."""
    kafka = ApacheKafka(
        kafka_directory(variant.version), directory, dynamic=variant.dynamic, log_dir_count=variant.log_dirs, heap=HEAP
    )
    ours = BrokerProcess(directory, config=kafka.config, port=kafka.port)
    harness = SwappedHarness()
    turns: list[ServerProcess] = [ours, kafka, ours] if variant.made_by_kafkapy else [kafka, ours, kafka, ours]
    for server in turns:
        server.start()
        try:
            harness.check(server.bootstrap)
            # Consumer groups (KIP-848) are enabled by default only in a directory of 4.x.
            harness.write(server.bootstrap, with_consumer_protocol=variant.version.startswith("4."))
            harness.check(server.bootstrap)
        finally:
            end(server, killed=variant.killed)
        harness.check_directories(kafka.log_dirs)
        if server is ours and not variant.killed:
            dump_everything(kafka_directory("4.3.0"), kafka.log_dirs)


def end(server: ServerProcess, *, killed: bool) -> None:
    if killed:
        server.kill()
    else:
        assert server.stop() in (0, 143, -15), server.log()[-4000:]
