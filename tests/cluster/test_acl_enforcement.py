"""ACLs that one node makes are enforced by all: by leaders for records, by the controller for forwarded requests.

The user ada authenticates at the nodes' listener; the harness is anonymous and a super user. Leaders serve her records
in the gate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkapy.client.admin import (
    AccessControlEntry,
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    Admin,
    NewScramCredential,
    NewTopic,
    ScramMechanism,
)
from kafkapy.client.consumer import Consumer
from kafkapy.client.producer import Producer
from kafkapy.errors import ApiError, Error
from kafkapy.types import TopicPartition
from tests.cluster.cluster import three
from tests.cluster.nodes import Flavour
from tests.cluster.secured_cluster import MECHANISM, USER, SecuredCluster
from tests.security.secured_kafka import sasl_client

pytestmark = [pytest.mark.timeout(300)]
ADA, PASSWORD, TOPIC = "ada", "ada-secret", "open-records"
ALLOWED = AccessControlEntry(
    AclResourceType.TOPIC, "open-", AclPatternType.PREFIXED, f"User:{ADA}", "*", AclOperation.ALL, AclPermission.ALLOW
)
TIMEOUT_S = 30.0
DENIALS = (Error.TOPIC_AUTHORIZATION_FAILED, Error.CLUSTER_AUTHORIZATION_FAILED)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SecuredCluster]:
    authorizer = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{USER}",
    }
    cluster = SecuredCluster(tmp_path, three(Flavour.KAFKAPY), "SASL_PLAINTEXT", more=authorizer)
    with cluster:
        yield cluster


def listener(cluster: SecuredCluster, node_id: int) -> str:
    """Returns the address of a node's listener that authenticates."""
    addresses = cluster[node_id].properties["listeners"].split(",")
    return next(each.partition("//")[2] for each in addresses if each.startswith("NODES:"))


def is_denied(action: Callable[..., object], *arguments: object) -> bool:
    """Returns whether the action is refused for want of a permission; any other error is raised."""
    try:
        action(*arguments)
    except ApiError as error:
        if error.error in DENIALS:
            return True
        raise
    return False


class User:
    """A producer and a consumer of the user ada. They find the cluster by the broker `node_id`, and connect to
    leaders."""

    def __init__(self, cluster: SecuredCluster, node_id: int) -> None:
        self._settings = {
            "bootstrap.servers": listener(cluster, node_id),
            "security.protocol": "SASL_PLAINTEXT",
            **sasl_client(MECHANISM, ADA, PASSWORD),
        }
        self._producer = Producer({**self._settings, "acks": "all"})
        self._consumer = Consumer({**self._settings, "auto.offset.reset": "earliest"})

    def close(self) -> None:
        self._producer.close(0)
        self._consumer.close()

    def produce(self, partition: int) -> None:
        self._producer.send(TOPIC, b"value", partition=partition).result(TIMEOUT_S)

    def consume(self, partition: int) -> None:
        self._consumer.assign([TopicPartition(TOPIC, partition)])
        assert self._consumer.poll(TIMEOUT_S)

    def create(self, topic: str) -> None:
        with Admin(self._settings) as admin:
            admin.create_topics([NewTopic(topic, 1, 1)]).check()


def test_every_node_enforces_the_acls_that_one_node_makes(cluster: SecuredCluster) -> None:
    with cluster.admin() as admin:
        credential = NewScramCredential(ADA, ScramMechanism[MECHANISM.replace("-", "_")], PASSWORD)
        admin.alter_user_scram_credentials([credential]).check()
        places = {number: [node_id] for number, node_id in enumerate(cluster.nodes)}
        admin.create_topics([NewTopic(TOPIC, assignments=places)]).check()
    users = [User(cluster, each) for each in cluster.nodes]

    def are_denied(number: int) -> list[bool]:
        """Returns, for the requests that begin at each node and go to each leader, whether they are denied."""
        found = []
        for index, user in enumerate(users):
            found.append(is_denied(user.create, f"open-{number}-{index}"))
            for partition in range(len(users)):
                found.append(is_denied(user.produce, partition))
        return found

    try:
        assert all(are_denied(0))
        with Admin(bootstrap_servers=cluster[1].bootstrap) as admin:
            admin.create_acls([ALLOWED]).check()
        cluster.wait_for("permission on all nodes", lambda: not any(are_denied(time.monotonic_ns())))
        for user in users:
            for partition in range(len(users)):
                user.consume(partition)
        with Admin(bootstrap_servers=cluster[2].bootstrap) as admin:
            wanted = AclFilter(ALLOWED.resource_type, ALLOWED.resource_name, ALLOWED.pattern_type)
            assert admin.delete_acls([wanted])[wanted]
        cluster.wait_for("end of the permission on all nodes", lambda: all(are_denied(time.monotonic_ns())))
        for user in users:  # its connections are open
            assert is_denied(user.consume, 0)
    finally:
        for user in users:
            user.close()
