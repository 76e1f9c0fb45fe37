"""A broker with topics, records, groups and a transaction, and a console that shows it."""

from __future__ import annotations

import json

import pytest

from kafkapy.client import Admin, Consumer, Producer
from kafkapy.client.admin import NewTopic
from tests.broker_process import BrokerProcess
from tests.console_process import ConsoleProcess

HOSTILE = {
    "markup": b"<script>alert(1)</script><img src=x onerror=alert(2)>",
    "invalid": b"\xff\xfe\x80 not UTF-8",
    "nested": b"[" * 100_000,
    "quotes": b"\"'><b>bold</b>",
    "null": None,
}


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    directory = tmp_path_factory.mktemp("console-broker")
    properties = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
    with BrokerProcess(directory, properties) as running:
        fill(running.bootstrap)
        yield running


def fill(bootstrap: str) -> None:
    """Creates what the tests look at."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        topics = [NewTopic("orders", 3, 1, configs={"retention.ms": "-1"}), NewTopic("hostile", 1, 1)]
        admin.create_topics([*topics, NewTopic("empty", 2, 1)]).check()
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(300):
            value = json.dumps({"id": number, "customer": {"name": f"customer-{number % 7}"}, "price": number / 4})
            producer.send(
                "orders",
                value.encode(),
                key=b"%d" % number,
                partition=number % 3,
                timestamp=1_700_000_000_000 + number,
                headers=[("trace", b"t-%d" % number)],
            )
        for name, value in HOSTILE.items():
            producer.send("hostile", value, key=name.encode())
    with Producer(bootstrap_servers=bootstrap, transactional_id="payments") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("hostile", b"in a transaction")
        producer.commit_transaction()
    with Consumer(bootstrap_servers=bootstrap, group_id="billing", enable_auto_commit=False) as consumer:
        consumer.assign([("orders", 0), ("orders", 1), ("orders", 2)])
        consumer.commit({("orders", 0): 100, ("orders", 1): 60, ("orders", 2): 0})


@pytest.fixture(scope="session")
def console(broker, tmp_path_factory):
    directory = tmp_path_factory.mktemp("console")
    arguments = ("--bootstrap-server", broker.bootstrap, "--name", "test", "--metadata-directory", str(broker.data))
    with ConsoleProcess(directory, *arguments) as running:
        yield running


@pytest.fixture
def visitor(console):
    return console.visitor()
