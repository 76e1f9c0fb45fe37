"""Three nodes of kafkapy, each broker and controller: registrations, forwarding, and the stop of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from kafkapy.client.admin import Admin, NewTopic
from kafkapy.nodes.node_channel import Destination, NodeChannel
from kafkapy.nodes.node_thread import NodeThread
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.describe_cluster import DescribeClusterRequest
from tests.cluster.cluster import Cluster, three
from tests.cluster.nodes import Flavour

pytestmark = pytest.mark.timeout(240)
WAIT_S = 60
FAR = 1 << 60


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, three(Flavour.KAFKAPY)) as running:
        yield running


@pytest.fixture
def thread() -> Iterator[NodeThread]:
    running = NodeThread()
    yield running
    running.stop()


def controllers(thread: NodeThread, cluster: Cluster, node_id: int) -> tuple[int, dict[int, int]]:
    """Returns the active controller and the port of each controller, as the controller of a node describes them."""
    destination = Destination(node_id, "127.0.0.1", cluster[node_id].controller_port)
    responses: Queue[Any] = Queue()
    NodeChannel(thread, destination, client_id="tests").send(
        DescribeClusterRequest(endpoint_type=2),
        ApiKey.DESCRIBE_CLUSTER,
        lambda response, version, error: responses.put(response),
        FAR,
    )
    described = responses.get(timeout=WAIT_S)
    assert described.error_code == 0
    return described.controller_id, {each.broker_id: each.port for each in described.brokers}


def create(cluster: Cluster, node_id: int, name: str) -> None:
    """Creates a topic through the broker of one node."""
    with Admin({"bootstrap.servers": cluster[node_id].bootstrap}) as admin:
        admin.create_topics([NewTopic(name, 1, 2)]).check()


def test_every_controller_registers_and_every_broker_forwards(cluster: Cluster, thread: NodeThread) -> None:
    leader = cluster.quorum().leader
    ports = {node.node_id: node.controller_port for node in cluster.controllers}
    for node_id in cluster.nodes:
        described = cluster.wait_for(
            "all controllers are registered",
            lambda node_id=node_id: found if (found := controllers(thread, cluster, node_id))[1] == ports else None,  # type: ignore[misc]
        )
        assert described == (leader, ports)
        create(cluster, node_id, f"through-{node_id}")
    with cluster.admin() as admin:
        assert {f"through-{node_id}" for node_id in cluster.nodes} <= set(admin.list_topics())


def test_requests_find_the_next_controller_when_the_active_one_is_killed(cluster: Cluster) -> None:
    leader = cluster.quorum().leader
    cluster[leader].kill()
    for node_id in cluster.nodes:
        if node_id != leader:
            cluster.wait_for("a topic can be created", lambda node_id=node_id: _created(cluster, node_id))  # type: ignore[misc]


def test_a_broker_whose_process_was_killed_is_fenced_long_before_its_session_ends(tmp_path: Path) -> None:
    with Cluster(tmp_path, three(Flavour.KAFKAPY), properties={"broker.session.timeout.ms": "600000"}) as cluster:
        cluster.create_topic("t", 3)
        leader = cluster.quorum().leader
        killed = next(node_id for node_id in cluster.nodes if node_id != leader)
        cluster[killed].kill()
        for partition in range(3):
            cluster.wait_for("another leader", lambda partition=partition: _is_without(cluster, partition, killed))  # type: ignore[misc]


def _is_without(cluster: Cluster, partition: int, node_id: int) -> bool:
    described = cluster.partition("t", partition)
    return described.leader not in (node_id, -1) and node_id not in described.isr


def _created(cluster: Cluster, node_id: int) -> bool:
    create(cluster, node_id, f"after-{node_id}")
    return True


@pytest.mark.parametrize("is_leader", [True, False], ids=["the active controller", "another node"])
def test_a_node_that_stops_moves_its_leaderships_first(cluster: Cluster, is_leader: bool) -> None:
    cluster.create_topic("t", 3)
    leader = cluster.quorum().leader
    stopped = leader if is_leader else next(node_id for node_id in cluster.nodes if node_id != leader)
    assert cluster[stopped].stop() == 0
    for partition in range(3):
        described = cluster.wait_for(
            "a live leader",
            lambda partition=partition: found if (found := cluster.partition("t", partition)).leader > 0 else None,  # type: ignore[misc]
        )
        assert described.leader != stopped
        assert stopped not in described.isr
