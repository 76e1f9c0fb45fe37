"""The pages on brokers whose metrics listeners it knows: places of records, two reasons of lag."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafkapy.client import Admin, Consumer, Producer
from kafkapy.client.admin import NewTopic
from tests.broker_process import BrokerProcess
from tests.certificates import authority, server_certificate
from tests.console_process import ConsoleProcess, Visitor
from tests.ports import free_port

RECORDS, VALUE = 400, b"x" * 5000
PASSWORD = "planted-secret-of-the-metrics"
SLOW = (("client-id", "slow"),)


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A broker whose metrics listener has TLS and a password, and a client's file for it."""
    directory = tmp_path_factory.mktemp("facts-broker")
    store = directory / "server.pem"
    store.write_bytes(server_certificate().private_key + server_certificate().certificate)
    trust = directory / "authority.pem"
    trust.write_bytes(authority().certificate)
    port = free_port()
    properties = {
        "kafkapy.metrics.listener": f"127.0.0.1:{port}",
        "kafkapy.metrics.tls.enable": "true",
        "kafkapy.metrics.username": "console",
        "kafkapy.metrics.password": PASSWORD,
        "listener.name.metrics.ssl.keystore.type": "PEM",
        "listener.name.metrics.ssl.keystore.location": str(store),
        "kafkapy.console.listener": "localhost:0",
        "offsets.topic.num.partitions": "1",
    }
    client = directory / "metrics.properties"
    client.write_text(
        f"kafkapy.metrics.urls=https://localhost:{port}\nkafkapy.metrics.username=console\n"
        f"kafkapy.metrics.password={PASSWORD}\nssl.truststore.type=PEM\nssl.truststore.location={trust}\n"
    )
    with BrokerProcess(directory, properties) as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics([NewTopic("large", 1, 1)]).check()
            admin.alter_client_quotas({SLOW: {"consumer_byte_rate": 20_000.0}}).check()
        with Producer(bootstrap_servers=broker.bootstrap, batch_size=1) as producer:
            for _ in range(RECORDS):
                producer.send("large", VALUE)
        yield broker, client


@pytest.fixture(scope="module")
def visitor(secured, tmp_path_factory):
    broker, client = secured
    arguments = ("--bootstrap-server", broker.bootstrap, "--name", "test", "--metrics", str(client))
    with ConsoleProcess(tmp_path_factory.mktemp("facts-console"), *arguments) as console:
        yield console.visitor()


@contextmanager
def reading(bootstrap: str, group: str, **settings) -> Iterator[None]:
    """A member of a group that commits what it has read, one record at a time, and then waits."""
    is_done = threading.Event()

    def run() -> None:
        consumer = Consumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=1,
            **settings,
        )
        with consumer:
            consumer.subscribe(["large"])
            while not is_done.is_set():
                if consumer.poll(0.2):
                    consumer.commit()
                    is_done.wait(0.05)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


def page_with(visitor: Visitor, group: str, expected: str) -> str:
    """Returns the text of a group's page, as soon as it has the text `expected`."""
    deadline_s = time.monotonic() + 120
    while True:
        plain = visitor.get(f"/c/test/group?id={group}").plain
        if expected in plain:
            return plain
        assert time.monotonic() < deadline_s, plain
        time.sleep(0.1)


def test_a_record_has_its_segment_position_and_batch(visitor):
    plain = visitor.get("/c/test/topics/large/records/0/7").plain
    assert "Segment 00000000000000000000.log of" in plain
    assert ", on broker 1" in plain
    assert re.search(r"The batch begins at byte [\d ]+ of the segment", plain)
    assert re.search(r"Offsets 7 to 7: 1 record, 5 \d\d\d bytes, not compressed, magic 2\.", plain)
    assert re.search(r"Producer id \d+, epoch 0, first sequence number 7, idempotent, without a transaction\.", plain)
    assert "are not known" not in plain


def test_a_group_that_a_quota_delays_is_throttled(secured, visitor):
    with reading(secured[0].bootstrap, "delayed", client_id="slow"):
        plain = page_with(visitor, "delayed", "The group is throttled: broker 1 has delayed the client 'slow'")
    assert "The quota consumer_byte_rate of client-id slow permits 20 000 bytes per second." in plain
    assert "Not known" not in plain


def test_a_group_whose_fetches_are_smaller_than_a_batch(secured, visitor):
    with reading(secured[0].bootstrap, "narrow", client_id="narrow", max_partition_fetch_bytes=1000):
        plain = page_with(visitor, "narrow", "A record or batch is larger than its fetch")
    assert re.search(r"the batch at offset \d+ of large-0 has 5\.0 KiB", plain)
    assert "the fetches of 'narrow' permit 1000 B" in plain
    assert "Raise max.partition.fetch.bytes of the consumer." in plain


def test_a_group_without_these_reasons_has_neither_verdict(secured, visitor):
    with reading(secured[0].bootstrap, "usual", client_id="usual"):
        plain = page_with(visitor, "usual", "Members 1")
    assert "throttled" not in plain
    assert "larger than its fetch" not in plain
    assert "Not known" not in plain


def test_the_console_of_a_broker_reads_its_metrics_listener_by_itself(secured):
    broker, _ = secured
    found: list[str] = []
    deadline_s = time.monotonic() + 120
    while not found:
        assert time.monotonic() < deadline_s, broker.log()
        time.sleep(0.05)
        found = ConsoleProcess.ready_line.findall(broker.log())
    origin, _, token = found[-1].rpartition("/")
    visitor = Visitor(origin)
    visitor.get(f"/{token}")
    plain = visitor.get("/c/cluster/topics/large/records/0/7").plain
    assert "Segment 00000000000000000000.log of" in plain
    assert PASSWORD not in broker.log()


def test_a_metrics_listener_that_does_not_respond_is_named(secured, tmp_path):
    port = free_port()
    arguments = ("--bootstrap-server", secured[0].bootstrap, "--name", "test")
    with ConsoleProcess(tmp_path, *arguments, "--metrics", f"test=http://localhost:{port}") as console:
        reply = console.visitor().get("/c/test/topics/large/records/0/7")
    assert reply.status == 200
    assert f"http://localhost:{port} cannot be read" in reply.plain
