"""Apache Kafka as the peer of tests and benchmarks: its jars from Maven, a node on loopback, its tools.

The jars are stored in KAFKAPY_PEERS (default: `.peers` in the repository, which git ignores) once for all runs.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kafkapy.types import random_uuid, uuid_to_string
from tests.package_managers import fetch, made_once
from tests.ports import free_ports
from tests.server_process import ServerProcess

ROOT = Path(__file__).parents[1]
POM = Path(__file__).with_name("peer_pom.xml")
MAVEN = ("mvn", "-q", "-B", "-Dstyle.color=never")
# The options of Kafka's own start script.
BROKER_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
KAFKAS_HEAP = ("-Xmx1G", "-Xms1G")
LOG4J = """\
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
LOG4J2 = """\
Configuration:
  Appenders: {Console: {name: C, PatternLayout: {pattern: "[%d] %p %m (%c)%n"}}}
  Loggers: {Root: {level: INFO, AppenderRef: [{ref: C}]}}
"""


def peers_directory() -> Path:
    return Path(os.environ.get("KAFKAPY_PEERS") or ROOT / ".peers")


def kafka_directory(version: str) -> Path:
    """Returns the folder of a release, with `libs/*.jar` below it; Maven fetches a missing release."""
    directory = peers_directory() / f"kafka-{version}"

    def make() -> None:
        command = [*MAVEN, "-f", str(POM), f"-Dkafka.version={version}", "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={directory / 'libs'}", "-DincludeScope=runtime"]
        fetch([*command, *(["-Plog4j2"] if int(version.partition(".")[0]) >= 4 else [])])

    return made_once(directory, make)


def fetched_jar(artifact: str) -> Path:
    """Returns the jar of an artifact `group:name:version`, which Maven fetches once."""
    _, name, version = artifact.split(":")
    directory = peers_directory() / f"{name}-{version}"
    command = [*MAVEN, "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={directory}"]
    return made_once(directory, lambda: fetch(command)) / f"{name}-{version}.jar"


def run_tool(
    kafka: Path,
    class_name: str,
    *arguments: str,
    input: str | bytes | None = None,
    timeout_s: float = 90,
    check: bool = True,
) -> subprocess.CompletedProcess[bytes]:
    """Runs one of Apache Kafka's tools by its class and captures its output.

    Raises AssertionError if `check` is True and the tool fails. The classes are, by release:

    4.x: org.apache.kafka.tools.{TopicCommand,ConsoleProducer,ProducerPerformance,ConsumerPerformance,DumpLogSegments,
    ...}, org.apache.kafka.tools.consumer.ConsoleConsumer, kafka.admin.ConfigCommand, kafka.tools.StorageTool;
    3.9: kafka.tools.{ConsoleProducer,DumpLogSegments}, the rest as in 4.x.
    """
    options = ["-Xmx256M", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true"]
    done = subprocess.run(
        ["java", *options, "-cp", f"{kafka}/libs/*", class_name, *arguments],
        input=input.encode() if isinstance(input, str) else input,
        stdin=subprocess.DEVNULL if input is None else None,
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
    if check and done.returncode != 0:
        output = (done.stdout + done.stderr).decode("utf-8", "replace")
        raise AssertionError(f"{class_name} {' '.join(arguments)} ended with {done.returncode}:\n{output[-8000:]}")
    return done


class ApacheKafka(ServerProcess):
    """A single Apache Kafka node, broker and controller, on loopback.

    Its file and its log directories (`logs`, or `logs-0`, `logs-1`, ...) are under `directory`. With `dynamic` it is
    formatted with --standalone (the log names the voter), as in the quickstart of 4.x; otherwise the voters are static.
    """

    ready_line = re.compile(r"Kafka Server started")
    start_timeout_s = 90.0
    stop_timeout_s = 60.0
    format_options: tuple[str, ...] = ()  # further words for `kafka-storage format`

    def __init__(
        self,
        kafka: Path,
        directory: Path,
        port: int | None = None,
        *,
        dynamic: bool = False,
        log_dir_count: int = 1,
        properties: Mapping[str, str] | None = None,
        heap: tuple[str, ...] = KAFKAS_HEAP,
    ) -> None:
        super().__init__(directory, port)
        (self.controller_port,) = free_ports(1)
        self.kafka = kafka
        self.dynamic = dynamic
        self.heap = heap
        names = ["logs"] if log_dir_count == 1 else [f"logs-{index}" for index in range(log_dir_count)]
        self.log_dirs = [directory / name for name in names]
        self.config = directory / "server.properties"
        self.config.write_text("".join(f"{key}={value}\n" for key, value in self._settings(properties or {}).items()))
        (directory / "log4j.properties").write_text(LOG4J)
        (directory / "log4j2.yaml").write_text(LOG4J2)

    def command(self) -> list[str]:
        return [
            *self._java(),
            *self.heap,
            *BROKER_OPTIONS,
            "-cp",
            f"{self.kafka}/libs/*",
            "kafka.Kafka",
            str(self.config),
        ]

    def start(self) -> ApacheKafka:
        if not (self.log_dirs[0] / "meta.properties").exists():
            self.format()
        super().start()
        return self

    def format(self) -> None:
        """Writes meta.properties and bootstrap.checkpoint into every log directory."""
        command = [*self._java(), "-Xmx256M", "-cp", f"{self.kafka}/libs/*", "kafka.tools.StorageTool", "format"]
        command += ["-t", uuid_to_string(random_uuid()), "-c", str(self.config)]
        command += ["--standalone"] if self.dynamic else []
        command += self.format_options
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def tool(self, class_name: str, *arguments: str, **options: object) -> str:
        """Runs a tool of the same release and returns its standard output."""
        return run_tool(self.kafka, class_name, *arguments, **options).stdout.decode()  # type: ignore[arg-type]

    def _java(self) -> list[str]:
        log4j, log4j2 = self.directory / "log4j.properties", self.directory / "log4j2.yaml"
        return ["java", f"-Dlog4j.configuration=file:{log4j}", f"-Dlog4j2.configurationFile={log4j2}"]

    def _settings(self, properties: Mapping[str, str]) -> dict[str, str]:
        controller = f"localhost:{self.controller_port}"
        quorum = {"controller.quorum.voters": f"1@{controller}"}
        if self.dynamic:
            quorum = {"controller.quorum.bootstrap.servers": controller}
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            **quorum,
            "listeners": f"PLAINTEXT://localhost:{self.port},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://localhost:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": ",".join(map(str, self.log_dirs)),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **properties,
        }
