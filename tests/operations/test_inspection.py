"""The inspection pages of a running broker: logs, fetches and quotas as JSON, and the refusals of wrong requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kafkapy.client import Admin, Consumer, Producer
from kafkapy.client.admin import NewTopic
from kafkapy.client.fetch_session import FEW_PARTITIONS
from kafkapy.metrics import table
from tests.operations.watched_broker import WatchedBroker

BATCHES, BATCH_RECORDS, VALUE = 60, 3, b"x" * 20_000
LIMIT = 1000
SLOW = (("client-id", "slow"),)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedBroker]:
    with WatchedBroker(tmp_path_factory.mktemp("inspected")) as running:
        with Admin(bootstrap_servers=running.bootstrap) as admin:
            admin.create_topics([NewTopic("orders", 2, 1, configs={"segment.bytes": "1048576"})]).check()
        with Producer(bootstrap_servers=running.bootstrap, linger_ms=1000, compression_type="gzip") as producer:
            producer.send("orders", b"squeezed" * 1000, partition=1)
        with Producer(bootstrap_servers=running.bootstrap, linger_ms=1000, batch_size=200_000) as producer:
            for _ in range(BATCHES):
                for _ in range(BATCH_RECORDS):
                    producer.send("orders", VALUE, partition=0)
                producer.flush()
        yield running


def read(broker: WatchedBroker, path: str) -> dict[str, Any]:
    status, text = broker.get(f"/v1/{path}")
    assert status == 200, text
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_broker_says_which_it_is(broker):
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        cluster_id = admin.describe_cluster().cluster_id
    found = read(broker, "broker")
    assert (found["node_id"], found["cluster_id"]) == (1, cluster_id)


def test_the_segments_are_those_on_the_disk(broker):
    page = read(broker, "topics/orders/partitions/0/segments")
    files = sorted((broker.data / "orders-0").glob("*.log"))
    assert len(files) > 3
    assert [(each["file"], each["size_bytes"]) for each in page["segments"]] == [
        (each.name, each.stat().st_size) for each in files
    ]
    assert page["log_end_offset"] == BATCHES * BATCH_RECORDS
    assert page["size_bytes"] == sum(each.stat().st_size for each in files)
    assert page["directory"] == str(broker.data)


def test_an_offset_has_a_segment_a_position_and_a_batch(broker):
    place = read(broker, "topics/orders/partitions/0/offsets/100")
    batch = place["batch"]
    assert (batch["base_offset"], batch["last_offset"], batch["records"]) == (99, 101, 3)
    assert batch["codec"] == "none"
    assert batch["producer_id"] >= 0
    path = broker.data / "orders-0" / place["segment"]["file"]
    with path.open("rb") as file:
        file.seek(place["position"])
        assert int.from_bytes(file.read(8), "big") == 99
    assert read(broker, "topics/orders/partitions/1/offsets/0")["batch"]["codec"] == "gzip"


@pytest.mark.parametrize(
    ("path", "status", "expected"),
    [
        ("", 404, "the pages are"),
        ("nothing", 404, "the pages are"),
        ("topics/orders", 404, "the pages are"),
        ("topics/orders/partitions/0/nothing", 404, "the pages are"),
        ("topics/absent/partitions/0", 404, "no topic 'absent'"),
        ("topics/%00/partitions/0", 404, "no topic"),
        ("topics/orders/partitions/7", 404, "no partition 7"),
        ("topics/orders/partitions/x", 400, "partition=x is not a whole number"),
        ("topics/orders/partitions/99999999999999999999", 400, "is not a whole number"),
        ("topics/orders/partitions/0/offsets/-1", 400, "offset=-1"),
        ("topics/orders/partitions/0/offsets/99999", 404, "99999 is not one of them"),
        ("topics/orders/partitions/0/offsets/9223372036854775808", 400, "is not a whole number"),
        ("topics/orders/partitions/0/segments?limit=0", 400, "limit=0"),
        ("topics/orders/partitions/0/segments?limit=101", 400, "from 0 to 100"),
        ("topics/orders/partitions/0/segments?start=now", 400, "start=now"),
        ("topics/orders/partitions/0/segments?from=1", 400, "There is no parameter 'from'"),
        ("topics/orders/partitions/0?x=1", 400, "this page has none"),
        ("fetches?topic=orders", 400, "needed together"),
        ("fetches?limit=1&limit=2", 400, "twice"),
        ("fetches?%", 400, "cannot be parsed"),
        ("fetches?start=9999999999", 400, "start=9999999999"),
        ("quotas?topic=orders", 400, "no parameter 'topic'"),
        ("broker?" + "&".join(f"a{number}=1" for number in range(50)), 400, "cannot be parsed"),
    ],
)
def test_a_wrong_request_is_refused_with_a_sentence(broker, path, status, expected):
    found, text = broker.get(f"/v1/{path}")
    assert (found, expected in json.loads(text)["error"]) == (status, True), text


def test_the_places_of_a_consumer_with_a_fetch_session_are_listed(broker):
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic("wide", FEW_PARTITIONS + 1, 1)]).check()
    settings = {"client_id": "wide", "max_partition_fetch_bytes": 77_000, "fetch_max_wait_ms": 100}
    with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", **settings) as consumer:
        consumer.assign([("wide", number) for number in range(FEW_PARTITIONS + 1)])
        found: list[dict[str, Any]] = []
        while not found:
            consumer.poll(0.2)
            found = read(broker, "fetches?topic=wide&partition=3")["fetches"]
        assert len(found) == 1
        assert (found[0]["client_id"], found[0]["partition_max_bytes"], found[0]["fetch_offset"]) == ("wide", 77_000, 0)
        assert len(read(broker, "fetches?client_id=wide")["fetches"]) == FEW_PARTITIONS + 1
        assert read(broker, "fetches?client_id=narrow")["fetches"] == []


def test_fetches_that_meet_a_larger_batch_are_listed(broker):
    gated = broker.page().value(table.REQUESTS_GATED.name)
    consumer = Consumer(
        bootstrap_servers=broker.bootstrap,
        client_id="narrow",
        max_partition_fetch_bytes=LIMIT,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    with consumer:
        consumer.assign([("orders", 0)])
        offsets: list[int] = []
        while len(offsets) < BATCHES * BATCH_RECORDS:
            offsets += [record.offset for record in consumer.poll(1.0)]
        assert offsets == list(range(BATCHES * BATCH_RECORDS))
        (large,) = read(broker, "large-fetches?client_id=narrow")["large_fetches"]
    assert large["batch_bytes"] > 3 * len(VALUE)
    assert (large["topic"], large["partition"], large["partition_max_bytes"]) == ("orders", 0, LIMIT)
    assert (large["client_id"], large["user"], large["host"]) == ("narrow", "User:ANONYMOUS", "127.0.0.1")
    assert large["fetch_offset"] % BATCH_RECORDS == 0
    assert read(broker, "large-fetches?client_id=other")["large_fetches"] == []
    # The gate has left only a fetch a second to Python, which has noted it.
    assert broker.page().value(table.REQUESTS_GATED.name) - gated > BATCHES / 2


def test_quotas_say_whom_they_delay(broker):
    assert read(broker, "quotas") == {"quotas": [], "next": None}
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.alter_client_quotas({SLOW: {"consumer_byte_rate": 20_000.0}}).check()
        with Consumer(bootstrap_servers=broker.bootstrap, client_id="slow", auto_offset_reset="earliest") as consumer:
            consumer.assign([("orders", 0)])
            found: list[dict[str, Any]] = []
            while not found or not found[0]["average_throttle_ms"]:
                consumer.poll(0.1)
                found = read(broker, "quotas?client_id=slow")["quotas"]
        assert (found[0]["quota"], found[0]["limit"], found[0]["client_id"]) == ("consumer_byte_rate", 20_000, "slow")
        assert found[0]["clients"] == [{"user": "User:ANONYMOUS", "client_id": "slow"}]
        assert found[0]["rule"] == "client-id slow"
        assert read(broker, "quotas?client_id=other")["quotas"] == []
        admin.alter_client_quotas({SLOW: {"consumer_byte_rate": None}}).check()
