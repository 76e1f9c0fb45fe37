"""Apache Kafka accepts and decodes the metrics that kafkapy's clients push, as it does those of its own clients.

A plug-in of the broker, TelemetryReceiver.java, writes down what each push contains.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkapy.client import Admin, Consumer, Producer
from kafkapy.client.admin import ConfigChange, ConfigResource, NewTopic, ResourceType
from kafkapy.named_tuple import NamedTuple
from tests.peers import ApacheKafka, kafka_directory

SOURCE = Path(__file__).with_name("TelemetryReceiver.java")
PATIENCE_S = 60.0
INTERVAL_MS = 500  # of the pushes
RECORDS = 10
SENT, READ = (
    "org.apache.kafka.producer.record.send.total",
    "org.apache.kafka.consumer.fetch.manager.records.consumed.total",
)
DELTA, GAUGE = "AGGREGATION_TEMPORALITY_DELTA", "GAUGE"
# What KIP-714 requires of a consumer.
REQUIRED_OF_CONSUMERS = {
    f"org.apache.kafka.consumer.{name}"
    for name in (
        "connection.creation.rate",
        "connection.creation.total",
        "node.request.latency.avg",
        "node.request.latency.max",
        "poll.idle.ratio.avg",
        "coordinator.commit.latency.avg",
        "coordinator.commit.latency.max",
        "coordinator.assigned.partitions",
        "coordinator.rebalance.latency.avg",
        "coordinator.rebalance.latency.max",
        "coordinator.rebalance.latency.total",
        "fetch.manager.fetch.latency.avg",
        "fetch.manager.fetch.latency.max",
    )
}

pytestmark = pytest.mark.peer


class Value(NamedTuple):
    """A value of a push.

    It has the id of the client, whether the push was the client's last one, the kind and the name of the metric, and
    the names of its attributes, separated by commas.
    """

    client_id: str
    is_last: bool
    kind: str
    name: str
    attributes: str
    number: float


class Receiver(ApacheKafka):
    """An Apache Kafka node with the plug-in, to which clients push all metrics."""

    def __init__(self, directory: Path) -> None:
        self._file, self._classes = directory / "pushed", directory / "classes"
        properties = {"metric.reporters": "TelemetryReceiver", "telemetry.receiver.file": str(self._file)}
        super().__init__(kafka_directory("4.3.0"), directory, properties=properties)
        self._classes.mkdir()
        self._file.touch()
        compiler = ["javac", "-nowarn", "-proc:none", "-cp", f"{self.kafka}/libs/*", "-d", str(self._classes)]
        subprocess.run([*compiler, str(SOURCE)], check=True, capture_output=True, timeout=120)

    def command(self) -> list[str]:
        libraries = f"{self.kafka}/libs/*"
        return [f"{self._classes}:{libraries}" if word == libraries else word for word in super().command()]

    def values(self, client_id: str) -> list[Value]:
        """Returns the values that a client has pushed, in order."""
        words = [line.split("\t") for line in self._file.read_text().splitlines(keepends=True) if line.endswith("\n")]
        found = [Value(client, last == "last", *more, float(number)) for client, last, *more, number in words]
        return [each for each in found if each.client_id == client_id]

    def total(self, client_id: str, name: str) -> float:
        """Returns the sum of the changes of a metric that a client has pushed, without those of single topics."""
        changes = [each for each in self.values(client_id) if each.name == name and each.kind == DELTA]
        return sum(each.number for each in changes if "topic" not in each.attributes.split(","))


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    with Receiver(tmp_path_factory.mktemp("receiver")) as kafka:
        with Admin(bootstrap_servers=kafka.bootstrap) as admin:
            admin.create_topics([NewTopic("measured", 1, 1)]).check()
            changes = [ConfigChange("metrics", "org.apache.kafka."), ConfigChange("interval.ms", str(INTERVAL_MS))]
            resource = ConfigResource(ResourceType.CLIENT_METRICS, "all")
            admin.incremental_alter_configs({resource: changes}).check()
            wait_for(lambda: subscribed(admin, resource))
        yield kafka


def subscribed(admin: Admin, resource: ConfigResource) -> bool:
    """Returns whether the broker has applied the subscription."""
    entry = admin.describe_configs([resource]).values[resource].get("interval.ms")
    return entry is not None and entry.value == str(INTERVAL_MS)


def wait_for(condition: Callable[[], object]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, "the condition did not become true"
        time.sleep(0.05)


def write(kafka: Receiver, client_id: str, **options: object) -> None:
    with Producer(bootstrap_servers=kafka.bootstrap, client_id=client_id, **options) as producer:
        for number in range(RECORDS):
            producer.send("measured", str(number)).result(PATIENCE_S)
        if not options:
            wait_for(lambda: receives(kafka, client_id))
            producer.send("measured", "last").result(PATIENCE_S)


def read(kafka: Receiver, client_id: str) -> int:
    """Reads all records, and waits until the consumer has pushed its count of records; returns the number of
    records."""
    consumer = Consumer(
        bootstrap_servers=kafka.bootstrap, client_id=client_id, group_id=client_id, auto_offset_reset="earliest"
    )
    count = 0

    def is_read() -> bool:
        nonlocal count
        count += len(consumer.poll(0.1))
        return count >= RECORDS and kafka.total(client_id, READ) > 0

    with consumer:
        consumer.subscribe(["measured"])
        wait_for(is_read)
    return count


def receives(kafka: Receiver, client_id: str) -> bool:
    return any(each.name == SENT for each in kafka.values(client_id))


def test_the_pushed_changes_of_a_producer_add_up_to_its_total(receiver: Receiver) -> None:
    write(receiver, "ours")
    wait_for(lambda: receiver.total("ours", SENT) == RECORDS + 1)
    values = receiver.values("ours")
    assert any(each.is_last for each in values)
    assert {each.kind for each in values} == {DELTA, GAUGE}


def test_the_names_and_kinds_of_a_producers_metrics_are_those_of_javas_producer(receiver: Receiver) -> None:
    write(receiver, "compared")
    words = ["--topic", "measured", "--num-records", "2000", "--record-size", "10", "--throughput", "500"]
    settings = ["--producer-props", f"bootstrap.servers={receiver.bootstrap}", "client.id=java"]
    receiver.tool("org.apache.kafka.tools.ProducerPerformance", *words, *settings)
    wait_for(lambda: receives(receiver, "java"))
    wait_for(lambda: any(each.is_last for each in receiver.values("compared")))
    theirs, ours = ({(each.kind, each.name) for each in receiver.values(client)} for client in ("java", "compared"))
    assert (DELTA, SENT) in ours
    assert ours <= theirs


def test_the_names_and_kinds_of_a_consumers_metrics_are_those_of_javas_consumer(receiver: Receiver) -> None:
    write(receiver, "writer", enable_metrics_push=False)
    # It waits for records that do not come, so that it has the time to get its subscription and to push.
    words = ["--topic", "measured", "--num-records", "1000000", "--timeout", str(10 * INTERVAL_MS)]
    settings = ["--bootstrap-server", receiver.bootstrap, "--command-property", "client.id=java-reader"]
    receiver.tool("org.apache.kafka.tools.ConsumerPerformance", *words, *settings)
    read(receiver, "compared-reader")
    wait_for(lambda: receiver.total("java-reader", READ) > 0)
    theirs, ours = (
        {(each.kind, each.name) for each in receiver.values(client)} for client in ("java-reader", "compared-reader")
    )
    assert {name for _, name in ours} >= REQUIRED_OF_CONSUMERS
    assert ours <= theirs


def test_the_pushed_changes_of_a_consumer_add_up_to_its_total(receiver: Receiver) -> None:
    write(receiver, "writer", enable_metrics_push=False)
    count = read(receiver, "reader")
    wait_for(lambda: receiver.total("reader", READ) == count)
    assert receiver.values("writer") == []
