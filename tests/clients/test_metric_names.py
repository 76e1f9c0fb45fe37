"""The metrics of our clients have the names, groups and tags of Java's; the documentation lists those that are missing.

Both clients write and read the same records of one broker.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.java_client_metrics import LEFT_OUT
from kafkapy.client import Consumer, Producer
from kafkapy.client.metrics import Metrics
from tests.broker_process import BrokerProcess
from tests.peers import kafka_directory

SOURCE = Path(__file__).with_name("MetricNames.java")
TOPIC, RECORDS = "measured", 10
CLIENTS = ("producer", "consumer-classic", "consumer-consumer")
MISSING = {name for names in LEFT_OUT for name in names}

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]
Names = set[tuple[str, str, str]]  # group, name, names of the tags


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture(scope="module")
def javas(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Names]:
    libraries = f"{kafka_directory('4.3.0')}/libs/*"
    classes = tmp_path_factory.mktemp("classes")
    compiler = ["javac", "-nowarn", "-proc:none", "-cp", libraries, "-d", str(classes), str(SOURCE)]
    subprocess.run(compiler, check=True, capture_output=True, timeout=120)
    program = ["java", "-Xmx256M", "-cp", f"{classes}:{libraries}", "MetricNames", broker.bootstrap, TOPIC]
    done = subprocess.run(program, check=True, capture_output=True, text=True, timeout=120)
    found: dict[str, Names] = {}
    for line in done.stdout.splitlines():
        client, group, name, tags = line.split("\t")
        found.setdefault(client, set()).add((group, name, tags))
    return found


@pytest.fixture(scope="module")
def ours(broker: BrokerProcess) -> dict[str, Names]:
    found: dict[str, Names] = {}
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(RECORDS):
            producer.send(TOPIC, str(number)).result(30)
        found["producer"] = names_of(producer.metrics())
    for protocol in ("classic", "consumer"):
        group = {"group.id": f"ours-{protocol}", "group.protocol": protocol, "auto.offset.reset": "earliest"}
        with Consumer({"bootstrap.servers": broker.bootstrap, **group}) as consumer:
            consumer.subscribe([TOPIC])
            read = 0
            while read < RECORDS:
                read += len(consumer.poll(30))
            consumer.commit()
            found[f"consumer-{protocol}"] = names_of(consumer.metrics())
    return found


def names_of(metrics: Metrics) -> Names:
    return {(each.group, each.name, ",".join(tag for tag, _ in each.tags)) for each in metrics}


@pytest.mark.parametrize("client", CLIENTS)
def test_each_metric_is_one_of_javas(javas: dict[str, Names], ours: dict[str, Names], client: str) -> None:
    assert ours[client] - javas[client] == set()


@pytest.mark.parametrize("client", CLIENTS)
def test_javas_metrics_that_are_missing_are_documented(
    javas: dict[str, Names], ours: dict[str, Names], client: str
) -> None:
    missing = javas[client] - ours[client]
    assert {name for _, name, _ in missing} <= MISSING


def test_each_metric_that_is_documented_as_missing_is_missing(javas: dict[str, Names], ours: dict[str, Names]) -> None:
    missing = {name for client in CLIENTS for _, name, _ in javas[client] - ours[client]}
    assert missing == MISSING
