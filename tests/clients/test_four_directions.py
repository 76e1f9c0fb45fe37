"""One suite for four combinations: our client and Java's, each with kafkapy and with Apache Kafka."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kafkapy._core.bytes.murmur2 import partition_of_key
from tests.broker_process import BrokerProcess
from tests.clients.conftest import create_topic
from tests.clients.driver import Driver, DriverError, JavaDriver, OurDriver, Received, Sent
from tests.peers import ApacheKafka, kafka_directory

PATIENCE_SECONDS = 60
# A rebalance takes several heartbeats.
QUICK = {"group.consumer.min.heartbeat.interval.ms": "100", "group.consumer.heartbeat.interval.ms": "200"}
_numbers = itertools.count(1)


@pytest.fixture(scope="module", params=["kafkapy", "apache"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Returns the address of a broker."""
    directory = tmp_path_factory.mktemp("server")
    if request.param == "kafkapy":
        with BrokerProcess(directory, QUICK) as broker:
            yield broker.bootstrap
    else:
        with ApacheKafka(kafka_directory("4.3.0"), directory, properties=QUICK, heap=("-Xmx512M",)) as kafka:
            yield kafka.bootstrap


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaDriver]:
    with JavaDriver(kafka_directory("4.3.0"), tmp_path_factory.mktemp("classes")) as driver:
        yield driver


