"""The gate serves the requests that are within a quota, and leaves those that have to be delayed to the Python path."""

from __future__ import annotations

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy._core.reactor.reactor import Connection
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.api_client import ask, request_bytes
from tests.reactor_harness import frame
from tests.twin_brokers import PING, BrokerTwin, TwinBrokers, receive

WINDOW = {"quota.window.size.seconds": "1000"}  # so long that the machine's clock has no part in what happens
WINDOW_S = 10_000
TOPIC = "t-limited"
LIMITED, FREE = 1, 2


class Client:
    """One connection to each broker, with a client id."""

    def __init__(self, twins: TwinBrokers, number: int, client_id: str) -> None:
        self._twins = [twins.plain, twins.gated]
        self._number = number
        self._client_id = client_id

    def ask(self, key: ApiKey, version: int, request, response_class) -> list:
        """Sends the request to both brokers; returns their responses."""
        responses = []
        for twin in self._twins:
            sent = request_bytes(key, version, request, client_id=self._client_id)
            connection = twin.connection(self._number)
            connection.sendall(frame(sent))
            header = 5 if version >= response_class.FLEXIBLE_VERSION else 4
            responses.append(response_class.decode(receive(connection), version, header))
        return responses

    def produce(self, size: int, *, unmutes: bool = True) -> list[int]:
        """Appends a record of `size` bytes; returns the throttle times of both brokers."""
        builder = RecordBatchBuilder()
        builder.append(1_700_000_000_000, None, bytes(size))
        data = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
        topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
        found = self.ask(ApiKey.PRODUCE, 9, request, ProduceResponse)
        assert not any(each.responses[0].partition_responses[0].error_code for each in found)
        if unmutes:
            self.unmute()
        return [each.throttle_time_ms for each in found]

    def send_unanswered(self, size: int) -> None:
        """Appends a record of `size` bytes with acks=0."""
        builder = RecordBatchBuilder()
        builder.append(1_700_000_000_000, None, bytes(size))
        data = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
        request = ProduceRequest(
            acks=0, timeout_ms=1000, topic_data=[ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])]
        )
        for twin in self._twins:
            sent = request_bytes(ApiKey.PRODUCE, 9, request, client_id=self._client_id)
            twin.connection(self._number).sendall(frame(sent))

    def fetch(self, max_bytes: int = 10**6) -> list[tuple[int, int]]:
        """Fetches from the start of the topic; returns (throttle time, bytes of records)."""
        partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=max_bytes,
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic=TOPIC, partitions=[partition])],
        )
        found = self.ask(ApiKey.FETCH, 12, request, FetchResponse)
        self.unmute()
        return [
            (each.throttle_time_ms, sum(len(p.records) for topic in each.responses for p in topic.partitions))
            for each in found
        ]

    def unmute(self) -> None:
        """Ends the delays, which would last for minutes."""
        for twin in self._twins:
            for connection in connections(twin):
                if connection.is_muted:
                    twin.broker.reactor.post(connection.unmute)


def set_quota(twins: TwinBrokers, entity: dict[str, str | None], key: str, value: float | None) -> None:
    entry = AlterClientQuotasRequest.EntryData(
        entity=[
            AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()
        ],
        ops=[AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None)],
    )
    for twin in (twins.plain, twins.gated):
        request = AlterClientQuotasRequest(entries=[entry], validate_only=False)
        response = ask(twin.connection(0), ApiKey.ALTER_CLIENT_QUOTAS, 1, request, AlterClientQuotasResponse)
        assert response.entries[0].error_code == 0, response


def connections(twin: BrokerTwin) -> list[Connection]:
    return twin.broker.reactor.idle_order()


def gated(twins: TwinBrokers) -> int:
    return twins.gated.broker.reactor.counters()["requests_gated"]


@pytest.fixture
def twins(tmp_path):
    twins = TwinBrokers(tmp_path, WINDOW)
    twins.create_topic(TOPIC, 1, {})
    yield twins
    twins.stop_and_compare()


def close_enough(times: list[int]) -> bool:
    """Allows for the time between the requests to both brokers, and for the Python path's estimate of a response."""
    return abs(times[0] - times[1]) <= 2000 + max(times) // 50


def test_a_producer_is_delayed_by_the_request_that_exceeds_its_quota(twins):
    set_quota(twins, {"client-id": "limited"}, "producer_byte_rate", 1)
    limited, free = Client(twins, LIMITED, "limited"), Client(twins, FREE, "free")
    free.produce(100)
    limited.produce(10)
    before = gated(twins)
    passed = [limited.produce(800) for _ in range(10)]
    assert passed == [[0, 0]] * 10
    assert gated(twins) == before + 10
    exceeded = limited.produce(2000)
    assert min(exceeded) > 0
    assert close_enough(exceeded)
    assert min(limited.produce(10)) > min(exceeded)
    assert gated(twins) == before + 10
    assert [free.produce(5000) for _ in range(3)] == [[0, 0]] * 3
    assert gated(twins) == before + 13


