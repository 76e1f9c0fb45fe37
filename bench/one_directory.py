"""One directory for kafkapy and Apache Kafka in turn, to measure a start and what follows it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench import process_figures
from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka, kafka_directory
from tests.server_process import ServerProcess

SERVERS = ("kafkapy", "kafka")
START_TIMEOUT_S = 900.0


class OneDirectory:
    """A log directory `logs` under `root`, with a copy from which it is restored."""

    def __init__(self, root: Path, properties: Mapping[str, str], heap: str) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.kafka = ApacheKafka(
            kafka_directory("4.3.0"), root, dynamic=True, heap=(f"-Xmx{heap}",), properties=dict(properties)
        )
        self.kafka.start_timeout_s = START_TIMEOUT_S
        self.logs = self.kafka.log_dirs[0]
        self._saved = root / "saved"

    def kafkapy(self, properties: Mapping[str, str] | None = None) -> BrokerProcess:
        """Returns a kafkapy that is not started, on the directory, with additional `properties`."""
        broker = BrokerProcess(
            self.kafka.directory, config=self.kafka.config, port=self.kafka.port, properties=dict(properties or {})
        )
        broker.start_timeout_s = START_TIMEOUT_S
        return broker

    def save(self) -> None:
        shutil.copytree(self.logs, self._saved)

    def rounds(self, count: int) -> Iterator[tuple[str, ServerProcess]]:
        """Yields each server, not started, `count` times in turn.

        Before each turn the directory is restored.
        """
        for _ in range(count):
            for name in SERVERS:
                shutil.rmtree(self.logs)
                shutil.copytree(self._saved, self.logs)
                os.sync()
                yield name, self.kafkapy() if name == "kafkapy" else self.kafka


def peak_megabytes(server: ServerProcess) -> float:
    return process_figures.memory_mb(server.pid, peak=True)


def cpu_seconds(server: ServerProcess) -> float:
    return process_figures.cpu_seconds(server.pid)
