"""Transactions through librdkafka, aiokafka and Java's clients, old and new, each in its own process.

The tests read open, committed and aborted records with both isolation levels, and have two producers with one
transactional id and a producer that dies in a transaction. KAFKAPY_TEST_SERVER=apache tests Apache Kafka instead.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.broker_process import BrokerProcess
from tests.clients.conftest import create_topic
from tests.clients.transactor.transactor import TRANSACTORS, Refused, Transactor
from tests.peers import ApacheKafka, kafka_directory
from tests.server_process import ServerProcess

VALUES = ["msg1", "msg2", "msg3"]
LONG, SHORT = "60000", "3000"
DEADLINE_SECONDS = 60


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Yields a server that checks for timed-out transactions every 100 ms."""
    directory = tmp_path_factory.mktemp("server")
    properties = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
    made: ServerProcess = BrokerProcess(directory, properties)
    if os.environ.get("KAFKAPY_TEST_SERVER") == "apache":
        made = ApacheKafka(kafka_directory("4.3.0"), directory, heap=("-Xmx512M",), properties=properties)
    with made as running:
        yield running


@pytest.fixture(scope="module", params=TRANSACTORS)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Transactor]:
    transactor = Transactor(request.param, tmp_path_factory.mktemp("transactor"))
    yield transactor
    transactor.kill()


@pytest.fixture
def bootstrap(server: ServerProcess) -> str:
    return server.bootstrap


@pytest.fixture
def topic(bootstrap: str) -> str:
    name = f"topic-{uuid.uuid4()}"
    create_topic(bootstrap, name, 1)
    return name


@pytest.fixture
def transactional_id() -> str:
    return f"id-{uuid.uuid4()}"


def both(client: Transactor, bootstrap: str, topic: str) -> tuple[list[str], list[str]]:
    return (
        client.ask("seen", bootstrap, topic, "read_committed"),
        client.ask("seen", bootstrap, topic, "read_uncommitted"),
    )


def test_open_committed_aborted(client: Transactor, bootstrap: str, topic: str, transactional_id: str) -> None:
    client.ask("init", "one", bootstrap, transactional_id, LONG)
    client.ask("begin", "one")
    client.ask("send", "one", topic, *VALUES)
    assert both(client, bootstrap, topic) == ([], VALUES)
    client.ask("commit", "one")
    assert both(client, bootstrap, topic) == (VALUES, VALUES)
    client.ask("begin", "one")
    client.ask("send", "one", topic, "aborted")
    client.ask("abort", "one")
    assert both(client, bootstrap, topic) == (VALUES, [*VALUES, "aborted"])
    whole_transaction(client, "one", topic, "next")  # readers have moved past the aborted records
    assert both(client, bootstrap, topic) == ([*VALUES, "next"], [*VALUES, "aborted", "next"])


def test_two_producers_with_one_transactional_id(
    client: Transactor, bootstrap: str, topic: str, transactional_id: str
) -> None:
    client.ask("init", "first", bootstrap, transactional_id, LONG)
    client.ask("begin", "first")
    client.ask("send", "first", topic, "first")
    client.ask("init", "second", bootstrap, transactional_id, LONG)  # aborts the open transaction of the first
    client.ask("begin", "second")
    client.ask("send", "second", topic, *VALUES)
    with pytest.raises(Refused):
        client.ask("commit", "first")
    client.ask("commit", "second")
    assert both(client, bootstrap, topic) == (VALUES, ["first", *VALUES])
    with pytest.raises(Refused):  # the first producer remains fenced
        whole_transaction(client, "first", topic, "zombie")
    assert both(client, bootstrap, topic) == (VALUES, ["first", *VALUES])


def whole_transaction(client: Transactor, producer: str, topic: str, value: str) -> None:
    client.ask("begin", producer)
    client.ask("send", producer, topic, value)
    client.ask("commit", producer)


def test_offsets_count_with_the_transaction(
    client: Transactor, bootstrap: str, topic: str, transactional_id: str
) -> None:
    group = f"group-{uuid.uuid4()}"
    client.ask("init", "one", bootstrap, transactional_id, LONG)
    offsets = []
    for end in ("abort", "commit"):
        client.ask("begin", "one")
        client.ask("send", "one", topic, end)
        client.ask("offsets", "one", group, topic, "7")
        client.ask(end, "one")
        offsets.append(committed(bootstrap, group, topic))
    assert offsets == [-1001, 7]


def committed(bootstrap: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        (found,) = consumer.committed([TopicPartition(topic, 0)], DEADLINE_SECONDS)
        offset: int = found.offset
        return offset
    finally:
        consumer.close()


def test_a_producer_that_dies_midway(client: Transactor, bootstrap: str, topic: str, transactional_id: str) -> None:
    """The dead producer's transaction times out and is aborted; until then readers wait at its first record."""
    client.ask("init", "dying", bootstrap, transactional_id, SHORT)
    client.ask("begin", "dying")
    client.ask("send", "dying", topic, *VALUES)
    client.kill()
    client.ask("init", "other", bootstrap, f"{transactional_id}-other", LONG)
    whole_transaction(client, "other", topic, "other")
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (seen := client.ask("seen", bootstrap, topic, "read_committed")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert seen == ["other"]
    assert client.ask("seen", bootstrap, topic, "read_uncommitted") == [*VALUES, "other"]
