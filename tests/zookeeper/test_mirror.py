"""The broker shows Kafka's znodes in an Apache ZooKeeper 3.9, which kazoo writes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from kazoo.client import KazooClient

from kafkapy.client.admin import Admin, NewTopic
from tests.broker_process import BrokerProcess
from tests.harness.quorum_nodes import wait_until
from tests.ports import free_port
from tests.tools.tool_host import run_ours
from tests.zookeeper.real_zookeeper import RealZooKeeper

pytestmark = pytest.mark.peer
CHROOT = "/mirrored"


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory):
    with RealZooKeeper(tmp_path_factory.mktemp("ensemble")) as zookeeper:
        yield zookeeper


@pytest.fixture(scope="module")
def client(zookeeper):
    client = KazooClient(zookeeper.zookeeper)
    client.start(timeout=30)
    client.create(CHROOT)
    yield client
    client.stop()
    client.close()


@pytest.fixture(scope="module")
def broker(zookeeper, client, tmp_path_factory):
    settings = {"zookeeper.mirror.connect": zookeeper.zookeeper + CHROOT}
    with BrokerProcess(tmp_path_factory.mktemp("mirroring"), settings) as broker:
        yield broker


def exists(client, path):
    return client.exists(CHROOT + path) is not None


def value(client, path):
    return json.loads(client.get(CHROOT + path)[0])


def await_registration(client):
    wait_until(lambda: exists(client, "/brokers/ids/1"), "the broker is not registered")


def test_topics_appear_and_vanish(client, broker):
    await_registration(client)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic("orders", 2, 1, configs={"retention.ms": "1000"})]).check()
        state = "/brokers/topics/orders/partitions/1/state"
        wait_until(lambda: exists(client, state), "the topic does not appear")
        assert value(client, "/brokers/topics/orders") == {"version": 1, "partitions": {"0": [1], "1": [1]}}
        assert value(client, state)["isr"] == [1]
        assert value(client, "/config/topics/orders")["config"] == {"retention.ms": "1000"}
        assert client.exists(f"{CHROOT}/brokers/ids/1").ephemeralOwner != 0
        assert client.exists(f"{CHROOT}/controller").ephemeralOwner != 0
        admin.delete_topics(["orders"]).check()
    wait_until(lambda: not exists(client, "/brokers/topics/orders"), "the topic does not vanish")
    assert not exists(client, "/config/topics/orders")


def test_a_tool_finds_the_broker_in_the_users_zookeeper(client, broker, zookeeper):
    await_registration(client)
    done = run_ours("topics", "--zookeeper", zookeeper.zookeeper + CHROOT, "--create", "--topic", "found")
    assert done == (0, "Created topic found.\n", "")


def test_the_registration_vanishes_with_the_broker_and_what_is_left_over_is_deleted(client, broker):
    await_registration(client)
    broker.stop()
    assert not exists(client, "/brokers/ids/1")
    assert not exists(client, "/controller")
    client.ensure_path(f"{CHROOT}/brokers/topics/leftover/partitions")
    broker.start()
    await_registration(client)
    wait_until(lambda: not exists(client, "/brokers/topics/leftover"), "the leftover was not deleted")


def test_a_killed_brokers_nodes_are_taken_over_by_its_next_session(client, broker):
    await_registration(client)
    before = client.exists(f"{CHROOT}/brokers/ids/1").ephemeralOwner
    broker.kill()
    broker.start()

    def is_taken_over():
        stat = client.exists(f"{CHROOT}/brokers/ids/1")
        return stat is not None and stat.ephemeralOwner != before

    wait_until(is_taken_over, "the next session does not own the node")


def test_the_nodes_of_another_cluster_are_left_alone(client, broker, zookeeper, tmp_path):
    await_registration(client)
    with BrokerProcess(tmp_path, {"zookeeper.mirror.connect": zookeeper.zookeeper + CHROOT, "node.id": "7"}) as other:
        wait_until(lambda: b"has the nodes of another cluster" in other.log_path.read_bytes(), "it is not reported")
        assert client.get_children(f"{CHROOT}/brokers/ids") == ["1"]


def test_a_broker_without_the_users_zookeeper_starts_serves_and_stops(tmp_path):
    with BrokerProcess(tmp_path, {"zookeeper.mirror.connect": f"127.0.0.1:{free_port()}"}) as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics([NewTopic("served", 1, 1)]).check()
        assert broker.stop() == 0


def test_only_the_mirror_imports_kazoo():
    program = """
import sys
import kafkapy.broker, kafkapy.broker_parts, kafkapy.server.zookeeper_construction
assert "kazoo" not in sys.modules
import kafkapy.server.zookeeper_mirror
assert "kazoo" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
