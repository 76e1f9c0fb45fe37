"""The producer of Apache Kafka 0.8, synchronous or asynchronous, on kafkapy's Producer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kafkapy.client import producer as client
from kafkapy.client.closing import Closing
from kafkapy.client.serialization import load_object
from kafkapy.compat.kafka08.old_keys import translate
from kafkapy.errors import ApiError, ConfigError, KafkapyError

_KEYS: dict[str, str | None] = {
    "metadata.broker.list": "bootstrap.servers",
    "request.required.acks": "acks",
    "compression.codec": "compression.type",
    "message.send.max.retries": "retries",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    "queue.buffering.max.ms": "linger.ms",
    "zookeeper.connect": None,
    "compressed.topics": None,
}
_OWN_KEYS = frozenset(
    (
        "producer.type",
        "serializer.class",
        "key.serializer.class",
        "partitioner.class",
        "queue.buffering.max.messages",
        "queue.enqueue.timeout.ms",
        "batch.num.messages",
    )
)
# The values of serializer.class that name Java's classes.
_ENCODERS: dict[str, Callable[[Any], Any]] = {
    "kafka.serializer.DefaultEncoder": lambda value: value,
    "kafka.serializer.NullEncoder": lambda value: None,
    "kafka.serializer.StringEncoder": lambda value: None if value is None else value.encode(),
}
_CODECS = {"0": "none", "1": "gzip", "2": "snappy", "3": "lz4"}
_QUEUED_MESSAGES, _QUEUED_MS, _RETRIES = 10_000, 5000, 3
_POLL_S = 0.001


class KeyedMessage(NamedTuple):
    """A message of a topic, and its key.

    `part_key` is the value from which the partitioner chooses a partition; None means the key.
    """

    topic: str
    message: Any
    key: Any = None
    part_key: Any = None


class FailedToSendMessage(KafkapyError):
    """A synchronous producer could not send messages; `__cause__` is the error of the first."""


class QueueFull(KafkapyError):
    """An asynchronous producer had no room for a message, and has dropped it."""


class Producer(Closing):
    """Sends messages: with `producer.type=async` in the background, otherwise before `send` returns. Thread-safe.

    `properties` has the keys of Kafka 0.8's producer, or of today's producer. An asynchronous producer holds
    `queue.buffering.max.messages` at most. If the queue is full, it waits for `queue.enqueue.timeout.ms` (-1: without a
    limit) and then drops the message and raises QueueFull.
    """

    def __init__(self, properties: Mapping[str, Any]) -> None:
        kind = str(properties.get("producer.type", "sync"))
        if kind not in ("sync", "async"):
            raise ConfigError(f"Invalid value {kind} for configuration producer.type: it is sync or async")
        self._is_async = kind == "async"
        self._encode = _encoder("serializer.class", properties.get("serializer.class"))
        self._encode_key = _encoder("key.serializer.class", properties.get("key.serializer.class"), self._encode)
        self._partition = _partitioner(properties.get("partitioner.class"))
        self._limit = int(properties.get("queue.buffering.max.messages", _QUEUED_MESSAGES))
        self._enqueue_ms = int(properties.get("queue.enqueue.timeout.ms", -1))
        self._waiting = 0
        self._lock = threading.Lock()
        self._producer = client.Producer(self._settings(properties))

    def _settings(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        settings = translate({key: value for key, value in properties.items() if key not in _OWN_KEYS}, _KEYS)
        settings.setdefault("linger.ms", _QUEUED_MS if self._is_async else 0)
        settings.setdefault("retries", _RETRIES)
        settings["acks"] = str(settings.get("acks", 0))
        codec = str(settings.get("compression.type", "none"))
        settings["compression.type"] = _CODECS.get(codec, codec)
        settings.setdefault("enable.idempotence", False)
        return settings

    def send(self, *messages: KeyedMessage | Iterable[KeyedMessage]) -> None:
        """Sends messages; an argument is a message or a list of messages.

        A synchronous producer blocks until the messages are acknowledged, and raises FailedToSendMessage if one of them
        is not. An asynchronous one raises QueueFull if its queue has no room.
        """
        wanted = [message for each in messages for message in ([each] if isinstance(each, KeyedMessage) else each)]
        futures = []
        for message in wanted:
            if self._is_async:
                self._enqueue()
            futures.append(self._send(message))
        if not self._is_async:
            self._producer.flush()
            error = next((each.exception() for each in futures if each.exception() is not None), None)
            if error is not None:
                raise FailedToSendMessage(f"Failed to send messages: {error}") from error

    def _send(self, message: KeyedMessage) -> Any:
        key = None if message.key is None else self._encode_key(message.key)
        value = self._encode(message.message)
        chooser = message.key if message.part_key is None else message.part_key
        partition = None
        if self._partition is not None and chooser is not None:
            partition = self._partition(chooser, len(self._producer.partitions_for(message.topic)))
        callback = self._left if self._is_async else None
        try:
            return self._producer.send(message.topic, value, key, partition=partition, on_delivery=callback)
        except ApiError as error:
            self._left(None, error)
            raise FailedToSendMessage(f"Failed to send messages: {error}") from error

    def _enqueue(self) -> None:
        """Counts a message as queued; blocks while the queue is full, for `queue.enqueue.timeout.ms` at most.

        Raises QueueFull after this time.
        """
        end = None if self._enqueue_ms < 0 else time.monotonic() + self._enqueue_ms / 1000
        while True:
            with self._lock:
                if self._waiting < self._limit:
                    self._waiting += 1
                    return
            if end is not None and time.monotonic() >= end:
                raise QueueFull("Event queue is full of unsent messages, could not send event")
            self._producer.flush(_POLL_S)

    def _left(self, metadata: Any, error: BaseException | None) -> None:
        with self._lock:
            self._waiting = max(self._waiting - 1, 0)

    def close(self) -> None:
        """Sends the remaining messages and closes the connections. Blocks."""
        self._producer.close()


def _encoder(key: str, configured: Any, default: Callable[[Any], Any] | None = None) -> Callable[[Any], Any]:
    """Returns the function that encodes messages or keys, which the configuration key `key` selects.

    `configured` is the name of one of Java's encoders, a text `module:name`, the function itself, or None for
    `default`.
    """
    if configured is None:
        return default or _ENCODERS["kafka.serializer.DefaultEncoder"]
    if callable(configured):
        return configured  # type: ignore[no-any-return]
    return _ENCODERS.get(str(configured)) or load_object(key, configured)


def _partitioner(configured: Any) -> Callable[[Any, int], int] | None:
    """Returns the function that chooses the partition: it is called with (key, number of partitions).

    Returns None, so that kafkapy's client chooses, if `configured` is None or one of Java's two default partitioners.
    Otherwise `configured` is a text `module:name`, a class, a function, or an object with a method `partition`.
    """
    if configured is None or configured in ("kafka.producer.DefaultPartitioner", "kafka.producer.ByteArrayPartitioner"):
        return None
    found = load_object("partitioner.class", configured) if isinstance(configured, str) else configured
    if isinstance(found, type):
        found = found()
    return found.partition if hasattr(found, "partition") else found  # type: ignore[no-any-return]
