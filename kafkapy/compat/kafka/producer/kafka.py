"""KafkaProducer with the interface of kafka-python's, on kafkapy's Producer."""

from __future__ import annotations

import atexit
import logging
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kafkapy.client.closing import Closing
from kafkapy.client.coordinator import GroupMetadata, MemberIdentity
from kafkapy.client.coordinator import OffsetAndMetadata as ClientOffset
from kafkapy.client.producer import Producer
from kafkapy.compat.kafka.cluster import ClusterMetadata
from kafkapy.compat.kafka.configuration import COMMON, INFINITE, ClientSettings, client_settings, options
from kafkapy.compat.kafka.connected import await_bootstrap, broker_version, has_connection
from kafkapy.compat.kafka.errors import (
    IllegalStateError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    translate,
    translated,
)
from kafkapy.compat.kafka.metrics import MetricName, grouped, producer_metrics
from kafkapy.compat.kafka.partitioner import DefaultPartitioner, Partitioner, StickyPartitioner
from kafkapy.compat.kafka.producer.future import FailedSend, FutureRecordMetadata
from kafkapy.compat.kafka.serializer import as_serializer
from kafkapy.compat.kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from kafkapy.compat.kafka.topic_names import ensure_valid_topic_name
from kafkapy.errors import ApiError, Error, KafkapyError

log = logging.getLogger("kafkapy.compat.kafka")

_SERIALIZED = (bytes, bytearray, memoryview, type(None))
_CODECS = (None, "gzip", "snappy", "lz4", "zstd")
_MOST_IN_FLIGHT = 5
# Options that are configuration keys of the same name.
_SAME = (
    "transactional_id",
    "transaction_timeout_ms",
    "delivery_timeout_ms",
    "retries",
    "batch_size",
    "linger_ms",
    "max_block_ms",
    "max_request_size",
    "max_in_flight_requests_per_connection",
)


class _Producer(Producer):
    """A Producer of kafkapy that accepts the options of kafka-python that are not configuration keys."""

    def __init__(self, settings: ClientSettings, *, creates_topics: bool) -> None:
        self._environment = settings.environment
        super().__init__(settings.properties)
        self._network.metadata.allow_creation = creates_topics

    @property
    def network(self) -> Any:
        return self._network


