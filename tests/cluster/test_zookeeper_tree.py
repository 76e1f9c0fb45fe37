"""The tree of the listener for ZooKeeper's clients in a cluster: it moves with the leader of its partition."""

from __future__ import annotations

import json
from base64 import b64encode
from functools import partial
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.retry import KazooRetry

from kafkapy.client.admin import NewTopic
from kafkapy.errors import Error
from kafkapy.metadata.internal_topics import ZOOKEEPER_TREE_TOPIC
from tests.cluster.cluster import Cluster, three
from tests.cluster.nodes import Flavour
from tests.harness.quorum_nodes import wait_until
from tests.ports import free_port
from tests.zookeeper.version_0 import commit, fetch

KEY = b64encode(bytes(range(32))).decode()
CREDENTIAL = f"salt={KEY},stored_key={KEY},server_key={KEY},iterations=8192"

pytestmark = pytest.mark.timeout(240)


def make_cluster(directory: Path) -> tuple[Cluster, dict[int, str]]:
    """Returns a cluster of three nodes, and the address of each node's listener."""
    cluster = Cluster(directory, three(Flavour.KAFKAPY), properties={"zookeeper.tree.topic.min.isr": "2"})
    addresses = {}
    for node_id, node in cluster.nodes.items():
        addresses[node_id] = node.properties["zookeeper.listener"] = f"127.0.0.1:{free_port()}"
        node.write_config(cluster._quorum)
    return cluster, addresses


def test_the_next_leader_serves_the_tree_and_its_sessions(tmp_path):
    cluster, addresses = make_cluster(tmp_path)
    retry = KazooRetry(max_tries=-1, delay=0.1, backoff=1, max_delay=0.5)
    client = KazooClient(",".join(addresses.values()), timeout=30, connection_retry=retry, command_retry=retry.copy())
    with cluster:
        try:
            client.start(timeout=60)
            client.retry(client.ensure_path, "/app")
            client.retry(client.create, "/app/alive", b"x", ephemeral=True)
            session, before = client.client_id[0], client.retry(client.exists, "/app/alive").czxid
            leader = cluster.wait_for_leader(ZOOKEEPER_TREE_TOPIC)
            cluster[leader].kill()
            after = cluster.wait_for_leader(ZOOKEEPER_TREE_TOPIC, other_than=leader)
            assert client.retry(client.get, "/app/alive")[0] == b"x"
            client.retry(client.set, "/app/alive", b"y")
            stat = client.retry(client.exists, "/app/alive")
            assert (stat.ephemeralOwner, client.client_id[0]) == (session, session)
            assert stat.czxid == before < stat.mzxid
            wait_until(lambda: brokers(client) == {1, 2, 3} - {leader}, "the dead broker is still registered")
            cluster[leader].start()
            wait_until(lambda: brokers(client) == {1, 2, 3}, "the broker has not returned")
            assert after != leader
        finally:
            client.stop()
            client.close()


def test_requests_reach_the_controller_on_another_node(tmp_path):
    cluster, addresses = make_cluster(tmp_path)
    client = KazooClient(",".join(addresses.values()), timeout=30)
    with cluster:
        try:
            client.start(timeout=60)
            leader = cluster.wait_for_leader(ZOOKEEPER_TREE_TOPIC)
            controller = cluster.wait_for_quorum_leader()
            if leader == controller:  # move the tree, so that the request has to pass to another node
                cluster[leader].stop()
                cluster[leader].start()
                leader = cluster.wait_for_leader(ZOOKEEPER_TREE_TOPIC)
            assignment = {"version": 1, "partitions": {"0": [1, 2], "1": [3, 2]}}
            client.retry(client.create, "/brokers/topics/made", json.dumps(assignment).encode())
            with cluster.admin() as admin:
                admin.create_topics([NewTopic("other", 1, 3)]).check()
                wait_until(lambda: "made" in admin.list_topics(), "the topic was not created")
                value = {"version": 1, "config": {"SCRAM-SHA-256": CREDENTIAL, "consumer_byte_rate": "5"}}
                client.retry(client.create, "/config/users/u", json.dumps(value).encode())
                wait_until(lambda: "u" in admin.describe_user_scram_credentials(), "the credential was not stored")
                assert [each.iterations for each in admin.describe_user_scram_credentials()["u"]] == [8192]
                wait_until(lambda: admin.describe_client_quotas(), "the quota was not stored")
                client.retry(client.set, "/config/users/u", b'{"version":1,"config":{}}')
                wait_until(lambda: "u" not in admin.describe_user_scram_credentials(), "the credential was not deleted")
            state = "/brokers/topics/made/partitions/1/state"
            wait_until(lambda: client.retry(client.exists, state) is not None, "the partition has no state")
            assert json.loads(client.retry(client.get, state)[0])["leader"] in (2, 3)
            wait_until(lambda: client.retry(client.exists, "/config/topics/other") is not None, "a topic is not shown")
        finally:
            client.stop()
            client.close()


def brokers(client: KazooClient) -> set[int]:
    """Returns the ids of the registered brokers."""
    return set(map(int, client.retry(client.get_children, "/brokers/ids")))


def test_each_broker_reads_and_writes_the_offsets_in_the_tree(tmp_path):
    """Every broker answers version 0 of the requests for offsets; those without the tree forward them."""
    cluster, _ = make_cluster(tmp_path)
    with cluster:
        cluster.wait_for_leader(ZOOKEEPER_TREE_TOPIC)
        with cluster.admin() as admin:
            admin.create_topics([NewTopic("old", 1, 3)])

        def is_served(node):
            return commit(node, "g", "old", {0: 0}) == {0: Error.NONE}

        for node in cluster.nodes.values():
            wait_until(partial(is_served, node), f"node {node.node_id} commits no offset")
        for number, node in enumerate(cluster.nodes.values(), start=1):
            assert commit(node, "g", "old", {0: number, 5: 1}) == {0: Error.NONE, 5: Error.UNKNOWN_TOPIC_OR_PARTITION}
            for other in cluster.nodes.values():
                assert fetch(other, "g", "old", [0]) == {0: (number, Error.NONE)}
