"""The topic of the registry: read into the store by one thread, written in transactions by the elected instance."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from kafkapy.client import Consumer, Producer, WakeupError
from kafkapy.client.admin import LATEST, Admin, ConfigResource, NewTopic, ResourceType
from kafkapy.errors import ApiError, ConfigError, Error, KafkapyError
from kafkapy.registry import record_format
from kafkapy.registry.errors import store_failed, timed_out
from kafkapy.registry.store import SchemaStore
from kafkapy.types import TopicPartition

log = logging.getLogger("kafkapy.registry")

_POLL_S = 1.0
_READ_AGAIN_S = 1.0
_FENCED = (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)
Records = Iterable[tuple[bytes, bytes | None]]


class Fenced(Exception):
    """Raised when another instance has taken over as the writer."""


class SchemaTopic:
    """The topic of the registry and its store. Any thread may call a method, unless the method says otherwise.

    The writer is a producer with one transactional id for all instances: an instance that takes over fences the former
    one, so that a paused instance cannot write an id or a version number that the new writer has assigned since.
    """

    def __init__(
        self, properties: Mapping[str, str], name: str, replication_factor: int, group: str, timeout_s: float
    ) -> None:
        self.store = SchemaStore()
        self.partition = TopicPartition(name, 0)
        self._properties = dict(properties)
        self._replication_factor = replication_factor
        self._transactional_id = f"{group}-{name}-writer"
        self._timeout_s = timeout_s
        self._consumer: Consumer | None = None
        self._producer: Producer | None = None
        self._end_producer: Producer | None = None  # without transactions
        self._position = 0
        self._moved = threading.Condition()
        self._is_closed = False
        self._reader = threading.Thread(target=self._read, name="registry-reader", daemon=True)

    def start(self, timeout_s: float) -> None:
        """Creates the topic if it does not exist, and reads it to its end. Blocks.

        `timeout_s` limits the look-up of the end offset, and then the wait until it is reached, in seconds. Raises
        ConfigError if the topic has several partitions, or if its cleanup.policy is not compact, because records with
        schemas would be deleted. Raises ApiError for a failure of the cluster.
        """
        with Admin(self._properties) as admin:
            self._ensure_topic(admin)
        self._consumer = Consumer(
            {
                **self._properties,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.assign([self.partition])
        self._consumer.seek_to_beginning()
        end = self._consumer.end_offsets([self.partition], timeout=timeout_s)[self.partition]
        self._reader.start()
        self._await(end, timeout_s)

    def take_over(self) -> None:
        """Makes this instance the writer: fences the former writer and reads everything that it has written. Blocks."""
        self.step_down()
        producer = Producer(
            {**self._properties, "transactional.id": self._transactional_id, "acks": "all", "linger.ms": 0}
        )
        try:
            producer.init_transactions(self._timeout_s)
            # The NOOP record below replaces the former writer's, so its greatest ids must have been read.
            with Admin(self._properties) as admin:
                ends = admin.list_offsets({self.partition: LATEST}, read_committed=True, timeout=self._timeout_s)
            self._await(ends[self.partition].offset, self._timeout_s)
            self._producer = producer
            self._end_producer = Producer({**self._properties, "acks": "all", "linger.ms": 0})
            self.write([record_format.encode_greatest_ids(self.store.greatest_ids())])
        except BaseException:
            self._producer = None
            producer.close(0)
            self.step_down()
            raise

    def step_down(self) -> None:
        """Closes the producer, so that this instance no longer writes."""
        producers = self._producer, self._end_producer
        self._producer = self._end_producer = None
        for producer in producers:
            if producer is not None:
                with suppress(KafkapyError):
                    producer.close(self._timeout_s)

    def write(self, records: Records) -> None:
        """Writes records in one transaction, and returns when the store has applied them. One thread at a time.

        Raises Fenced if this instance is no longer the writer, and RegistryError for another failure.
        """
        producer = self._producer
        if producer is None:
            raise Fenced
        try:
            producer.begin_transaction()
            futures = [producer.send(self.partition.topic, value, key, partition=0) for key, value in records]
            producer.commit_transaction(self._timeout_s)
            end = max(future.result(self._timeout_s).offset for future in futures) + 1
        except (KafkapyError, TimeoutError) as error:
            if isinstance(error, ApiError) and error.error in _FENCED:
                raise Fenced from error
            try:
                producer.abort_transaction(self._timeout_s)
            except (KafkapyError, TimeoutError):
                raise Fenced from error  # the next take-over makes a new producer
            raise store_failed(str(error)) from error
        self._write_end()
        self._await(end, self._timeout_s)

    def _write_end(self) -> None:
        """Sends the record without content that follows each transaction in the topic. Does not wait.

        Karapace is ready only after it has read the last offset, and cannot read the marker that ends a transaction. A
        failure is logged, because the schemas are stored without this record, too.
        """
        if self._end_producer is not None:
            key, value = record_format.END_RECORD
            try:
                self._end_producer.send(self.partition.topic, value, key, partition=0)
            except KafkapyError as error:
                log.warning("The last record of %s could not be written: %s", self.partition.topic, error)

    def close(self) -> None:
        """Ends the threads and connections."""
        self._is_closed = True
        self.step_down()
        if self._consumer is not None:
            self._consumer.wakeup()
            self._reader.join(5)

    def _await(self, end: int, timeout_s: float) -> None:
        with self._moved:
            if not self._moved.wait_for(lambda: self._position >= end or self._is_closed, timeout_s):
                raise timed_out(f"{self.partition.topic} was read to offset {self._position}, not to {end}")

    def _ensure_topic(self, admin: Admin) -> None:
        name = self.partition.topic
        brokers = len(admin.describe_cluster().brokers)
        topic = NewTopic(name, 1, min(self._replication_factor, brokers), configs={"cleanup.policy": "compact"})
        created = admin.create_topics([topic])
        try:
            created.check()
            return
        except ApiError as error:
            if error.error is not Error.TOPIC_ALREADY_EXISTS:
                raise
        partitions = len(admin.describe_topics([name])[name].partitions)
        if partitions != 1:
            raise ConfigError(f"The topic {name} must have one partition, and has {partitions}")
        resource = ConfigResource(ResourceType.TOPIC, name)
        policy = admin.describe_configs([resource])[resource]["cleanup.policy"].value
        if policy != "compact":
            raise ConfigError(
                f"The topic {name} must have cleanup.policy=compact, and has {policy}, by which schemas would be lost"
            )

    def _read(self) -> None:
        consumer: Any = self._consumer
        while not self._is_closed:
            try:
                for record in consumer.poll(_POLL_S):
                    self.store.apply(record.key, record.value)
                position = consumer.position(self.partition)
                with self._moved:
                    if position != self._position:
                        self._position = position
                        self._moved.notify_all()
            except WakeupError:
                break
            except Exception:  # the thread must go on reading
                log.exception("The topic %s could not be read; trying again", self.partition.topic)
                time.sleep(_READ_AGAIN_S)
        consumer.close(0)