class KafkaProducer(Closing):
    """Sends records to topics. Thread-safe.

    The arguments are kafka-python's options. Raises ValueError for unknown ones, KafkaConfigurationError for values
    that cannot be used or honoured, and KafkaTimeoutError if no broker responds within `bootstrap_timeout_ms`.

    `send` adds a record to a batch and returns its future. Callbacks of futures are called by the networking thread or
    by a thread that calls a method of the producer; they must not block.
    """

    DEFAULT_CONFIG: dict[str, Any] = {
        **COMMON,
        "key_serializer": None,
        "value_serializer": None,
        "enable_idempotence": True,
        "transactional_id": None,
        "transaction_timeout_ms": 60000,
        "delivery_timeout_ms": 120000,
        "acks": -1,
        "compression_type": None,
        "retries": INFINITE,
        "batch_size": 16384,
        "linger_ms": 0,
        "partitioner": DefaultPartitioner(),
        "max_block_ms": 60000,
        "max_request_size": 1048576,
        "allow_auto_create_topics": True,
        "ssl_ciphers": None,
        "metrics_enabled": True,
    }
    DEPRECATED_CONFIGS = ()
    # Options that kafka-python had until 2.3, and that are honoured too.
    _OLDER = ("buffer_memory",)
    _numbers = iter(range(1, 1 << 62))

    def __init__(self, **configs: Any) -> None:
        self._closed = True
        unknown = {key: value for key, value in configs.items() if key not in (*self.DEFAULT_CONFIG, *self._OLDER)}
        if unknown:
            raise ValueError(f"Unrecognized configs: {unknown}")
        self.config = options(self.DEFAULT_CONFIG, configs)
        if self.config["client_id"] is None:
            self.config["client_id"] = f"kafka-python-producer-{next(self._numbers)}"
        if self.config["acks"] == "all":
            self.config["acks"] = -1
        if self.config["compression_type"] not in _CODECS:
            raise ValueError(f"Not supported codec: {self.config['compression_type']}")
        self._decide_idempotence(configs)
        self._key_serializer = as_serializer(self.config["key_serializer"])
        self._value_serializer = as_serializer(self.config["value_serializer"])
        with translated():
            self._producer = _Producer(self._settings(), creates_topics=self.config["allow_auto_create_topics"])
        self._send = self._producer.send
        self._cluster = ClusterMetadata(self._producer.network)
        chosen = self.config["partitioner"]
        self._partitioner = None if type(chosen) in (DefaultPartitioner, StickyPartitioner) else chosen
        self._has_initialized = False
        try:
            await_bootstrap(self._producer.network, self.config["bootstrap_timeout_ms"])
        except BaseException:
            self._producer.close(0)
            raise
        self.config["api_version"] = broker_version(self._producer.network, self.config["api_version"])
        self._closed = False
        self._at_exit = _closer(weakref.ref(self))
        atexit.register(self._at_exit)

    def _settings(self) -> ClientSettings:
        """Returns the settings of kafkapy's producer.

        kafka-python accepts a `delivery_timeout_ms` that is shorter than the time-out of a request; kafkapy's producer
        does not. In this case, the time-out of a request is shortened.
        """
        settings = client_settings(self.config, _SAME)
        properties = settings.properties
        properties["acks"] = str(self.config["acks"])
        properties["compression.type"] = self.config["compression_type"] or "none"
        properties["enable.idempotence"] = self.config["enable_idempotence"]
        longest = properties["delivery.timeout.ms"] - properties["linger.ms"]
        properties["request.timeout.ms"] = max(min(properties["request.timeout.ms"], longest), 1)
        if self.config.get("buffer_memory") is not None:
            properties["buffer.memory"] = self.config["buffer_memory"]
        return settings

    def _decide_idempotence(self, given: Mapping[str, Any]) -> None:
        """Turns idempotence off, with a warning, if options in `given` contradict it, such as acks other than all.

        Raises KafkaConfigurationError instead of the warning if `given` sets `enable_idempotence` to True, or if the
        producer is transactional. Raises it, too, for a transactional producer with `enable_idempotence` False.
        """
        config = self.config
        if config["transactional_id"]:
            if not config["enable_idempotence"]:
                raise KafkaConfigurationError("Cannot set transactional_id without enable_idempotence.")
        elif not config["enable_idempotence"]:
            return
        against = [
            name
            for name, contradicts in (
                ("acks", config["acks"] != -1),
                ("retries", config["retries"] == 0),
                (
                    "max_in_flight_requests_per_connection",
                    config["max_in_flight_requests_per_connection"] > _MOST_IN_FLIGHT,
                ),
            )
            if name in given and contradicts
        ]
        if against:
            shown = ", ".join(f"{name}={config[name]!r}" for name in against)
            if "enable_idempotence" in given or config["transactional_id"]:
                raise KafkaConfigurationError(f"enable_idempotence=True is incompatible with {shown}")
            log.warning("%s: idempotence is off because of %s", self, shown)
            config["enable_idempotence"] = False

    def __str__(self) -> str:
        client_id, transactional_id = self.config.get("client_id"), self.config.get("transactional_id")
        return f"<KafkaProducer client_id={client_id} transactional_id={transactional_id}>"

    def __del__(self) -> None:
        with suppress(Exception):
            self.close(timeout=1)

    def bootstrap_connected(self) -> bool:
        """Returns whether the producer is connected to a broker."""
        return has_connection(self._producer.network)

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: list[tuple[str, bytes]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> FutureRecordMetadata | FailedSend:
        """Adds a record to the batch of its partition and returns the future of its delivery.

        `headers` is a list of pairs of str and bytes; `timestamp_ms` is by default the present time. Blocks while the
        topic is unknown or memory is short, and raises KafkaTimeoutError after `max_block_ms`. Raises TypeError for
        arguments or serialized values of a wrong type; ValueError if key and value are None, or if the topic or the
        partition is invalid; MessageSizeTooLargeError for a record that is too large; and IllegalStateError after
        `close`. If a broker refuses the topic, the returned future has the error.
        """
        if self._closed:
            raise IllegalStateError("KafkaProducer already closed!")
        if value is None and key is None:
            raise ValueError("Need at least one: key or value")
        if headers is not None:
            _check_headers(headers)
        if self._key_serializer is not None:
            key_bytes = self._key_serializer.serialize(topic, headers or [], key)
        else:
            key_bytes = key
        if self._value_serializer is not None:
            value_bytes = self._value_serializer.serialize(topic, headers or [], value)
        else:
            value_bytes = value
        if type(key_bytes) not in _SERIALIZED:
            raise TypeError(f"Unsupported type for serialized key: {type(key_bytes)}")
        if type(value_bytes) not in _SERIALIZED:
            raise TypeError(f"Unsupported type for serialized value: {type(value_bytes)}")
        try:
            if topic not in self._producer.topics:
                ensure_valid_topic_name(topic)
                self._producer.partitions_for(topic)
            if partition is None and self._partitioner is not None:
                partition = self._partition(topic, key, key_bytes, value, value_bytes)
            return FutureRecordMetadata(
                self._send(topic, value_bytes, key_bytes, partition=partition, timestamp=timestamp_ms, headers=headers),
                headers,
            )
        except KafkapyError as error:
            converted = translate(error)
            # Errors of brokers fail the future; those of the call itself are raised.
            if type(error) is ApiError and error.error is not Error.MESSAGE_TOO_LARGE:
                return FailedSend(converted)
            raise converted from error

    def _partition(self, topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any) -> int:
        chosen: Any = self._partitioner
        if isinstance(chosen, Partitioner):
            found = chosen.partition(topic, key, key_bytes, value, value_bytes, self._cluster)
        else:
            found = chosen.partition(topic, key_bytes, self._cluster)
        if found is None:
            raise ValueError(f"Partitioner did not assign a partition for topic {topic}!")
        return int(found)

    def flush(self, timeout: float | None = None) -> None:
        """Sends all records without lingering and blocks until each is delivered or has failed.

        Raises KafkaTimeoutError after `timeout` seconds.
        """
        with translated():
            if not self._producer.flush(timeout):
                raise KafkaTimeoutError(f"Not all records were delivered within {timeout} s")

    def close(self, timeout: float | None = None, null_logger: bool = False) -> None:
        """Delivers the remaining records for `timeout` seconds at most, then closes the connections.

        May be called again. `null_logger` has no meaning here.
        """
        if timeout is not None and not 0 <= timeout <= threading.TIMEOUT_MAX:
            raise ValueError(f"Invalid timeout: {timeout}")
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self._at_exit)
        self._producer.close(timeout)
        for each in (self._key_serializer, self._value_serializer):
            if hasattr(each, "close"):
                each.close()

    def partitions_for(self, topic: str) -> set[int]:
        """Returns the partitions of a topic. Raises KafkaTimeoutError if it is not known after `max_block_ms`."""
        ensure_valid_topic_name(topic)
        with translated():
            return {each.partition for each in self._producer.partitions_for(topic)}

    @classmethod
    def max_usable_produce_magic(cls, api_version: tuple[int, ...]) -> int:
        """Returns the newest message format of a Kafka release: 2 since 0.11, 1 since 0.10, otherwise 0."""
        if api_version >= (0, 11):
            return 2
        return 1 if api_version >= (0, 10, 0) else 0

    # Transactions

    def init_transactions(self) -> None:
        """Takes over the transactional id and ends its open transaction. A second call does nothing. Blocks.

        Raises IllegalStateError without `transactional_id`, and KafkaTimeoutError after `max_block_ms`.
        """
        with translated():
            if not self._has_initialized:
                self._producer.init_transactions()
                self._has_initialized = True

    def begin_transaction(self) -> None:
        """Begins a transaction. Raises ProducerFencedError if another producer has taken over the transactional id."""
        with translated():
            self._producer.begin_transaction()

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group_metadata: ConsumerGroupMetadata | str
    ) -> None:
        """Commits a group's offsets as part of the transaction. Blocks.

        `group_metadata` is the result of `KafkaConsumer.group_metadata`, or the id of a group.
        """
        if isinstance(group_metadata, str):
            group = GroupMetadata(group_metadata)
        else:
            member = MemberIdentity(
                group_metadata.generation_id, group_metadata.member_id, group_metadata.group_instance_id
            )
            group = GroupMetadata(group_metadata.group_id or "", member)
        with translated():
            self._producer.send_offsets_to_transaction(client_offsets(offsets), group)

    def commit_transaction(self) -> None:
        """Sends the remaining records and commits the transaction. Blocks."""
        with translated():
            self._producer.commit_transaction()

    def abort_transaction(self) -> None:
        """Aborts the transaction. Blocks."""
        with translated():
            self._producer.abort_transaction()

    # Metrics

    def metrics(self, raw: bool = False) -> dict[Any, Any] | None:
        """Returns the producer's metrics as {group: {name: value}}, or with `raw` as {MetricName: value}.

        Returns None if the option `metrics_enabled` is False.
        """
        if not self.config["metrics_enabled"]:
            return None
        found: dict[MetricName, float] = producer_metrics(self._producer, self.config["client_id"])
        return found if raw else grouped(found)


def client_offsets(offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> dict[Any, ClientOffset]:
    """Converts committed offsets of kafka-python to the form that kafkapy's client accepts.

    Raises TypeError for an offset of another type, such as a number.
    """
    if not all(isinstance(each, OffsetAndMetadata) for each in offsets.values()):
        raise TypeError("offsets must be dict[TopicPartition, OffsetAndMetadata]")
    return {
        partition: ClientOffset(
            each.offset or 0, each.metadata or "", -1 if each.leader_epoch is None else each.leader_epoch
        )
        for partition, each in offsets.items()
    }


def _check_headers(headers: Any) -> None:
    if not isinstance(headers, list):
        raise TypeError("headers must be list-type")
    for each in headers:
        if not (isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str) and isinstance(each[1], bytes)):
            raise TypeError("All headers items must be (str, bytes) tuples")


def _closer(reference: weakref.ref[KafkaProducer]) -> Any:
    """Returns a function, to be called at the end of the program, that closes the producer if it still exists."""

    def close() -> None:
        producer = reference()
        if producer is not None:
            with suppress(Exception):
                producer.close(timeout=1)

    return close
