"""Writes of Kafka's znodes that the controller refuses: the log says why, and the node shows again what is valid."""

from __future__ import annotations

import json

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from kafkapy.client.admin import Admin, NewTopic
from tests.harness.quorum_nodes import wait_until
from tests.zookeeper.listening_broker import ListeningBroker


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with ListeningBroker(tmp_path_factory.mktemp("served")) as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics([NewTopic("t", 2, 1)]).check()
        yield broker


@pytest.fixture(scope="module")
def client(broker):
    client = KazooClient(broker.zookeeper)
    client.start(timeout=30)
    wait_until(lambda: client.exists("/brokers/topics/t/partitions/1/state") is not None, "the topic is not shown")
    yield client
    client.stop()
    client.close()


def topic(**partitions: list[int]) -> dict[str, object]:
    return {"version": 1, "partitions": {number.removeprefix("p"): ids for number, ids in partitions.items()}}


def moved(name: str, number: int, *ids: int) -> dict[str, object]:
    return {"version": 1, "partitions": [{"topic": name, "partition": number, "replicas": list(ids)}]}


# path -> a value, and a part of the line in the log
NEW_NODES = {
    "/brokers/topics/a name": (topic(p0=[1]), "Topic name is invalid"),
    "/brokers/topics/unknown-broker": (topic(p0=[99]), "99"),
    "/brokers/topics/gap": (topic(p0=[1], p2=[1]), "consecutive"),
    "/brokers/topics/twice": (topic(p0=[1, 1]), "more than once"),
    "/admin/delete_topics/missing": (None, "missing"),
    "/admin/reassign_partitions": (moved("missing", 0, 1), "missing"),
    "/admin/preferred_replica_election": (
        {"version": 1, "partitions": [{"topic": "missing", "partition": 0}]}, "missing",
    ),
    "/config/clients/infinite": ({"version": 1, "config": {"producer_byte_rate": "inf"}}, "infinite"),
    "/config/clients/no-number": ({"version": 1, "config": {"producer_byte_rate": "nan"}}, "no-number"),
    "/config/clients/negative": ({"version": 1, "config": {"producer_byte_rate": "-5"}}, "negative"),
    "/config/users/half": ({"version": 1, "config": {"producer_byte_rate": "\ud800"}}, "half"),
    "/config/brokers/1": ({"version": 1, "config": {"log.retention.ms": "soon"}}, "log.retention.ms"),
    "/config/brokers/none": ({"version": 1, "config": {"log.retention.ms": "5"}}, "none"),
    "/config/clients/c": ({"version": 1, "config": {"no_such_quota": "1"}}, "no_such_quota"),
    "/config/ips/no-address": ({"version": 1, "config": {"connection_creation_rate": "1"}}, "no-address"),
}  # fmt: skip


@pytest.mark.parametrize("path", NEW_NODES)
def test_a_refused_node_vanishes(broker, client, path):
    value, reason = NEW_NODES[path]
    position = len(broker.log())
    client.create(path, b"" if value is None else json.dumps(value).encode())
    wait_until(lambda: client.exists(path) is None, "the node stays")
    assert client.exists("/brokers/topics/t") is not None
    assert reason in broker.log(position)
    assert "WARNING" in broker.log(position)


CHANGES = {
    "/brokers/topics/t": [topic(p0=[1]), topic(p0=[1], p1=[1], p2=[99]), [], "nothing"],
    "/config/topics/t": [{"version": 1, "config": {"retention.ms": "soon"}}, {"version": 1}, 7],
}


@pytest.mark.parametrize("path", CHANGES)
def test_a_refused_change_is_undone(broker, client, path):
    before = json.loads(client.get(path)[0])
    warnings = broker.log().count("WARNING")
    for count, value in enumerate(CHANGES[path], start=warnings + 1):
        client.set(path, json.dumps(value).encode())
        wait_until(lambda: json.loads(client.get(path)[0]) == before, f"{value} stays")
        assert broker.log().count("WARNING") == count, f"{value} is not logged"
    for data in (b"\xff no JSON", b"[" * 200_000, b'{"partitions":{"0":' + b"[" * 200_000):
        client.set(path, data)
        wait_until(lambda: client.get(path)[0].startswith(b'{"version"'), "no JSON stays")


@pytest.mark.parametrize("path", ["/admin/reassign_partitions", "/admin/preferred_replica_election"])
@pytest.mark.parametrize("data", [b"", b"{", b"[" * 200_000, b'{"partitions":[{"topic":"t"}]}', b'{"partitions":7}'])
def test_a_request_that_cannot_be_understood_does_not_block_the_next_one(broker, client, path, data):
    position = len(broker.log())
    client.create(path, data)
    wait_until(lambda: client.exists(path) is None, "the node stays")
    assert f"{path} cannot be understood" in broker.log(position)


def test_what_only_the_cluster_knows_cannot_be_written(client):
    for path in ("/controller", "/controller_epoch", "/brokers/ids/1", "/brokers/topics/t/partitions/0/state"):
        with pytest.raises(NoAuthError):
            client.set(path, b"")
        with pytest.raises(NoAuthError):
            client.delete(path)
