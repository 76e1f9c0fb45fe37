"""kafkapy's clients push the metrics that a subscription requests (KIP-714), to a broker whose page shows them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from kafkapy.client import Admin, Consumer, MetricName, Producer
from kafkapy.client.admin import ConfigChange, ConfigResource, NewTopic, ResourceType
from tests.broker_process import BrokerProcess
from tests.ports import free_port

PATIENCE_S = 30.0
INTERVAL_MS = 1000  # of the pushes; the page shows a client's values for three intervals


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Returns the address of a broker that takes metrics, and that of its metrics page."""
    directory: Path = tmp_path_factory.mktemp("receiver")
    port = free_port()
    with BrokerProcess(directory, {"kafkapy.metrics.listener": f"localhost:{port}"}) as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics([NewTopic("measured", 1, 1)]).check()
            changes = [
                ConfigChange("metrics", "org.apache.kafka.producer.,org.apache.kafka.consumer."),
                ConfigChange("interval.ms", str(INTERVAL_MS)),
            ]
            resource = ConfigResource(ResourceType.CLIENT_METRICS, "all")
            admin.incremental_alter_configs({resource: changes}).check()
        yield broker.bootstrap, f"http://localhost:{port}/metrics"


def wait_for(condition: Callable[[], Any], step: Callable[[], Any]) -> Any:
    end_s = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < end_s, "the condition did not become true"
        step()
    return found


def page_lines(address: str, client_id: str, metric: str) -> list[str]:
    with urlopen(address) as response:
        text = response.read().decode()
    return [line for line in text.splitlines() if client_id in line and metric in line]


def test_a_producer_pushes_the_records_that_it_has_sent(receiver):
    bootstrap, address = receiver
    with Producer(bootstrap_servers=bootstrap, client_id="pushing-producer") as producer:
        for number in range(10):
            producer.send("measured", str(number))
        producer.flush()
        metric = "org.apache.kafka.producer.record.send.total"
        [line] = wait_for(
            lambda: [
                line for line in page_lines(address, "pushing-producer", metric) if float(line.rpartition(" ")[2]) == 10
            ],
            lambda: time.sleep(0.05),
        )
        assert metric in line
        assert page_lines(address, "pushing-producer", "org.apache.kafka.producer.node.request.latency.avg")
        values = producer.metrics()
        sent = MetricName("record-send-total", "producer-metrics", (("client-id", "pushing-producer"),))
        assert values[sent] == 10.0
        topic = (("client-id", "pushing-producer"), ("topic", "measured"))
        assert values[MetricName("record-send-total", "producer-topic-metrics", topic)] == 10.0


def test_a_consumer_pushes_the_records_that_it_has_read(receiver):
    bootstrap, address = receiver
    with Producer(bootstrap_servers=bootstrap, enable_metrics_push=False) as producer:
        for number in range(10):
            producer.send("measured", str(number))
    consumer = Consumer(
        bootstrap_servers=bootstrap, client_id="pushing-consumer", group_id="g", auto_offset_reset="earliest"
    )
    consumer.subscribe(["measured"])
    read = 0
    while read < 10:
        read += len(consumer.poll(1.0))
    metric = "org.apache.kafka.consumer.fetch.manager.records.consumed.total"
    wait_for(lambda: page_lines(address, "pushing-consumer", metric), lambda: consumer.poll(0.05))
    own = (("client-id", "pushing-consumer"),)
    values = consumer.metrics()
    assert values[MetricName("records-consumed-total", "consumer-fetch-manager-metrics", own)] == read
    assert values[MetricName("assigned-partitions", "consumer-coordinator-metrics", own)] == 1.0
    partition = (*own, ("topic", "measured"), ("partition", "0"))
    assert values[MetricName("records-lag", "consumer-fetch-manager-metrics", partition)] == 0.0
    consumer.close()


def test_a_client_without_pushes_sends_none(receiver):
    bootstrap, address = receiver
    with Producer(bootstrap_servers=bootstrap, client_id="silent", enable_metrics_push=False) as producer:
        producer.send("measured", "a").result(PATIENCE_S)
        time.sleep(2 * INTERVAL_MS / 1000)
    assert not page_lines(address, "silent", "org.apache.kafka")


def test_the_last_push_is_sent_when_a_client_is_closed(receiver):
    bootstrap, address = receiver
    metric = "org.apache.kafka.producer.record.send.total"
    with Producer(bootstrap_servers=bootstrap, client_id="closing") as producer:
        producer.send("measured", "a").result(PATIENCE_S)
        wait_for(lambda: page_lines(address, "closing", metric), lambda: time.sleep(0.05))
        producer.send("measured", "b").result(PATIENCE_S)
    wait_for(
        lambda: [float(line.rpartition(" ")[2]) for line in page_lines(address, "closing", metric)] == [2.0],
        lambda: time.sleep(0.02),
    )
