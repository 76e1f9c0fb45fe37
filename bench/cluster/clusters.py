"""The clusters that a benchmark compares: three nodes on loopback, each broker and controller, of one program."""

from __future__ import annotations

import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import process_figures
from bench.programs import ceiling_program
from bench.servers import START_TIMEOUT_S, cached_environment
from kafkapy.errors import Error
from kafkapy.types import random_uuid, uuid_to_string
from tests.cluster.cluster import replication_of
from tests.cluster.nodes import ApacheNode, ClusterNode, Flavour, KafkapyNode
from tests.peers import BROKER_OPTIONS
from tests.ports import free_ports
from tests.server_process import ServerProcess

NODES = 3
IDS = (1, 2, 3)
# Timeouts are the defaults, which are the same in both programs.
SETTINGS = {
    **replication_of(NODES),
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "log.segment.delete.delay.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
}
HEAP = "-Xmx512M"


class Cluster(ABC):
    """Three nodes with the ids 1 to 3 and their data under `directory`.

    The rack of node N is rN. The nodes are ended by SIGKILL: without a majority a node would wait before it ends.
    """

    name = ""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / self.name
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self.nodes: Mapping[int, ServerProcess] = self.make_nodes()

    @abstractmethod
    def make_nodes(self) -> Mapping[int, ServerProcess]:
        """Returns the nodes by id, ready to be started."""

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers that run; of all brokers if none runs."""
        nodes = self.running or list(self.nodes.values())
        return ",".join(f"127.0.0.1:{node.port}" for node in nodes)

    @property
    def port(self) -> int:
        """The port of node 1."""
        return self.nodes[1].port

    @property
    def load_bootstrap(self) -> str:
        return self.bootstrap

    @property
    def load_port(self) -> int:
        return self.port

    @property
    def load_settings(self) -> tuple[str, ...]:
        return ()

    @property
    def running(self) -> list[ServerProcess]:
        return [node for node in self.nodes.values() if node.is_running]

    def start(self) -> None:
        """Starts all nodes at once, and returns when each of them is ready."""
        with ThreadPoolExecutor(NODES) as pool:
            for started in [pool.submit(node.start) for node in self.nodes.values()]:
                started.result()

    def kill(self) -> None:
        for node in self.running:
            node.kill()

    def remove(self) -> None:
        """Removes everything that the nodes have on disk."""
        shutil.rmtree(self.directory, ignore_errors=True)

    @abstractmethod
    def create_topic(self, topic: str, assignments: Sequence[Sequence[int]]) -> None:
        """Creates a topic; `assignments` are the nodes of each partition, the leader first."""

    @abstractmethod
    def delete_topic(self, topic: str) -> None:
        """Deletes a topic, so that its pages are free."""

    @abstractmethod
    def stored_bytes(self, topic: str, node_id: int) -> int:
        """Returns the size of all records of a topic on a node."""

    # -- figures, each of all nodes together

    def cpu_seconds(self) -> float:
        return sum(process_figures.cpu_seconds(node.pid) for node in self.running)

    def reset_peak_memory(self) -> None:
        for node in self.running:
            process_figures.reset_peak_memory(node.pid)

    def memory_mb(self, peak: bool = False) -> float:
        return sum(process_figures.memory_mb(node.pid, peak) for node in self.running)

    def threads(self) -> int:
        return sum(len(process_figures.thread_ids(node.pid)) for node in self.running)

    def wake_ups(self) -> int:
        return sum(process_figures.wake_ups(node.pid) for node in self.running)


class RealCluster(Cluster):
    """A cluster of a program that has Kafka's configuration, tools and protocol."""

    nodes: Mapping[int, ClusterNode]

    @abstractmethod
    def make_node(self, node_id: int, directory: Path, port: int, controller_port: int) -> ClusterNode:
        """Returns a node that is not formatted."""

    def make_nodes(self) -> Mapping[int, ClusterNode]:
        ports = free_ports(2 * NODES)
        nodes = {
            node_id: self.make_node(node_id, self.directory / f"node-{node_id}", *ports[2 * place : 2 * place + 2])
            for place, node_id in enumerate(IDS)
        }
        cluster_id = uuid_to_string(random_uuid())
        controllers = ",".join(node.controller_address for node in nodes.values())
        voters = [
            f"{node.node_id}@{node.controller_address}:{uuid_to_string(random_uuid())}" for node in nodes.values()
        ]
        with ThreadPoolExecutor(NODES) as pool:
            for node in nodes.values():
                node.start_timeout_s = START_TIMEOUT_S
                node.write_config({"controller.quorum.bootstrap.servers": controllers})
            flags = ["--initial-controllers", ",".join(voters)]
            for formatted in [pool.submit(node.format, cluster_id, flags) for node in nodes.values()]:
                formatted.result()
        return nodes

    def create_topic(self, topic: str, assignments: Sequence[Sequence[int]]) -> None:
        from kafkapy.client.admin import Admin, NewTopic

        with Admin({"bootstrap.servers": self.bootstrap}) as admin:
            wanted = NewTopic(topic, assignments=dict(enumerate(assignments)))
            result = admin.create_topics([wanted], timeout=START_TIMEOUT_S)
        # The client repeats a request whose controller has changed, after the first one may have created the topic.
        error = result.errors.get(topic)
        if error is not None and error.error is not Error.TOPIC_ALREADY_EXISTS:
            raise error

    def delete_topic(self, topic: str) -> None:
        from kafkapy.client.admin import Admin

        with Admin({"bootstrap.servers": self.bootstrap}) as admin:
            admin.delete_topics([topic], timeout=START_TIMEOUT_S).check()

    def stored_bytes(self, topic: str, node_id: int) -> int:
        partition = re.compile(re.escape(topic) + r"-\d+$")  # not a directory that is being deleted
        directories = [each for each in self.nodes[node_id].log_dir.glob(f"{topic}-*") if partition.match(each.name)]
        return sum(path.stat().st_size for each in directories for path in each.glob("*.log"))


