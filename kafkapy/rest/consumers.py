"""The consumer instances of the REST proxy. An instance is a member of a group, and exists from one request of its
client to the next."""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from kafkapy.client import Consumer, ConsumerRecord, OffsetAndMetadata, SubscriptionError, TopicPartition
from kafkapy.errors import ConfigError, KafkapyError
from kafkapy.http.json_api import RequestRefused
from kafkapy.rest import errors
from kafkapy.rest.formats import CONSUMER_FORMATS, Decode, Formats

Result = TypeVar("Result")
# The keys that a client may set for its instance, apart from name and format, and the keys of the consumer.
_KEYS = {
    "auto.offset.reset": "auto.offset.reset",
    "auto.commit.enable": "enable.auto.commit",
    "fetch.min.bytes": "fetch.min.bytes",
    "consumer.request.timeout.ms": "",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",  # of Karapace's proxy
}
_POLL_S = 0.5
# Bytes of JSON around a record, for the limit of a response.
_RECORD_OVERHEAD = 64


class ConsumerInstance:
    """A consumer, the form of its records, and the offsets of the records that its client has received.

    Requests are served one after the other: `run` waits until it has the lock. A record counts as received when it is
    in a response; only the offsets of received records are committed.
    """

    def __init__(
        self, consumer: Consumer, form: str, decoders: tuple[Decode, Decode], *, commits: bool, settings: dict[str, int]
    ) -> None:
        self.consumer = consumer
        self.form = form
        self.used_s = time.monotonic()
        self._decode_key, self._decode_value = decoders
        self._commits = commits
        self._settings = settings
        self._lock = threading.Lock()
        self._pending: deque[ConsumerRecord] = deque()
        self._received: dict[TopicPartition, int] = {}
        self._is_closed = False

    def run(self, operation: Callable[[], Result]) -> Result:
        """Runs an operation on the consumer after the instance's other operations have ended.

        Raises RequestRefused if the instance is closed, or if the operation raises a KafkapyError.
        """
        with self._lock:
            if self._is_closed:
                raise errors.instance_not_found()
            self.used_s = time.monotonic()
            try:
                return operation()
            except SubscriptionError as error:
                raise errors.illegal_state(str(error)) from None
            except ConfigError as error:
                raise errors.invalid_consumer_config(error) from None
            except KafkapyError as error:
                raise errors.of_cluster(error) from None
            finally:
                self.used_s = time.monotonic()

    def is_idle(self, limit_s: float) -> bool:
        """Returns whether no request runs now, and none has run since `limit_s`, a monotonic time in seconds."""
        return not self._lock.locked() and self.used_s < limit_s

    # The callbacks of a rebalance, called within `poll`

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        if self._commits:
            with suppress(KafkapyError):
                self._commit_received()
        self.on_partitions_lost(partitions)

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        pass

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        lost = set(partitions)
        self._drop(lost)
        for each in lost:
            self._received.pop(each, None)

    def records(self, timeout_s: float | None, max_bytes: int | None, largest_bytes: int) -> list[dict[str, Any]]:
        """Returns the next records, in the form of the API. An instance with auto-commit first commits the offsets of
        the records that earlier requests returned.

        Waits until the records have `fetch.min.bytes`, or for `timeout_s`; if `timeout_s` is None, for the instance's
        `consumer.request.timeout.ms`. The records have at most `max_bytes` together, the limit of the request, and at
        most `largest_bytes`, the limit of the server. Only a single record may be larger than these limits; it is then
        returned alone.
        """
        if self._commits and self._received:
            with suppress(KafkapyError):
                self.consumer.commit_async(self._to_commit())
        limit = min(max_bytes if max_bytes is not None and max_bytes > 0 else largest_bytes, largest_bytes)
        deadline_s = time.monotonic() + (self._settings["timeout_ms"] / 1000 if timeout_s is None else timeout_s)
        found: list[dict[str, Any]] = []
        size = 0
        while True:
            while self._pending:
                record = self._pending[0]
                bytes_of = len(record.key or b"") + len(record.value or b"") + _RECORD_OVERHEAD
                if found and size + bytes_of > limit:
                    return found
                try:
                    found.append(self._shown(record))
                except RequestRefused:
                    if found:
                        return found  # the next request reports the error
                    self._skip()
                    raise
                self._skip()
                size += bytes_of
            left_s = deadline_s - time.monotonic()
            if (
                left_s <= 0
                or size >= self._settings["least_bytes"] > 0
                or (found and not self._settings["least_bytes"])
            ):
                return found
            try:
                self._pending.extend(self.consumer.poll(min(left_s, _POLL_S)))
            except KafkapyError:
                if found:
                    return found  # an error that lasts is reported by the next request
                raise

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None) -> None:
        """Commits `offsets`; if that is None, commits the offsets after all records that were in responses."""
        if offsets is None:
            self._commit_received()
        else:
            self.consumer.commit(offsets)

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Sets the positions of assigned partitions. Raises RequestRefused for a partition that is not assigned."""
        self._check_assigned(positions)
        for partition, offset in positions.items():
            self.consumer.seek(partition, offset)
        self._drop(set(positions))

    def seek_to_end_or_beginning(self, partitions: list[TopicPartition], *, is_end: bool) -> None:
        """Sets the positions of assigned partitions to their ends if `is_end`, otherwise to their beginnings.

        Raises RequestRefused for a partition that is not assigned.
        """
        self._check_assigned(partitions)
        (self.consumer.seek_to_end if is_end else self.consumer.seek_to_beginning)(partitions)
        self._drop(set(partitions))

    def forget(self) -> None:
        """Removes the records that no request has received, and the offsets to commit.

        Called before the subscription or assignment changes.
        """
        self._pending.clear()
        self._received.clear()

    def close(self) -> None:
        """Leaves the group. Waits for a request that is in progress."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            if self._commits:
                with suppress(KafkapyError):
                    self._commit_received()
            with suppress(KafkapyError):
                self.consumer.close(5)

    def _check_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        assigned = self.consumer.assignment()
        for each in partitions:
            if each not in assigned:
                raise errors.illegal_state(f"No current assignment for partition {each}")

    def _shown(self, record: ConsumerRecord) -> dict[str, Any]:
        return {
            "topic": record.topic,
            "key": self._decode_key(record.key),
            "value": self._decode_value(record.value),
            "partition": record.partition,
            "offset": record.offset,
        }

    def _skip(self) -> None:
        record = self._pending.popleft()
        self._received[TopicPartition(record.topic, record.partition)] = record.offset + 1

    def _drop(self, partitions: set[TopicPartition]) -> None:
        self._pending = deque(
            each for each in self._pending if TopicPartition(each.topic, each.partition) not in partitions
        )

    def _to_commit(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {partition: OffsetAndMetadata(offset) for partition, offset in self._received.items()}

    def _commit_received(self) -> None:
        if self._received:
            self.consumer.commit(self._to_commit())


class ConsumerInstances:
    """The consumer instances of all groups. Any thread may use the object. An instance is removed after no request has
    used it for `idle_s` seconds.
    """

    def __init__(self, properties: Mapping[str, str], formats: Formats, *, most: int, idle_s: float) -> None:
        self._properties = dict(properties)
        self._formats = formats
        self._most = most
        self._idle_s = idle_s
        self._instances: dict[tuple[str, str], ConsumerInstance] = {}
        self._lock = threading.Lock()

    def create(self, group: str, body: Mapping[str, Any]) -> str:
        """Creates an instance from the body of a request and returns its name.

        Raises RequestRefused for an unknown format or field, for a wrong value, if the group already has an instance
        with this name, or if the proxy has as many instances as it may have.
        """
        form = str(body.get("format") or "binary").lower()
        if form not in CONSUMER_FORMATS:
            raise errors.invalid_consumer_config(f"the format {form}; accepted are {', '.join(CONSUMER_FORMATS)}")
        unknown = set(body) - {*_KEYS, "name", "format", "id"}
        if unknown:
            raise errors.unprocessable(f"Unrecognized field: {sorted(unknown)[0]}")
        name = str(body.get("name") or body.get("id") or f"rest-consumer-{uuid.uuid4()}")
        decoders = (self._formats.decoder(form, "key"), self._formats.decoder(form, "value"))
        self._check_place(group, name)
        instance = self._make(group, form, decoders, body)
        try:
            with self._lock:
                self._check_place(group, name)
                self._instances[group, name] = instance
        except RequestRefused:
            instance.close()
            raise
        return name

    def _check_place(self, group: str, name: str) -> None:
        """Raises RequestRefused if the group already has an instance `name`, or if the proxy has as many instances as
        it may have.
        """
        if (group, name) in self._instances:
            raise errors.instance_exists()
        if len(self._instances) >= self._most:
            raise RequestRefused(50301, f"The proxy has {self._most} consumer instances, the most it accepts")

    def _make(
        self, group: str, form: str, decoders: tuple[Decode, Decode], body: Mapping[str, Any]
    ) -> ConsumerInstance:
        commits = str(body.get("auto.commit.enable", "true")).lower() == "true"
        try:
            least_bytes = int(body.get("fetch.min.bytes", -1))
            if least_bytes < -1:
                raise ValueError(f"fetch.min.bytes is {least_bytes}; accepted are numbers from -1")
            settings = {
                "timeout_ms": int(body.get("consumer.request.timeout.ms", 1000)),
                # 0 returns what there is; -1 waits for the time-out, as in Confluent's proxy.
                "least_bytes": (1 << 62) if least_bytes == -1 else max(least_bytes, 0),
            }
            age = body.get("topic.metadata.refresh.interval.ms")
            consumer = Consumer(
                {
                    **self._properties,
                    **({} if age is None else {"metadata.max.age.ms": int(age)}),
                    "group.id": group,
                    "enable.auto.commit": False,
                    "auto.offset.reset": str(body.get("auto.offset.reset", "latest")),
                }
            )
        except (ConfigError, ValueError, TypeError) as error:
            raise errors.invalid_consumer_config(error) from None
        return ConsumerInstance(consumer, form, decoders, commits=commits, settings=settings)

    def get(self, group: str, name: str) -> ConsumerInstance:
        """Returns an instance. Raises RequestRefused if it does not exist."""
        found = self._instances.get((group, name))
        if found is None:
            raise errors.instance_not_found()
        return found

    def remove(self, group: str, name: str) -> None:
        """Closes and removes an instance. Raises RequestRefused if it does not exist."""
        with self._lock:
            found = self._instances.pop((group, name), None)
        if found is None:
            raise errors.instance_not_found()
        found.close()

    def remove_idle(self) -> int:
        """Closes the instances that were not used for too long, and returns their number."""
        limit_s = time.monotonic() - self._idle_s
        with self._lock:
            idle = [key for key, each in self._instances.items() if each.is_idle(limit_s)]
            closing = [self._instances.pop(key) for key in idle]
        for each in closing:
            each.close()
        return len(closing)

    def close(self) -> None:
        """Closes all instances."""
        with self._lock:
            closing, self._instances = list(self._instances.values()), {}
        for each in closing:
            each.close()
