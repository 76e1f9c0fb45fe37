"""KafkaConsumer with the interface of kafka-python's, on kafkapy's Consumer."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from kafkapy import types
from kafkapy.client.consumer import Consumer
from kafkapy.client.errors import NotSubscribed
from kafkapy.compat.kafka.configuration import (
    COMMON,
    INFINITE,
    VERSION,
    ClientSettings,
    client_settings,
    options,
    unknown_options,
)
from kafkapy.compat.kafka.connected import all_topics, await_bootstrap, broker_version, has_connection
from kafkapy.compat.kafka.consumer.commit_future import CommitFuture
from kafkapy.compat.kafka.consumer.records import ConsumerRecord, RecordConverter
from kafkapy.compat.kafka.consumer.subscription_state import (
    AsyncConsumerRebalanceListener,
    ConsumerRebalanceListener,
    ListenerAdapter,
)
from kafkapy.compat.kafka.coordinator.assignors import (
    RangePartitionAssignor,
    RoundRobinPartitionAssignor,
    client_assignor,
)
from kafkapy.compat.kafka.errors import (
    CommitFailedError,
    IllegalStateError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    translate,
    translated,
)
from kafkapy.compat.kafka.metrics import consumer_metrics, grouped
from kafkapy.compat.kafka.producer.kafka import client_offsets
from kafkapy.compat.kafka.protocol.consumer import IsolationLevel
from kafkapy.compat.kafka.structs import (
    ConsumerGroupMetadata,
    MemberState,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    TopicPartition,
)
from kafkapy.compat.kafka.topic_names import ensure_valid_topic_name
from kafkapy.errors import ApiError, Error, KafkapyError

if TYPE_CHECKING:
    from kafkapy._core.client import fetched_records


_MIXED = "Subscription to topics, a pattern and partitions are mutually exclusive"
_BLOCKING_POLL_S = 60.0
_OLD_RESETS = {"smallest": "earliest", "largest": "latest"}
# The errors of a commit after which other members own the partitions.
_LOST = frozenset((Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.REBALANCE_IN_PROGRESS))
# Options that are configuration keys of the same name.
_SAME = (
    "client_rack",
    "group_id",
    "group_instance_id",
    "fetch_max_wait_ms",
    "fetch_min_bytes",
    "fetch_max_bytes",
    "max_partition_fetch_bytes",
    "auto_commit_interval_ms",
    "check_crcs",
    "allow_auto_create_topics",
    "max_poll_records",
    "max_poll_interval_ms",
    "session_timeout_ms",
    "heartbeat_interval_ms",
    "exclude_internal_topics",
)


class _Consumer(Consumer):
    """A Consumer of kafkapy that accepts the options of kafka-python that are not configuration keys.

    Its attributes `network`, `group`, `assigned` and `unread` are parts of the Consumer, for the use of KafkaConsumer.
    """

    def __init__(self, settings: ClientSettings, *, in_flight_limit: int) -> None:
        self._environment = settings.environment
        super().__init__(settings.properties)
        self.network = self._network
        self.network.in_flight_limit = in_flight_limit
        self.group = self._group
        self.assigned: Any = self._subscription
        self.unread = self._unread

    def poll_raw(self, timeout: float, limit: int) -> list[fetched_records.ConsumerRecord]:
        """Returns the next records, at most `limit`; blocks for at most `timeout` seconds while there are none."""
        self._max_records = limit
        return self.poll(timeout)


class KafkaConsumer:
    """Reads records from partitions that its group assigns (`subscribe`) or that the program chooses (`assign`).

    Only one thread at a time may use the consumer. The arguments are the topics to subscribe to and kafka-python's
    options. Without `group_id` all partitions of the subscribed topics are assigned. Raises KafkaConfigurationError for
    options that are unknown or cannot be honoured, and KafkaTimeoutError if no broker responds within
    `bootstrap_timeout_ms`.
    """

    DEFAULT_CONFIG: dict[str, Any] = {
        **COMMON,
        "client_id": f"kafka-python-{VERSION}",
        "client_rack": "",
        "group_id": None,
        "group_instance_id": None,
        "key_deserializer": None,
        "value_deserializer": None,
        "enable_incremental_fetch_sessions": True,
        "fetch_max_wait_ms": 500,
        "fetch_min_bytes": 1,
        "fetch_max_bytes": 52428800,
        "max_partition_fetch_bytes": 1048576,
        "auto_offset_reset": "latest",
        "enable_auto_commit": True,
        "auto_commit_interval_ms": 5000,
        "default_offset_commit_callback": lambda offsets, response: True,
        "check_crcs": True,
        "isolation_level": "read_uncommitted",
        "allow_auto_create_topics": True,
        "partition_assignment_strategy": (RangePartitionAssignor, RoundRobinPartitionAssignor),
        "max_poll_records": 500,
        "max_poll_interval_ms": 300000,
        "session_timeout_ms": 45000,
        "heartbeat_interval_ms": 3000,
        "consumer_timeout_ms": INFINITE,
        "ssl_ciphers": None,
        "metrics_enabled": True,
        "metric_group_prefix": "consumer",
        "exclude_internal_topics": True,
    }
    DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735 = 30000

    def __init__(self, *topics: str, **configs: Any) -> None:
        self._closed = True
        unknown = unknown_options(self.DEFAULT_CONFIG, configs)
        if unknown:
            raise KafkaConfigurationError(f"Unrecognized configs: {unknown}")
        self.config = options(self.DEFAULT_CONFIG, configs)
        self._check_times()
        self._converter = RecordConverter(self.config["key_deserializer"], self.config["value_deserializer"])
        self._topics: set[str] | None = None
        self._pattern: re.Pattern[str] | None = None
        self._has_assigned = False  # the application has assigned partitions
        self._seen_cluster: Any = None
        self._returned = 0  # records
        with translated():
            self._consumer = _Consumer(
                self._settings(), in_flight_limit=self.config["max_in_flight_requests_per_connection"]
            )
        try:
            await_bootstrap(self._consumer.network, self.config["bootstrap_timeout_ms"])
        except BaseException:
            self._consumer.close(0)
            raise
        self.config["api_version"] = broker_version(self._consumer.network, self.config["api_version"])
        self._closed = False
        if topics:
            self.subscribe(topics)

    def _check_times(self) -> None:
        config = self.config
        reset = config["auto_offset_reset"]
        config["auto_offset_reset"] = _OLD_RESETS.get(reset, reset)
        times = config["fetch_max_wait_ms"], config["request_timeout_ms"], config["connections_max_idle_ms"]
        if not times[0] < times[1] < times[2]:
            raise KafkaConfigurationError(
                f"connections_max_idle_ms ({times[2]}) must be larger than request_timeout_ms ({times[1]}), which must "
                f"be larger than fetch_max_wait_ms ({times[0]})."
            )
        if config["group_instance_id"] is not None and config["group_id"] is None:
            raise KafkaConfigurationError("group_instance_id requires group_id")

    def _settings(self) -> ClientSettings:
        config = self.config
        settings = client_settings(config, _SAME)
        properties = settings.properties
        reset = config["auto_offset_reset"]
        properties["auto.offset.reset"] = reset if reset in ("earliest", "latest") else "none"
        try:
            level = IsolationLevel.build_from(config["isolation_level"])
        except ValueError as error:
            raise KafkaConfigurationError(str(error)) from error
        properties["isolation.level"] = level.name.lower()
        if config["group_id"] is not None:
            properties["enable.auto.commit"] = bool(config["enable_auto_commit"])
        properties["default.api.timeout.ms"] = properties["request.timeout.ms"]
        properties["partition.assignment.strategy"] = [
            client_assignor(each) for each in config["partition_assignment_strategy"]
        ]
        return settings

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.close(autocommit=exc_type is None)

    def bootstrap_connected(self) -> bool:
        """Returns whether the consumer is connected to a broker."""
        return has_connection(self._consumer.network)

    def bootstrap(self, timeout_ms: float | None = None, refresh: bool = False) -> None:
        """Blocks until the brokers of the cluster are known; with `refresh`, until new metadata have been received.

        Raises KafkaTimeoutError after `timeout_ms`.
        """
        if refresh:
            all_topics(self._consumer.network, self._seconds(timeout_ms))
        else:
            await_bootstrap(self._consumer.network, timeout_ms)

    def close(self, autocommit: bool = True, timeout_ms: float | None = None) -> None:
        """Commits offsets if `autocommit` and the option `enable_auto_commit` are set, and leaves the group.

        Closes the connections. Blocks for `timeout_ms` at most, by default `request_timeout_ms`. May be called again.
        """
        if self._closed:
            return
        self._closed = True
        if not autocommit:
            self._consumer.group.commits.stop_automatic()
        with translated():
            self._consumer.close(self._seconds(timeout_ms))
        self._converter.close()

    # Subscription

    def subscribe(
        self,
        topics: Sequence[str] = (),
        pattern: str | None = None,
        listener: ConsumerRebalanceListener | AsyncConsumerRebalanceListener | None = None,
    ) -> None:
        """Subscribes to topics, or to all topics whose names begin with a match of `pattern`.

        Replaces the previous subscription. Raises ValueError without topics and pattern, TypeError if `topics` is not a
        sequence of names or `listener` not a listener, and IllegalStateError with both topics and pattern, or after
        `assign`.
        """
        if not topics and not pattern:
            raise ValueError("Must provide topics or pattern")
        if (topics and pattern) or self._has_assigned:
            raise IllegalStateError(_MIXED)
        if not pattern and (isinstance(topics, str) or not isinstance(topics, Sequence)):
            raise TypeError("Topics must be a list (or non-str sequence)")
        for topic in topics:
            ensure_valid_topic_name(topic)
        if listener and not isinstance(listener, ConsumerRebalanceListener | AsyncConsumerRebalanceListener):
            raise TypeError("listener must be a ConsumerRebalanceListener or AsyncConsumerRebalanceListener")
        self._topics = None if pattern else set(topics)
        self._pattern = from_the_start(pattern) if pattern else None
        if self.config["group_id"] is None:
            self._seen_cluster = None
            with self._consumer.network.lock:
                self._consumer.network.metadata.set_topics(topics, wants_all=bool(pattern))
            return
        with translated():
            self._consumer.subscribe(
                self._pattern or list(topics), None if listener is None else ListenerAdapter(listener)
            )

    def subscription(self) -> set[str] | None:
        """Returns the subscribed topics; None without a subscription."""
        if self._pattern is not None:
            return {name for name in self._consumer.network.cluster.topics if self._matches(name)}
        return None if self._topics is None else set(self._topics)

    def unsubscribe(self) -> None:
        """Leaves the group and drops the subscription and all partitions. Blocks."""
        self._topics = self._pattern = None
        self._has_assigned = False
        with translated():
            self._consumer.unsubscribe()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assigns exactly these partitions; without any, does what `unsubscribe` does.

        Raises IllegalStateError after `subscribe`.
        """
        wanted = list(partitions)
        if not wanted:
            self.unsubscribe()
            return
        if self._topics is not None or self._pattern is not None:
            raise IllegalStateError(_MIXED)
        with translated():
            self._consumer.group.commits.commit_before_loss()
            self._consumer.assign(wanted)
        self._has_assigned = True

    def assignment(self) -> set[TopicPartition]:
        """Returns the partitions that are assigned now. Any thread may call it."""
        return {TopicPartition(*each) for each in tuple(self._consumer.assigned.partitions)}

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Returns the consumer's membership in its group. Any thread may call it."""
        group = self._consumer.group
        if group.group_id is None:
            return ConsumerGroupMetadata()
        identity = group.identity
        if group.is_stable:
            state = MemberState.STABLE
        else:
            state = MemberState.REBALANCING if group.has_member_id else MemberState.UNJOINED
        return ConsumerGroupMetadata(
            group.group_id, identity.generation, identity.member_id, identity.instance_id, state
        )

    # Records

    def poll(
        self, timeout_ms: float = 0, max_records: int | None = None, update_offsets: bool = True
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Returns the next records by partition, `max_records` at most; blocks up to `timeout_ms` while there are none.

        Records that were fetched for an iteration over the consumer, but not returned by it, are returned here. Raises
        IllegalStateError after `close`. `update_offsets` has no effect.
        """
        if timeout_ms < 0:
            raise ValueError("Timeout must not be negative")
        limit = self.config["max_poll_records"] if max_records is None else max_records
        if not isinstance(limit, int):
            raise TypeError("max_records must be an integer")
        if limit <= 0:
            raise ValueError("max_records must be positive")
        if self._closed:
            raise IllegalStateError("KafkaConsumer is closed")
        if self._consumer.unread:
            self._go_back(list(reversed(self._consumer.unread)))
        records = self._poll(timeout_ms / 1000, limit)
        if not records:
            return {}
        try:
            found = self._converter.by_partition(records)
        except Exception:
            return self._readable(records)
        self._returned += len(records)
        return found

    def _readable(self, records: list[fetched_records.ConsumerRecord]) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Returns the records, by partition, up to the first one that cannot be deserialized.

        The next poll returns this record and the later ones again. If it is the first element of `records`, raises the
        error of the deserializer instead.
        """
        found: dict[TopicPartition, list[ConsumerRecord]] = {}
        for number, record in enumerate(records):
            try:
                converted = self._converter.convert(record)
            except Exception:
                self._go_back(records[number:])
                if not number:
                    raise
                self._returned += number
                break
            found.setdefault(TopicPartition(record.topic, record.partition), []).append(converted)
        return found

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConsumerRecord:
        """Returns the next record; raises StopIteration after `consumer_timeout_ms` without one, and after `close`."""
        if self._closed:
            raise StopIteration("KafkaConsumer closed")
        unread = self._consumer.unread
        if not unread:
            self._fill(unread)
        converted = self._converter.convert(unread[-1])  # if it raises, the record stays the next one
        unread.pop()
        self._returned += 1
        return converted

    def _fill(self, unread: list[fetched_records.ConsumerRecord]) -> None:
        """Adds the records of a poll to `unread` in reverse order, so that its last element is the next record.

        Blocks until there are some; raises StopIteration after `consumer_timeout_ms`. Does nothing if `unread` is not
        empty.
        """
        longest_ms = self.config["consumer_timeout_ms"]
        end = INFINITE if longest_ms < 0 else time.monotonic() + longest_ms / 1000
        while not unread:
            left_s = end - time.monotonic()
            if left_s <= 0:
                raise StopIteration
            unread += reversed(self._poll(min(left_s, _BLOCKING_POLL_S), self.config["max_poll_records"]))

    def _poll(self, timeout_s: float, limit: int) -> list[fetched_records.ConsumerRecord]:
        try:
            if self.config["group_id"] is None and not self._has_assigned:
                end = time.monotonic() + timeout_s
                if not self._assign_all(timeout_s):
                    return []
                timeout_s = max(end - time.monotonic(), 0)
            return self._consumer.poll_raw(timeout_s, limit)
        except NotSubscribed:
            time.sleep(timeout_s)
            return []
        except KafkapyError as error:
            raise translate(error) from error

    def _matches(self, topic: str) -> bool:
        if self._pattern is None:
            return self._topics is not None and topic in self._topics
        is_internal = self._consumer.network.cluster.topics[topic].is_internal
        return bool(self._pattern.search(topic)) and not (is_internal and self.config["exclude_internal_topics"])

    def _assign_all(self, timeout_s: float) -> bool:
        """Assigns all partitions of the subscribed topics, including new ones; for a consumer without a group.

        Blocks for at most `timeout_s` seconds while the topics have no partitions; returns False if they still have
        none.
        """
        consumer = self._consumer
        if not consumer.network.wait_until(self._has_partitions, timeout_s):
            return False
        cluster = consumer.network.cluster
        if cluster is not self._seen_cluster:
            self._seen_cluster = cluster
            wanted = self._partitions_of_topics()
            if wanted != set(consumer.assigned.partitions):
                with consumer.network.lock:
                    consumer.assigned.replace(sorted(wanted))
                    consumer.assigned.is_manual = True
                    consumer.group.assigned_manually()
        return True

    def _has_partitions(self) -> bool:
        return bool(self._partitions_of_topics())

    def _partitions_of_topics(self) -> set[types.TopicPartition]:
        topics = self._consumer.network.cluster.topics
        return {
            types.TopicPartition(name, each.partition)
            for name, info in topics.items()
            if self._matches(name)
            for each in info.partitions
        }

    def _go_back(self, records: Sequence[fetched_records.ConsumerRecord]) -> None:
        """Sets the position of each partition to its first offset in `records`, so that the records are returned again.

        Ignores partitions that are no longer assigned.
        """
        first: dict[tuple[str, int], int] = {}
        for record in records:
            first.setdefault((record.topic, record.partition), record.offset)
        for partition, offset in first.items():
            if partition in self._consumer.assigned.partitions:
                self._consumer.seek(types.TopicPartition(*partition), offset)
        self._consumer.unread.clear()

    # Positions

    def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int | None:
        """Returns the offset of the next record, or None if it is still unknown after `timeout_ms`. Blocks.

        Raises IllegalStateError if the partition is not assigned.
        """
        self._check_assigned(partition)
        try:
            with translated():
                return self._consumer.position(types.TopicPartition(*partition), self._seconds(timeout_ms))
        except KafkaTimeoutError:
            return None

    def highwater(self, partition: TopicPartition) -> int | None:
        """Returns the high watermark in the last fetch response for a partition; None before the first response.

        Raises IllegalStateError if the partition is not assigned.
        """
        self._check_assigned(partition)
        found = self._consumer.assigned.partitions[types.TopicPartition(*partition)].high_watermark
        return None if found < 0 else found

    def pause(self, *partitions: TopicPartition) -> None:
        """Stops returning records of these partitions until `resume`."""
        self._check_types(partitions)
        fetched = [each for each in reversed(self._consumer.unread) if (each.topic, each.partition) in partitions]
        kept = [each for each in self._consumer.unread if (each.topic, each.partition) not in partitions]
        if fetched:
            self._go_back(fetched)
            self._consumer.unread[:] = kept
        self._consumer.pause(types.TopicPartition(*each) for each in partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Returns records of paused partitions again."""
        self._check_types(partitions)
        self._consumer.resume(types.TopicPartition(*each) for each in partitions)

    def paused(self) -> set[TopicPartition]:
        """Returns the paused partitions."""
        return {TopicPartition(*each) for each in self._consumer.paused()}

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Sets the position of an assigned partition.

        Raises ValueError if it is not assigned or the offset is negative.
        """
        self._check_types((partition,))
        if not isinstance(offset, int) or offset < 0:
            raise ValueError("Offset must be int >= 0")
        if partition not in self._consumer.assigned.partitions:
            raise ValueError("Unassigned partition")
        self._consumer.seek(types.TopicPartition(*partition), offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Sets the positions to the first record of these partitions; by default of all assigned ones."""
        self._consumer.seek_to_beginning(self._seekable(partitions))

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Sets the positions to the end offsets of these partitions; without arguments, of all assigned ones."""
        self._consumer.seek_to_end(self._seekable(partitions))

    def _seekable(self, partitions: Sequence[TopicPartition]) -> list[types.TopicPartition]:
        self._check_types(partitions)
        assigned = self._consumer.assigned.partitions
        if not partitions and not assigned:
            raise ValueError("No partitions are currently assigned")
        for each in partitions:
            if each not in assigned:
                raise ValueError(f"Unassigned partition: {each}")
        return [types.TopicPartition(*each) for each in partitions or assigned]

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Returns the offset of each partition's first record with the given timestamp (ms since 1970) or a later one.

        The value is None for a partition without such a record. Raises ValueError for a negative timestamp, and
        KafkaTimeoutError after `timeout_ms`, by default after `request_timeout_ms`.
        """
        for partition, timestamp in timestamps.items():
            if timestamp < 0:
                raise ValueError(f"The target time for partition {partition} is {timestamp}; it cannot be negative.")
        with translated():
            found = self._consumer.offsets_for_times(
                {types.TopicPartition(*each): int(timestamp) for each, timestamp in timestamps.items()},
                self._seconds(timeout_ms),
            )
        return {
            TopicPartition(*each): None if offset is None else OffsetAndTimestamp(*offset)
            for each, offset in found.items()
        }

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """Returns the first offset of each partition.

        Raises KafkaTimeoutError after `timeout_ms`, by default after `request_timeout_ms`.
        """
        with translated():
            found = self._consumer.beginning_offsets(_client_partitions(partitions), self._seconds(timeout_ms))
        return {TopicPartition(*each): offset for each, offset in found.items()}

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """Returns the end offset of each partition.

        Raises KafkaTimeoutError after `timeout_ms`, by default after `request_timeout_ms`.
        """
        with translated():
            found = self._consumer.end_offsets(_client_partitions(partitions), self._seconds(timeout_ms))
        return {TopicPartition(*each): offset for each, offset in found.items()}

    def topics(self) -> set[str]:
        """Returns the names of all topics that the client may see, without the internal ones. Blocks."""
        found = all_topics(self._consumer.network, self._seconds(None))
        return {name for name, info in found.items() if not info.is_internal}

    def partitions_for_topic(self, topic: str) -> set[int]:
        """Returns the partitions of a topic; empty if the topic does not exist. Blocks if the topic is not known."""
        info = self._consumer.network.cluster.topics.get(topic)
        if info is None:
            info = all_topics(self._consumer.network, self._seconds(None)).get(topic)
        return set() if info is None else {each.partition for each in info.partitions}

    # Commits

    def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None, timeout_ms: float | None = None
    ) -> None:
        """Commits `offsets`, or by default the positions after the returned records. Blocks until they are committed.

        Raises CommitFailedError if the group has rebalanced, and IllegalStateError without `group_id`.
        """
        self._require_group()
        try:
            self._consumer.commit(None if offsets is None else client_offsets(offsets), self._seconds(timeout_ms))
        except KafkapyError as error:
            raise _commit_error(error) from error

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        callback: Callable[[Any, Any], object] | None = None,
    ) -> CommitFuture:
        """Commits `offsets`, or by default the positions after the returned records, and returns a future.

        `callback(offsets, response)`, by default `default_offset_commit_callback`, is called within a later `poll`,
        `commit` or `close`, or when `is_done` of the future is read; `response` is an exception after a failure. Blocks
        while the coordinator of the group is looked up.
        """
        self._require_group()
        commits = self._consumer.group.commits
        wanted: Any = commits.positions() if offsets is None else client_offsets(offsets)
        given = {TopicPartition(*each): OffsetAndMetadata(*value) for each, value in wanted.items()}
        chosen = callback or self.config["default_offset_commit_callback"]
        future = CommitFuture(commits.call_back, given, chosen)
        with translated():
            commits.await_coordinator(self._seconds(None))
            self._consumer.commit_async(
                wanted, lambda _, error: future.finish(None if error is None else _commit_error(error))
            )
        return future

    def committed(
        self, partition: TopicPartition, metadata: bool = False, timeout_ms: float | None = None
    ) -> int | OffsetAndMetadata | None:
        """Returns the offset that the group has committed for a partition, None if there is none. Blocks.

        The result is an integer, or with `metadata` an OffsetAndMetadata.
        """
        self._require_group()
        self._check_types((partition,))
        with translated():
            found = self._consumer.committed(_client_partitions([partition]), self._seconds(timeout_ms))
        offset = found[types.TopicPartition(*partition)]
        if offset is None:
            return None
        return OffsetAndMetadata(*offset) if metadata else offset.offset

    # Other

    def metrics(self, raw: bool = False) -> dict[Any, Any] | None:
        """Returns the consumer's metrics as {group: {name: value}}, or with `raw` as {MetricName: value}.

        Returns None if the option `metrics_enabled` is False.
        """
        if not self.config["metrics_enabled"]:
            return None
        found = consumer_metrics(self._consumer, self.config["client_id"], self._returned)
        return found if raw else grouped(found)

    def _seconds(self, timeout_ms: float | None) -> float:
        return float(self.config["request_timeout_ms"] if timeout_ms is None else timeout_ms) / 1000

    def _require_group(self) -> None:
        if self.config["group_id"] is None:
            raise IllegalStateError("Requires group_id")

    def _check_types(self, partitions: Iterable[Any]) -> None:
        if not all(isinstance(each, TopicPartition) for each in partitions):
            raise TypeError("partition must be a TopicPartition namedtuple")

    def _check_assigned(self, partition: TopicPartition) -> None:
        self._check_types((partition,))
        if partition not in self._consumer.assigned.partitions:
            raise IllegalStateError("Partition is not assigned")


def from_the_start(pattern: str) -> re.Pattern[str]:
    """Returns a pattern whose `search` finds a match of `pattern` only at the start of a text."""
    compiled = re.compile(pattern)
    without_flags = re.sub(r"^\(\?[aiLmsux]+\)", "", pattern)
    return re.compile(rf"\A(?:{without_flags})", compiled.flags)


def _client_partitions(partitions: Iterable[TopicPartition]) -> list[types.TopicPartition]:
    return [types.TopicPartition(*each) for each in partitions]


def _commit_error(error: BaseException) -> BaseException:
    if isinstance(error, ApiError) and error.error in _LOST:
        return CommitFailedError()
    return translate(error)
