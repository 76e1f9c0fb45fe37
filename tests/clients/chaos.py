"""Rounds of chaos: a producer and a group of two read and write through a proxy that breaks connections.

The producer also sends records that the broker refuses, so that it raises its epoch while responses are lost. After
each round every record is in the log once and in order, every record was delivered, and no record was delivered again
after the group had confirmed a commit of a later offset.
"""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

from kafkapy.client import Consumer, Producer, TopicPartition
from kafkapy.client.admin import Admin, NewTopic
from kafkapy.errors import ApiError, Error
from tests.broker_process import BrokerProcess
from tests.chaos_proxy import CALM, Chances, ChaosProxy
from tests.ports import free_ports

RECORDS = 300
PARTITIONS = 3
PATIENCE_SECONDS = 90
PROTOCOLS = ("classic", "consumer")
REFUSING = "refusing"  # a topic to which no record is written
_QUICK = {"reconnect.backoff.ms": 10, "retry.backoff.ms": 10, "request.timeout.ms": 1500, "client.id": "chaos"}


class Deliveries:
    """The records that the members of a group have read. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.values: dict[TopicPartition, dict[int, bytes]] = {}
        self.confirmed: dict[TopicPartition, int] = {}
        self.again: list[str] = []

    def delivered(self, where: TopicPartition, offset: int, value: bytes) -> None:
        with self._lock:
            if offset < self.confirmed.get(where, 0):
                self.again.append(f"{where}@{offset} after a commit of {self.confirmed[where]}")
            self.values.setdefault(where, {})[offset] = value

    def committed(self, offsets: dict[TopicPartition, int]) -> None:
        with self._lock:
            for where, offset in offsets.items():
                self.confirmed[where] = max(offset, self.confirmed.get(where, 0))

    @property
    def count(self) -> int:
        with self._lock:
            return sum(map(len, self.values.values()))


class ChaosHarness:
    """A broker that is reached through the proxy only, and a topic and a group for each protocol."""

    def __init__(self, directory: Path, seed: int) -> None:
        (port,) = free_ports(1)
        self.seed = seed
        self.broker = BrokerProcess(
            directory, {"advertised.listeners": f"PLAINTEXT://localhost:{port}", "num.partitions": str(PARTITIONS)}
        )
        self.proxy = ChaosProxy(port, self.broker.port, seed)
        self.bootstrap = f"localhost:{port}"
        self.deliveries = {protocol: Deliveries() for protocol in PROTOCOLS}
        self.sent: dict[str, list[bytes]] = {protocol: [] for protocol in PROTOCOLS}

    def round(self, number: int) -> None:
        """Runs one round. Raises AssertionError, which names the round and the seed."""
        chance = random.Random(self.seed * 1000 + number)
        protocol = PROTOCOLS[number % 2]
        name = f"round {number} of seed {self.seed} ({protocol})"
        chances = Chances(
            delay=chance.choice([0.0, 0.1, 0.3]),
            drop=chance.choice([0.0, 0.01, 0.03]),
            cut=chance.choice([0.01, 0.03]),
            silence=chance.choice([0.0, 0.0, 0.005]),
        )
        goal = len(self.sent[protocol]) + RECORDS
        is_over = threading.Event()
        failures: list[BaseException] = []
        members = [
            threading.Thread(target=self._read, args=(protocol, is_over, failures), name=f"member-{each}")
            for each in range(2)
        ]
        self.proxy.chances = chances
        for member in members:
            member.start()
        try:
            self._write(protocol, number, chance)
            self._await(protocol, goal, failures, name)
        finally:
            self.proxy.chances = CALM
            self.proxy.sever()
            is_over.set()
            for member in members:
                member.join()
        assert not failures, (name, failures)
        self._check(protocol, name)

    def _write(self, protocol: str, number: int, chance: random.Random) -> None:
        """Sends records whose values are their numbers; waits for one in ten, so that batches have all sizes."""
        settings = {
            "bootstrap.servers": self.bootstrap,
            "delivery.timeout.ms": 60_000,
            "max.block.ms": 60_000,
            **_QUICK,
        }
        with Producer(settings, batch_size=chance.choice([100, 2000]), linger_ms=chance.choice([0, 5])) as producer:
            futures, refused = [], []
            for _ in range(RECORDS):
                if chance.random() < 0.05:
                    refused.append(producer.send(REFUSING, b"too large", partition=0))
                value = f"{len(self.sent[protocol]):06}".encode()
                self.sent[protocol].append(value)
                futures.append(producer.send(protocol, value, partition=int(value) % PARTITIONS))
                if chance.random() < 0.1:
                    futures[-1].result(PATIENCE_SECONDS)
            assert producer.flush(PATIENCE_SECONDS)
            failed = [error for future in futures if (error := future.exception()) is not None]
            assert not failed, (number, failed[:3])
            for future in refused:
                error = future.exception()
                assert isinstance(error, ApiError) and error.error is Error.MESSAGE_TOO_LARGE, (number, error)

    def _read(self, protocol: str, is_over: threading.Event, failures: list[BaseException]) -> None:
        settings = {
            "bootstrap.servers": self.bootstrap,
            "group.id": protocol,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            **_QUICK,
        }
        try:
            with Consumer(settings) as consumer:
                consumer.subscribe([protocol])
                while not is_over.is_set():
                    self._read_on(consumer, self.deliveries[protocol])
        except Exception as error:
            failures.append(error)
            is_over.set()

    @staticmethod
    def _read_on(consumer: Consumer, deliveries: Deliveries) -> None:
        offsets: dict[TopicPartition, int] = {}
        for record in consumer.poll(0.1):
            where = TopicPartition(record.topic, record.partition)
            deliveries.delivered(where, record.offset, record.value)
            offsets[where] = record.offset + 1
        if not offsets:
            return
        try:
            consumer.commit(dict(offsets), 10)
        except (ApiError, TimeoutError):
            return  # without confirmation the records may be delivered again, to either member
        deliveries.committed(offsets)

    def _await(self, protocol: str, goal: int, failures: list[BaseException], name: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.deliveries[protocol].count < goal and not failures:
            assert time.monotonic() < deadline, (name, self.deliveries[protocol].count, goal, self.proxy.faults)
            time.sleep(0.02)

    def _check(self, protocol: str, name: str) -> None:
        deliveries, sent = self.deliveries[protocol], self.sent[protocol]
        assert not deliveries.again, (name, deliveries.again[:5])
        with Consumer(bootstrap_servers=self.bootstrap, auto_offset_reset="earliest") as consumer:
            partitions = [TopicPartition(protocol, each) for each in range(PARTITIONS)]
            consumer.assign(partitions)
            log: dict[TopicPartition, list[bytes]] = {where: [] for where in partitions}
            ends = consumer.end_offsets(partitions)
            while {where: consumer.position(where) for where in partitions} != ends:
                for record in consumer.poll(5):
                    log[TopicPartition(record.topic, record.partition)].append(record.value)
        for where in partitions:
            assert log[where] == sent[where.partition :: PARTITIONS], (name, where)
            assert deliveries.values[where] == dict(enumerate(log[where])), (name, where)


def run_rounds(directory: Path, rounds: int, seed: int) -> dict[str, int]:
    """Runs rounds with one broker; returns the number of faults of each kind."""
    harness = ChaosHarness(directory, seed)
    with harness.broker, harness.proxy:
        for protocol in PROTOCOLS:
            with Producer(bootstrap_servers=harness.bootstrap) as producer:
                producer.partitions_for(protocol)
        with Admin(bootstrap_servers=harness.bootstrap) as admin:
            admin.create_topics([NewTopic(REFUSING, 1, 1, configs={"max.message.bytes": "1"})]).check()
        for number in range(rounds):
            harness.round(number)
    return harness.proxy.faults
