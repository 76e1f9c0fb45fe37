"""A loop that consumes, transforms and produces records, each poll in one transaction with its offsets (KIP-447)."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol

from kafkapy.client.closing import Closing
from kafkapy.client.consumer import Consumer, ConsumerRecords
from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.client.errors import AuthenticationError, RequestTimedOut, TransactionError, WakeupError
from kafkapy.client.producer import Producer
from kafkapy.client.reliable.records import Output
from kafkapy.client.reliable.takeover import NameTaken, check_member
from kafkapy.errors import ApiError, Error, KafkapyError
from kafkapy.types import TopicPartition, random_java_uuid

log = logging.getLogger("kafkapy.client")

# A transaction of a killed process blocks the readers of committed records for this long at most; a process with the
# same instance name that starts earlier ends it at once.
RELAY_TIMEOUT_MS = 10_000
MOST_POLLED = 2000
# The other members wait so long for one that was killed and does not start again.
SESSION_TIMEOUT_MS = 15_000
# The time to wait for records if nothing else is due.
IDLE_WAIT_S = 1.0
_PAUSE_S = 0.2
# Errors of a broker that say that the records cannot be written, whatever the state of the cluster is.
_REFUSED = frozenset(
    (
        Error.MESSAGE_TOO_LARGE,
        Error.RECORD_LIST_TOO_LARGE,
        Error.INVALID_RECORD,
        Error.INVALID_TIMESTAMP,
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.INVALID_TOPIC_EXCEPTION,
    )
)
# Errors after which the process must end, because another attempt has the same result.
_FATAL = frozenset(
    (
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Error.CLUSTER_AUTHORIZATION_FAILED,
        Error.UNSUPPORTED_VERSION,
        Error.INVALID_TRANSACTION_TIMEOUT,
        Error.INVALID_GROUP_ID,
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.GROUP_MAX_SIZE_REACHED,
    )
)


class RefusedRecords(KafkapyError):
    """The brokers have refused records of a transaction; `__cause__` is their error."""


class Transform(Protocol):
    """The work of a relay: decides what is sent for the records of a poll. Called by the thread of `Relay.run`."""

    def topics(self) -> Collection[str]:
        """Returns the topics to read."""

    def assigned(self, relay: Relay, partitions: Collection[TopicPartition]) -> None:
        """Is called when partitions are assigned, before their records are read. May block."""

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Is called after partitions were taken from this member."""

    def wait_s(self, now_ms: int) -> float:
        """Returns the longest time to wait for records, in seconds; `now_ms` is in ms since 1970."""

    def step(self, relay: Relay, records: ConsumerRecords, batch: Batch) -> None:
        """Adds the outputs for the records of one poll, and the new positions, to `batch`.

        If nothing is added, no transaction is committed.
        """

    def committed(self) -> None:
        """Is called after the transaction was committed, or after a `step` that added nothing."""

    def aborted(self, error: Exception) -> None:
        """Is called after the transaction was aborted; the records will be read again."""


