"""Kills a broker under load repeatedly, while idempotent producers with acks=all continue.

Afterwards every acknowledged record must exist exactly once, offsets must be dense, and every topic whose creation was
acknowledged must exist. librdkafka retries each request that was not acknowledged; the broker must detect the records
that it already has.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_process import BrokerProcess

PARTITIONS = 3
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Load(threading.Thread):
    """One idempotent producer that writes numbered values to `topic` until it is stopped. Owns `acknowledged`."""

    def __init__(self, bootstrap: str, topic: str, name: str, codec: str) -> None:
        super().__init__(name=name, daemon=True)
        self.topic = topic
        self.acknowledged: list[tuple[int, int, bytes]] = []  # partition, offset, value
        self.errors: list[str] = []
        self.stopping = threading.Event()
        self.sent = 0
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "compression.type": codec,
                "linger.ms": 1,
                "delivery.timeout.ms": 300_000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 200,
                "socket.connection.setup.timeout.ms": 2000,
                "client.id": name,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        while not self.stopping.is_set():
            for _ in range(20):
                value = f"{self.name}:{self.sent}".encode()
                try:
                    self.producer.produce(self.topic, value, key=value, on_delivery=self.on_delivery)
                except BufferError:
                    break
                except KafkaException as error:  # a fatal error: this producer cannot continue
                    self.errors.append(str(error))
                    return
                self.sent += 1
            self.stopping.wait(0.01)  # enough load for a kill to interrupt, and not too much to read back
            self.producer.poll(0)
        remaining = self.producer.flush(120)
        if remaining:
            self.errors.append(f"{remaining} records were never answered")

    def on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(str(error))
        else:
            self.acknowledged.append((message.partition() or 0, message.offset() or 0, message.value() or b""))


def create_topic(bootstrap: str, name: str, attempts: int = 200) -> bool:
    """Creates a topic and returns True if the creation was acknowledged.

    Also returns True if the topic exists already, because an earlier attempt without an answer created it.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200})
    for _ in range(attempts):
        try:
            admin.create_topics([NewTopic(name, PARTITIONS, 1)], request_timeout=2)[name].result(5)
            return True
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return True
    return False


def read_all(bootstrap: str, topic: str) -> dict[int, list[tuple[int, bytes]]]:
    """Returns the (offset, value) pairs of each partition of the topic, in the order of the log."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "kill-check", "enable.auto.commit": False, "check.crcs": True}
    )
    ends = {}
    for partition in range(PARTITIONS):
        ends[partition] = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=20)[1]
    found: dict[int, list[tuple[int, bytes]]] = {partition: [] for partition in range(PARTITIONS)}
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    idle = 0
    while any(len(found[p]) < ends[p] for p in ends):
        messages = consumer.consume(5000, timeout=1)
        idle = 0 if messages else idle + 1
        assert idle < 60, f"nothing more comes: { ({p: (len(found[p]), ends[p]) for p in ends}) }"
        for message in messages:
            if message.error():
                raise AssertionError(message.error())
            found[message.partition() or 0].append((message.offset() or 0, message.value() or b""))
    consumer.close()
    return found


def check(load: Load, found: dict[int, list[tuple[int, bytes]]]) -> None:
    assert not load.errors, load.errors[:3]
    assert load.acknowledged
    values = Counter(
        value for records in found.values() for _, value in records if value.startswith(f"{load.name}:".encode())
    )
    twice = [value for value, count in values.items() if count > 1]
    assert not twice, f"{len(twice)} records are there twice, first {twice[:3]}"
    by_place = {(partition, offset): value for partition, records in found.items() for offset, value in records}
    lost = [entry for entry in load.acknowledged if by_place.get(entry[:2]) != entry[2]]
    assert not lost, f"{len(lost)} acknowledged records are lost or elsewhere, first {lost[:3]}"


def kill_under_load(broker: BrokerProcess, kills: int, seed: int) -> dict[str, float]:
    """Runs the series and returns figures for a report: records acknowledged, restart times in seconds."""
    chance = random.Random(seed)
    assert create_topic(broker.bootstrap, "load")
    loads = [Load(broker.bootstrap, "load", f"producer-{codec}", codec) for codec in CODECS]
    for load in loads:
        load.start()
    created = []
    restarts = []
    for number in range(kills):
        creation = threading.Thread(
            target=lambda name=f"topic-{number}": created.append(name) if create_topic(broker.bootstrap, name) else None
        )
        creation.start()
        time.sleep(chance.uniform(0.02, 0.5))
        broker.kill()
        begin = time.monotonic()
        broker.start()
        restarts.append(time.monotonic() - begin)
        creation.join(60)
    for load in loads:
        load.stopping.set()
    for load in loads:
        load.join(180)
    found = read_all(broker.bootstrap, "load")
    for partition, records in found.items():
        assert [offset for offset, _ in records] == list(range(len(records))), f"partition {partition} has a hole"
    for load in loads:
        check(load, found)
    existing = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=20).topics
    missing = [name for name in created if name not in existing]
    assert not missing, f"acknowledged topics are gone: {missing}"
    assert len(created) == kills, f"{kills - len(created)} topics could never be created"
    acknowledged = sum(len(load.acknowledged) for load in loads)
    return {
        "kills": kills,
        "acknowledged": acknowledged,
        "restart_median_s": sorted(restarts)[kills // 2],
        "restart_max_s": max(restarts),
    }