class OurNode(KafkapyNode):
    """A node whose bytecode is cached, as for an installed broker."""

    def command(self) -> list[str]:
        python, *words = super().command()
        return [python, "-P", *words]  # the working directory is not on the path: PYTHONPATH may name another tree

    def environment(self) -> dict[str, str]:
        return cached_environment()


class TheirNode(ApacheNode):
    """A node with the options of Apache Kafka's own start script, and the heap of this benchmark."""

    def command(self) -> list[str]:
        return [*self.java(HEAP, *BROKER_OPTIONS), "kafka.Kafka", str(self.config)]


class KafkapyCluster(RealCluster):
    name = "kafkapy"

    def make_node(self, node_id: int, directory: Path, port: int, controller_port: int) -> ClusterNode:
        return OurNode(node_id, directory, port, controller_port, properties=SETTINGS)


class KafkaCluster(RealCluster):
    name = "kafka"

    def make_node(self, node_id: int, directory: Path, port: int, controller_port: int) -> ClusterNode:
        return TheirNode(Flavour.KAFKA_43, node_id, directory, port, controller_port, properties=SETTINGS)


class CeilingNode(ServerProcess):
    """A process of bench/ceiling that forwards to two others. It has every topic, with NODES partitions."""

    ready_line = re.compile(r"^ready$", re.MULTILINE)

    def __init__(self, directory: Path, place: int, ports: Sequence[int]) -> None:
        super().__init__(directory, ports[place])
        self._place = place
        self._ports = ports

    def command(self) -> list[str]:
        words = [self.port, self.directory / "data", NODES, self._place, *self._ports]
        return [str(ceiling_program()), *map(str, words)]


class CeilingCluster(Cluster):
    """Three of the C programs. Partition 0 is led by node 1, partition 1 by node 2, partition 2 by node 3."""

    name = "ceiling"

    def make_nodes(self) -> Mapping[int, ServerProcess]:
        ports = free_ports(NODES)
        ceiling_program()
        return {node_id: CeilingNode(self.directory / f"node-{node_id}", node_id - 1, ports) for node_id in IDS}

    def create_topic(self, topic: str, assignments: Sequence[Sequence[int]]) -> None:
        if any(replicas[0] != IDS[partition % NODES] for partition, replicas in enumerate(assignments)):
            raise RuntimeError(f"the ceiling has other leaders than {assignments}")

    def delete_topic(self, topic: str) -> None:
        """Truncates the topic's files, which frees their pages; the ceiling keeps them open."""
        for node_id in IDS:
            for path in self._files(topic, node_id):
                os.truncate(path, 0)

    def stored_bytes(self, topic: str, node_id: int) -> int:
        return sum(path.stat().st_size for path in self._files(topic, node_id))

    def _files(self, topic: str, node_id: int) -> list[Path]:
        return list((self.nodes[node_id].directory / "data").glob(f"{topic}-*.log"))


CLUSTERS: dict[str, type[Cluster]] = {
    cluster.name: cluster for cluster in (KafkapyCluster, KafkaCluster, CeilingCluster)
}


def cluster_of(tree: Path) -> type[Cluster]:
    """Returns a cluster class with the name `before`, whose nodes run the kafkapy of `tree`, the work tree of another
    commit."""

    class NodeBefore(OurNode):
        def environment(self) -> dict[str, str]:
            return {**super().environment(), "PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": str(tree / "bytecode")}

    class Before(KafkapyCluster):
        name = "before"

        def make_node(self, node_id: int, directory: Path, port: int, controller_port: int) -> ClusterNode:
            return NodeBefore(node_id, directory, port, controller_port, properties=SETTINGS)

    return Before