class Batch:
    """The outputs of one transaction, and the offsets that it commits."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self.offsets: dict[TopicPartition, int] = {}
        self.counts: Counter[str] = Counter()
        self.sent = 0
        self.is_open = False

    def send(self, output: Output) -> None:
        """Sends a record in the transaction, and begins the transaction if it has not begun yet."""
        self.begin()
        self._producer.send(
            output.topic,
            output.value,
            output.key,
            partition=output.partition,
            timestamp=output.timestamp,
            headers=output.headers,
        )
        self.sent += 1

    def passed(self, partition: TopicPartition, offset: int) -> None:
        """Adds the position after `offset` to the transaction. All records of the partition up to and including
        `offset` must be done.
        """
        self.offsets[partition] = offset + 1

    def begin(self) -> None:
        """Begins the transaction unless it has begun."""
        if not self.is_open:
            self._producer.begin_transaction()
            self.is_open = True


class Relay(Closing):
    """Runs a Transform as a member of a group. Used by one thread; `stop` may be called by any thread.

    Each poll is one transaction of outputs and offsets. After an error in a transaction a new producer with the same
    transactional id aborts the transaction, and the consumer goes back to the committed offsets, so that the relay's
    positions are always the positions that the brokers have stored. While no broker can be reached, the relay waits
    without a time limit.

    `instance` is the name of this process: it forms the transactional id, and is the `group.instance.id` of a static
    member. If another process starts with the same `instance`, `run` raises NameTaken in the earlier process or, with
    the consumer protocol, in the one that starts. If `instance` is None, the transactional id is random, and the member
    is a dynamic one, which leaves the group when the relay is closed.
    """

    def __init__(
        self,
        properties: Mapping[str, Any],
        group: str,
        transform: Transform,
        *,
        instance: str | None = None,
        consumer_settings: Mapping[str, Any] | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.group = group
        self._transform = transform
        self._sleep = sleep
        self._is_stopping = False
        self._properties = dict(properties)
        self._transactional_id = f"{group}-{instance or random_java_uuid()}"
        self._name = f"the name {instance} (--instance) in the group {group}"
        self.consumer = Consumer(
            {
                "auto.offset.reset": "earliest",
                "max.poll.records": MOST_POLLED,
                **({"session.timeout.ms": SESSION_TIMEOUT_MS} if "group.protocol" not in properties else {}),
                # A process that starts again under its name gets its partitions at once (KIP-345).
                **({} if instance is None else {"group.instance.id": instance}),
                **consumer_keys(properties),
                **(consumer_settings or {}),
                "group.id": group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "key.deserializer": "bytes",
                "value.deserializer": "bytes",
                "allow.auto.create.topics": False,
            }
        )
        self._begun: dict[TopicPartition, int] = {}
        self._producer: Producer | None = None
        self._has_new_positions = False
        self.is_single = False  # each transaction has one record, so that a refused record can be found
        # The outcome of a transaction that has failed is unknown: its commit was requested, and not answered.
        self.may_be_committed = False

    @property
    def most_output_bytes(self) -> int:
        """The size in bytes above which the producer refuses a record (`max.request.size`)."""
        return int(self._live_producer().config["max.request.size"])

    def stop(self) -> None:
        """Makes `run` return after the present transaction."""
        self._is_stopping = True
        self.consumer.wakeup()

    def run(self) -> None:
        """Relays records until `stop` is called. Retriable errors are retried; raises all others."""
        self.consumer.subscribe(list(self._transform.topics()), self)
        while not self._is_stopping:
            try:
                self.run_once()
            except WakeupError:
                continue

    def run_once(self) -> int:
        """Polls once, and relays the records in one transaction; returns the number of records that were read."""
        records = self._poll()
        batch = Batch(self._live_producer())
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            self._begun.setdefault(partition, record.offset)
        try:
            self._transform.step(self, records, batch)
            if batch.offsets or batch.sent:
                self._commit(batch)
            self._transform.committed()
        except WakeupError as error:
            self._recover(error)
        except (ApiError, TransactionError) as error:
            self._check_fatal(error)
            self._recover(error)
        except BaseException:
            self._drop_producer()
            raise
        else:
            self.counts.update(batch.counts)
            self._begun.update(batch.offsets)
            if batch.offsets:
                self.is_single = False
        return len(records)

    def close(self) -> None:
        """Leaves the group and closes the connections."""
        self._drop_producer()
        self.consumer.close()

    def partition_count(self, topic: str) -> int:
        """Returns the number of partitions of a topic. Blocks until it is known."""
        return len(self._live_producer().partitions_for(topic))

    def topic_exists(self, topic: str) -> bool:
        """Returns whether a topic exists. Blocks; raises RequestTimedOut if no broker answers."""
        return bool(self.consumer.partitions_for(topic))

    # Called by the consumer

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self._transform.assigned(self, partitions)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            self._begun.pop(each, None)
        self._transform.revoked(partitions)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self.on_partitions_revoked(partitions)

    # Internal

    def _poll(self) -> ConsumerRecords:
        try:
            return self.consumer.poll(self._transform.wait_s(time.time_ns() // 1_000_000))
        except AuthenticationError:
            raise
        except ApiError as error:
            check_member(error, self._name)
            if error.error in _FATAL or not (error.error.retriable or isinstance(error, TimeoutError)):
                raise
            log.warning("The records cannot be read yet: %s", error)
            self._sleep(_PAUSE_S)
            return ConsumerRecords()

    def _commit(self, batch: Batch) -> None:
        producer = self._live_producer()
        batch.begin()
        offsets = {partition: OffsetAndMetadata(offset) for partition, offset in batch.offsets.items()}
        producer.send_offsets_to_transaction(offsets, self.consumer.group_metadata())
        self.may_be_committed = True
        while True:
            try:
                producer.commit_transaction()
                self.may_be_committed = False
                return
            except RequestTimedOut as error:
                if self._is_stopping:
                    raise
                log.warning("The commit is repeated: %s", error)

    def _check_fatal(self, error: Exception) -> None:
        """Raises `error` if each further transaction would fail with it, such as an authentication error.

        Raises NameTaken if another process has taken over `instance`, the name of this process in the group. If the
        brokers have refused a record, sets `is_single`, so that each of the next transactions has only one record.
        Returns in all cases in which the caller may repeat the transaction.
        """
        try:
            check_member(error, self._name)
        except NameTaken:
            self._drop_producer()
            raise
        code = error.error if isinstance(error, ApiError) else None
        if isinstance(error, AuthenticationError) or code in _FATAL:
            self._drop_producer()
            raise error
        if is_refusal(error):
            self.is_single = True
            # The error of a record, with which a commit fails before it is requested.
            self.may_be_committed = False

    def _recover(self, error: Exception) -> None:
        """Aborts the transaction, and makes the consumer read again from the committed offsets."""
        self.counts["aborted"] += 1
        if not isinstance(error, WakeupError):
            log.warning("A transaction is repeated: %s", error)
        self._drop_producer()
        self._transform.aborted(error)
        self.may_be_committed = False
        self._has_new_positions = True
        self._live_producer()

    def _live_producer(self) -> Producer:
        """Returns a producer that can begin a transaction; waits without a time limit while no broker can be
        reached."""
        while self._producer is None or self._has_new_positions:
            try:
                if self._producer is None:
                    self._producer = self._new_producer()
                if self._has_new_positions:
                    self._return_to_committed()
                    self._has_new_positions = False
            except (RequestTimedOut, ApiError) as error:
                self._check_fatal(error)
                if self._is_stopping:
                    raise
                log.warning("The brokers cannot be used yet: %s", error)
                self._sleep(_PAUSE_S)
            except WakeupError:
                if self._is_stopping:
                    raise
        return self._producer

    def _new_producer(self) -> Producer:
        defaults = {
            "linger.ms": 0,
            "compression.type": "lz4",
            # The next transaction may have to wait for the markers of the last one, which takes a few milliseconds.
            "retry.backoff.ms": 5,
            "max.block.ms": 10_000,
            "delivery.timeout.ms": 30_000,
            "request.timeout.ms": 10_000,
        }
        return transactional_producer(self._transactional_id, {**defaults, **producer_keys(self._properties)})

    def _drop_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(0)

    def _return_to_committed(self) -> None:
        assigned = self.consumer.assignment()
        for partition, committed in self.consumer.committed(assigned).items():
            if committed is not None:
                self.consumer.seek(partition, committed)
            elif partition in self._begun:
                self.consumer.seek(partition, self._begun[partition])


def consumer_keys(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those of the properties that are keys of a consumer, so that one file can configure all clients."""
    from kafkapy.config.client_table import CONSUMER_ROWS

    return {name: value for name, value in properties.items() if name in CONSUMER_ROWS}


