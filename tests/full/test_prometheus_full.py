"""Prometheus scrapes a loaded broker with 1,000 topics for ten minutes.

KAFKAPY_PROMETHEUS_SECONDS is the duration in seconds (600).
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.protocol.api import ApiKey, response_class
from kafkapy.protocol.messages.produce import ProduceRequest
from tests.api_client import ask
from tests.broker_process import ROOT
from tests.operations.prometheus import Prometheus, alert_operands, dashboard_expressions, programs
from tests.operations.watched_broker import WatchedBroker
from tests.ports import free_port

SECONDS = int(os.environ.get("KAFKAPY_PROMETHEUS_SECONDS", "600"))
TOPICS = 1_000
RECORDS_PER_SECOND = 1_000
LARGEST_PAGE_CPU_S = 0.020


class Load:
    """A thread with producers, a slower group, transactions, and occasional damaged batches."""

    def __init__(self, broker: WatchedBroker) -> None:
        self._broker = broker
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        servers = {"bootstrap.servers": self._broker.bootstrap}
        producer = Producer({**servers, "linger.ms": 5})
        transactional = Producer({**servers, "transactional.id": "watched"})
        transactional.init_transactions(60)
        consumer = Consumer({**servers, "group.id": "slow", "auto.offset.reset": "earliest"})
        consumer.subscribe(["topic-0000", "topic-0001"])
        while not self._stopping.wait(0.5):
            for number in range(RECORDS_PER_SECOND // 2):
                producer.produce(f"topic-{number % TOPICS:04}", b"x" * 200)
            transactional.begin_transaction()
            transactional.produce("topic-0001", b"y" * 200)
            transactional.commit_transaction(60)
            consumer.consume(1, 0.1)
            send_damaged(self._broker.port)
            producer.poll(0)
        producer.flush(60)
        consumer.close()


def send_damaged(port: int) -> None:
    builder = RecordBatchBuilder()
    builder.append(int(time.time() * 1000), None, b"damaged")
    batch = bytearray(builder.build())
    batch[-1] ^= 1
    data = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topic = ProduceRequest.TopicProduceData(name="topic-0000", partition_data=[data])
    with socket.create_connection(("localhost", port), timeout=20) as client:
        request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
        answer = ask(client, ApiKey.PRODUCE, 9, request, response_class(ApiKey.PRODUCE))
    assert answer.responses[0].partition_responses[0].error_code != 0


@pytest.mark.full
@pytest.mark.timeout(SECONDS + 300)
def test_prometheus_sees_everything(tmp_path: Path) -> None:
    probe_port = free_port()
    with WatchedBroker(tmp_path / "broker") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        created = admin.create_topics([NewTopic(f"topic-{number:04}", 1, 1) for number in range(TOPICS)])
        for future in created.values():
            future.result(120)
        probe = subprocess.Popen(
            [
                *(sys.executable, "-m", "kafkapy", "probe", "--bootstrap-server", broker.bootstrap, "--quiet"),
                *("--listen", f"127.0.0.1:{probe_port}"),
            ],
            cwd=ROOT,
        )
        load = Load(broker)
        targets = {
            "localhost:9404": f"127.0.0.1:{broker.metrics_port}",
            "localhost:9405": f"127.0.0.1:{probe_port}",
        }
        (tmp_path / "prometheus").mkdir()
        try:
            with Prometheus(tmp_path / "prometheus", targets) as prometheus:
                time.sleep(SECONDS)
                check(prometheus)
            page = broker.page()
        finally:
            load.stop()
            probe.terminate()
            probe.wait(30)
    cost_s = page.value("kafkapy_metrics_cpu_seconds_total") / page.value("kafkapy_metrics_pages_total")
    scrapes = page.value("kafkapy_metrics_pages_total")
    print(f"{scrapes:.0f} pages of {len(page.text)} bytes, {cost_s * 1000:.2f} ms of processor time each")
    assert scrapes >= SECONDS / 15 - 2
    assert cost_s < LARGEST_PAGE_CPU_S


def check(prometheus: Prometheus) -> None:
    """Checks that no scrape is missed, every expression has data, and only the alert for damaged batches fires."""
    for series in prometheus.query(f"min_over_time(up[{SECONDS}s])"):
        assert series["value"][1] == "1", series
    empty = [expression for expression in dashboard_expressions() if not prometheus.query(expression)]
    assert not empty
    groups = prometheus.api("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) > 15
    assert [rule["name"] for rule in rules if rule["health"] != "ok"] == []
    operands = [operand for rule in rules for operand in alert_operands(rule["query"])]
    assert not [operand for operand in operands if not prometheus.query(operand)]
    firing = {rule["name"] for rule in rules if rule["state"] == "firing"}
    assert firing <= {"KafkaRequestErrors", "KafkaDiskAlmostFull"}, firing


def test_the_alerts_are_well_formed() -> None:
    rules = ROOT / "packaging" / "prometheus" / "alerts.yml"
    done = subprocess.run(
        [programs() / "promtool", "check", "rules", rules], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
