"""The brokers that a benchmark compares: kafkapy, Apache Kafka and the ceiling, each a process on loopback."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from bench import process_figures
from bench.programs import BUILD, ceiling_program
from bench.security import CIPHER, PLAIN, Security, certificate_files
from tests.peers import ApacheKafka, kafka_directory
from tests.ports import free_port

START_TIMEOUT_S = 300
STOP_TIMEOUT_S = 300
MOST_AT_ONCE = 5_000  # Apache Kafka creates at most 10,000 records for one request
# Settings of every broker. The records of a deleted topic leave the page cache quickly.
SETTINGS = {
    "log.segment.delete.delay.ms": "100",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


def raise_descriptor_limit() -> None:
    """Raises the limit of open files as far as the system allows, for 10,000 partitions and 5,000 connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Returns as soon as the port accepts connections. Raises RuntimeError if the process ends before."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.002)
    raise RuntimeError(f"port {port} accepts no connections")


class Server(ABC):
    """A broker process with its data under `directory`. Subclasses define how it starts and creates topics.

    It may be started and stopped any number of times. An unclean stop is an error, because the next start would do
    other work (Apache Kafka waits for the session of the dead process to end, and recovers its logs).
    """

    name = ""
    clean_exits: tuple[int, ...] = (0,)

    def __init__(self, directory: Path, properties: Mapping[str, str], security: Security = PLAIN) -> None:
        self.directory = directory / self.name
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self.security = security
        self.properties = {**properties, **security.properties(self.directory)}
        self.port = free_port()
        self.load_port = free_port() if security.has_listener else self.port
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def load_bootstrap(self) -> str:
        return f"localhost:{self.load_port}" if self.security.has_listener else self.bootstrap

    @property
    def load_settings(self) -> tuple[str, ...]:
        return self.security.client_settings(self.directory)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @abstractmethod
    def command(self) -> list[str]:
        """Returns the words of the command line that starts the broker."""

    def environment(self) -> dict[str, str] | None:
        """Returns the environment of the broker process; None means this process's."""
        return None

    def start(self) -> None:
        """Starts the broker and returns as soon as its port accepts connections."""
        log = self.directory / "server.log"
        with log.open("ab") as output:
            self.process = subprocess.Popen(self.command(), stdout=output, stderr=output, env=self.environment())
        try:
            wait_for_port(self.port, self.process)
        except RuntimeError as error:
            raise RuntimeError(f"{self.name} did not start: {log.read_text()[-2000:]}") from error

    def secure(self) -> None:
        """Creates the user and the ACLs of the loads."""
        self.security.create(self.bootstrap)

    def stop(self) -> None:
        if self.process is not None and self.is_running:
            self.process.send_signal(signal.SIGTERM)
            status = self.process.wait(STOP_TIMEOUT_S)
            if status not in self.clean_exits:
                raise RuntimeError(f"{self.name} ended with {status} when it was asked to stop")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def remove(self) -> None:
        """Removes everything that the broker has on disk."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        self._admin_request(topic, partitions, dict(config))

    def delete_topic(self, topic: str) -> None:
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 3})
        for future in admin.delete_topics([topic]).values():
            future.result(30)

    def _admin_request(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 3, "socket.timeout.ms": 300000})
        wanted = NewTopic(topic, min(partitions, MOST_AT_ONCE), 1, config=config)
        for future in admin.create_topics([wanted], operation_timeout=300, request_timeout=300).values():
            future.result(300)
        for total in range(2 * MOST_AT_ONCE, partitions + MOST_AT_ONCE, MOST_AT_ONCE):
            more = NewPartitions(topic, min(total, partitions))
            for future in admin.create_partitions([more], operation_timeout=300, request_timeout=300).values():
                future.result(300)

    def pin(self, cores: set[int]) -> None:
        """Pins all threads of the broker to these cores."""
        for thread in process_figures.thread_ids(self.pid):
            os.sched_setaffinity(thread, cores)

    def cpu_seconds(self) -> float:
        """Returns the user and system time of the running process in seconds; 0 if the broker does not run."""
        return process_figures.cpu_seconds(self.pid) if self.is_running else 0.0

    def reset_peak_memory(self) -> None:
        if self.is_running:
            process_figures.reset_peak_memory(self.pid)

    def memory_mb(self, peak: bool = False) -> float:
        return process_figures.memory_mb(self.pid, peak)

    def threads(self) -> int:
        return len(process_figures.thread_ids(self.pid))

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))


def cached_environment() -> dict[str, str]:
    """Returns an environment in which bytecode is cached, as for an installed broker."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(BUILD / "bytecode")}


