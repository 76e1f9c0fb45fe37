"""The high-level consumer of Apache Kafka 0.8: a connector whose streams share the partitions of topics.

Each stream is a member of the group, with a Consumer of its own, so that the group's coordinator does what the old
consumers did through ZooKeeper. A stream is for one thread at a time.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from kafkapy.client.consumer import Consumer
from kafkapy.client.errors import ConcurrentUse, WakeupError
from kafkapy.compat.kafka08.assignment import OLD_ROUND_ROBIN
from kafkapy.compat.kafka08.old_keys import translate
from kafkapy.errors import ConfigError, KafkapyError

_KEYS: dict[str, str | None] = {
    "metadata.broker.list": "bootstrap.servers",
    "consumer.id": "client.id",
    "auto.commit.enable": "enable.auto.commit",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "zookeeper.connect": None,
    "zookeeper.session.timeout.ms": None,
    "zookeeper.connection.timeout.ms": None,
    "zookeeper.sync.time.ms": None,
    "socket.timeout.ms": None,
    "num.consumer.fetchers": None,
    "queued.max.message.chunks": None,
    "rebalance.max.retries": None,
    "rebalance.backoff.ms": None,
    "refresh.leader.backoff.ms": None,
    "dual.commit.enabled": None,
}
_RESETS = {"smallest": "earliest", "largest": "latest", "earliest": "earliest", "latest": "latest"}
_STRATEGIES = {"range": "range", "roundrobin": OLD_ROUND_ROBIN}
_POLL_WITHOUT_TIMEOUT_S = 60.0


class ConsumerTimeout(KafkapyError):
    """A stream had no message for `consumer.timeout.ms`. The stream may be used again."""


class MessageAndMetadata(NamedTuple):
    """A message, with its key, topic, partition and offset."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    message: bytes | None


class Whitelist(NamedTuple):
    """The topics whose whole names match a pattern."""

    pattern: str

    def compiled(self) -> re.Pattern[str]:
        """Returns a compiled pattern whose `match` accepts the names that match `pattern` as a whole."""
        return re.compile(rf"\A(?:{self.pattern})\Z")


class Blacklist(NamedTuple):
    """The topics whose whole names do not match a pattern."""

    pattern: str

    def compiled(self) -> re.Pattern[str]:
        """Returns a compiled pattern whose `match` accepts the names that do not match `pattern` as a whole."""
        return re.compile(rf"\A(?!(?:{self.pattern})\Z)")


class KafkaStream:
    """The messages of the partitions that are assigned to one member of the group. For one thread at a time."""

    def __init__(self, consumer: Consumer, timeout_ms: int, closing: threading.Event) -> None:
        self._consumer = consumer
        self._timeout_ms = timeout_ms
        self._closing = closing
        self._records: Iterator[Any] = iter(())

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> MessageAndMetadata:
        """Returns the next message; blocks until there is one.

        Raises ConsumerTimeout after `consumer.timeout.ms`, and StopIteration after the connector's shutdown.
        """
        unread = self._consumer._unread
        waited_s = 0.0
        while not unread:
            if self._closing.is_set():
                self.close()
                raise StopIteration
            pause_s = _POLL_WITHOUT_TIMEOUT_S if self._timeout_ms < 0 else self._timeout_ms / 1000
            try:
                unread += reversed(self._consumer.poll(pause_s))
            except WakeupError:
                continue
            waited_s += pause_s
            if not unread and self._timeout_ms >= 0 and not self._closing.is_set():
                raise ConsumerTimeout(f"No message for {self._timeout_ms} ms")
        record = unread.pop()
        return MessageAndMetadata(record.topic, record.partition, record.offset, record.key, record.value)

    def commit(self) -> None:
        """Commits the offsets of the messages that were returned. Blocks."""
        self._consumer.commit()

    def wake(self) -> None:
        """Interrupts a thread that waits for a message, so that it notices that the connector has ended.

        Any thread may call it.
        """
        self._consumer.wakeup()

    def close(self) -> None:
        """Commits if automatic commits are on, and leaves the group. Blocks."""
        self._consumer.close()


class ConsumerConnector:
    """A consumer of Kafka 0.8: the partitions are distributed among the streams of all connectors of the group.

    `properties` has the keys of Kafka 0.8's consumer, or of today's consumer. Raises ConfigError for values that cannot
    be used, such as `offsets.storage=zookeeper`.
    """

    def __init__(self, properties: Mapping[str, Any]) -> None:
        if not properties.get("group.id"):
            raise ConfigError('Missing required configuration "group.id" which has no default value.')
        if str(properties.get("offsets.storage", "kafka")) != "kafka":
            raise ConfigError("offsets.storage can only be kafka: there is no ZooKeeper")
        own = ("consumer.timeout.ms", "offsets.storage")
        self._settings = translate({key: each for key, each in properties.items() if key not in own}, _KEYS)
        reset = str(self._settings.get("auto.offset.reset", "largest"))
        if reset not in _RESETS:
            raise ConfigError(f"Invalid value {reset} for configuration auto.offset.reset: it is smallest or largest")
        strategy = str(self._settings.get("partition.assignment.strategy", "range"))
        if strategy not in _STRATEGIES:
            raise ConfigError(
                f"Invalid value {strategy} for configuration partition.assignment.strategy: it is range or roundrobin"
            )
        self._settings["auto.offset.reset"] = _RESETS[reset]
        self._settings["partition.assignment.strategy"] = [_STRATEGIES[strategy]]
        self._timeout_ms = int(properties.get("consumer.timeout.ms", -1))
        self._streams: list[KafkaStream] = []
        self._has_streams = False
        self._closing = threading.Event()

    def create_message_streams(self, counts: Mapping[str, int]) -> dict[str, list[KafkaStream]]:
        """Returns a list of streams for each topic; `counts` maps each topic to the number of its streams.

        Raises RuntimeError for a second call.
        """
        self._check_first()
        return {topic: [self._stream([topic]) for _ in range(count)] for topic, count in counts.items()}

    def create_message_streams_by_filter(self, chosen: Whitelist | Blacklist, count: int = 1) -> list[KafkaStream]:
        """Returns `count` streams of all topics that a filter selects, including topics that are created later.

        Raises RuntimeError for a second call.
        """
        self._check_first()
        return [self._stream(chosen.compiled()) for _ in range(count)]

    def _check_first(self) -> None:
        if self._has_streams:
            raise RuntimeError(
                "This consumer connector has created its streams already: it can create them at most once"
            )
        self._has_streams = True

    def _stream(self, topics: Any) -> KafkaStream:
        consumer = Consumer(self._settings)
        consumer.subscribe(topics)
        stream = KafkaStream(consumer, self._timeout_ms, self._closing)
        self._streams.append(stream)
        return stream

    def commit_offsets(self) -> None:
        """Commits the offsets of the messages that all streams have returned. Blocks.

        A stream that another thread is reading is left out: only its automatic commits commit its offsets.
        """
        for stream in self._streams:
            try:
                stream.commit()
            except ConcurrentUse:
                continue

    def shutdown(self) -> None:
        """Ends all streams: a stream that a thread is reading ends its iteration, and every other stream is closed.

        Blocks.
        """
        self._closing.set()
        for stream in self._streams:
            stream.wake()
            try:
                stream.close()
            except ConcurrentUse:
                continue  # the thread that reads the stream closes it

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
