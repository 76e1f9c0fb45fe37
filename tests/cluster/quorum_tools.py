"""Apache Kafka's tools for the quorum, against a test cluster."""

from __future__ import annotations

from kafkapy.types import uuid_from_string
from tests.cluster.cluster import Cluster
from tests.cluster.nodes import ClusterNode
from tests.peers import kafka_directory, run_tool

FEATURES = "org.apache.kafka.tools.FeatureCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"


def features(cluster: Cluster, *words: str, fails: bool = False) -> str:
    """Returns the output of kafka-features on any broker."""
    return _output(FEATURES, ["--bootstrap-server", cluster.bootstrap, *words], fails=fails)


def quorum(cluster: Cluster, *words: str, through_controllers: bool = False, fails: bool = False) -> str:
    """Returns the output of kafka-metadata-quorum on any broker or controller."""
    flag, servers = "--bootstrap-server", cluster.bootstrap
    if through_controllers:
        flag, servers = "--bootstrap-controller", cluster.bootstrap_controllers
    return _output(QUORUM, [flag, servers, *words], fails=fails)


def add_controller(cluster: Cluster, node: ClusterNode) -> str:
    """Returns the output of kafka-metadata-quorum add-controller for a node, with the node's own file."""
    words = ["--command-config", str(node.config), "--bootstrap-server", cluster.bootstrap, "add-controller"]
    return _output(QUORUM, words, fails=False)


def finalized(output: str, feature: str) -> int:
    """Returns the finalized level of a feature in the output of `describe`."""
    line = next(line for line in output.splitlines() if line.startswith(f"Feature: {feature}"))
    return int(line.partition("FinalizedVersionLevel:")[2].split()[0])


def directory_id_of(node: ClusterNode) -> bytes:
    """Returns the id of a node's log directory."""
    for line in (node.log_dir / "meta.properties").read_text().splitlines():
        key, _, value = line.partition("=")
        if key == "directory.id":
            return uuid_from_string(value)
    raise AssertionError(f"{node.log_dir} has no directory id")


def _output(tool: str, words: list[str], *, fails: bool) -> str:
    done = run_tool(kafka_directory("4.3.0"), tool, *words, check=False)
    output = (done.stdout + done.stderr).decode()
    assert (done.returncode != 0) is fails, output
    return output
