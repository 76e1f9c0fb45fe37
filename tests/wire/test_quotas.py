"""Quotas next to Apache Kafka: the same entities are limited, by the same throttle times.

A bucket that is new is in its first sample, so that the throttle time follows from the size of the request alone and is
the same to the millisecond. Every request uses a connection and a client id of its own.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.api_client import ask, request_bytes
from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka
from tests.reactor_harness import frame
from tests.server_process import ServerProcess
from tests.twin_brokers import receive

Entity = dict[str, str | None]
TOPIC, FETCHED = "t", "f"
ME = "ANONYMOUS"
_IDS = itertools.count()


@pytest.fixture(scope="module")
def servers(kafka_43: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ServerProcess]]:
    ours = BrokerProcess(tmp_path_factory.mktemp("ours"))
    kafka = ApacheKafka(kafka_43, tmp_path_factory.mktemp("kafka"), heap=("-Xmx512M",))
    with kafka, ours:
        for server in (kafka, ours):
            assert create(server, 7, {TOPIC: 1, FETCHED: 1})[0] == {TOPIC: 0, FETCHED: 0}
        yield [kafka, ours]


def connect(server: ServerProcess) -> socket.socket:
    return socket.create_connection(("localhost", server.port), timeout=30)


def call(server: ServerProcess, key: ApiKey, version: int, body: Any, response_class: Any, client_id: str) -> Any:
    """Sends one request on a new connection."""
    with connect(server) as connection:
        connection.sendall(frame(request_bytes(key, version, body, client_id=client_id)))
        header = 5 if version >= response_class.FLEXIBLE_VERSION else 4
        return response_class.decode(receive(connection), version, header)


def set_quota(server: ServerProcess, entity: Entity, key: str, value: float | None) -> None:
    """Changes a quota, and returns when it is in force, which is later than the response."""
    alter(server, entity, key, value)
    marker = f"marker-{next(_IDS)}"
    alter(server, {"user": ME, "client-id": marker}, "producer_byte_rate", 1)
    for _ in range(1000):
        if produce(server, marker, 100):
            return
    raise AssertionError("the change of a quota had no effect")


def alter(server: ServerProcess, entity: Entity, key: str, value: float | None) -> None:
    part = AlterClientQuotasRequest.EntityData
    entry = AlterClientQuotasRequest.EntryData(
        entity=[part(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None)],
    )
    with connect(server) as connection:
        request = AlterClientQuotasRequest(entries=[entry], validate_only=False)
        response = ask(connection, ApiKey.ALTER_CLIENT_QUOTAS, 1, request, AlterClientQuotasResponse)
    assert response.entries[0].error_code == 0, response


def create(
    server: ServerProcess,
    version: int,
    topics: dict[str, int],
    client_id: str = "admin",
    *,
    validate_only: bool = False,
) -> tuple[dict[str, int], int]:
    """Creates topics with these numbers of partitions; returns the error codes and the throttle time."""
    wanted = [
        CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=count, replication_factor=1, assignments=[], configs=[]
        )
        for name, count in topics.items()
    ]
    request = CreateTopicsRequest(topics=wanted, timeout_ms=30_000, validate_only=validate_only)
    response = call(server, ApiKey.CREATE_TOPICS, version, request, CreateTopicsResponse, client_id)
    return {topic.name: topic.error_code for topic in response.topics}, response.throttle_time_ms


def produce(server: ServerProcess, client_id: str, size: int = 30_000, topic_name: str = TOPIC) -> int:
    """Appends a record of `size` bytes; returns the throttle time."""
    builder = RecordBatchBuilder()
    builder.append(1_700_000_000_000, None, bytes(size))
    data = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
    topic = ProduceRequest.TopicProduceData(name=topic_name, partition_data=[data])
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
    response = call(server, ApiKey.PRODUCE, 9, request, ProduceResponse, client_id)
    assert response.responses[0].partition_responses[0].error_code == 0
    throttle_ms: int = response.throttle_time_ms
    return throttle_ms


def fetch(server: ServerProcess, client_id: str, max_bytes: int) -> tuple[int, int]:
    """Returns the throttle time and the size of the records."""
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=100, min_bytes=1, max_bytes=max_bytes, session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=FETCHED, partitions=[partition])],
    )  # fmt: skip
    response = call(server, ApiKey.FETCH, 12, request, FetchResponse, client_id)
    size = sum(len(each.records) for topic in response.responses for each in topic.partitions)
    return response.throttle_time_ms, size


def test_clients_of_a_user_share_the_limit_of_the_user(servers: list[ServerProcess]) -> None:
    found = []
    for server in servers:
        set_quota(server, {"user": ME}, "producer_byte_rate", 10_000)
        found.append([produce(server, f"shared-{number}", 60_000) for number in range(2)])
        set_quota(server, {"user": ME}, "producer_byte_rate", None)
    for times in found:
        assert times[0] == 0
        assert 1000 < times[1] < 2500
    assert abs(found[0][1] - found[1][1]) <= 1000


def test_each_level_of_precedence_limits_the_same_clients(servers: list[ServerProcess]) -> None:
    """Each level replaces the one before; its bound tells by the throttle time which one applies.

    The throttle times of two levels are at least three seconds apart. Those of the two servers differ by the time
    since the first request of all clients of the user (up to a second), and by the markers of `set_quota` that a server
    counts to the user because their own quota is not in force yet (0.2 s each).
    """

    def levels(client_id: str) -> list[Entity]:
        return [
            {"client-id": None},
            {"client-id": client_id},
            {"user": None},
            {"user": None, "client-id": None},
            {"user": None, "client-id": client_id},
            {"user": ME, "client-id": None},
            {"user": ME, "client-id": client_id},
        ]

    found: list[list[int]] = []
    for server in servers:
        times = []
        for place in range(len(levels(""))):
            client_id = f"client-{place}"
            entity = levels(client_id)[place]
            set_quota(server, entity, "producer_byte_rate", 1000 + 20 * place)
            times.append(produce(server, client_id, 200_000))
        for place in range(len(levels(""))):
            set_quota(server, levels(f"client-{place}")[place], "producer_byte_rate", None)
        found.append(times)
    for kafkas, ours in zip(*found, strict=True):
        assert kafkas > 100_000
        assert abs(ours - kafkas) <= 1500


def test_a_fetch_beyond_the_quota_is_empty(servers: list[ServerProcess]) -> None:
    found = []
    for server in servers:
        for _ in range(4):
            produce(server, "free", 9900, FETCHED)
        set_quota(server, {"client-id": "reader"}, "consumer_byte_rate", 3100)
        found.append([fetch(server, "reader", size) for size in (20_000, 20_000)])
        set_quota(server, {"client-id": "reader"}, "consumer_byte_rate", None)
    (kafkas, ours) = found
    assert kafkas[0] == ours[0]
    assert kafkas[0][0] == 0
    assert [size for _, size in ours] == [size for _, size in kafkas]
    assert ours[1][1] == 0
    assert abs(ours[1][0] - kafkas[1][0]) <= 1000


def test_mutations_are_refused_and_delayed_alike(servers: list[ServerProcess]) -> None:
    found = []
    for server in servers:
        set_quota(server, {"client-id": "maker"}, "controller_mutation_rate", 0.01)
        validated = create(server, 6, {"a": 1}, "maker", validate_only=True)
        strict = create(server, 6, {"b": 1, "c": 2}, "maker")
        old = create(server, 5, {"d": 2}, "maker")
        set_quota(server, {"client-id": "maker"}, "controller_mutation_rate", None)
        found.append([validated, strict, old])
    (kafkas, ours) = found
    assert [codes for codes, _ in ours] == [codes for codes, _ in kafkas]
    assert ours[0] == ({"a": 0}, 0)
    assert set(ours[1][0].values()) == {Error.THROTTLING_QUOTA_EXCEEDED}
    assert all(abs(one - other) < 2000 for (_, one), (_, other) in zip(ours, kafkas, strict=True))
