"""ShareConsumer of confluent-kafka, on kafkapy's share consumer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from kafkapy._core.client.fetched_records import ConsumerRecord, record_views
from kafkapy.client.acknowledgements import AcknowledgeType as KafkapyAcknowledgeType
from kafkapy.client.errors import AcknowledgementError, NotSubscribed, RequestTimedOut, UnreadableRecords
from kafkapy.client.share_consumer import ShareConsumer as KafkapyShareConsumer
from kafkapy.compat.confluent_kafka._client import LONGEST_SLICE_S, Client, seconds
from kafkapy.compat.confluent_kafka._config import CONSUMER, Settings, invalid
from kafkapy.compat.confluent_kafka._errors import (
    ConcurrentModificationException,
    IllegalStateException,
    KafkaException,
    kafka_error,
    kafka_exception,
)
from kafkapy.compat.confluent_kafka._model import AcknowledgeType
from kafkapy.compat.confluent_kafka._records import Message, Messages, TopicPartition, error_message
from kafkapy.compat.confluent_kafka._statistics import consumer_statistics
from kafkapy.errors import ConfigError, KafkapyError
from kafkapy.types import TopicPartition as Place

OnAcknowledged = Callable[[dict[TopicPartition, set[int]], KafkaException | None], object]

# The keys of an ordinary consumer, which a share consumer does not have.
_NOT_FOR_SHARE_GROUPS = (
    "allow.auto.create.topics",
    "auto.offset.reset",
    "enable.auto.commit",
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "heartbeat.interval.ms",
    "isolation.level",
    "partition.assignment.strategy",
    "session.timeout.ms",
)


class ShareConsumer(Client):
    """Reads records of topics as a member of a share group. Members of share groups acknowledge record by record.

    `ShareConsumer(config)`; the keys are librdkafka's. A call while another thread is in a call raises
    ConcurrentModificationException. Every method of a closed consumer except `close` raises IllegalStateException.
    """

    _closed_message = "Share consumer closed"

    def __init__(self, *args: Any, **config: Any) -> None:
        conf = args[0] if args else config.pop("config", None)
        settings = Settings(CONSUMER, conf, config)
        if settings["group.id"] is None:
            raise ValueError("Failed to create share consumer: group.id must be set")
        refused = [key for key in _NOT_FOR_SHARE_GROUPS if settings.is_set(key)]
        if refused:
            raise invalid(f"Failed to create share consumer: {refused[0]} is not supported for share consumers")
        properties = settings.properties()
        for key in _NOT_FOR_SHARE_GROUPS:
            properties.pop(key, None)
        try:
            client = KafkapyShareConsumer(properties)
        except ConfigError as error:
            raise invalid(f"Failed to create share consumer: {error}") from error
        except KafkapyError as error:
            raise kafka_exception(error, "Failed to create share consumer: ") from error
        self._client = client
        self._start(settings, client._network)
        self._using = threading.Lock()
        self._user = 0
        # The records of the last poll, by topic, partition and offset.
        self._polled: dict[tuple[str, int, int], ConsumerRecord] = {}

    @contextmanager
    def _used(self) -> Iterator[None]:
        """Returns the context manager that encloses each call, so that only one thread at a time is in the consumer.

        Raises ConcurrentModificationException while another thread is in a call, and IllegalStateException if the
        consumer is closed. Within the context, kafkapy's exceptions become confluent-kafka's.
        """
        if self._is_closed:
            raise IllegalStateException(self._closed_message)
        me = threading.get_ident()
        if self._user == me:
            yield  # a callback of this consumer
            return
        if not self._using.acquire(blocking=False):
            raise ConcurrentModificationException("Share consumer is not safe for multi-threaded access")
        self._user = me
        try:
            yield
        except (AcknowledgementError, NotSubscribed) as error:
            raise IllegalStateException(str(error)) from error
        except KafkapyError as error:
            raise kafka_exception(error) from error
        finally:
            self._user = 0
            self._using.release()

    def subscribe(self, topics: list[str]) -> None:
        """Subscribes to topics by their names, instead of the previous subscription."""
        with self._used():
            if not isinstance(topics, list) or not all(isinstance(each, str) for each in topics):
                raise TypeError("expected list of topic unicode strings")
            if not topics or "" in topics:
                raise invalid("Failed to subscribe: Local: Invalid argument or configuration")
            self._client.subscribe(topics)

    def unsubscribe(self) -> None:
        """Leaves the group and drops the subscription. Blocks."""
        with self._used():
            self._client.unsubscribe()

    def subscription(self) -> list[str]:
        """Returns the subscribed topics."""
        with self._used():
            return sorted(self._client.subscription())

    def poll(self, timeout: float = -1) -> Messages:
        """Returns the next messages, or no message after `timeout` seconds (-1: without a limit). Blocks.

        With `share.acknowledgement.mode=implicit`, the call also accepts the messages of the last poll. With
        `explicit`, it raises IllegalStateException while a message of the last poll is not acknowledged. Raises
        IllegalStateException, too, without a subscription.
        """
        limit_s = seconds(timeout)
        with self._used():
            records: list[Any] = []
            end_s = self._client._network.clock.monotonic_ms() / 1000 + (limit_s if limit_s is not None else 2**31)
            while True:
                self._callbacks.serve()
                left_s = end_s - self._client._network.clock.monotonic_ms() / 1000
                try:
                    records = self._client.poll(max(min(left_s, LONGEST_SLICE_S), 0))
                except UnreadableRecords as error:
                    return Messages([self._unreadable(error)])
                if records or left_s <= 0:
                    break
            self._polled = {(each.topic, each.partition, each.offset): each for each in records}
            self._callbacks.serve()
            return Messages(record_views(Message, list(records), {}))

    def _unreadable(self, error: UnreadableRecords) -> Message:
        place, (first, _) = error.partition, error.ranges[0]
        return error_message(kafka_error(error), place.topic, place.partition, first)

    def acknowledge(self, message: Message, ack_type: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        """Acknowledges a message of the last poll. Does not block.

        Raises IllegalStateException in implicit mode, and for a message that was not returned by the last poll or whose
        acknowledgement was committed.
        """
        if not isinstance(message, Message):
            raise TypeError("expected Message")
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if topic is None or partition is None or offset is None:
            raise ValueError("message has no topic, partition or offset")
        self.acknowledge_offset(topic, partition, offset, ack_type)

    def acknowledge_offset(
        self, topic: str, partition: int, offset: int, ack_type: AcknowledgeType = AcknowledgeType.ACCEPT
    ) -> None:
        """Acknowledges the message of the last poll at an offset, even if it could not be read. Does not block.

        Raises IllegalStateException in implicit mode, and if the last poll returned no message at this offset or its
        acknowledgement was committed.
        """
        with self._used():
            try:
                kind = KafkapyAcknowledgeType(int(ack_type))
            except ValueError:
                raise ValueError("ack_type must be an AcknowledgeType") from None
            record = self._polled.get((topic, partition, offset))
            if record is not None:
                self._client.acknowledge(record, kind)
            else:
                self._client.acknowledge_offset((topic, partition), offset, kind)

    def commit_sync(self, timeout: float = 60) -> dict[TopicPartition, KafkaException | None]:
        """Sends the acknowledgements and returns the error of each partition, None after a success.

        Blocks until all acknowledgements have results. Raises KafkaException after `timeout` seconds.
        """
        with self._used():
            try:
                results = self._client.commit(seconds(timeout))
            except RequestTimedOut as error:
                raise kafka_exception(error, "Failed to commit: ") from error
            return {
                TopicPartition(place.topic, place.partition): None if error is None else kafka_exception(error)
                for place, error in results.items()
            }

    def commit_async(self) -> None:
        """Sends the acknowledgements without blocking.

        The function that was set by `set_acknowledgement_commit_callback` receives the results.
        """
        with self._used():
            self._client.commit_async()

    def set_acknowledgement_commit_callback(self, callback: OnAcknowledged | None) -> None:
        """Sets the function that is called with the results of sent acknowledgements; None removes it.

        `callback(offsets, error)` receives the acknowledged offsets by TopicPartition, and a KafkaException, or
        None after a success.
        """
        with self._used():
            if callback is not None and not callable(callback):
                raise TypeError("callback must be callable or None")
            if callback is None:
                self._client.set_acknowledgement_commit_callback(None)
                return

            def notify(offsets: dict[Place, frozenset[int]], error: BaseException | None) -> None:
                named = {TopicPartition(place.topic, place.partition): set(each) for place, each in offsets.items()}
                callback(named, None if error is None else kafka_exception(error))

            self._client.set_acknowledgement_commit_callback(notify)

    def close(self) -> None:
        """Sends the acknowledgements, releases all other messages, leaves the group and closes the connections."""
        if self._is_closed:
            return
        with self._used():
            self._client.close()
            self._is_closed = True
        self._callbacks.serve()
        self._close_admin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, exc_traceback: Any) -> bool | None:
        self.close()
        return None

    def _statistics(self) -> str:
        return consumer_statistics(self._settings, self._client)
