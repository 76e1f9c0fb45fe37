"""The metrics page of a running broker: Prometheus's parser reads it, and its numbers are those of the clients."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkapy.metrics.table import METRICS
from tests.crash.refusals import assert_refused
from tests.operations.watched_broker import Page, WatchedBroker

# Families that have series only when something is there that is not here.
MAY_BE_EMPTY = {
    "kafkapy_client_metric",
    "kafkapy_replica_max_lag_ms",
    "kafkapy_replica_max_lag_records",
    "kafkapy_authorizations_total",
    *(name for name in METRICS if name.startswith("kafka_server_plugins_")),
    *(name for name, metric in METRICS.items() if metric.labels[:1] == ("group",)),
    *(name for name, metric in METRICS.items() if metric.labels[:2] == ("user", "client_id")),
}
# Families that only a broker with a listener of SASL or TLS has; tests/security reads them.
OF_OTHER_LISTENERS = {
    name
    for name in METRICS
    if "authentication" in name or "_zookeeper_" in name or name.endswith("_expired_connections_killed_count")
}
TOPIC_METRICS = "kafka_server_brokertopicmetrics"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedBroker]:
    with WatchedBroker(tmp_path_factory.mktemp("watched"), {"kafkapy.metrics.series.limit": "20"}) as watched:
        yield watched


def create(broker: WatchedBroker, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)


def produce(broker: WatchedBroker, topic: str, count: int, **settings: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0} | settings)
    for number in range(count):
        producer.produce(topic, b"x" * 100, key=str(number))
        if number % 50 == 0:
            assert producer.flush(30) == 0
    assert producer.flush(30) == 0


def consume(broker: WatchedBroker, topic: str, count: int, group: str, isolation: str = "read_committed") -> None:
    """Reads `count` records from the beginning and commits."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": isolation,
        }
    )
    consumer.subscribe([topic])
    left = count
    deadline = time.monotonic() + 30
    while left:
        assert time.monotonic() < deadline
        left -= len(consumer.consume(left, 1.0))
    consumer.commit(asynchronous=False)
    consumer.close()


def wait_for(broker: WatchedBroker, condition: Callable[[Page], bool]) -> Page:
    """Waits for a page on which the condition holds; a page may be a quarter of a second old."""
    deadline = time.monotonic() + 30
    while not condition(page := broker.page()):
        assert time.monotonic() < deadline, page.text
        time.sleep(0.05)
    return page


def test_every_metric_of_the_table_is_on_the_page(broker: WatchedBroker) -> None:
    create(broker, "loaded", 2)
    produce(broker, "loaded", 50)
    consume(broker, "loaded", 50, "readers")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "t"})
    producer.init_transactions(30)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    assert admin.delete_consumer_groups(["nobody"])["nobody"].exception(30) is not None
    page = wait_for(broker, lambda page: bool(page.values("kafka_consumergroup_lag")))
    heads = [line.split()[2] for line in page.text.splitlines() if line.startswith("# TYPE")]
    assert heads == list(dict.fromkeys(heads))
    assert set(heads) == METRICS.keys() - OF_OTHER_LISTENERS
    for line in page.text.splitlines():
        if line.startswith("# TYPE"):
            name, kind = line.split()[2:]
            assert kind == METRICS[name].kind
    empty = {name for name in METRICS if not any(line.startswith(name) for line in page.text.splitlines())}
    assert empty <= MAY_BE_EMPTY | OF_OTHER_LISTENERS