class Harness:
    """One kind of client and one broker; producers and consumers are closed at the end of the test."""

    def __init__(self, driver: Driver, bootstrap: str, stack: ExitStack) -> None:
        self.driver = driver
        self.bootstrap = bootstrap
        self._stack = stack

    def topic(self, partitions: int = 1, prefix: str = "directions", **configs: str) -> str:
        name = f"{prefix}-{next(_numbers)}"
        create_topic(self.bootstrap, name, partitions, **configs)
        return name

    def producer(self, **config: str) -> str:
        name = f"producer-{next(_numbers)}"
        self._open("producer", name, config)
        return name

    def consumer(self, **config: str) -> str:
        name = f"consumer-{next(_numbers)}"
        settings = {"auto.offset.reset": "earliest", "enable.auto.commit": "false"}
        if config.get("group_protocol") != "consumer":
            settings["heartbeat.interval.ms"] = "200"
        self._open("consumer", name, settings | _keys(config))
        return name

    def _open(self, kind: str, name: str, config: dict[str, str]) -> None:
        self.call(f"{kind}_open", name, config={"bootstrap.servers": self.bootstrap} | _keys(config))
        self._stack.callback(self._close, kind, name)

    def _close(self, kind: str, name: str) -> None:
        if name not in self._closed:
            self.call(f"{kind}_close", name)

    _closed: frozenset[str] = frozenset()

    def close(self, kind: str, name: str) -> None:
        """Closes a client before the test ends."""
        self._close(kind, name)
        self._closed |= {name}

    def call(self, what: str, name: str, **arguments: object) -> object:
        return self.driver.call(what, name, **arguments)

    def send(self, producer: str, *records: Sent) -> object:
        return self.call("producer_send", producer, records=records)

    def read(self, consumer: str, count: int) -> list[Received]:
        """Returns the next `count` records, and the further ones that the last poll has returned."""
        found: list[Received] = []
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(found) < count:
            assert time.monotonic() < deadline, f"{len(found)} of {count} records"
            found += self.driver.call("consumer_poll", consumer, ms=200)
        return found

    def assigned(self, counts: dict[str, int]) -> None:
        """Polls consumers until each has its number of partitions."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            for consumer in counts:
                self.call("consumer_poll", consumer, ms=50)
            have = {each: len(self.driver.call("consumer_assignment", each)) for each in counts}
            if have == counts:
                return
            assert time.monotonic() < deadline, have


def _keys(config: dict[str, str]) -> dict[str, str]:
    return {key.replace("_", "."): value for key, value in config.items()}


@pytest.fixture(params=["kafkapy", "java"])
def harness(request: pytest.FixtureRequest, server: str, java: JavaDriver) -> Iterator[Harness]:
    with ExitStack() as stack:
        driver = stack.enter_context(OurDriver()) if request.param == "kafkapy" else java
        yield Harness(driver, server, stack)


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4()}"


def texts(count: int, topic: str, partition: int | None = 0) -> list[Sent]:
    return [Sent(topic, str(number).encode(), partition=partition) for number in range(count)]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_records_come_back_as_they_were_sent(harness: Harness, codec: str) -> None:
    topic = harness.topic(2)
    sent = [
        Sent(topic, None, b"key", 1, 1_700_000_000_000),
        Sent(topic, b"", b"", 1, 1_700_000_000_001, (("a", b"1"), ("a", None), ("", b""))),
        *(Sent(topic, bytes([number]) * 500, None, 1, 1_700_000_000_002 + number) for number in range(200)),
    ]
    assert harness.send(harness.producer(compression_type=codec), *sent) == [(1, number) for number in range(202)]
    consumer = harness.consumer()
    harness.call("consumer_assign", consumer, partitions=[f"{topic}-1"])
    assert harness.read(consumer, 202) == [
        Received(topic, 1, number, each.timestamp or 0, each.key, each.value, each.headers)
        for number, each in enumerate(sent)
    ]


@pytest.mark.timeout(180)
def test_keys_choose_the_partition_and_others_stick(harness: Harness) -> None:
    topic = harness.topic(5)
    keys = [str(number).encode() for number in range(100)]
    written = harness.send(harness.producer(), *(Sent(topic, b"", key) for key in keys))
    assert [partition for partition, _ in written] == [partition_of_key(key, 5) for key in keys]
    written = harness.send(harness.producer(), *(Sent(topic, b"x") for _ in range(20)))
    assert len({partition for partition, _ in written}) == 1


@pytest.mark.timeout(180)
def test_positions(harness: Harness) -> None:
    topic = harness.topic(2)
    first, second = f"{topic}-0", f"{topic}-1"
    records = [Sent(topic, b"", partition=0, timestamp=1_700_000_000_000 + number * 1000) for number in range(10)]
    harness.send(harness.producer(), *records)
    consumer = harness.consumer()
    harness.call("consumer_assign", consumer, partitions=[first, second])
    assert harness.call("consumer_position", consumer, partitions=[first]) == 0
    harness.call("consumer_seek", consumer, partitions=[first], offset=7)
    assert [each.offset for each in harness.read(consumer, 3)] == [7, 8, 9]
    assert harness.call("consumer_ends", consumer, partitions=[first, second]) == {first: 10, second: 0}
    assert harness.call("consumer_beginnings", consumer, partitions=[first]) == {first: 0}
    found = harness.call("consumer_times", consumer, partitions=[first, second], timestamp=1_700_000_003_500)
    assert found == {first: [4, 1_700_000_004_000], second: None}
    harness.call("consumer_seek_to_beginning", consumer, partitions=[first])
    harness.call("consumer_pause", consumer, partitions=[first])
    assert harness.call("consumer_poll", consumer, ms=300) == []
    harness.call("consumer_resume", consumer, partitions=[first])
    assert len(harness.read(consumer, 10)) == 10
    harness.call("consumer_seek_to_end", consumer, partitions=[first])
    assert harness.call("consumer_position", consumer, partitions=[first]) == 10


@pytest.mark.timeout(180)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_where_it_committed(harness: Harness, group: str, protocol: str) -> None:
    topic = harness.topic()
    producer = harness.producer()
    harness.send(producer, *texts(10, topic))
    for expected in (range(10), range(10, 15)):
        consumer = harness.consumer(group_id=group, group_protocol=protocol)
        harness.call("consumer_subscribe", consumer, topics=[topic])
        assert [each.value for each in harness.read(consumer, len(expected))] == [
            str(n % 10).encode() for n in expected
        ]
        harness.call("consumer_commit", consumer, offsets=None)
        assert harness.call("consumer_heard", consumer) == [f"+ {topic}-0"]
        harness.close("consumer", consumer)
        harness.send(producer, *texts(5, topic))
    reader = harness.consumer(group_id=group)
    assert harness.call("consumer_committed", reader, partitions=[f"{topic}-0"]) == {f"{topic}-0": [15, ""]}


_KINDS = [
    {"partition_assignment_strategy": f"org.apache.kafka.clients.consumer.{name}Assignor"}
    for name in ("Range", "CooperativeSticky")
] + [
    {"group_protocol": "consumer"},
    {"group_protocol": "consumer", "group_remote_assignor": "range"},
]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: "-".join(each.rpartition(".")[2] for each in kind.values()))
def test_members_share_and_take_over(harness: Harness, group: str, kind: dict[str, str]) -> None:
    topic = harness.topic(4)
    one = harness.consumer(group_id=group, **kind)
    harness.call("consumer_subscribe", one, topics=[topic])
    harness.assigned({one: 4})
    two = harness.consumer(group_id=group, **kind)
    harness.call("consumer_subscribe", two, topics=[topic])
    harness.assigned({one: 2, two: 2})
    parts = [set(harness.driver.call("consumer_assignment", each)) for each in (one, two)]
    assert parts[0] | parts[1] == {f"{topic}-{number}" for number in range(4)}
    harness.close("consumer", two)
    harness.assigned({one: 4})


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", ["classic", "consumer", "server"])
def test_topics_by_pattern(harness: Harness, group: str, kind: str) -> None:
    prefix = f"pattern-{uuid.uuid4().hex[:8]}"
    topics = {harness.topic(prefix=prefix) for _ in range(2)}
    consumer = harness.consumer(group_id=group, group_protocol="classic" if kind == "classic" else "consumer")
    what = "consumer_subscribe_server_pattern" if kind == "server" else "consumer_subscribe_pattern"
    harness.call(what, consumer, pattern=f"{prefix}.*")
    harness.assigned({consumer: 2})
    assert harness.call("consumer_assignment", consumer) == sorted(f"{topic}-0" for topic in topics)
    producer = harness.producer()
    for topic in topics:
        harness.send(producer, *texts(3, topic))
    assert {each.topic for each in harness.read(consumer, 6)} == topics


@pytest.mark.timeout(180)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_static_member_comes_back_to_what_it_had(harness: Harness, group: str, protocol: str) -> None:
    topic = harness.topic(4)
    kind = {"group_id": group, "group_protocol": protocol}
    one, two = (harness.consumer(group_instance_id=name, **kind) for name in ("one", "two"))
    for each in (one, two):
        harness.call("consumer_subscribe", each, topics=[topic])
    harness.assigned({one: 2, two: 2})
    had = harness.call("consumer_assignment", two)
    harness.close("consumer", two)
    again = harness.consumer(group_instance_id="two", **kind)
    harness.call("consumer_subscribe", again, topics=[topic])
    harness.assigned({one: 2, again: 2})
    assert harness.call("consumer_assignment", again) == had


@pytest.mark.timeout(180)
def test_transactions(harness: Harness, group: str) -> None:
    source, target = harness.topic(), harness.topic(2)
    harness.send(harness.producer(), *texts(4, source))
    producer = harness.producer(transactional_id=str(uuid.uuid4()))
    consumer = harness.consumer(group_id=group)
    harness.call("consumer_subscribe", consumer, topics=[source])
    harness.read(consumer, 4)
    harness.call("producer_init", producer)
    for turn, end in enumerate(["commit", "abort", "commit", "abort"]):
        harness.call("producer_begin", producer)
        harness.send(producer, *(Sent(target, f"{turn} {number}".encode(), partition=number) for number in (0, 1)))
        harness.call("producer_offsets", producer, consumer=consumer, offsets={f"{source}-0": turn + 1})
        harness.call(f"producer_{end}", producer)
    assert harness.call("consumer_committed", consumer, partitions=[f"{source}-0"]) == {f"{source}-0": [3, ""]}
    for level, expected in (("read_committed", "0 0, 0 1, 2 0, 2 1"), ("read_uncommitted", None)):
        reader = harness.consumer(isolation_level=level)
        harness.call("consumer_assign", reader, partitions=[f"{target}-0", f"{target}-1"])
        found = sorted(each.value.decode() for each in harness.read(reader, 4 if expected else 8) if each.value)
        assert expected is None or ", ".join(found) == expected


@pytest.mark.timeout(180)
def test_who_is_fenced_hears_of_it(harness: Harness) -> None:
    topic, name = harness.topic(), str(uuid.uuid4())
    old, new = harness.producer(transactional_id=name), harness.producer(transactional_id=name)
    harness.call("producer_init", old)
    harness.call("producer_begin", old)
    harness.send(old, *texts(1, topic))
    harness.call("producer_init", new)
    with pytest.raises(DriverError) as fenced:
        harness.call("producer_commit", old)
    assert fenced.value.error in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
    harness.call("producer_begin", new)
    harness.send(new, *texts(1, topic))
    harness.call("producer_commit", new)


@pytest.mark.timeout(180)
def test_a_record_that_is_too_large_is_refused(harness: Harness) -> None:
    topic = harness.topic(**{"max.message.bytes": "3000"})
    producer = harness.producer()
    with pytest.raises(DriverError) as refused:
        harness.send(producer, Sent(topic, b"x" * 4000))
    assert refused.value.error == "MESSAGE_TOO_LARGE"
    assert harness.send(producer, Sent(topic, b"small")) == [(0, 0)]
