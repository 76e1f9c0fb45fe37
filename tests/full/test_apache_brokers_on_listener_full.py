"""Two brokers of Apache Kafka 3.9.1 in ZooKeeper mode, whose ZooKeeper is the listener of a broker of kafkapy."""

from __future__ import annotations

import json
import re

import pytest
from kazoo.client import KazooClient

from kafkapy.client.admin import Admin, NewTopic
from kafkapy.client.consumer import Consumer
from kafkapy.client.producer import Producer
from tests.harness.quorum_nodes import wait_until
from tests.peers import LOG4J, kafka_directory
from tests.server_process import ServerProcess
from tests.zookeeper.listening_broker import ListeningBroker

pytestmark = [pytest.mark.full, pytest.mark.peer, pytest.mark.timeout(600)]
SESSION_TIMEOUT_MS = 6000


class ApacheBroker(ServerProcess):
    """A broker of Apache Kafka 3.9.1 whose metadata are in ZooKeeper."""

    ready_line = re.compile(r"started \(kafka\.server\.KafkaServer\)")
    start_timeout_s = 90.0
    stop_timeout_s = 60.0

    def __init__(self, directory, number, zookeeper):
        super().__init__(directory, None)
        settings = {
            "broker.id": number,
            "zookeeper.connect": f"{zookeeper}/apache",
            "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS,
            "listeners": f"PLAINTEXT://localhost:{self.port}",
            "log.dirs": directory / "logs",
            "offsets.topic.replication.factor": 1,
            "group.initial.rebalance.delay.ms": 0,
        }
        self.config = directory / "server.properties"
        self.config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        (directory / "log4j.properties").write_text(LOG4J)

    def command(self):
        options = [f"-Dlog4j.configuration=file:{self.directory / 'log4j.properties'}", "-Xmx256M"]
        jars = kafka_directory("3.9.1") / "libs"
        return ["java", *options, "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", "kafka.Kafka", str(self.config)]


def test_a_pair_of_apache_brokers_survives_the_death_of_its_controller(tmp_path):
    with ListeningBroker(tmp_path / "kafkapy") as served:
        client = KazooClient(served.zookeeper)
        client.start(timeout=30)
        brokers = {}
        try:
            for number in (11, 12):
                brokers[number] = ApacheBroker(tmp_path / str(number), number, served.zookeeper).start()
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
            assert [state["isr"] for state in read()] == [[other]] * 2
            with Producer(bootstrap_servers=brokers[other].bootstrap) as producer:
                producer.send("pair", b"after").result(30)
            with Consumer(
                bootstrap_servers=brokers[other].bootstrap, group_id="g", auto_offset_reset="earliest"
            ) as consumer:
                consumer.subscribe(["pair"])
                record = next(iter(consumer))
            assert record.value == b"after"
        finally:
            client.stop()
            client.close()
            for broker in brokers.values():
                if broker.is_running:
                    broker.kill()


def controller(client):
    """Returns the id of the controller, or None while there is none."""
    data = client.get("/apache/controller")[0] if client.exists("/apache/controller") else b"{}"
    return json.loads(data).get("brokerid")