def test_what_clients_did_is_on_the_page(broker: WatchedBroker) -> None:
    create(broker, "counted")
    before = broker.page()
    produce(broker, "counted", 300)
    consume(broker, "counted", 300, "counters")
    page = wait_for(broker, lambda page: page.values("kafka_consumergroup_current_offset", topic="counted") == [300])
    assert page.value(f"{TOPIC_METRICS}_messagesin_total", topic="counted") == 300
    size = page.value("kafka_log_log_size", topic="counted", partition="0")
    assert size == (broker.data / "counted-0" / "00000000000000000000.log").stat().st_size
    assert page.value(f"{TOPIC_METRICS}_bytesin_total", topic="counted") == size
    assert page.value(f"{TOPIC_METRICS}_bytesout_total", topic="counted") >= size
    assert page.value("kafka_log_log_logendoffset", topic="counted", partition="0") == 300
    for name in ("messagesin", "bytesin", "bytesout", "totalproducerequests", "totalfetchrequests"):
        total, topics = f"{TOPIC_METRICS}_{name}_total", page.values(f"{TOPIC_METRICS}_{name}_total")
        assert page.value(total, topic="") >= page.value(total, topic="counted")
        assert sum(topics) == 2 * page.value(total, topic=""), name
    for request in ("Produce", "Fetch", "FetchConsumer", "OffsetCommit"):
        requests = page.value("kafka_network_requestmetrics_requests_total", request=request)
        assert requests == page.value("kafka_network_requestmetrics_totaltimems_count", request=request)
        assert requests == page.value("kafkapy_request_seconds_bucket", request=request, le="+Inf")
        quantiles = [
            page.value("kafka_network_requestmetrics_totaltimems", request=request, quantile=quantile)
            for quantile in ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
        ]
        assert quantiles == sorted(quantiles)
        assert 0 < quantiles[0] < 60_000
    assert page.value("kafkapy_requests_gated_total") > before.value("kafkapy_requests_gated_total")
    assert page.value("kafka_server_replicamanager_underreplicatedpartitions") == 0
    assert page.value("kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert page.value("kafka_server_raftmetrics_current_state", current_state="leader") == 1
    assert page.value("kafka_server_raftmetrics_number_of_voters") == 1
    assert page.value("kafka_server_raftmetrics_high_watermark") > 0
    assert page.value("process_resident_memory_bytes") > 1 << 20
    assert 0 < page.value("kafka_network_socketserver_networkprocessoravgidle_percent") <= 1


def test_the_lag_of_a_group_and_what_a_transaction_holds_back(broker: WatchedBroker) -> None:
    create(broker, "transacted")
    produce(broker, "transacted", 10)
    consume(broker, "transacted", 5, "slow")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "holder"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(4):
        producer.produce("transacted", b"pending")
    assert producer.flush(30) == 0
    labels = {"consumergroup": "slow", "topic": "transacted"}
    page = wait_for(broker, lambda page: page.values("kafka_log_log_logendoffset", topic="transacted") == [14])
    assert page.value("kafka_consumergroup_lag", **labels) == 9
    assert page.value("kafkapy_consumergroup_stable_lag", **labels) == 5
    assert page.value("kafka_consumergroup_lag_sum", **labels) == 9
    assert page.value("kafkapy_transactions", state="Ongoing") == 1
    assert page.value("kafka_coordinator_group_groupmetadatamanager_numgroupsempty") >= 1
    producer.commit_transaction(30)
    page = wait_for(broker, lambda page: page.value("kafkapy_consumergroup_stable_lag", **labels) == 10)
    assert page.value("kafkapy_transaction_oldest_seconds") == 0


def test_topics_beyond_the_limit_share_a_series(broker: WatchedBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    names = [f"many-{number:02}" for number in range(30)]
    for future in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        future.result(30)
    for name in names:
        produce(broker, name, 1)
    total = f"{TOPIC_METRICS}_messagesin_total"
    page = wait_for(broker, lambda page: sum(sum(page.values(total, topic=each)) for each in (*names, "(other)")) >= 30)
    assert sum(page.values(total)) == 2 * page.value(total, topic="")
    own = [topic for topic in names if page.values(total, topic=topic)]
    assert 0 < len(own) <= 20
    assert page.value(total, topic="(other)") >= 30 - len(own)
    assert len(page.values("kafka_log_log_size")) == 21
    assert page.value("kafka_log_log_size", topic="(other)") > 0
    for future in admin.delete_topics(names).values():
        future.result(30)
    wait_for(broker, lambda page: not any(page.values(total, topic=topic) for topic in names))


def test_live_and_ready_respond(broker: WatchedBroker) -> None:
    assert broker.get("/live") == (200, "live\n")
    assert broker.get("/ready") == (200, "ready\n")
    status, text = broker.get("/")
    assert (status, "/metrics /live /ready" in text) == (404, True)


def test_a_listener_in_use_refuses_the_start(broker: WatchedBroker, tmp_path: Path) -> None:
    second = WatchedBroker(tmp_path, {"kafkapy.metrics.listener": f"127.0.0.1:{broker.metrics_port}"})
    line = rf"the metrics listener cannot be bound to 127.0.0.1:{broker.metrics_port}: Address already in use"
    assert_refused(second, line)
    assert os.listdir(second.data) == [".lock"]


@pytest.mark.parametrize("address", ["nowhere", "localhost:99999", "a b:1"])
def test_what_is_no_address_refuses_the_start(address: str, tmp_path: Path) -> None:
    second = WatchedBroker(tmp_path, {"kafkapy.metrics.listener": address})
    assert_refused(
        second, rf"Invalid value {address} for configuration kafkapy.metrics.listener: accepted is host:port"
    )
    assert not second.data.exists()
