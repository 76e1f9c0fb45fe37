"""Chains of transactions that copy a topic, by librdkafka's clients, ours and Java's, and the check of the copy."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

from kafkapy.client.consumer import Consumer as KafkapyConsumer
from kafkapy.client.producer import Producer as KafkapyProducer
from kafkapy.errors import KafkapyError
from tests.cluster.background import PATIENCE_S, BackgroundClient
from tests.cluster.cluster import Cluster
from tests.cluster.history import Read
from tests.cluster.traffic import read_log

API_TIMEOUT_S = 10.0
# A process that has copied nothing for this time is killed.
SILENCE_S = 30.0
# The same for its start: on a busy machine a JVM and the first join of its group take long.
START_S = 90.0
CLIENT: dict[str, Any] = {"log_level": 0, "error_cb": lambda error: None, "topic.metadata.refresh.interval.ms": 1000}


class Chain(BackgroundClient):
    """Copies a topic in transactions, each with the group's offsets, on a thread of its own until it is stopped.

    Each record goes to the partition of the same number. After an error that ends the producer, or aborts its
    transaction, the consumer continues from the committed offsets. `bootstrap` returns the addresses of the brokers
    that there are now.
    """

    def __init__(self, bootstrap: Callable[[], str], source: str, target: str, name: str) -> None:
        super().__init__(name)
        self.committed = 0
        self.errors: list[str] = []
        self._bootstrap = bootstrap
        self.source = source
        self.target = target

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def _work(self) -> None:
        while not self._stopped.is_set():
            self._run_clients()

    def has_copied(self, count: int) -> bool:
        """Returns whether more than `count` records were copied; raises the error that has ended the thread."""
        if self.failure is not None:
            raise self.failure
        return self.committed > count

    @abstractmethod
    def _run_clients(self) -> None:
        """Runs a consumer and a producer until an error after which both have to begin again.

        The outcome of a transaction that failed is decided by the next init_transactions of the same id.
        """


class LibrdkafkaChain(Chain):
    """Adds partitions to its transactions itself; the leaders verify that it has done so."""

    def _run_clients(self) -> None:
        consumer = Consumer(
            {
                **CLIENT,
                "bootstrap.servers": self._bootstrap(),
                "group.id": self.name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "session.timeout.ms": 6000,
            }
        )
        producer = Producer(
            {
                **CLIENT,
                "bootstrap.servers": self._bootstrap(),
                "transactional.id": self.name,
                "transaction.timeout.ms": 60000,
            }
        )
        try:
            producer.init_transactions(60)
            consumer.subscribe([self.source])
            while not self._stopped.is_set():
                messages = [each for each in consumer.consume(50, 0.5) if each.error() is None]
                if messages:
                    producer.begin_transaction()
                    for message in messages:
                        partition = message.partition()
                        assert partition is not None
                        producer.produce(self.target, message.value(), partition=partition)
                    producer.send_offsets_to_transaction(
                        consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), API_TIMEOUT_S
                    )
                    producer.commit_transaction(API_TIMEOUT_S)
                    self.committed += len(messages)
        except KafkaException as error:
            self.errors.append(str(error))
        finally:
            producer.purge()
            consumer.close()


class KafkapyChain(Chain):
    """Leaves adding partitions to the leaders (transaction.version 2)."""

    def _run_clients(self) -> None:
        settings: dict[str, Any] = {"bootstrap_servers": self._bootstrap(), "metadata_max_age_ms": 1000}
        consumer = KafkapyConsumer(
            group_id=self.name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            session_timeout_ms=6000,
            max_poll_records=50,
            **settings,
        )
        producer = KafkapyProducer(transactional_id=self.name, **settings)
        try:
            producer.init_transactions(60)
            consumer.subscribe(self.source)
            while not self._stopped.is_set():
                records = consumer.poll(0.5)
                if records:
                    producer.begin_transaction()
                    for record in records:
                        producer.send(self.target, record.value, partition=record.partition)
                    offsets = {each: consumer.position(each) for each in records.by_partition()}
                    producer.send_offsets_to_transaction(offsets, consumer.group_metadata(), API_TIMEOUT_S)
                    producer.commit_transaction(API_TIMEOUT_S)
                    self.committed += len(records)
        except KafkapyError as error:
            self.errors.append(repr(error))
        finally:
            producer.close(0)
            consumer.close()


class ProcessChain(Chain):
    """A chain in a process of its own, which is started again when it ends or has been silent for long.

    librdkafka 2.16 waits forever in `send_offsets_to_transaction` if the group's coordinator was stopped, with brokers
    of Apache Kafka as with ours: it sends the request to a broker that the metadata no longer contain.
    """

    def __init__(
        self, command: list[str], log: Path, bootstrap: Callable[[], str], source: str, target: str, name: str
    ) -> None:
        """`command` runs a program that takes the bootstrap servers, the topics and the name, prints `committed COUNT`
        for its transactions, and ends with its input; `log` collects its errors."""
        super().__init__(bootstrap, source, target, name)
        self._heard_s = 0.0  # the time of the process's last line, or of its start
        self._is_heard = False  # the process has printed a line
        self._command = command
        self._log = log

    def _run_clients(self) -> None:
        command = [*self._command, self._bootstrap(), self.source, self.target, self.name]
        with self._log.open("ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        assert process.stdout is not None
        self._heard_s, self._is_heard = time.monotonic(), False
        threading.Thread(target=self._watch, args=(process,), daemon=True).start()
        for line in process.stdout:
            if line.startswith(b"committed "):
                self._heard_s, self._is_heard = time.monotonic(), True
                self.committed += int(line.split()[1])
            else:
                self.errors.append(line.decode())
        if process.wait(2 * PATIENCE_S):
            self.errors.append(f"the process of the chain ended with {process.returncode}")

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Ends the program's input when the chain is stopped, and kills the program when it is silent."""
        assert process.stdin is not None
        while process.poll() is None:
            if self._stopped.wait(0.2) and not process.stdin.closed:
                process.stdin.close()
            if time.monotonic() - self._heard_s > (SILENCE_S if self._is_heard else START_S):
                process.kill()
            time.sleep(0.05)


def check_copy(cluster: Cluster, source: Sequence[Read], chain: Chain, partitions: int) -> None:
    """Waits until the chain has copied each record of `source`, the whole topic, and checks that no copy is there
    twice. Stops the chain."""

    def copies() -> list[Read]:
        return read_log(cluster.bootstrap, chain.target, partitions, awaits_markers=chain.is_stopped)

    try:
        cluster.wait_for("copy of the whole topic", lambda: len(copies()) >= len(source))
    finally:
        chain.stop()
    expected = Counter(each.value for each in source)
    copied = Counter(each.value for each in copies())
    assert copied == expected, (copied - expected, expected - copied, chain.errors)


def main(bootstrap: str, source: str, target: str, name: str) -> None:
    """Runs a chain of librdkafka until standard input ends, as the program of a ProcessChain."""
    chain = LibrdkafkaChain(lambda: bootstrap, source, target, name)
    is_over = threading.Event()

    def await_end_of_input() -> None:
        sys.stdin.read()
        is_over.set()

    threading.Thread(target=await_end_of_input, daemon=True).start()
    chain.start()
    told = 0
    while not is_over.wait(0.1):
        assert chain.failure is None, chain.failure
        committed = chain.committed
        if committed > told:
            print(f"committed {committed - told}", flush=True)
            told = committed
    chain.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
