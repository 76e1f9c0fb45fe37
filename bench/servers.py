"""The brokers that a benchmark compares: kafkapy, Apache Kafka, and the ceiling. One at a time, on loopback."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from bench.programs import ceiling_program
from tests.peers import ApacheKafka, kafka_directory

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """A broker process with its data under `directory`. Subclasses say how it is started and its topics made."""

    name = ""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / self.name
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def command(self) -> list[str]:
        raise NotImplementedError

    def start(self) -> None:
        log = (self.directory / "server.log").open("ab")
        self.process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.002)
        raise RuntimeError(f"{self.name} did not start: {(self.directory / 'server.log').read_text()[-2000:]}")

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)

    def create_topic(self, topic: str, partitions: int) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            future.result(30)

    def cpu_seconds(self) -> float:
        """User and system time of the broker's process so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS

    def memory_mb(self, peak: bool = False) -> float:
        key = "VmHWM:" if peak else "VmRSS:"
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(key):
                return int(line.split()[1]) / 1024
        raise RuntimeError(f"no {key} of process {self.pid}")

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))


class Kafkapy(Server):
    name = "kafkapy"

    def command(self) -> list[str]:
        settings = [f"listeners=PLAINTEXT://127.0.0.1:{self.port}", f"log.dirs={self.directory / 'data'}"]
        overrides = [word for setting in settings for word in ("--override", setting)]
        return [sys.executable, "-m", "kafkapy", "broker", "start", *overrides]


class Kafka(Server):
    name = "kafka"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.peer = ApacheKafka(kafka_directory("4.3.0"), self.directory / "data", port=self.port)

    def start(self) -> None:
        self.peer.start()
        self.process = self.peer.process


class Ceiling(Server):
    name = "ceiling"
    partitions = 1

    def command(self) -> list[str]:
        return [str(ceiling_program()), str(self.port), str(self.directory / "data"), str(self.partitions)]

    def create_topic(self, topic: str, partitions: int) -> None:
        """The ceiling has every topic, with the number of partitions that it was started with."""
        if partitions != self.partitions:
            self.stop()
            self.partitions = partitions
            self.start()


SERVERS: dict[str, type[Server]] = {server.name: server for server in (Kafkapy, Kafka, Ceiling)}
