"""One node of a cluster as a process: kafkapy, or a release of Apache Kafka."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path

from tests.peers import LOG4J, LOG4J2, kafka_directory
from tests.server_process import ServerProcess

ROOT = Path(__file__).parents[2]
BOTH, BROKER, CONTROLLER = "broker,controller", "broker", "controller"
# A small heap and little compilation: the nodes of several clusters share a small machine.
JAVA_OPTIONS = ("-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")


class Flavour(Enum):
    """The program of a node; the value is the release of Apache Kafka."""

    KAFKAPY = ""
    KAFKA_43 = "4.3.0"
    KAFKA_39 = "3.9.1"


class ClusterNode(ServerProcess):
    """A node with its file (`server.properties`), its log directories and its output under `directory`.

    `port` is that of the broker's listener and `controller_port` that of the controller's; a node without the role does
    not listen there. `as_flavour` returns the same node, with its directories, as another program.

    `public_ports` are the ports at which clients and other nodes find the two listeners, if they are those of proxies.
    `extra_environment` is added to the environment of the process.
    """

    stop_timeout_s = 60.0

    def __init__(
        self,
        node_id: int,
        directory: Path,
        port: int,
        controller_port: int,
        *,
        roles: str = BOTH,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(directory, port)
        self.node_id = node_id
        self.controller_port = controller_port
        self.roles = roles
        self.properties = dict(properties or {})
        self.config = directory / "server.properties"
        self.is_paused = False
        self.public_ports = (port, controller_port)
        self.extra_environment: dict[str, str] = {}

    def environment(self) -> dict[str, str] | None:
        return {**os.environ, **self.extra_environment} if self.extra_environment else None

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def log_dir(self) -> Path:
        return self.directory / "logs"

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.public_ports[0]}"

    @property
    def controller_address(self) -> str:
        return f"127.0.0.1:{self.public_ports[1]}"

    @property
    def is_formatted(self) -> bool:
        return (self.log_dir / "meta.properties").exists()

    @property
    def directory_id(self) -> str:
        """The id of the formatted log directory."""
        properties = (self.log_dir / "meta.properties").read_text()
        found = re.search(r"^directory\.id=(\S+)", properties, re.MULTILINE)
        assert found is not None, properties
        return found[1]

    @abstractmethod
    def storage_tool(self) -> list[str]:
        """Returns the words that run this program's own `kafka-storage`."""

    def write_config(self, quorum: Mapping[str, str]) -> None:
        """Writes the node's configuration file; `quorum` are the keys by which the node finds the controllers."""
        self.config.write_text("".join(f"{key}={value}\n" for key, value in self._settings(quorum).items()))

    def format(self, cluster_id: str, flags: Iterable[str] = ()) -> None:
        """Formats the directories by this program's own tool. Raises AssertionError if the tool refuses."""
        command = [*self.storage_tool(), "format", "-t", cluster_id, "-c", str(self.config), *flags]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=90, check=False, cwd=self._working_directory()
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def pause(self) -> None:
        """Stops the process with SIGSTOP: its connections stay open, but it sends nothing."""
        os.kill(self.pid, signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        self.is_paused = False

    def kill(self) -> int:
        self.is_paused = False
        return super().kill()

    def lose_disk(self) -> None:
        """Removes the data of a stopped node."""
        assert not self.is_running
        shutil.rmtree(self.log_dir)

    def as_flavour(self, flavour: Flavour) -> ClusterNode:
        """Returns this node, which must not run, as another program on the same directories."""
        assert not self.is_running
        node = make_node(
            flavour,
            self.node_id,
            self.directory,
            self.port,
            self.controller_port,
            roles=self.roles,
            properties=self.properties,
        )
        node.public_ports = self.public_ports
        node.extra_environment = self.extra_environment
        return node

    def _settings(self, quorum: Mapping[str, str]) -> dict[str, str]:
        listeners, advertised = [], []
        if self.is_broker:
            listeners.append(f"PLAINTEXT://127.0.0.1:{self.port}")
            advertised.append(f"PLAINTEXT://{self.bootstrap}")
        if self.is_controller:
            listeners.append(f"CONTROLLER://127.0.0.1:{self.controller_port}")
            advertised.append(f"CONTROLLER://{self.controller_address}")
        settings = {
            "process.roles": self.roles,
            "node.id": str(self.node_id),
            **quorum,
            "listeners": ",".join(listeners),
            "advertised.listeners": ",".join(advertised),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.log_dir),
        }
        if self.is_broker:
            settings["inter.broker.listener.name"] = "PLAINTEXT"
            settings["broker.rack"] = f"r{self.node_id}"
        return settings | self.properties


class KafkapyNode(ClusterNode):
    """A node of kafkapy."""

    ready_line = re.compile(r"^kafkapy\b.*\bready\b", re.MULTILINE)
    flavour = Flavour.KAFKAPY

    def command(self) -> list[str]:
        return [sys.executable, "-m", "kafkapy", "broker", "start", "--config", str(self.config)]

    def storage_tool(self) -> list[str]:
        return [sys.executable, "-m", "kafkapy", "storage"]

    def _working_directory(self) -> Path:
        return ROOT


class ApacheNode(ClusterNode):
    """A node of a release of Apache Kafka."""

    ready_line = re.compile(r"Kafka Server started")
    start_timeout_s = 90.0

    def __init__(self, flavour: Flavour, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self.flavour = flavour
        self.kafka = kafka_directory(flavour.value)
        (self.directory / "log4j.properties").write_text(LOG4J)
        (self.directory / "log4j2.yaml").write_text(LOG4J2)

    def command(self) -> list[str]:
        return [*self.java(*JAVA_OPTIONS), "kafka.Kafka", str(self.config)]

    def storage_tool(self) -> list[str]:
        return [*self.java(*JAVA_OPTIONS), "kafka.tools.StorageTool"]

    def java(self, *options: str) -> list[str]:
        """Returns the words that run a class of this release with these options of the JVM."""
        log4j, log4j2 = self.directory / "log4j.properties", self.directory / "log4j2.yaml"
        logging = [f"-Dlog4j.configuration=file:{log4j}", f"-Dlog4j2.configurationFile={log4j2}"]
        return ["java", *options, *logging, "-cp", f"{self.kafka}/libs/*"]


def make_node(
    flavour: Flavour,
    node_id: int,
    directory: Path,
    port: int,
    controller_port: int,
    *,
    roles: str = BOTH,
    properties: Mapping[str, str] | None = None,
) -> ClusterNode:
    """Returns a node that runs the program of `flavour`."""
    if flavour is Flavour.KAFKAPY:
        return KafkapyNode(node_id, directory, port, controller_port, roles=roles, properties=properties)
    return ApacheNode(flavour, node_id, directory, port, controller_port, roles=roles, properties=properties)
