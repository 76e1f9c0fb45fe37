"""Producers and consumers that run while nodes fail, and that record their history.

They are clients of librdkafka unless the name of the class says otherwise.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from kafkapy._core.client.record_accumulator import RecordMetadata
from kafkapy.client.consumer import Consumer as KafkapyConsumer
from kafkapy.client.producer import Producer as KafkapyProducer
from kafkapy.types import TopicPartition as KafkapyPartition
from tests.cluster.background import PATIENCE_S, BackgroundClient
from tests.cluster.history import History, Outcome, Read, Sent, value_of

# The longest wait for the end of a transaction, which may wait for records that librdkafka is sending again.
API_TIMEOUT_S = 5.0
# Longer than every outage: after a record that timed out, librdkafka raises its epoch and sends the records in flight
# again, which may have been written (https://github.com/confluentinc/librdkafka/issues/4953).
DELIVERY_TIMEOUT_S = 10 * PATIENCE_S
# The answers after which a record is certainly not in the log.
_REFUSALS = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_REQUIRED_ACKS)
_CLIENT: dict[str, Any] = {
    "topic.metadata.refresh.interval.ms": 1000,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 500,
    "log_level": 0,
}


class TrafficProducer(BackgroundClient):
    """Sends numbered records to all partitions of a topic in turn, until it is stopped, on a thread of its own.

    `rate` is in records per second. With `transaction_size` the records are in transactions of that many, of which
    every third is aborted. `fatal_errors` has the codes of the errors after which only a new producer could continue.
    `bootstrap` returns the addresses of the brokers that there are now.
    """

    def __init__(
        self,
        history: History,
        bootstrap: Callable[[], str],
        topic: str,
        partitions: int,
        name: str,
        *,
        rate: float = 200.0,
        transaction_size: int = 0,
        **settings: Any,
    ) -> None:
        super().__init__(name)
        self.fatal_errors: list[int] = []
        self._history = history
        self._topic = topic
        self._partitions = partitions
        self._pause_s = 1 / rate
        self._transaction_size = transaction_size
        self._numbers = [0] * partitions
        own: dict[str, Any] = {
            "enable.idempotence": True,
            "acks": "all",
            "delivery.timeout.ms": int(DELIVERY_TIMEOUT_S * 1000),
            "linger.ms": 2,
            # With more, librdkafka may write records twice when a leader changes: it raises its epoch while records are
            # in flight that were written (https://github.com/confluentinc/librdkafka/issues/4953).
            "max.in.flight.requests.per.connection": 1,
            **_CLIENT,
        }
        if transaction_size:
            timeout_ms = int(PATIENCE_S * 1000)
            own |= {"transactional.id": name, "transaction.timeout.ms": timeout_ms, "delivery.timeout.ms": timeout_ms}
        self._bootstrap = bootstrap
        self._settings = {**own, **settings}
        self._producer = self._make_producer()
        self._is_new = True

    def _make_producer(self) -> Producer:
        return Producer({"bootstrap.servers": self._bootstrap(), **self._settings})

    def _work(self) -> None:
        if self._transaction_size:
            self._send_in_transactions()
        else:
            self._send()

    def _send(self) -> None:
        index = 0
        while not self._stopped.wait(self._pause_s):
            self._produce(index % self._partitions, None)
            self._producer.poll(0)
            index += 1
        left = self._producer.flush(2 * PATIENCE_S)
        assert left == 0, f"{left} records of {self.name} were never answered"

    def _send_in_transactions(self) -> None:
        number = 0
        while not self._stopped.is_set():
            is_commit = number % 3 != 2
            if self._is_new:
                self._producer.init_transactions(PATIENCE_S)
                self._is_new = False
            self._producer.begin_transaction()
            try:
                for index in range(self._transaction_size):
                    self._produce(index % self._partitions, number)
                    self._producer.poll(0)
                    self._stopped.wait(self._pause_s)
            except KafkaException:
                is_commit = False  # the transaction has failed already
            self._history.transactions[self.name, number] = self._end_transaction(is_commit=is_commit)
            number += 1
        if self._is_new:
            self._producer.init_transactions(PATIENCE_S)  # ends what the producer before has left open

    def _end_transaction(self, *, is_commit: bool) -> Outcome:
        """Ends the transaction; repeats the call after an error that permits it.

        After any other error the application begins again with the same id, which aborts an open transaction.
        """
        outcome = Outcome.NOT_DONE
        while True:
            try:
                if is_commit:
                    outcome = Outcome.UNKNOWN
                    self._producer.commit_transaction(API_TIMEOUT_S)
                    return Outcome.DONE
                if self._producer.flush(PATIENCE_S):
                    # librdkafka takes NOT_LEADER_OR_FOLLOWER for an answer to records that were not written. An abort
                    # forgets them, and the next transaction would use their sequence numbers again. If the records were
                    # written, the leader takes the new ones for their repetition, and acknowledges them unwritten.
                    self._replace_producer()
                    return Outcome.NOT_DONE
                self._producer.abort_transaction(API_TIMEOUT_S)
                return Outcome.NOT_DONE
            except KafkaException as error:
                details: KafkaError = error.args[0]
                if details.txn_requires_abort():
                    is_commit, outcome = False, Outcome.NOT_DONE
                elif not details.retriable():
                    self.fatal_errors.append(details.code())
                    self._replace_producer()
                    return outcome

    def _replace_producer(self) -> None:
        """Ends the producer, so that every record gets its outcome, and makes a new one, which raises the epoch."""
        self._producer.purge()
        while len(self._producer):
            with suppress(KafkaException):  # the fatal error again
                self._producer.poll(0.1)
        self._producer = self._make_producer()
        self._is_new = True

    def _produce(self, partition: int, transaction: int | None) -> None:
        number = self._numbers[partition]
        self._numbers[partition] += 1

        def delivered(error: KafkaError | None, message: Message) -> None:
            outcome, offset = Outcome.DONE, message.offset()
            if error is not None:
                outcome, offset = Outcome.NOT_DONE if error.code() in _REFUSALS else Outcome.UNKNOWN, -1
            sent = Sent(self.name, partition, number, outcome, -1 if offset is None else offset, transaction)
            self._history.sent.append(sent)

        value = value_of(self.name, partition, number)
        while True:
            try:
                self._producer.produce(self._topic, value, partition=partition, on_delivery=delivered)
                return
            except BufferError:
                self._producer.poll(0.1)


class TrafficConsumer(BackgroundClient):
    """Reads a topic as a member of a group until it is stopped, on a thread of its own."""

    def __init__(self, history: History, bootstrap: str, topic: str, name: str, group: str, **settings: Any) -> None:
        super().__init__(name)
        self._history = history
        self._topic = topic
        self._session = 0
        own = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "session.timeout.ms": 6000,
            **_CLIENT,
        }
        self._consumer = Consumer({**own, **settings})

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._session += 1

    def _work(self) -> None:
        self._consumer.subscribe([self._topic], on_assign=self._assigned)
        while not self._stopped.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self._history.reads.append(_read(message, self.name, self._session))
        self._consumer.close()


class KafkapyTrafficProducer(BackgroundClient):
    """Sends numbered records as TrafficProducer does, outside of transactions, with our client."""

    def __init__(
        self, history: History, bootstrap: str, topic: str, partitions: int, name: str, *, rate: float = 200.0
    ) -> None:
        super().__init__(name)
        self._history = history
        self._topic = topic
        self._partitions = partitions
        self._pause_s = 1 / rate
        self._producer = KafkapyProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            linger_ms=2,
            metadata_max_age_ms=1000,
            delivery_timeout_ms=int(PATIENCE_S * 1000),
        )

    def _work(self) -> None:
        with self._producer:
            index = 0
            while not self._stopped.wait(self._pause_s):
                self._send(index % self._partitions, index // self._partitions)
                index += 1
            assert self._producer.flush(2 * PATIENCE_S), f"records of {self.name} were never answered"

    def _send(self, partition: int, number: int) -> None:
        def delivered(metadata: RecordMetadata | None, error: BaseException | None) -> None:
            outcome, offset = Outcome.UNKNOWN, -1
            if metadata is not None and error is None:
                outcome, offset = Outcome.DONE, metadata.offset
            self._history.sent.append(Sent(self.name, partition, number, outcome, offset))

        value = value_of(self.name, partition, number)
        self._producer.send(self._topic, value, partition=partition, on_delivery=delivered)


class KafkapyTrafficConsumer(BackgroundClient):
    """Reads a topic with our client as a member of a group, on a thread of its own. `reads` is appended to."""

    def __init__(self, reads: list[Read], bootstrap: str, topic: str, name: str, group: str, **settings: Any) -> None:
        super().__init__(name)
        self._reads = reads
        self._topic = topic
        self._session = 0
        own: dict[str, Any] = {
            "bootstrap_servers": bootstrap,
            "group_id": group,
            "auto_offset_reset": "earliest",
            "metadata_max_age_ms": 1000,
            "session_timeout_ms": 6000,
        }
        self._settings = {**own, **settings}

    def on_partitions_assigned(self, partitions: object) -> None:
        self._session += 1

    def on_partitions_revoked(self, partitions: object) -> None:
        """Does nothing: the next assignment begins a session."""

    def on_partitions_lost(self, partitions: object) -> None:
        """Does nothing: the next assignment begins a session."""

    def _work(self) -> None:
        with KafkapyConsumer(**self._settings) as consumer:
            consumer.subscribe([self._topic], self)
            while not self._stopped.is_set():
                for record in consumer.poll(0.2):
                    read = Read(self.name, self._session, record.partition, record.offset, record.value)
                    self._reads.append(read)


class JavaTrafficProducer:
    """Sends numbered records with Java's client, in a process of its own (`JavaTraffic.java`)."""

    def __init__(
        self,
        history: History,
        command: list[str],
        log: Path,
        bootstrap: str,
        topic: str,
        partitions: int,
        name: str,
        *,
        rate: float = 100.0,
    ) -> None:
        """`command` runs the program, whose errors `log` collects."""
        self.name = name
        self._history = history
        self._command = [*command, "produce", bootstrap, topic, str(partitions), name, str(rate)]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._reader = threading.Thread(target=self._read, name=name, daemon=True)

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self._reader.start()

    def stop(self) -> None:
        """Ends the program's input, and waits for the answers and for its end."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        process.stdin.close()
        try:
            code = process.wait(2 * PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"{self.name} waits for ever") from None
        self._reader.join()
        assert code == 0, f"{self.name} ended with {code}"

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            partition, number, offset = map(int, line.split()[1:])
            outcome = Outcome.UNKNOWN if offset < 0 else Outcome.DONE
            self._history.sent.append(Sent(self.name, partition, number, outcome, offset))


class TrafficClient(Protocol):
    """A client that runs from `start` to `stop`, which raises the client's failure."""

    def start(self) -> None: ...
    def stop(self) -> None: ...


