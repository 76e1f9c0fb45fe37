"""Producer of confluent-kafka, on kafkapy's producer."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from random import randrange
from typing import Any, Self
from zlib import crc32

from kafkapy._core.client.record_accumulator import ProducerBatch, RecordMetadata
from kafkapy.client.errors import ClientClosed, RequestTimedOut, TransactionAborted, TransactionError
from kafkapy.client.producer import Producer as KafkapyProducer
from kafkapy.compat.confluent_kafka._client import Client, error_of, seconds, time_left
from kafkapy.compat.confluent_kafka._config import PRODUCER, Settings, invalid
from kafkapy.compat.confluent_kafka._errors import (
    MSG_TIMED_OUT,
    KafkaError,
    KafkaException,
    code_of,
    kafka_exception,
    local_error,
    transaction_exception,
)
from kafkapy.compat.confluent_kafka._group_metadata import group_metadata_of
from kafkapy.compat.confluent_kafka._hashing import PARTITIONERS
from kafkapy.compat.confluent_kafka._offsets import to_commit
from kafkapy.compat.confluent_kafka._records import Headers, Message, TopicPartition, _Fields
from kafkapy.compat.confluent_kafka._statistics import producer_statistics
from kafkapy.errors import ApiError, ConfigError, Error, KafkapyError

OnDelivery = Callable[[KafkaError | None, Message], object]

_DEFAULT_PARTITIONER = "consistent_random"
_NOT_TRANSACTIONAL = "The Transactional API requires transactional.id to be configured"
_NOT_NOW = "Unable to produce message: Local: Erroneous state"
_NEVER_AGAIN = "Unable to produce message: Local: Fatal error"
_TOO_LARGE = KafkaError(10, "Unable to produce message: Broker: Message size too large")


class _Purged(KafkapyError):
    """The error of a record that `Producer.purge` has removed.

    Its message is the name of librdkafka's error, such as `_PURGE_QUEUE`.
    """


_FROM_QUEUE, _FROM_FLIGHT = _Purged("_PURGE_QUEUE"), _Purged("_PURGE_INFLIGHT")


class _Report(_Fields):
    """The delivery report of a record; kafkapy's producer calls it with (metadata, error) when the record is finished.

    The report then calls the program's callback with a Message, whose content is the report's attributes.
    """

    __slots__ = ("_callback", "_only_errors", "_producer")

    def __init__(
        self, producer: Producer, callback: OnDelivery, topic: str, key: Any, value: Any, headers: Any, partition: int
    ) -> None:
        self._producer, self._callback = producer, callback
        self.topic, self.key, self.value, self.headers = topic, key, value, headers
        self.partition = partition
        self.leader_epoch = self.delivery_count = None

    def __call__(self, metadata: RecordMetadata | None, error: BaseException | None) -> None:
        producer = self._producer
        if metadata is not None:
            if producer._only_errors:
                return
            self.partition, self.offset, self.timestamp = metadata.partition, metadata.offset, metadata.timestamp
            self.timestamp_type = producer._timestamp_type
        else:
            self.partition, self.offset, self.timestamp, self.timestamp_type = producer._partition, None, 0, -1
        if self.key.__class__ is str:
            self.key = self.key.encode()
        if self.value.__class__ is str:
            self.value = self.value.encode()
        if self.headers.__class__ is dict:
            self.headers = tuple(self.headers.items())
        message = Message.__new__(Message)
        message._record = self
        message._error = None if error is None else _delivery_error(error)
        message._latency = producer._latency_s
        self._callback(message._error, message)


def _delivery_error(error: BaseException) -> KafkaError:
    if isinstance(error, _Purged):
        return KafkaError(code_of(str(error)))
    if isinstance(error, TransactionAborted):
        return KafkaError(code_of("_PURGE_QUEUE"))
    if isinstance(error, RequestTimedOut):
        return KafkaError(MSG_TIMED_OUT)
    return error_of(error)


class _InnerProducer(KafkapyProducer):
    """A producer of kafkapy that puts each finished batch into `finished` and does not call delivery callbacks itself.

    The thread that calls `Producer.poll` or `flush` takes the batches from `finished` and calls the callbacks.
    """

    def __init__(self, properties: dict[str, Any]) -> None:
        # (futures with a callback, number of records, seconds from the first record to the end) of finished batches
        self.finished: deque[tuple[Any, int, ProducerBatch, float]] = deque()
        self.finished_records = 0
        # (topic, partition) -> records and bytes of the batches that have ended
        self.sent_to: dict[tuple[str, int], tuple[int, int]] = {}
        super().__init__(properties)

    def _on_batch_finished(self, batch: ProducerBatch) -> None:
        futures = list(batch.take_callbacks())
        # Another thread may add to this number too. The sum has no call, so that no thread switch occurs within it.
        unreported = batch.record_count - len(futures)
        self.finished_records += unreported
        place = batch.queue.topic, batch.queue.partition
        records, size = self.sent_to.get(place, (0, 0))
        self.sent_to[place] = records + batch.record_count, size + batch.size_estimate
        if futures:
            latency_s = (self._network.clock.monotonic_ms() - batch.created_ms) / 1000
            self.finished.append((futures, len(futures), batch, latency_s))

    def state_after(self, error: BaseException) -> str | None:
        """Returns the name of the error that `produce` reports after `error`: "_STATE", "_FATAL" or None.

        The name is "_STATE" if `error` has made the transaction fail and the transaction can be aborted, and "_FATAL"
        if `error` has made the producer unusable. It is None if `error` has done neither.
        """
        if self._transactions is None or self._transactions.failure is not error:
            return None
        return "_STATE" if self._transactions.can_abort else "_FATAL"

    def start_flushing(self) -> None:
        """Sends all batches without lingering, until `stop_flushing` is called. Used for the duration of a flush."""
        with self._network.lock:
            self._sender.flushing += 1
        self._network.wake_for(0)

    def stop_flushing(self) -> None:
        """Lets batches linger again, after a call of `start_flushing`."""
        with self._network.lock:
            self._sender.flushing -= 1

    def purge(self, *, queued: bool, in_flight: bool) -> None:
        """Fails the records that were not sent yet if `queued` is True, and the records of unanswered requests if
        `in_flight` is True.
        """
        with self._network.lock:
            if in_flight:
                self._sender.fail_in_flight(_FROM_FLIGHT)
            if queued:
                self._sender.fail_all(_FROM_QUEUE)


class Producer(Client):
    """Sends records without waiting for their delivery; `poll` and `flush` call the delivery callbacks.

    `Producer(config)`; the keys are librdkafka's. Thread-safe. Raises KafkaException for an invalid configuration.
    """

    _closed_message = "Producer has been closed"

    def __init__(self, *args: Any, **config: Any) -> None:
        conf = args[0] if args else config.pop("config", None)
        settings = Settings(PRODUCER, conf, config)
        properties = settings.properties()
        try:
            client = _InnerProducer(properties)
        except ConfigError as error:
            raise invalid(f"Failed to create producer: {error}") from error
        except KafkapyError as error:
            raise kafka_exception(error, "Failed to create producer: ") from error
        self._client = client
        self._start(settings, client._network)
        self._on_delivery: OnDelivery | None = settings.callbacks.get("on_delivery")
        self._only_errors: bool = settings["delivery.report.only.error"]
        self._most_records: int = settings["queue.buffering.max.messages"] or 2**62
        self._most_bytes: int = settings["queue.buffering.max.kbytes"] * 1024
        self._largest: int = settings["message.max.bytes"]
        name = settings["partitioner"]
        self._hashes_by_crc32 = name == _DEFAULT_PARTITIONER
        self._partitioner = PARTITIONERS[name]
        self._timeout_s: float = (settings["message.timeout.ms"] or 2**31) / 1000
        # Records for topics whose partitions are not known yet, with a thread for each topic that looks them up.
        self._unknown: dict[str, deque[tuple[Any, ...]]] = {}
        self._unknown_lock = threading.Lock()
        self._unknown_count = 0
        self._unknown_bytes = 0
        self._failed: deque[tuple[_Report, BaseException]] = deque()
        # Of the batch whose callbacks are being called.
        self._partition = -1
        self._timestamp_type = 0  # 1: the broker has set the timestamps
        self._latency_s: float | None = None
        self._served_records = 0
        self._serving = threading.RLock()

    # Records

    def produce(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int = -1,
        callback: OnDelivery | None = None,
        on_delivery: OnDelivery | None = None,
        timestamp: int = 0,
        headers: Headers | None = None,
    ) -> None:
        """Adds a record to be sent. Does not block.

        `value` and `key` are bytes, str or None; `partition` is -1 for the partitioner's choice; `timestamp` is in ms
        since 1970, 0 for now. `on_delivery(error, message)` is called by a later `poll` or `flush`. Raises BufferError
        if the queue is full, and KafkaException for a record that is too large or an unknown partition.
        """
        client = self._client
        if client.records_appended - client.finished_records + self._unknown_count >= self._most_records or (
            client.memory_used >= self._most_bytes
        ):
            raise BufferError("Local: Queue full")
        wanted = on_delivery or callback or self._on_delivery
        report = None if wanted is None else _Report(self, wanted, topic, key, value, headers, partition)
        queues = client.topics.get(topic)
        if queues is None or self._unknown or headers is not None:
            self._produce_slowly(topic, value, key, partition, timestamp, headers, report)
            return
        chosen: int | None = partition
        if partition < 0:
            if key is None and self._hashes_by_crc32:
                chosen = None
            elif self._hashes_by_crc32 and key.__class__ is bytes and key:
                chosen = crc32(key) % len(queues.queues)
            else:
                chosen = self._choose(key, len(queues.queues))
        try:
            client.send(topic, value, key, partition=chosen, timestamp=timestamp or None, on_delivery=report)
        except Exception as error:
            raise self._refusal(error) from error

    def produce_batch(
        self,
        topic: str,
        messages: list[dict[str, Any]],
        partition: int = -1,
        callback: OnDelivery | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> int:
        """Adds several records of one topic; returns the number of added records.

        Each element of `messages` is a dictionary with some of the keys value, key, partition, timestamp and
        callback. If the record cannot be added, its dictionary gets the item `_error`, a KafkaError.
        """
        self._check_open()
        if not isinstance(messages, list):
            raise TypeError("messages must be a list")
        wanted = on_delivery or callback or self._on_delivery
        if wanted is None and partition < 0 and self._send_values(topic, messages):
            return len(messages)
        for index, each in enumerate(messages):
            if not isinstance(each, dict):
                raise TypeError(f"Message at index {index} must be a dict")
            for name in ("value", "key"):
                if not isinstance(each.get(name), bytes | str | None):
                    raise TypeError(f"Message {name} at index {index} must be bytes or str")
        added = 0
        for each in messages:
            try:
                self.produce(
                    topic,
                    each.get("value"),
                    each.get("key"),
                    each.get("partition", partition),
                    on_delivery=each.get("callback") or wanted,
                    timestamp=each.get("timestamp", 0),
                )
                added += 1
            except BufferError:
                each["_error"] = KafkaError(code_of("_QUEUE_FULL"))
            except KafkaException as error:
                each["_error"] = error.args[0]
        return added

    def _send_values(self, topic: str, messages: list[dict[str, Any]]) -> bool:
        """Adds records that have only a value in bytes, all at once and without keeping a report of each.

        Returns False, and adds none, if a record has another field or a large value, if the topic's partitions are not
        known yet, if the records do not all fit into the queue, or if the producer accepts none now, for example
        outside of a transaction.
        """
        client = self._client
        if topic not in client.topics or self._unknown or not client.takes_plain_records:
            return False
        values = [each["value"] for each in messages if each.__class__ is dict and len(each) == 1 and "value" in each]
        sizes = [len(each) for each in values if each.__class__ is bytes]
        if len(sizes) != len(messages) or max(sizes, default=0) > self._largest // 2:
            return False
        if client.records_appended - client.finished_records + len(sizes) > self._most_records or (
            client.memory_used + sum(sizes) >= self._most_bytes
        ):
            return False
        try:
            client.send_many(topic, values)
        except Exception as error:
            raise self._refusal(error) from error
        return True

    def _produce_slowly(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int,
        timestamp: int,
        headers: Headers | None,
        report: Any,
    ) -> None:
        """Adds a record by the slower, general path: the record may have headers, and its topic's partitions may not be
        known.

        A record of an unknown topic waits until the partitions have been looked up. `report(metadata, error)` is called
        with the outcome; `report` is None if the program wants no report.
        """
        self._check_open()
        if not isinstance(topic, str):
            raise TypeError(f"argument 1 must be str, not {type(topic).__name__}")
        for content in (value, key):
            if content is not None and not isinstance(content, bytes | str | memoryview | bytearray):
                raise TypeError(f"a bytes-like object is required, not {type(content).__name__!r}")
        if not isinstance(timestamp, int):
            raise TypeError(f"{type(timestamp).__name__!r} object cannot be interpreted as an integer")
        _check_headers(headers)
        # The program may change a buffer while its record waits, and `len` of a memoryview does not count bytes.
        value, key = (bytes(each) if isinstance(each, bytearray | memoryview) else each for each in (value, key))
        size = len(value or b"") + len(key or b"")
        if size > self._largest:
            raise KafkaException(_TOO_LARGE)
        record = (value, key, partition, timestamp, headers, report)
        with self._unknown_lock:
            waiting = self._unknown.get(topic)
            if waiting is not None or topic not in self._client.topics:
                if self._client.memory_used + self._unknown_bytes + size > self._most_bytes:
                    raise BufferError("Local: Queue full")
                if waiting is None:
                    waiting = self._unknown[topic] = deque()
                    threading.Thread(target=self._look_up, args=(topic,), name="kafkapy-topic", daemon=True).start()
                waiting.append(record)
                self._unknown_count += 1
                self._unknown_bytes += size
                return
        self._send(topic, *record)

    def _send(
        self, topic: str, value: Any, key: Any, partition: int, timestamp: int, headers: Any, report: Any
    ) -> None:
        """Passes a record of a topic with known partitions to kafkapy's producer.

        `report(metadata, error)` is called with the outcome; `report` is None if the program wants no report. Raises
        BufferError if the queue is full, and KafkaException if the producer refuses the record.
        """
        client = self._client
        chosen = partition if partition >= 0 else self._choose(key, len(client.topics[topic].queues))
        try:
            client.send(
                topic,
                value,
                key,
                partition=chosen,
                timestamp=timestamp or None,
                headers=headers,
                on_delivery=report,
            )
        except Exception as error:
            raise self._refusal(error) from error

    def _choose(self, key: Any, partition_count: int) -> int | None:
        encoded = key.encode() if isinstance(key, str) else None if key is None else bytes(key)
        chosen = self._partitioner(encoded, partition_count)
        return randrange(partition_count) if chosen is None and encoded is not None else chosen

    def _refusal(self, error: Exception) -> Exception:
        """Returns the exception that `produce` raises when kafkapy's producer has raised `error` for a record."""
        if isinstance(error, ClientClosed):
            return RuntimeError(self._closed_message)
        state = self._client.state_after(error)
        if state is not None:
            return local_error(state, _NOT_NOW if state == "_STATE" else _NEVER_AGAIN)
        if isinstance(error, ApiError) and error.error is Error.MESSAGE_TOO_LARGE:
            return KafkaException(_TOO_LARGE)
        if isinstance(error, RequestTimedOut):
            return BufferError("Local: Queue full")
        if isinstance(error, TransactionError):
            return local_error("_STATE", _NOT_NOW)
        if isinstance(error, KafkapyError):
            return kafka_exception(error, "Unable to produce message: ")
        if isinstance(error, ValueError):
            return local_error("_UNKNOWN_PARTITION", "Unable to produce message: Local: Unknown partition")
        return error

    def _look_up(self, topic: str) -> None:
        """Looks up the partitions of a topic and sends the records that wait for them; runs on a thread of its own.

        If the partitions are not found, the records fail.
        """
        client = self._client
        end_s = time.monotonic() + self._timeout_s
        failure: BaseException | None = None
        while True:
            try:
                client.partitions_for(topic)
                failure = None
            except RequestTimedOut as error:
                failure = error
                if client._network.metadata.updates:
                    failure = KafkaException(KafkaError(code_of("_UNKNOWN_TOPIC")))
                elif time.monotonic() < end_s and not self._is_closed:
                    continue
            except Exception as error:
                failure = error
            break
        with self._unknown_lock:
            records = self._unknown[topic]
            if failure is None:
                for record in records:
                    try:
                        self._send(topic, *record)
                    except Exception as error:
                        self._failed.append((record[-1], error))
            else:
                self._failed.extend((record[-1], failure) for record in records)
            self._forget_unknown(records)
            del self._unknown[topic]  # last, so that no record of the topic overtakes these
        client._network.wake_waiters()

    # Delivery reports

    def _serve_reports(self) -> int:
        """Calls the callbacks of the records whose outcome is known; returns their number.

        If a callback raises an exception, the next call calls the callbacks after it.
        """
        served = 0
        finished, failed = self._client.finished, self._failed
        if not finished and not failed:
            return 0
        with self._serving:
            while finished:
                futures, count, batch, latency_s = finished.popleft()
                self._latency_s = latency_s
                self._partition = batch.queue.partition
                self._timestamp_type = 0 if batch.log_append_time < 0 else 1
                self._client.finished_records += count
                before = served
                try:
                    for future in futures:
                        served += 1
                        future.notify()
                except BaseException:
                    rest = futures[served - before :]
                    if rest:
                        finished.appendleft((rest, len(rest), batch, latency_s))
                        uncalled = len(rest)
                        self._client.finished_records -= uncalled
                    raise
            while failed:
                report, error = failed.popleft()
                if report is not None:
                    served += 1
                    # The partition that the program has chosen, or -1.
                    self._partition = -1 if report.partition is None else report.partition
                    report(None, error)
        return served

    def _has_reports(self) -> bool:
        return bool(self._client.finished or self._failed)

    def poll(self, timeout: float = -1) -> int:
        """Calls the callbacks of delivered records and other events; returns their number.

        Blocks until a callback can be called, for at most `timeout` seconds (-1: without a limit).
        """
        limit_s = seconds(timeout)
        self._check_open()
        served = self._callbacks.serve() + self._serve_reports()
        if served or limit_s == 0:
            if not served:
                self._client._network.try_step()
            return served
        self._wait(lambda: self._has_reports() or bool(self._callbacks.waiting), limit_s)
        return self._callbacks.serve() + self._serve_reports()

    def flush(self, timeout: float = -1) -> int:
        """Sends all records without delay, waits for their delivery, and calls the callbacks.

        Blocks for at most `timeout` seconds (-1: without a limit). Returns the number of records that are not delivered
        by then. If delivery callbacks raise exceptions, raises the first of them at the end instead.
        """
        limit_s = seconds(timeout)
        self._check_open()
        end_s = None if limit_s is None else time.monotonic() + limit_s
        failure: Exception | None = None
        self._client.start_flushing()
        try:
            while True:
                try:
                    self._serve_reports()
                except Exception as error:
                    failure = failure or error
                    continue
                self._callbacks.serve()
                left_s = None if end_s is None else end_s - time.monotonic()
                if not len(self) or (left_s is not None and left_s <= 0):
                    break
                self._wait(lambda: self._has_reports() or not len(self), left_s)
        finally:
            self._client.stop_flushing()
        if failure is not None:
            raise failure
        return len(self)

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Fails the records that have not been sent yet with `_PURGE_QUEUE`, those in flight with `_PURGE_INFLIGHT`.

        A record in flight may have been written. `blocking` has no effect: the records have always failed when the call
        returns.
        """
        self._check_open()
        if in_queue:
            self._purge_unknown()
        self._client.purge(queued=in_queue, in_flight=in_flight)

    def _purge_unknown(self) -> None:
        """Fails, with `_PURGE_QUEUE`, the records that wait until the partitions of their topic are known."""
        with self._unknown_lock:
            for records in self._unknown.values():
                self._failed.extend((record[-1], _FROM_QUEUE) for record in records)
                self._forget_unknown(records)
                records.clear()

    def _forget_unknown(self, records: deque[tuple[Any, ...]]) -> None:
        """Subtracts waiting records from the numbers of records and bytes that wait; called with `_unknown_lock`."""
        self._unknown_count -= len(records)
        self._unknown_bytes -= sum(len(value or b"") + len(key or b"") for value, key, *_ in records)

    def __len__(self) -> int:
        client = self._client
        return client.records_appended - client.finished_records + self._unknown_count + len(self._failed)

    def __bool__(self) -> bool:
        return True

    # Transactions

    def init_transactions(self, timeout: float = -1) -> None:
        """Takes over the transactional id: a producer that used it before is fenced. Blocks.

        The other transactional methods raise KafkaException until a call has succeeded.
        """
        self._transact(lambda: self._client.init_transactions(seconds(timeout)))

    def begin_transaction(self) -> None:
        """Begins a transaction, which contains the records that are produced from now on."""
        self._transact(self._client.begin_transaction)

    def send_offsets_to_transaction(
        self, positions: list[TopicPartition], group_metadata: bytes, timeout: float = -1
    ) -> None:
        """Commits offsets of a consumer as part of the transaction. Blocks.

        `group_metadata` is the result of `Consumer.consumer_group_metadata`.
        """
        offsets = to_commit(None, positions)
        group = group_metadata_of(group_metadata)
        self._transact(lambda: self._client.send_offsets_to_transaction(offsets, group, seconds(timeout)))

    def commit_transaction(self, timeout: float = -1) -> None:
        """Sends the remaining records, calls their callbacks, and commits the transaction.

        Blocks for at most `timeout` seconds. If `timeout` is -1, the wait for the records has no limit, and the commit
        has the default limit of kafkapy's producer.
        """
        self._need_transactions()
        limit_s, left_s = seconds(timeout), time_left(timeout)
        self.flush(timeout)
        self._transact(lambda: self._client.commit_transaction(None if limit_s is None else left_s()))

    def abort_transaction(self, timeout: float = -1) -> None:
        """Aborts the transaction; records that were not sent fail with `_PURGE_QUEUE`. Blocks."""
        self._need_transactions()
        self._purge_unknown()
        self._transact(lambda: self._client.abort_transaction(seconds(timeout)))
        self._serve_reports()

    def _need_transactions(self) -> None:
        self._check_open()
        if self._settings["transactional.id"] is None:
            raise local_error("_NOT_CONFIGURED", _NOT_TRANSACTIONAL)

    def _transact(self, call: Callable[[], object]) -> None:
        self._need_transactions()
        try:
            call()
        except KafkapyError as error:
            raise transaction_exception(error) from error
        finally:
            self._serve_reports()

    # The end

    def close(self) -> bool:
        """Delivers the remaining records and closes the connections; returns True. May be called again."""
        if self._is_closed:
            return True
        self.flush()
        self._is_closed = True
        self._client.close()
        self._serve_reports()
        self._close_admin()
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, exc_traceback: Any) -> bool | None:
        self.close()
        return None

    def _statistics(self) -> str:
        return producer_statistics(self._settings, self._client, len(self))


def _check_headers(headers: Any) -> None:
    if headers is None:
        return
    if not isinstance(headers, dict | list):
        raise TypeError(f"expected headers to be dict or list of (key, value) tuples, not {type(headers).__name__}")
    for pair in headers.items() if isinstance(headers, dict) else headers:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError("Headers are expected to be a tuple of (key, value)")
        if not isinstance(pair[1], bytes | str | None):
            kind = type(pair[1]).__name__
            raise TypeError(f"expected header value to be None, binary, or unicode string, not {kind}")