def producer_keys(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those of the properties that are keys of a producer."""
    from kafkapy.config.client_table import PRODUCER_ROWS

    return {name: value for name, value in properties.items() if name in PRODUCER_ROWS}


def admin_keys(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those of the properties that are keys of an admin client."""
    from kafkapy.config.client_table import ADMIN_ROWS

    return {name: value for name, value in properties.items() if name in ADMIN_ROWS}


def is_refusal(error: Exception) -> bool:
    """Returns whether the brokers, or the producer, have refused a record because of its content or its topic."""
    return isinstance(error, ApiError) and error.error in _REFUSED


def transactional_producer(transactional_id: str, properties: Mapping[str, Any]) -> Producer:
    """Makes a producer that can begin a transaction. Ends the open transaction of a former process with the same id.

    `properties` may set the time-out of transactions, RELAY_TIMEOUT_MS by default. Raises KafkapyError, and closes the
    producer, if the brokers cannot be reached or refuse it.
    """
    producer = Producer(
        {
            "transaction.timeout.ms": RELAY_TIMEOUT_MS,
            **properties,
            "transactional.id": transactional_id,
            "enable.idempotence": True,
            "acks": "all",
        }
    )
    try:
        producer.init_transactions()
    except BaseException:
        producer.close(0)
        raise
    return producer


def unfinished(records: Iterable[Any], done: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Returns the offset of each partition's first record in `records` that is not done.

    `done` has, for each partition, the offset after its last record that is done.
    """
    found: dict[TopicPartition, int] = {}
    for record in records:
        partition = TopicPartition(record.topic, record.partition)
        if record.offset >= done.get(partition, 0):
            found.setdefault(partition, record.offset)
    return found
