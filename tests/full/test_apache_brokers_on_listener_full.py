"""Two brokers of Apache Kafka 0.10.1.1 or 3.9.1 in ZooKeeper mode, whose ZooKeeper is a listener of kafkapy."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import Permissions

from kafkapy.client.admin import Admin, NewTopic
from tests.clients.legacy.installation import RELEASES_OF_BROKERS, jars_of
from tests.harness.quorum_nodes import wait_until
from tests.peers import LOG4J, kafka_directory
from tests.server_process import ServerProcess
from tests.zookeeper.listening_broker import ListeningBroker

pytestmark = [pytest.mark.full, pytest.mark.peer, pytest.mark.timeout(600)]
SESSION_TIMEOUT_MS = 6000
TIMEOUT_S = 60
DIGEST_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
OLD_BROKER_POM = Path(__file__).parents[1] / "zookeeper" / "old_broker_pom.xml"


def broker_jars(release):
    """Returns the folder with the jars of a broker."""
    if release in RELEASES_OF_BROKERS:
        return kafka_directory(release) / "libs"
    return jars_of(OLD_BROKER_POM, f"old-broker-{release}", f"-Dkafka.version={release}")


class ApacheBroker(ServerProcess):
    """A broker of an old release of Apache Kafka, whose metadata are in ZooKeeper."""

    ready_line = re.compile(r"started \(kafka\.server\.KafkaServer\)")
    start_timeout_s = 90.0
    stop_timeout_s = 60.0

    def __init__(self, directory, number, zookeeper, release, java_options=(), **properties):
        super().__init__(directory, None)
        self.release = release
        self.java_options = java_options
        settings = {
            "broker.id": number,
            "zookeeper.connect": f"{zookeeper}/apache",
            "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS,
            "listeners": f"PLAINTEXT://localhost:{self.port}",
            "log.dirs": directory / "logs",
            "offsets.topic.replication.factor": 1,
            "group.initial.rebalance.delay.ms": 0,
            **{key.replace("_", "."): value for key, value in properties.items()},
        }
        self.config = directory / "server.properties"
        self.config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        (directory / "log4j.properties").write_text(LOG4J)

    def command(self):
        options = [
            f"-Dlog4j.configuration=file:{self.directory / 'log4j.properties'}",
            "-Xmx256M",
            *self.java_options,
        ]
        jars = broker_jars(self.release)
        return ["java", *options, "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", "kafka.Kafka", str(self.config)]


@pytest.mark.parametrize("release", ["0.10.1.1", "3.9.1"])
def test_a_pair_of_apache_brokers_survives_the_death_of_its_controller(tmp_path, release):
    with ListeningBroker(tmp_path / "kafkapy") as served:
        client = KazooClient(served.zookeeper)
        client.start(timeout=30)
        brokers = {}
        try:
            for number in (11, 12):
                brokers[number] = ApacheBroker(tmp_path / str(number), number, served.zookeeper, release).start()
            first = json.loads(client.get("/apache/controller")[0])["brokerid"]
            other = 23 - first
            with Admin(bootstrap_servers=brokers[other].bootstrap) as admin:
                admin.create_topics([NewTopic("pair", 2, 2)]).check()
            states = [f"/apache/brokers/topics/pair/partitions/{number}/state" for number in range(2)]
            read = lambda: [json.loads(client.get(path)[0]) for path in states]  # noqa: E731
            wait_until(lambda: all(client.exists(path) for path in states), "the partitions have no state")
            wait_until(lambda: all(len(state["isr"]) == 2 for state in read()), "a replica is not in sync")
            brokers[first].kill()
            wait_until(lambda: client.exists(f"/apache/brokers/ids/{first}") is None, "the session did not expire")
            wait_until(lambda: controller(client) == other, "the controller did not move")
            wait_until(lambda: all(state["leader"] == other for state in read()), "the leaders did not move")
            assert client.get("/apache/controller_epoch")[0] == b"2"
            # With 0.10.1.1 the leader removes a follower that has died with its controller.
            wait_until(lambda: [state["isr"] for state in read()] == [[other]] * 2, "the dead replica stays in sync")
            assert carried(brokers[other].bootstrap, "pair", b"after") == b"after"
        finally:
            client.stop()
            client.close()
            for broker in brokers.values():
                if broker.is_running:
                    broker.kill()


def test_a_broker_that_authenticates_owns_its_nodes(tmp_path):
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(f'Client {{ {DIGEST_MODULE} required username="broker" password="secret"; }};\n')
    sasl = {
        "zookeeper_listener_security_protocol": "SASL_PLAINTEXT",
        "zookeeper_listener_sasl_required": "false",
        "listener_name_zookeeper_digest-md5_sasl_jaas_config": f'{DIGEST_MODULE} required user_broker="secret";',
    }
    with ListeningBroker(tmp_path / "kafkapy", **sasl) as served:
        client = KazooClient(served.zookeeper)
        client.start(timeout=30)
        options = (f"-Djava.security.auth.login.config={jaas}",)
        address = served.zookeeper
        try:
            with ApacheBroker(tmp_path / "11", 11, address, "3.9.1", options, zookeeper_set_acl="true") as broker:
                with Admin(bootstrap_servers=broker.bootstrap) as admin:
                    admin.create_topics([NewTopic("owned", 1, 1)]).check()
                acl, _ = client.get_acls("/apache/brokers/topics/owned")
                assert {(entry.id.scheme, entry.id.id, entry.perms) for entry in acl} == {
                    ("sasl", "broker", Permissions.ALL),
                    ("world", "anyone", Permissions.READ),
                }
                with pytest.raises(NoAuthError):
                    client.set("/apache/brokers/topics/owned", b"")
                assert carried(broker.bootstrap, "owned", b"x") == b"x"
        finally:
            client.stop()
            client.close()


def carried(bootstrap, topic, value):
    """Sends a record to a topic, and returns the first one that a consumer of a new group receives."""
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, value)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        for _ in range(TIMEOUT_S):
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                return message.value()
        raise AssertionError("no record was received")
    finally:
        consumer.close()


def controller(client):
    """Returns the id of the controller, or None while there is none."""
    data = client.get("/apache/controller")[0] if client.exists("/apache/controller") else b"{}"
    return json.loads(data).get("brokerid")