class Kafkapy(Server):
    name = "kafkapy"

    def command(self) -> list[str]:
        listeners = [f"PLAINTEXT://127.0.0.1:{self.port}"]
        if self.security.has_listener:
            listeners.append(f"{self.security.protocol}://localhost:{self.load_port}")
        settings = {
            "listeners": ",".join(listeners),
            "log.dirs": str(self.directory / "data"),
            **SETTINGS,
            **self.properties,
        }
        overrides = [word for key, value in settings.items() for word in ("--override", f"{key}={value}")]
        # -P: the working directory is not on the path, so that PYTHONPATH may name another tree.
        return [sys.executable, "-P", "-m", "kafkapy", "broker", "start", *overrides]

    def environment(self) -> dict[str, str]:
        return cached_environment()


def _secured_peer(protocol: str, port: int) -> type[ApacheKafka]:
    """Returns Apache Kafka with one more listener."""

    class Secured(ApacheKafka):
        def _settings(self, properties: Mapping[str, str]) -> dict[str, str]:
            settings = super()._settings(properties)
            for key in ("listeners", "advertised.listeners"):
                settings[key] += f",{protocol}://localhost:{port}"
            settings["listener.security.protocol.map"] += f",{protocol}:{protocol}"
            return settings

    return Secured


class Kafka(Server):
    name = "kafka"
    version = "4.3.0"
    clean_exits = (0, 143)  # a JVM that was shut down by SIGTERM exits with 128 + SIGTERM

    def __init__(self, directory: Path, properties: Mapping[str, str], security: Security = PLAIN) -> None:
        super().__init__(directory, properties, security)
        settings = {**SETTINGS, **self.properties}
        kind = _secured_peer(security.protocol, self.load_port) if security.has_listener else ApacheKafka
        self.peer = kind(kafka_directory(self.version), self.directory / "data", port=self.port, properties=settings)
        self.peer.start_timeout_s = START_TIMEOUT_S

    def command(self) -> list[str]:
        return self.peer.command()

    def start(self) -> None:
        self.peer.start()
        self.process = self.peer.process


class Kafka39(Kafka):
    """Apache Kafka 3.9, the last release that converts records down for old consumers."""

    name = "kafka39"
    version = "3.9.1"


class Ceiling(Server):
    """The C program of bench/ceiling. It has every topic, with the number of partitions that it was started with.

    With TLS it has no listener in plain text.
    """

    name = "ceiling"
    partitions = 1
    clean_exits = (0, -signal.SIGTERM)

    def __init__(self, directory: Path, properties: Mapping[str, str], security: Security = PLAIN) -> None:
        super().__init__(directory, properties, security)
        self.port = self.load_port

    def command(self) -> list[str]:
        words = [str(ceiling_program()), str(self.port), str(self.directory / "data"), str(self.partitions)]
        return [*words, *certificate_files(self.directory)] if self.security.has_listener else words

    def secure(self) -> None:
        """Does nothing: every client may connect."""

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        if partitions != self.partitions:
            self.stop()
            self.partitions = partitions
            self.start()

    def delete_topic(self, topic: str) -> None:
        """Truncates the topic's files, which frees their pages; the ceiling keeps them open."""
        for path in (self.directory / "data").glob(f"{topic}-*.log"):
            os.truncate(path, 0)


class OpenSsl(Server):
    """OpenSSL's own server, for the cost of handshakes. It serves one connection at a time."""

    name = "openssl"
    clean_exits = (0, -signal.SIGTERM)

    def command(self) -> list[str]:
        certificate, key = certificate_files(self.directory)
        files = ("-cert", certificate, "-key", key)
        protocol = ("-tls1_3", "-ciphersuites", CIPHER)
        # -www: the server does not read from its standard input.
        return ["openssl", "s_server", "-accept", f"127.0.0.1:{self.load_port}", *files, *protocol, "-www"]

    def start(self) -> None:
        with (self.directory / "server.log").open("ab") as output:
            self.process = subprocess.Popen(self.command(), stdout=output, stderr=output)
        wait_for_port(self.load_port, self.process)

    def secure(self) -> None:
        """Does nothing: every client may connect."""


SERVERS: dict[str, type[Server]] = {server.name: server for server in (Kafkapy, Kafka, Kafka39, Ceiling, OpenSsl)}
