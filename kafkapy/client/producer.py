"""The producer: sends records to topics and returns futures of their delivery."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from kafkapy._core.bytes.compression import CODEC_NAMES
from kafkapy._core.client.record_accumulator import (
    DeliveryFuture,
    PartitionQueue,
    ProducerBatch,
    RecordAccumulator,
    TopicQueues,
)
from kafkapy.client.closing import Closing
from kafkapy.client.cluster import NO_LEADER, PartitionInfo
from kafkapy.client.configuration import ClientConfig, producer_config
from kafkapy.client.coordinator import GroupMetadata, OffsetAndMetadata, with_metadata
from kafkapy.client.environment import SYSTEM
from kafkapy.client.errors import AuthenticationError, ClientClosed, RequestTimedOut, TransactionError
from kafkapy.client.interceptors import Interceptors
from kafkapy.client.network import Network
from kafkapy.client.partitioner import JAVA_PARTITIONERS, choose_sticky_partition
from kafkapy.client.producer_id import ProducerIdSource
from kafkapy.client.sender import Sender
from kafkapy.client.serialization import find_serializer, load_object
from kafkapy.client.telemetry import start_telemetry
from kafkapy.client.throttling import ThrottleTimes
from kafkapy.errors import ApiError, ConfigError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy._core.client.record_accumulator import Headers, OnDelivery
    from kafkapy.client.arrow_delivery import ArrowDelivery
    from kafkapy.client.metrics import Metrics
    from kafkapy.client.prepared_transaction import PreparedTransaction
    from kafkapy.client.transactions import Transactions

log = logging.getLogger("kafkapy.client")
T = TypeVar("T")

# The sending thread runs a step of the network after about this many bytes, because a step costs as much as adding
# dozens of records.
STEP_BYTES = 64 << 10


class Producer(RecordAccumulator, Closing):
    """Sends records to topics. Thread-safe; a program usually has one for all its threads.

    `properties` has Apache Kafka's configuration keys of a producer; a key can also be a keyword argument, with `_`
    instead of `.`: `Producer(bootstrap_servers="localhost:9092", linger_ms=20)`. Raises ConfigError for an invalid
    configuration.

    `send` and `send_many` add records to batches and do not wait for their delivery; a batch is sent when it is full or
    `linger.ms` after its first record. The outcome of a record is in its `DeliveryFuture` and is passed to its
    callback. A callback is called by the networking thread or by any thread that calls a method of the producer; it
    must neither block nor take long. The errors of a record are ApiError, or RequestTimedOut (a TimeoutError) after
    `delivery.timeout.ms`.

    All time-outs are in seconds. The transactional methods need a `transactional.id`. All but `begin_transaction`
    block, and raise RequestTimedOut after the given time-out, by default `max.block.ms`. They raise ApiError if the
    coordinator refuses the request, with PRODUCER_FENCED if another producer has taken over the transactional id; and
    TransactionError if they are called in the wrong order.

    The members inherited from RecordAccumulator are internal, except `send` and `send_many`.
    """

    _environment = SYSTEM

    def __init__(self, properties: Mapping[str, Any] | None = None, **settings: Any) -> None:
        config = producer_config(properties, **settings)
        codec = config["compression.type"]
        super().__init__(
            memory_limit=config["buffer.memory"],
            batch_size=max(config["batch.size"], 1),
            max_record_bytes=config["max.request.size"],
            codec=CODEC_NAMES.index(codec),
            level=_level(config, codec),
            ignore_keys=config["partitioner.ignore.keys"],
            monotonic_ms=None if self._environment is SYSTEM else self._environment.clock.monotonic_ms,
        )
        self._config = config
        self._key_serializer = find_serializer("key.serializer", config["key.serializer"])
        self._value_serializer = find_serializer("value.serializer", config["value.serializer"])
        self._partitioner = _find_partitioner(config["partitioner.class"])
        self._interceptors = Interceptors(config["interceptor.classes"])
        self._max_block_ms: int = config["max.block.ms"]
        self._linger_ms: int = config["linger.ms"]
        self._batches_per_step = max(STEP_BYTES // self.batch_size, 1)
        self._network = Network(
            config,
            in_flight_limit=config["max.in.flight.requests.per.connection"],
            environment=self._environment,
        )
        self._transactions: Transactions | None = None
        transactional_id: str | None = config["transactional.id"]
        if transactional_id is None:
            identity = ProducerIdSource(self._network, self, is_idempotent=config["enable.idempotence"])
            self._sender = Sender(self._network, self, config, identity, self._on_batch_finished)
        else:
            # Imported here because most producers have no transactions.
            from kafkapy.client.transaction_state import TransactionState
            from kafkapy.client.transactions import Transactions

            state = TransactionState(self._network, self, transactional_id)
            self._sender = Sender(self._network, self, config, state, self._on_batch_finished)
            self._transactions = Transactions(self._network, state, self._sender, config)
        self._network.tasks.append(self._sender)
        self._telemetry = start_telemetry(self._network, config, self.metrics)
        self._closing = threading.Lock()
        self._is_closed = False
        self._is_plain = not (self._key_serializer or self._value_serializer or self._partitioner or self._interceptors)
        self.takes_plain_records = self._is_plain and self._transactions is None
        self._network.start()

    def __repr__(self) -> str:
        transactional_id = self._config["transactional.id"]
        transactional = "" if transactional_id is None else f" transactional_id={transactional_id!r}"
        state = " closed" if self._is_closed else ""
        return f"<Producer client_id={self._config['client.id']!r}{transactional}{state}>"

    @property
    def config(self) -> ClientConfig:
        """The configuration as typed values, such as `config["linger.ms"]`."""
        return self._config

    def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        """Returns the partitions of a topic.

        Blocks until the topic's metadata are known. Raises RequestTimedOut after `max.block.ms`, and ApiError for an
        error that is not retriable, such as an invalid name.
        """
        self._queues_of(topic)
        return self._network.cluster.topics[topic].partitions

    def send_arrow(self, topic: str, table: Any) -> ArrowDelivery:
        """Sends each row of a table as a record, and returns the delivery of the rows.

        `table` is any object with Arrow's interface (`__arrow_c_stream__` or `__arrow_c_array__`): a Table, RecordBatch
        or RecordBatchReader of pyarrow, a DataFrame of Polars or pandas, a relation of DuckDB, an `ArrowBatch`. No
        Python object is made for a row, unless the producer has serializers, a partitioner or interceptors.

        The column `value`, of type binary or text, is required. The columns `key` (binary or text), `partition` (an
        integer), `timestamp` (a timestamp, or an integer in ms since 1970) and `headers` (a list of structs of key and
        value) are optional; a null in them has the effect of an argument of `send` that is left out. Other columns are
        ignored.

        Blocks as `send` does, for each row. Raises TypeError for a column of another type, ValueError for an invalid
        table, and the errors of `send`. If a row has caused the error, the message has the row's number, counted from
        0. After an error, the rows before the failed one are sent, and those after it are not.
        """
        from kafkapy._core.bytes.arrow_input import ArrowInput
        from kafkapy._core.client.arrow_sender import ArrowSender
        from kafkapy.client.arrow_delivery import ArrowDelivery

        source = ArrowInput(table)
        self._takes_encoded_records()
        delivery = ArrowDelivery(self._network, topic)
        sender = ArrowSender(self, source, self._queues_of(topic), delivery)
        while not sender.advance():
            self._wait_for_memory(sender.send_refused_row)
        delivery.end(sender.row)
        return delivery

    def flush(self, timeout: float | None = None) -> bool:
        """Sends all records without lingering and blocks until each is delivered or has failed.

        Returns whether this happened within `timeout` seconds (None: without a limit). Raises AuthenticationError if a
        broker refuses the client; the records wait for another attempt until `delivery.timeout.ms`.
        """
        with self._network.lock:
            batches = deque(self._sender.in_flight)
            for queue in list(self.active):
                batches.extend(queue.all_batches())
            self._sender.flushing += 1

        def is_done() -> bool:
            while batches and batches[0].is_done:
                batches.popleft()
            return not batches

        try:
            with self._network.metrics.time_totals.spent_in("flush"):
                return self._network.wait_until(is_done, timeout)
        finally:
            with self._network.lock:
                self._sender.flushing -= 1

    @property
    def throttle_times(self) -> ThrottleTimes:
        """The throttle times of the responses to produce requests, by which brokers delay a client beyond its quota."""
        return self._network.throttling.times[ApiKey.PRODUCE]

    def metrics(self) -> Metrics:
        """Returns the metrics of this producer, by name, group and tags as in Java's producer. Does not block."""
        from kafkapy.client.metric_names import Memory, producer_metrics

        memory = Memory(self.memory_limit, self.memory_used, self._sender.out_of_memory)
        return producer_metrics(self._network, memory)

    def close(self, timeout: float | None = None) -> None:
        """Aborts an open transaction, flushes, and closes the connections. May be called again.

        The abort and the flush block up to `timeout` seconds each (None: five seconds for the abort, no limit for the
        flush). Records that are not delivered by then fail with NETWORK_EXCEPTION.
        """
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
            self.takes_plain_records = False
        self._abort_open_transaction(timeout)
        with suppress(AuthenticationError):  # without authentication the records fail below
            self.flush(timeout)
        closed = ApiError(Error.NETWORK_EXCEPTION, "The producer was closed before delivery")
        with self._network.lock:
            self._sender.fail_all(closed)
        if self._telemetry is not None:
            self._telemetry.end()
        self._network.close()
        with self._network.lock:
            self._sender.fail_all(closed)  # batches that were in flight and are waiting to be sent again
        self._interceptors.notify("close")

    # Transactions

    def init_transactions(self, timeout: float | None = None) -> None:
        """Takes over the `transactional.id`; must be called once, before any other transactional method. Blocks.

        The producer that used the id before is fenced, and its open transaction is aborted.
        """
        with self._network.metrics.time_totals.spent_in("txn-init"):
            self._need_transactions().initialize(self._limit(timeout))

    def begin_transaction(self) -> None:
        """Begins a transaction, which contains all records that are sent from now on. Does not block."""
        with self._network.metrics.time_totals.spent_in("txn-begin"):
            self._need_transactions().begin()
        self.takes_plain_records = self._is_plain

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group: GroupMetadata,
        timeout: float | None = None,
    ) -> None:
        """Commits a consumer's offsets as part of the transaction; `group` is `Consumer.group_metadata()`. Blocks."""
        with self._network.metrics.time_totals.spent_in("txn-send-offsets"):
            self._need_transactions().send_offsets(with_metadata(offsets), group, self._limit(timeout))

    def commit_transaction(self, timeout: float | None = None) -> None:
        """Sends the remaining records and commits the transaction. Blocks.

        Raises the error of a record that has failed; the transaction must then be aborted. After RequestTimedOut
        `commit_transaction` may be called again.
        """
        self.takes_plain_records = False
        with self._network.metrics.time_totals.spent_in("txn-commit"):
            self._need_transactions().commit(self._limit(timeout))

    def prepare_transaction(self, timeout: float | None = None) -> PreparedTransaction | None:
        """Sends the remaining records and leaves the transaction open for another process to end. Blocks.

        The process that receives the result commits or aborts the transaction with
        `prepared_transaction.end_transactions`. Afterwards this producer can only be closed. Returns None if the
        transaction is empty. Raises the error of a record that has failed.
        """
        self.takes_plain_records = False
        with self._network.metrics.time_totals.spent_in("txn-prepare"):
            return self._need_transactions().prepare(self._limit(timeout))

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Aborts the transaction; its records are not visible to consumers with read_committed. Blocks."""
        self.takes_plain_records = False
        with self._network.metrics.time_totals.spent_in("txn-abort"):
            self._need_transactions().abort(self._limit(timeout))

    # Called by the accumulator

    def _send_slowly(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int | None,
        headers: Headers | None,
        on_delivery: OnDelivery | None,
    ) -> DeliveryFuture:
        """Sends a record that `send` cannot add to a batch at once: values to serialize, a new topic, or no memory
        left.

        Blocks while the topic's metadata are unknown or no memory is left. Returns the future of the record's delivery.
        """
        self._takes_encoded_records()
        if self._interceptors:
            topic, value, key = self._interceptors.transform("on_send", topic, value, key)
            headers, own_callbacks = self._interceptors.transform_headers(topic, headers)
            on_delivery = self._with_interceptors(on_delivery, own_callbacks)
        key_bytes = key if self._key_serializer is None else self._key_serializer(topic, key)
        value_bytes = value if self._value_serializer is None else self._value_serializer(topic, value)
        topic_queues = self._queues_of(topic)
        queue = self._queue_of(topic_queues, partition, key, key_bytes, value)
        timestamp_ms = -1 if timestamp is None else timestamp
        if timestamp is not None and timestamp < 0:
            raise ValueError(f"Invalid timestamp: {timestamp}. Timestamp should always be non-negative or null.")
        future = self.append(queue, timestamp_ms, key_bytes, value_bytes, headers, on_delivery)
        if future is None:
            future = self._wait_for_memory(
                lambda: self.append(queue, timestamp_ms, key_bytes, value_bytes, headers, on_delivery)
            )
        topic_queues.count(future)
        return future

    def _takes_encoded_records(self) -> bool:
        """Returns True if the producer has no serializers, partitioner and interceptors, so that encoded records can be
        added to batches directly.

        Raises ClientClosed after `close`, and for a transactional producer the error with which the transaction has
        failed, or TransactionError if none is open.
        """
        if self._is_closed:
            raise ClientClosed("Cannot perform operation after producer has been closed")
        if self._transactions is not None:
            self._transactions.check_open()
        return self._is_plain

    def _add_partitions(self, topic: str) -> None:
        """Adds queues for the partitions that the topic has now according to the metadata. Does not block."""
        info = self._network.cluster.topics.get(topic)
        if info is not None:
            self.add_topic(topic, len(info.partitions))

    def _choose_sticky(self, topic_queues: TopicQueues) -> None:
        """Chooses the partition for the next records without a key, until they have filled about one batch."""
        if len(topic_queues.queues) == 1:
            topic_queues.sticky = topic_queues.sticky_bytes = 0
            return
        info = self._network.cluster.topics.get(topic_queues.topic)
        partitions = () if info is None else info.partitions[: len(topic_queues.queues)]
        available = [each.partition for each in partitions if each.leader != NO_LEADER]
        waiting = [topic_queues.queues[number].batch_count for number in available]
        adaptive = self._config["partitioner.adaptive.partitioning.enable"]
        topic_queues.sticky = choose_sticky_partition(waiting, available, len(topic_queues.queues), adaptive=adaptive)
        topic_queues.sticky_bytes = 0

    def _on_batch_closed(self) -> None:
        """Runs a step (pass of the network loop) after a batch was filled, unless another thread holds the network's
        lock.

        While requests are in flight, runs a step only after every n-th batch; n batches have about STEP_BYTES. More
        steps are not needed then, because the network loop also runs a step when a response arrives.
        """
        if self.closed_batches % self._batches_per_step == 0 or not self._sender.in_flight:
            self._network.try_step()

    def _on_queue_opened(self) -> None:
        """Ensures that the network loop makes a step (pass) after linger.ms; called when a partition gets its first
        waiting record.
        """
        self._network.wake_for(self._network.clock.monotonic_ms() + self._linger_ms)

    def _wait_for_batch(self, batch: ProducerBatch, timeout: float | None) -> None:
        """Blocks until a batch is delivered or has failed; raises RequestTimedOut after `timeout` seconds."""
        if not self._network.wait_until(lambda: batch.is_done, timeout):
            if batch.is_done:
                return
            raise RequestTimedOut(f"No acknowledgement within {timeout} s")

    # Internal

    def _need_transactions(self) -> Transactions:
        if self._transactions is None:
            raise TransactionError(
                "Cannot use transactional methods without enabling transactions by setting the transactional.id "
                "configuration property"
            )
        return self._transactions

    def _limit(self, timeout: float | None) -> float:
        return self._max_block_ms / 1000 if timeout is None else timeout

    def _abort_open_transaction(self, timeout: float | None) -> None:
        if self._transactions is not None and self._transactions.can_abort:
            try:
                self._transactions.abort(5.0 if timeout is None else timeout)
            except ApiError as error:
                log.warning("The open transaction could not be aborted: %s", error)

    def _on_batch_finished(self, batch: ProducerBatch) -> None:
        for future in batch.take_callbacks():
            try:
                future.notify()
            except Exception:
                log.exception("A delivery callback failed")

    def _with_interceptors(self, on_delivery: OnDelivery | None, own_callbacks: list[OnDelivery]) -> OnDelivery:
        def notify(metadata: Any, error: BaseException | None) -> None:
            self._interceptors.notify("on_acknowledgement", metadata, error)
            for each in own_callbacks:
                each(metadata, error)
            if on_delivery is not None:
                on_delivery(metadata, error)

        return notify

    def _queues_of(self, topic: str) -> TopicQueues:
        """Returns the queues of a topic's partitions; blocks until the topic's metadata are known."""
        known = self.topics.get(topic)
        info = self._network.cluster.topics.get(topic)
        if known is not None and info is not None and len(info.partitions) <= len(known.queues):
            return known
        if info is None:
            self._await_topic(topic)
            info = self._network.cluster.topics[topic]
        return self.add_topic(topic, len(info.partitions))

    def _await_topic(self, topic: str) -> None:
        network = self._network
        with network.lock:
            network.metadata.add_topic(topic)
            network.metadata.request_update()
            seen = network.metadata.updates

        def is_known() -> bool:
            error = network.cluster.errors.get(topic)
            # An earlier error may be out of date: the topic may have been created, or a permission granted.
            if error is not None and not error.retriable and network.metadata.updates > seen:
                raise ApiError(error, f"Topic {topic}: {error.message}")
            return topic in network.cluster.topics

        network.wake_for(0)
        with network.metrics.time_totals.spent_in("metadata-wait"):
            is_in_time = network.wait_until(is_known, self._max_block_ms / 1000)
        if not is_in_time:
            error = network.cluster.errors.get(topic)
            reason = f" ({error.name})" if error is not None else ""
            raise network.timed_out(f"Topic {topic} not present in metadata after {self._max_block_ms} ms.{reason}")

    def _queue_of(
        self, topic_queues: TopicQueues, partition: int | None, key: Any, key_bytes: Any, value: Any
    ) -> PartitionQueue:
        count = len(topic_queues.queues)
        if partition is None and self._partitioner is not None:
            partition = self._partitioner.partition(topic_queues.topic, key, key_bytes, value, count)
        if partition is None:
            partition = self.partition_of(topic_queues, key_bytes)
        if not 0 <= partition < count:
            raise ValueError(f"Topic {topic_queues.topic} has no partition {partition}: it has {count} partitions")
        return topic_queues.queues[partition]

    def _wait_for_memory(self, attempt: Callable[[], T | None]) -> T:
        """Calls `attempt`, with `Network.lock` held, until its result is not None, and returns the result. Blocks.

        `attempt` adds records, for which `buffer.memory` had no room. Raises RequestTimedOut after `max.block.ms`.
        """
        found: list[T] = []

        def is_done() -> bool:
            result = attempt()
            if result is not None:
                found.append(result)
            return result is not None

        began_ns = time.monotonic_ns()
        with self._network.lock:
            self._sender.out_of_memory += 1
        try:
            if not self._network.wait_until(is_done, self._max_block_ms / 1000):
                with self._network.lock:
                    self._network.metrics.memory_failures.add(1)
                raise RequestTimedOut(
                    f"Failed to allocate {self.batch_size} bytes within the configured max blocking time "
                    f"{self._max_block_ms} ms. Total memory: {self.memory_limit} bytes. Available memory: "
                    f"{self.memory_limit - self.memory_used} bytes."
                )
        finally:
            with self._network.lock:
                self._sender.out_of_memory -= 1
                self._network.metrics.memory_waits.add(time.monotonic_ns() - began_ns)
        return found[0]


def _level(config: ClientConfig, codec: str) -> int | None:
    return config[f"compression.{codec}.level"] if codec in ("gzip", "lz4", "zstd") else None


def _find_partitioner(configured: Any) -> Any:
    if isinstance(configured, str) and configured in JAVA_PARTITIONERS:
        configured = JAVA_PARTITIONERS[configured]
    if configured is None:
        return None
    found = load_object("partitioner.class", configured) if isinstance(configured, str) else configured
    if isinstance(found, type):
        found = found()
    if not hasattr(found, "partition"):
        raise ConfigError(f"Invalid value {configured} for configuration partitioner.class: it has no method partition")
    return found
