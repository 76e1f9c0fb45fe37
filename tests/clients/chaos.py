"""Rounds of chaos: a producer and a group of two read and write through a proxy that breaks connections.

The producer also sends records that the broker refuses, so that it raises its epoch while responses are lost. After
each round every record is in the log once and in order, every record was delivered, and no record was delivered again
after the group had confirmed a commit of a later offset. The clients reach the broker in plain text, or over TLS with
SCRAM and sessions that end during the rounds.
"""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

from kafkapy.client import Consumer, Producer, TopicPartition
from kafkapy.client.admin import Admin, NewScramCredential, NewTopic
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.scram_mechanism import ScramMechanism
from tests.broker_process import BrokerProcess
from tests.chaos_proxy import CALM, Chances, ChaosProxy
from tests.harness.certificates import PASSWORD, CertificateAuthority
from tests.ports import free_ports
from tests.security.secured_kafka import SCRAM_MODULE, USERS, sasl_client

RECORDS = 300
PARTITIONS = 3
PATIENCE_SECONDS = 90
PROTOCOLS = ("classic", "consumer")
REFUSING = "refusing"  # a topic to which no record is written
SECURITY_PROTOCOLS = ("PLAINTEXT", "SASL_SSL")
MECHANISM, USER = "SCRAM-SHA-512", "alice"
SESSION_MS = 2000  # of an authentication; a broker refuses another one within a second
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
    """A broker that its clients reach through the proxy only, and a topic and a group for each protocol."""

    def __init__(self, directory: Path, seed: int, security_protocol: str) -> None:
        port, broker_port, inner_port = free_ports(3)
        self.seed = seed
        # With TLS and SASL, a connection and its first request are about three times as many pieces. With the same
        # chance for each, few connections would be established, and a slow machine would deliver no record in a minute.
        self._rarity = 1 if security_protocol == "PLAINTEXT" else 3
        properties = {"num.partitions": str(PARTITIONS)}
        self.settings: dict[str, str] = {"bootstrap.servers": f"localhost:{port}"}
        if security_protocol == "PLAINTEXT":
            properties["advertised.listeners"] = f"PLAINTEXT://localhost:{port}"
            self.broker = BrokerProcess(directory, properties, port=broker_port)
        else:
            inner = f"PLAINTEXT://localhost:{inner_port}"
            authority = CertificateAuthority(directory / "certificates")
            properties |= {
                "listeners": f"{inner},SASL_SSL://localhost:{broker_port}",
                "advertised.listeners": f"{inner},SASL_SSL://localhost:{port}",
                **_secured_listener(authority),
            }
            self.broker = BrokerProcess(directory, properties, port=inner_port)
            self.settings |= {
                "security.protocol": security_protocol,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(authority.certificate_file),
                **sasl_client(MECHANISM, USER),
            }
        self.proxy = ChaosProxy(port, broker_port, seed)
        self.deliveries = {protocol: Deliveries() for protocol in PROTOCOLS}
        self.sent: dict[str, list[bytes]] = {protocol: [] for protocol in PROTOCOLS}

    def round(self, number: int) -> None:
        """Runs one round. Raises AssertionError, which names the round and the seed."""
        chance = random.Random(self.seed * 1000 + number)
        protocol = PROTOCOLS[number % 2]
        name = f"round {number} of seed {self.seed} ({protocol})"
        chances = Chances(
            delay=chance.choice([0.0, 0.1, 0.3]),
            drop=chance.choice([0.0, 0.01, 0.03]) / self._rarity,
            cut=chance.choice([0.01, 0.03]) / self._rarity,
            silence=chance.choice([0.0, 0.0, 0.005]) / self._rarity,
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
            **self.settings,
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
            **self.settings,
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
        with Consumer(self.settings, auto_offset_reset="earliest") as consumer:
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


def _secured_listener(authority: CertificateAuthority) -> dict[str, str]:
    """Returns the properties of the listener SASL_SSL, whose certificate is for the name localhost."""
    store = authority.issue("broker", subject="/CN=broker", names=("DNS:localhost",)).pkcs12_file
    mechanism = f"listener.name.sasl_ssl.{MECHANISM.lower()}"
    return {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": PASSWORD,
        "sasl.enabled.mechanisms": MECHANISM,
        f"{mechanism}.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        f"{mechanism}.connections.max.reauth.ms": str(SESSION_MS),
    }


def run_rounds(directory: Path, rounds: int, seed: int, security_protocol: str) -> dict[str, int]:
    """Runs rounds with one broker; returns the number of faults of each kind."""
    harness = ChaosHarness(directory, seed, security_protocol)
    with harness.broker, harness.proxy:
        if security_protocol != "PLAINTEXT":
            with Admin(bootstrap_servers=harness.broker.bootstrap) as admin:
                credential = NewScramCredential(USER, ScramMechanism.SCRAM_SHA_512, USERS[USER])
                admin.alter_user_scram_credentials([credential]).check()
        for protocol in PROTOCOLS:
            with Producer(harness.settings) as producer:
                producer.partitions_for(protocol)
        with Admin(harness.settings) as admin:
            admin.create_topics([NewTopic(REFUSING, 1, 1, configs={"max.message.bytes": "1"})]).check()
        for number in range(rounds):
            harness.round(number)
    return harness.proxy.faults
