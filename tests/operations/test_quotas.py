"""Quotas of a running broker: which of them applies, how the controller and the listeners enforce theirs, and what the
metrics show."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.errors import ConfigError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from kafkapy.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkapy.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.security.principal import Principal
from kafkapy.server.exposition.broker_page import BrokerPage
from tests.api_client import ask, request_bytes
from tests.reactor_harness import frame
from tests.twin_brokers import PING, BrokerTwin, receive

# Windows so long that the machine's clock has no part in what happens: nothing leaves them.
WINDOW_S = 1000
KEYS = {
    f"{prefix}quota.window.{key}": value
    for prefix in ("", "controller.")
    for key, value in {"num": "2", "size.seconds": str(WINDOW_S)}.items()
}
Entity = dict[str, str | None]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerTwin]:
    twin = BrokerTwin(tmp_path, gated=True, properties=KEYS)
    yield twin
    twin.stop()


def set_quota(broker: BrokerTwin, entity: Entity, key: str, value: float | None) -> None:
    part = AlterClientQuotasRequest.EntityData
    entry = AlterClientQuotasRequest.EntryData(
        entity=[part(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None)],
    )  # fmt: skip
    request = AlterClientQuotasRequest(entries=[entry], validate_only=False)
    response = ask(broker.connection(0), ApiKey.ALTER_CLIENT_QUOTAS, 1, request, AlterClientQuotasResponse)
    assert response.entries[0].error_code == 0, response


def unmute(broker: BrokerTwin) -> None:
    for connection in broker.broker.reactor.idle_order():
        if connection.is_muted:
            broker.broker.reactor.post(connection.unmute)


def create(broker: BrokerTwin, version: int, *counts: int, validate_only: bool = False) -> tuple[list[int], int]:
    """Creates a topic with each of these numbers of partitions; returns their error codes and the throttle time."""
    topics = [
        CreateTopicsRequest.CreatableTopic(
            name=f"t-{version}-{next(_NUMBERS)}", num_partitions=count, replication_factor=1, assignments=[], configs=[]
        )
        for count in counts
    ]
    request = CreateTopicsRequest(topics=topics, timeout_ms=1000, validate_only=validate_only)
    response = ask(broker.connection(1), ApiKey.CREATE_TOPICS, version, request, CreateTopicsResponse)
    unmute(broker)
    return [topic.error_code for topic in response.topics], response.throttle_time_ms


_NUMBERS = itertools.count()
ME: Entity = {"user": "ANONYMOUS"}


def test_strict_requests_are_refused_while_the_tokens_are_in_debt(broker: BrokerTwin) -> None:
    set_quota(broker, ME, "controller_mutation_rate", 0.001)  # two tokens, and hardly more for a long time
    assert create(broker, 6, 3, validate_only=True) == ([0], 0)
    codes, throttle_ms = create(broker, 6, 1, 1)
    assert codes == [Error.THROTTLING_QUOTA_EXCEEDED] * 2
    assert 900_000 < throttle_ms <= 1_000_000
    deletion = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="missing")], timeout_ms=1000)
    deleted = ask(broker.connection(1), ApiKey.DELETE_TOPICS, 6, deletion, DeleteTopicsResponse)
    assert (deleted.responses[0].error_code, deleted.throttle_time_ms) == (Error.UNKNOWN_TOPIC_OR_PARTITION, 0)


def test_old_requests_are_carried_out_and_delay_the_client(broker: BrokerTwin) -> None:
    set_quota(broker, ME, "controller_mutation_rate", 0.001)
    codes, throttle_ms = create(broker, 5, 2, 3)
    assert codes == [0, 0]
    assert 2_900_000 < throttle_ms <= 3_000_000
    name = min(broker.broker.parts.services.metadata.image.topics.by_name)
    wanted = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=9, assignments=None)
    for version, code in ((2, 0), (3, Error.THROTTLING_QUOTA_EXCEEDED)):
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=1000, validate_only=True)
        response = ask(broker.connection(1), ApiKey.CREATE_PARTITIONS, version, request, CreatePartitionsResponse)
        unmute(broker)
        assert (response.results[0].error_code, response.throttle_time_ms > 2_900_000) == (code, True)


def test_a_topic_costs_its_partitions_when_it_is_deleted(broker: BrokerTwin) -> None:
    broker.create_topic("gone", 5, {})
    set_quota(broker, ME, "controller_mutation_rate", 0.001)
    broker.delete_topic("gone")
    assert create(broker, 7, 1)[0] == [Error.THROTTLING_QUOTA_EXCEEDED]


def test_the_most_precise_quota_applies(broker: BrokerTwin) -> None:
    """The levels from the least to the most precise: each new one replaces the one before."""
    levels: list[Entity] = [
        {"client-id": None},
        {"client-id": "app"},
        {"user": None},
        {"user": None, "client-id": None},
        {"user": None, "client-id": "app"},
        {"user": "ANONYMOUS"},
        {"user": "ANONYMOUS", "client-id": None},
        {"user": "ANONYMOUS", "client-id": "app"},
    ]
    services = broker.broker.parts.services
    connection = broker.connection(1)
    for place, entity in enumerate(levels, 1):
        set_quota(broker, entity, "request_percentage", 1000.0 * place)
        connection.sendall(frame(request_bytes(ApiKey.METADATA, 9, MetadataRequest(topics=[]), client_id="app")))
        assert MetadataResponse.decode(receive(connection), 9, 5).throttle_time_ms == 0
        assert services.quotas is not None
        bounds = [each.bound for each in services.quotas.spending("request_percentage", 0) if each.rate >= 0]
        assert 1000.0 * place in bounds


def test_any_response_has_the_throttle_time_of_the_quota_of_requests(broker: BrokerTwin) -> None:
    set_quota(broker, {"client-id": "slow"}, "request_percentage", 1e-9)
    connection = broker.connection(1)
    connection.sendall(frame(request_bytes(ApiKey.METADATA, 9, MetadataRequest(topics=[]), client_id="slow")))
    response = MetadataResponse.decode(receive(connection), 9, 5)
    assert response.throttle_time_ms == WINDOW_S * 1000  # one sample at most
    assert broker.broker.reactor.counters()["connections_muted"] == 1


def test_an_address_beyond_its_rate_is_disconnected(broker: BrokerTwin) -> None:
    broker.connection(0)
    set_quota(broker, {"ip": "127.0.0.1"}, "connection_creation_rate", 1)
    quotas = broker.broker.socket_server.quotas
    for _ in range(WINDOW_S):
        assert quotas.throttle_ms("PLAINTEXT", "127.0.0.1", broker.broker.reactor.monotonic_ms) == 0
    refused = socket.create_connection(broker.address, timeout=20)
    refused.sendall(PING)
    before = broker.broker.socket_server.connection_count
    assert broker.answered([0]) == set()
    assert broker.broker.socket_server.connection_count == before  # it was accepted, and is not served
    set_quota(broker, {"ip": "127.0.0.1"}, "connection_creation_rate", None)
    other = socket.create_connection(broker.address, timeout=20)
    other.sendall(PING)
    assert receive(other)
    refused.close()
    other.close()


def test_the_metrics_show_who_is_throttled(broker: BrokerTwin) -> None:
    set_quota(broker, {"client-id": "slow"}, "request_percentage", 1e-9)
    set_quota(broker, ME, "controller_mutation_rate", 5)
    create(broker, 7, 1)
    connection = broker.connection(2)
    connection.sendall(frame(request_bytes(ApiKey.METADATA, 9, MetadataRequest(topics=[]), client_id="slow")))
    receive(connection)
    text = page_of(broker)
    assert f'kafka_server_request_throttle_time{{user="",client_id="slow"}} {WINDOW_S * 1000}.0\n' in text
    assert 'kafkapy_quota_request_percentage{user="",client_id="slow",rule="client-id slow"} 1e-09\n' in text
    assert "kafka_server_request_queue_size 1\n" in text
    assert "kafka_server_produce_queue_size 0\n" in text
    assert "kafka_server_request_exempt_request_time 0.0\n" in text
    assert 'kafka_server_controllermutation_tokens{user="ANONYMOUS",client_id=""} 9999' in text
    assert 'kafka_server_controllermutation_mutation_rate{user="ANONYMOUS",client_id=""} 0.0' in text
    assert 'kafkapy_quota_controller_mutation_rate{user="ANONYMOUS",client_id="",rule="user ANONYMOUS"} 5.0\n' in text
    assert "kafka_server_controllermutation_queue_size 0\n" in text
    assert 'kafka_server_socket_server_metrics_connection_accept_throttle_time{listener="PLAINTEXT"} 0.0\n' in text
    assert 'kafka_server_socket_server_metrics_ip_connection_accept_throttle_time{listener="PLAINTEXT"} 0.0\n' in text
    assert "kafkapy_network_muted_connections 1\n" in text


def page_of(broker: BrokerTwin) -> str:
    owner = broker.broker
    page = BrokerPage(owner.parts.services, owner._foundation.log_cleaner, owner.socket_server, lambda: 3)
    return bytes(memoryview(page.render())).decode()


def test_changes_of_topics_are_charged_to_the_client_that_names_a_missing_topic(broker: BrokerTwin) -> None:
    set_quota(broker, ME, "controller_mutation_rate", 0.001)  # two tokens
    metadata = broker.broker.parts.services.metadata
    for name in ("first", "second", "third", "fourth", "fifth"):
        topic = MetadataRequest.MetadataRequestTopic(name=name)
        request = MetadataRequest(topics=[topic], allow_auto_topic_creation=True)
        response = ask(broker.connection(1), ApiKey.METADATA, 9, request, MetadataResponse)
        assert (response.topics[0].error_code, response.throttle_time_ms) == (Error.UNKNOWN_TOPIC_OR_PARTITION, 0)
    assert create(broker, 6, 1)[0] == [Error.THROTTLING_QUOTA_EXCEEDED]  # the controller has reached all before
    assert sorted(metadata.image.topics.by_name) == ["first", "second", "third"]


def test_a_refused_connection_is_shown(broker: BrokerTwin) -> None:
    set_quota(broker, {"ip": "127.0.0.1"}, "connection_creation_rate", 1)
    quotas = broker.broker.socket_server.quotas
    for _ in range(WINDOW_S + 1):
        quotas.throttle_ms("PLAINTEXT", "127.0.0.1", broker.broker.reactor.monotonic_ms)
    name = "kafka_server_socket_server_metrics_ip_connection_accept_throttle_time"
    (line,) = [line for line in page_of(broker).splitlines() if line.startswith(f"{name}{{")]
    assert float(line.rpartition(" ")[2]) > 0


def test_the_number_of_series_is_bounded(tmp_path: Path) -> None:
    broker = BrokerTwin(tmp_path, gated=True, properties=KEYS | {"kafkapy.metrics.series.limit": "3"})
    set_quota(broker, {"client-id": None}, "request_percentage", 1e6)
    set_quota(broker, {"client-id": None}, "controller_mutation_rate", 1e6)
    quotas = broker.broker.parts.services
    connection = broker.connection(1)
    for number in range(5):
        client_id = f"client-{number}"
        for key, request in (
            (ApiKey.METADATA, MetadataRequest(topics=[])),
            (ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[], timeout_ms=1000)),
        ):
            connection.sendall(frame(request_bytes(key, 5, request, client_id=client_id)))
            receive(connection)
    assert quotas.mutation_quotas is not None
    assert len(quotas.mutation_quotas.spending(0)) == 5
    text = page_of(broker)
    broker.stop()
    for name in ("kafka_server_request_request_time", "kafka_server_controllermutation_tokens"):
        assert sum(line.startswith(f"{name}{{") for line in text.splitlines()) == 3


class Callback:
    """Limits the time of each principal by its own rule, which the test changes."""

    made: list[Callback] = []

    def __init__(self) -> None:
        self.limit: float | None = None
        self.stored: list[tuple[str, dict[str, str | None], float | None]] = []
        self.is_changed = False
        self.is_closed = False
        Callback.made.append(self)

    def configure(self, configs: dict[str, str]) -> None:
        self.limit = float(configs["our.limit"])

    def quota_tags(self, quota: str, principal: Principal, client_id: str) -> dict[str, str]:
        if client_id == "broken":
            raise RuntimeError("the callback fails")
        return {"user": principal.name, "tenant": client_id[:3]}

    def quota_limit(self, quota: str, tags: dict[str, str]) -> float | None:
        return self.limit if quota == "request_percentage" and tags["tenant"] == "acm" else None

    def update_quota(self, quota: str, entity: dict[str, str | None], value: float) -> None:
        self.stored.append((quota, entity, value))

    def remove_quota(self, quota: str, entity: dict[str, str | None]) -> None:
        self.stored.append((quota, entity, None))

    def quota_reset_required(self, quota: str) -> bool:
        was_changed, self.is_changed = self.is_changed and quota == "request_percentage", False
        return was_changed

    def close(self) -> None:
        self.is_closed = True


def throttle_ms(broker: BrokerTwin, client_id: str) -> int:
    connection = broker.connection(1)
    connection.sendall(frame(request_bytes(ApiKey.METADATA, 9, MetadataRequest(topics=[]), client_id=client_id)))
    found: int = MetadataResponse.decode(receive(connection), 9, 5).throttle_time_ms
    unmute(broker)
    return found


def test_a_class_of_the_administrator_decides(tmp_path: Path) -> None:
    Callback.made.clear()
    keys = {"client.quota.callback.class": f"{__name__}:Callback", "our.limit": "1e-9"}
    broker = BrokerTwin(tmp_path, gated=True, properties=KEYS | keys)
    (callback,) = Callback.made
    assert throttle_ms(broker, "acme-1") == WINDOW_S * 1000
    assert throttle_ms(broker, "other") == 0
    assert throttle_ms(broker, "broken") == 0
    set_quota(broker, {"user": "ANONYMOUS", "client-id": None}, "producer_byte_rate", 7)
    set_quota(broker, {"user": "ANONYMOUS", "client-id": None}, "producer_byte_rate", None)
    assert throttle_ms(broker, "other") == 0
    entity = {"user": "ANONYMOUS", "client-id": None}
    assert callback.stored == [("producer_byte_rate", entity, 7), ("producer_byte_rate", entity, None)]
    callback.limit, callback.is_changed = 1e9, True
    broker.broker.reactor.post(broker.broker.parts.services.quotas.check)
    assert throttle_ms(broker, "acme-2") == 0
    broker.stop()
    assert callback.is_closed


def test_a_class_without_the_methods_prevents_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no method quota_tags"):
        BrokerTwin(tmp_path, gated=True, properties={"client.quota.callback.class": "builtins:object"})