@pytest.mark.parametrize("other", ["limiter", "limitless", "l", "l" * 30])
def test_each_client_id_of_a_connection_has_its_own_quota(twins, other):
    set_quota(twins, {"client-id": "limited"}, "producer_byte_rate", 1)
    set_quota(twins, {"client-id": other}, "producer_byte_rate", 10**6)
    first, second = Client(twins, LIMITED, "limited"), Client(twins, LIMITED, other)
    second.produce(10)
    assert 0 not in first.produce(WINDOW_S)
    assert second.produce(WINDOW_S) == [0, 0]
    assert 0 not in first.produce(10)


def test_no_request_is_taken_from_a_muted_connection(twins):
    set_quota(twins, {"user": "ANONYMOUS"}, "producer_byte_rate", 1)
    limited = Client(twins, LIMITED, "any")
    assert 0 not in limited.produce(WINDOW_S, unmutes=False)
    for twin in (twins.plain, twins.gated):
        assert muted(twin) == 1
        twin.send({LIMITED: [PING]})
        assert twin.answered([LIMITED]) == set()
    limited.unmute()
    for twin in (twins.plain, twins.gated):
        assert twin.answer(LIMITED)
        assert muted(twin) == 0


def test_a_muted_connection_that_is_closed_counts_no_longer(twins):
    set_quota(twins, {"user": "ANONYMOUS"}, "producer_byte_rate", 1)
    Client(twins, LIMITED, "any").produce(WINDOW_S, unmutes=False)
    for twin in (twins.plain, twins.gated):
        before = twin.broker.reactor.counters()["connections_closed"]
        twin.broker.reactor.post(lambda twin=twin: [each.close("test") for each in connections(twin) if each.is_muted])
        while twin.broker.reactor.counters()["connections_closed"] == before:
            twin.answered([])
        twin.connections.pop(LIMITED).close()
        assert muted(twin) == 0


def test_a_consumer_gets_an_empty_response_when_it_exceeds_its_quota(twins):
    free, limited = Client(twins, FREE, "free"), Client(twins, LIMITED, "limited")
    for _ in range(4):
        free.produce(1000)
    set_quota(twins, {"client-id": None}, "consumer_byte_rate", 1)
    limited.fetch()
    before = gated(twins)
    sizes = [limited.fetch(2000) for _ in range(2)]
    assert sizes[0][0] == sizes[0][1]
    assert sizes[0][0][0] == 0
    assert gated(twins) == before + 2
    throttled = limited.fetch()
    assert [size for _, size in throttled] == [0, 0]
    assert min(time_ms for time_ms, _ in throttled) > 0
    assert close_enough([time_ms for time_ms, _ in throttled])
    small = limited.fetch(1)  # what was not sent was not paid for
    assert small[0] == small[1]
    assert small[0][0] == 0


def test_a_change_takes_effect_at_once(twins):
    limited = Client(twins, LIMITED, "limited")
    for _ in range(3):
        limited.produce(1000)
    set_quota(twins, {"user": "ANONYMOUS", "client-id": "limited"}, "producer_byte_rate", 0.0001 * 10000)
    assert limited.produce(20_000) != [0, 0]
    set_quota(twins, {"user": "ANONYMOUS", "client-id": "limited"}, "producer_byte_rate", 10**6)
    assert limited.produce(1000) == [0, 0]
    set_quota(twins, {"user": "ANONYMOUS", "client-id": "limited"}, "producer_byte_rate", None)
    before = gated(twins)
    assert limited.produce(1000) == [0, 0]
    assert gated(twins) == before + 1
    assert not any(twin.broker.parts.services.quotas.is_limiting for twin in (twins.plain, twins.gated))


def test_the_quota_of_time_delays_any_request(twins):
    set_quota(twins, {"client-id": "limited"}, "request_percentage", 1e-6)
    limited = Client(twins, LIMITED, "limited")
    assert max(limited.produce(100)) == 1_000_000  # one sample at most


def muted(twin: BrokerTwin) -> int:
    return twin.broker.reactor.counters()["connections_muted"]


def test_time_is_measured_for_what_the_gate_serves_and_acks_0_is_exempt(twins):
    for client_id in ("timed", "exempt"):
        set_quota(twins, {"client-id": client_id}, "request_percentage", 10**9)
    quotas = twins.gated.broker.parts.services.quotas
    sender = Client(twins, FREE, "exempt")
    sender.produce(10)  # Python learns of the client
    spent = {each.bucket.client_id: each.rate for each in quotas.spending("request_percentage", 0)}
    assert (spent["exempt"] > 0, quotas.exempt_time(0)) == (True, 0)
    for _ in range(20):
        sender.send_unanswered(10)
    sender.fetch()  # its response shows that the requests before it were served; it has a time of its own
    later = {each.bucket.client_id: each.rate for each in quotas.spending("request_percentage", 0)}
    assert quotas.exempt_time(0) > 0
    before = gated(twins)
    sender.produce(10)
    sender.fetch()
    sender.fetch()
    assert gated(twins) == before + 3
    last = {each.bucket.client_id: each.rate for each in quotas.spending("request_percentage", 0)}
    assert last["exempt"] > later["exempt"] > 0