@contextmanager
def traffic(*clients: TrafficClient) -> Iterator[None]:
    """Runs the clients during the block, and stops them in their order."""
    for client in clients:
        client.start()
    try:
        yield
    finally:
        failures = []
        for client in clients:
            try:
                client.stop()
            except BaseException as error:
                failures.append(error)
    if failures:
        raise failures[0]


def read_log(
    bootstrap: str, topic: str, partitions: int, isolation: str = "read_committed", *, awaits_markers: bool = True
) -> list[Read]:
    """Returns the whole topic as the isolation level shows it, up to the ends at the time of the call.

    With `awaits_markers` it waits before until no transaction is open: a producer gets its answer before the markers
    are written.
    """
    if awaits_markers:
        _await_stable(bootstrap, topic, partitions)
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader-of-the-log", "enable.auto.commit": False}
    consumer = Consumer({**settings, "isolation.level": isolation, "enable.partition.eof": True, **_CLIENT})
    found: list[Read] = []
    try:
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(partitions)])
        unfinished = set(range(partitions))
        while unfinished:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, f"the partitions {unfinished} of {topic} have no end"
            error = message.error()
            if error is None:
                found.append(_read(message, "reader", 0))
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(message.partition())
    finally:
        consumer.close()
    return found


def _await_stable(bootstrap: str, topic: str, partitions: int) -> None:
    """Waits until the last stable offset of each partition is its high watermark; raises AssertionError after two
    minutes."""
    names = [KafkapyPartition(topic, index) for index in range(partitions)]
    ends: list[dict[KafkapyPartition, int]] = []
    deadline = time.monotonic() + 2 * PATIENCE_S
    with (
        KafkapyConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as committed,
        KafkapyConsumer(bootstrap_servers=bootstrap) as uncommitted,
    ):
        while not ends or ends[0] != ends[1]:
            assert time.monotonic() < deadline, f"{topic} has an open transaction: {ends}"
            ends = [consumer.end_offsets(names) for consumer in (uncommitted, committed)]


def _read(message: Message, consumer: str, session: int) -> Read:
    partition, offset, value = message.partition(), message.offset(), message.value()
    assert partition is not None
    assert offset is not None
    assert isinstance(value, bytes)
    return Read(consumer, session, partition, offset, value)
