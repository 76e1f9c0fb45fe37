"""The consumer: reads the records of partitions that its group or the application assigns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Any, TypeVar

from kafkapy._core.bytes.arrow_batch import ArrowBatch
from kafkapy._core.client.fetched_records import ConsumerRecord
from kafkapy.client.closing import Closing
from kafkapy.client.cluster import PartitionInfo
from kafkapy.client.columnar import MOST_BYTES, MOST_ROWS, PLAIN_COLUMNS, ArrowBatches, collect_columns
from kafkapy.client.configuration import ClientConfig, consumer_config
from kafkapy.client.consumer_group import ConsumerGroup, RebalanceListener
from kafkapy.client.coordinator import GroupMetadata, OffsetAndMetadata, with_metadata
from kafkapy.client.environment import SYSTEM
from kafkapy.client.errors import ClientClosed, ConfigError, NotSubscribed, UnreadableRecords
from kafkapy.client.fetcher import Fetcher
from kafkapy.client.interceptors import Interceptors
from kafkapy.client.metrics import Metrics
from kafkapy.client.network import Network
from kafkapy.client.offset_lookup import OffsetAndTimestamp, look_up_all
from kafkapy.client.serialization import find_deserializer
from kafkapy.client.single_thread import SingleThread, by_one_thread
from kafkapy.client.subscription import Subscription, SubscriptionPattern
from kafkapy.client.telemetry import start_telemetry
from kafkapy.client.throttling import ThrottleTimes
from kafkapy.protocol.api import ApiKey
from kafkapy.types import TopicPartition

# Fetches, commits and heartbeats do not wait for each other's responses on one connection.
IN_FLIGHT_LIMIT = 100
Topics = Iterable[str] | str | re.Pattern[str] | SubscriptionPattern
Polled = TypeVar("Polled", bound=Sized)
OnCommit = Callable[[dict[TopicPartition, OffsetAndMetadata], Exception | None], object]


class ConsumerRecords(list[ConsumerRecord]):
    """The records that a poll returned; those of one partition are in the order of their offsets."""

    def by_partition(self) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Returns the records grouped by partition, each group in the order of offsets."""
        found: dict[TopicPartition, list[ConsumerRecord]] = {}
        for record in self:
            found.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        return found


class Consumer(Closing):
    """Reads records of topics, as a member of a group (`subscribe`) or of chosen partitions (`assign`).

    `properties` has Apache Kafka's configuration keys of a consumer; a key can also be a keyword argument, with `_`
    instead of `.`: `Consumer(bootstrap_servers="localhost:9092", group_id="readers")`. Raises ConfigError for an
    invalid configuration.

    A consumer must be used by one thread at a time: a method that is called while another thread is in a method of the
    consumer raises ConcurrentUse. Only `wakeup` may be called by any thread. A networking thread of its own fetches
    ahead and sends heartbeats. Iterating over a consumer returns record by record, without end. All
    time-outs are in seconds; None means `default.api.timeout.ms`. Methods that block raise WakeupError after `wakeup`,
    and all but `poll` and `close` raise RequestTimedOut (a TimeoutError) when their time-out has passed.
    """

    _environment = SYSTEM

    def __init__(self, properties: Mapping[str, Any] | None = None, **settings: Any) -> None:
        config = consumer_config(properties, **settings)
        self._config = config
        self._key_deserializer = find_deserializer("key.deserializer", config["key.deserializer"])
        self._value_deserializer = find_deserializer("value.deserializer", config["value.deserializer"])
        self._interceptors = Interceptors(config["interceptor.classes"])
        self._max_records: int = config["max.poll.records"]
        self._api_timeout_s: float = config["default.api.timeout.ms"] / 1000
        self._network = Network(config, in_flight_limit=IN_FLIGHT_LIMIT, environment=self._environment)
        self._network.metadata.allow_creation = config["allow.auto.create.topics"]
        self._subscription = Subscription(excludes_internal=config["exclude.internal.topics"])
        self._fetcher = Fetcher(self._network, self._subscription, config)
        self._group = ConsumerGroup(self._network, self._subscription, config, self._on_committed)
        self._network.tasks += [self._group, self._fetcher]
        self._telemetry = start_telemetry(self._network, config, self.metrics)
        self._single_thread = SingleThread()
        self._is_closed = False
        self._unread: list[ConsumerRecord] = []  # polled by iteration and not returned yet, the next one last
        self._group.commits.unread = self._unread
        self._network.start()

    def __repr__(self) -> str:
        group = "" if self._group.group_id is None else f" group_id={self._group.group_id!r}"
        state = " closed" if self._is_closed else ""
        return f"<Consumer client_id={self._config['client.id']!r}{group}{state}>"

    @property
    def config(self) -> ClientConfig:
        """The configuration as typed values, such as `config["fetch.min.bytes"]`."""
        return self._config

    # Subscription

    @by_one_thread
    def subscribe(self, topics: Topics, listener: RebalanceListener | None = None) -> None:
        """Subscribes to topics, whose partitions the group distributes among its members. Does not block.

        `topics` are names, one name, a compiled pattern (every topic whose name contains a match), or a
        SubscriptionPattern that the coordinator evaluates. `listener` is called within `poll` when partitions are
        revoked or assigned. Raises ConfigError without `group.id`, and SubscriptionError after `assign`.
        """
        self._check_open()
        self._group.commits.require_group()
        if isinstance(topics, SubscriptionPattern) and self._config["group.protocol"].lower() == "classic":
            raise ConfigError(
                "Subscribe to RE2/J pattern is not supported when using the CLASSIC protocol defined in config "
                "group.protocol"
            )
        with self._network.lock:
            if isinstance(topics, re.Pattern):
                self._subscription.subscribe((), topics)
            elif isinstance(topics, SubscriptionPattern):
                self._subscription.subscribe((), server_pattern=topics.pattern)
            else:
                self._subscription.subscribe([topics] if isinstance(topics, str) else topics)
            self._group.subscription_changed(listener)

    @by_one_thread
    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Assigns exactly these partitions, without a rebalance of a group. Does not block.

        Partitions that were assigned before keep their positions. Raises SubscriptionError after `subscribe`.
        """
        self._check_open()
        wanted = [TopicPartition(*each) for each in partitions]
        with self._network.lock:
            self._subscription.assign_manually(wanted)
            self._network.metadata.set_topics({each.topic for each in wanted})
            self._group.assigned_manually()

    @by_one_thread
    def unsubscribe(self) -> None:
        """Leaves the group and drops the subscription and all assigned partitions. Blocks.

        The commit, if auto-commit is on, blocks for `default.api.timeout.ms` at most, and the request to leave for five
        seconds at most.
        """
        with self._network.uninterrupted():
            self._group.leave(self._api_timeout_s)
        with self._network.lock:
            self._subscription.unsubscribe()
            self._network.metadata.set_topics(())
        self._unread.clear()

    @by_one_thread
    def subscription(self) -> frozenset[str]:
        """Returns the subscribed topics; with a compiled pattern, the topics whose names match it now."""
        return self._subscription.matching(self._network.cluster.topics)

    @by_one_thread
    def assignment(self) -> frozenset[TopicPartition]:
        """Returns the partitions that are assigned now."""
        return frozenset(self._subscription.partitions)

    # Records

    @by_one_thread
    def poll(self, timeout: float = 0.0) -> ConsumerRecords:
        """Returns the next records, at most `max.poll.records`; blocks up to `timeout` seconds while there are none.

        It also joins the group, calls the rebalance listener and the callbacks of commits, and commits when auto-commit
        is due; a member must poll at least every `max.poll.interval.ms`. If a deserializer raises an error, the
        records before this record are returned first; then every poll raises UnreadableRecords, which names the record,
        until the application seeks past it. Raises WakeupError after `wakeup`; ApiError for an error that is not
        retried, such as a corrupt batch; NoOffsetForPartition if a partition has no valid position; NotSubscribed
        without a subscription.
        """
        return self._finish(self._poll(timeout, self._collect))

    @by_one_thread
    def poll_arrow(
        self,
        timeout: float = 0.0,
        *,
        columns: Iterable[str] = PLAIN_COLUMNS,
        max_rows: int = MOST_ROWS,
        timestamp_unit: str = "us",
    ) -> ArrowBatches:
        """Returns the next records as columns: batches of one partition each, of at most `max_rows` rows.

        No Python object is made per record, and the interpreter lock is free while records are decoded. The result and
        each batch can be passed to any library that reads Arrow, without a copy: `pyarrow.table(result)`,
        `polars.DataFrame(result)`, `duckdb.from_arrow(pyarrow.table(result))`.

        `columns` are some of key, value, topic, partition, offset, timestamp, timestampType, headers, as in Spark's
        Kafka source; the others are not decoded. `timestamp_unit` is "us" or "ms". Raises ValueError for another column
        or unit. Blocks, commits and raises errors as `poll` does; deserializers, interceptors and `max.poll.records`
        are not used.
        """
        chosen = tuple(columns)

        def make() -> ArrowBatch:
            return ArrowBatch(chosen, max_rows=max_rows, max_bytes=MOST_BYTES, timestamp_unit=timestamp_unit)

        template = make()  # raises ValueError before anything is fetched
        return self._poll(timeout, lambda: ArrowBatches(collect_columns(self._network, self._fetcher, make), template))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Returns an iterator over the records that never ends; it blocks while there is no record."""
        rest = self._unread
        while True:
            while rest:
                yield rest.pop()
            rest += reversed(self.poll(1.0))

    def wakeup(self) -> None:
        """Makes the call that blocks now, or else the next call that blocks, raise WakeupError.

        May be called by any thread. `close`, `unsubscribe` and automatic commits are not interrupted.
        """
        self._network.interrupt()

    def forget_wakeup(self) -> None:
        """Cancels a `wakeup` for which no call has raised WakeupError yet."""
        self._network.forget_interrupt()

    # Positions

    @by_one_thread
    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """Returns the offset of the next record; blocks until it is known.

        Raises ValueError if the partition is not assigned.
        """
        for record in reversed(self._unread):
            if (record.topic, record.partition) == partition:
                return record.offset
        state = self._subscription.state(partition)
        limit = self._api_timeout_s if timeout is None else timeout
        group, errors = self._group, self._fetcher.errors
        if not self._network.wait_until(lambda: state.position is not None or bool(errors) or group.has_error, limit):
            raise self._network.timed_out(
                f"Timeout of {limit} s expired before the position for partition {partition} was found"
            )
        if state.position is None:
            raise group.take_error() or errors.pop(0)
        return state.position

    @by_one_thread
    def seek(self, partition: TopicPartition, offset: OffsetAndMetadata | int) -> None:
        """Sets the position of an assigned partition, from which the next records are fetched. Does not block.

        If a fetch at the former position waits at the broker, the next fetch is sent after its response, up to
        `fetch.max.wait.ms` later; as with Java's consumer, a shorter poll may return nothing although records exist.

        An offset with a leader epoch, as `committed` returns it, is checked for truncation of the log before records
        are fetched. Raises ValueError for a negative offset or a partition that is not assigned.
        """
        target = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        if target.offset < 0:
            raise ValueError("seek offset must not be a negative number")
        with self._network.lock:
            self._subscription.state(partition).jump(target.offset, target.leader_epoch)
        self._drop_unread(partition)

    @by_one_thread
    def seek_to_time(self, timestamp: int, partitions: Iterable[TopicPartition] = ()) -> None:
        """Sets positions to the first record with this timestamp (ms since 1970) or a later one.

        Without such a record, the position becomes the end of the partition, after its last record.

        Applies to `partitions`, or to all assigned ones if none are given. Does not block: the offset is looked up by
        the next `poll` or `position`. Raises ValueError for a negative timestamp.
        """
        if timestamp < 0:
            raise ValueError("The target time cannot be negative")
        self._seek_by(partitions, timestamp)

    @by_one_thread
    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Sets the positions of these partitions to their first record. Without `partitions`, applies to all assigned
        ones.

        Does not block: the offsets are looked up afterwards, and `position` waits for the result.
        """
        self._seek_by(partitions, -2)

    @by_one_thread
    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Sets the positions of these partitions to their ends. Without `partitions`, applies to all assigned ones.

        Does not block: the offsets are looked up afterwards, and `position` waits for the result.
        """
        self._seek_by(partitions, -1)

    @by_one_thread
    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Stops returning records of these partitions until `resume`; they stay assigned. Does not block."""
        for each in partitions:
            self._subscription.state(each).is_paused = True

    @by_one_thread
    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Returns records of paused partitions again. Does not block."""
        for each in partitions:
            self._subscription.state(each).is_paused = False
        self._network.wake_for(0)

    @by_one_thread
    def paused(self) -> frozenset[TopicPartition]:
        """Returns the paused partitions."""
        return frozenset(
            topic_partition for topic_partition, state in self._subscription.partitions.items() if state.is_paused
        )

    @by_one_thread
    def current_lag(self, partition: TopicPartition) -> int | None:
        """Returns the number of records between the position and the end of the partition at the last fetch.

        With `isolation.level=read_committed` the end is the last stable offset. Returns None if the position or the end
        is not known. Does not block.
        """
        state = self._subscription.state(partition)
        end = state.last_stable_offset if self._fetcher.isolation_level else state.high_watermark
        return None if end < 0 or state.position is None else max(end - state.position, 0)

    @by_one_thread
    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Returns the first offset of each partition. Blocks."""
        found = self._look_up({TopicPartition(*each): -2 for each in partitions}, timeout)
        return {topic_partition: each.offset for topic_partition, each in found.items() if each is not None}

    @by_one_thread
    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Returns the end offset of each partition, at which this consumer's reading would end now. Blocks.

        This is the last stable offset with `isolation.level=read_committed`, otherwise the high watermark.
        """
        found = self._look_up({TopicPartition(*each): -1 for each in partitions}, timeout)
        return {topic_partition: each.offset for topic_partition, each in found.items() if each is not None}

    @by_one_thread
    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Returns the offset of each partition's first record with the given timestamp (ms since 1970) or a later one.

        The value is None for a partition without such a record. Blocks. Raises ValueError for a negative timestamp.
        """
        if any(timestamp < 0 for timestamp in timestamps.values()):
            raise ValueError("The target time cannot be negative")
        return self._look_up(timestamps, timeout)

    @by_one_thread
    def partitions_for(self, topic: str, timeout: float | None = None) -> tuple[PartitionInfo, ...]:
        """Returns the partitions of a topic; empty if the topic does not exist. Blocks."""
        metadata = self._network.metadata
        with self._network.lock:
            metadata.add_topic(topic)
            metadata.request_update()
            seen = metadata.updates
        limit = self._api_timeout_s if timeout is None else timeout

        def is_answered() -> bool:
            # The response to an earlier request may lack the topic.
            cluster = self._network.cluster
            return metadata.updates > seen and (topic in cluster.topics or topic in cluster.errors)

        if not self._network.wait_until(is_answered, limit):
            raise self._network.timed_out(f"Timeout expired while fetching metadata of topic {topic}")
        info = self._network.cluster.topics.get(topic)
        return () if info is None else info.partitions

    # Commits

    @by_one_thread
    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commits the given offsets, or all positions if none are given, and blocks until they are written.

        An offset is the offset of the next record to read. Raises ApiError if the group has rebalanced without this
        member, or for another error that is not retried.
        """
        with self._network.metrics.time_totals.spent_in("commit-sync"):
            self._group.commits.commit(self._to_commit(offsets), self._api_timeout_s if timeout is None else timeout)

    @by_one_thread
    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        on_commit: OnCommit | None = None,
    ) -> None:
        """Commits the given offsets, or all positions if none are given, without blocking and without retrying.

        `on_commit(offsets, error)` is called within a later `poll`, `commit` or `close`; `error` is None after a
        success.
        """
        wanted = self._to_commit(offsets)
        self._group.commits.commit_async(wanted, lambda error: on_commit(wanted, error) if on_commit else None)

    @by_one_thread
    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Returns the offset that the group has committed for each partition. Blocks.

        The value is None for a partition without a committed offset.
        """
        wanted = [TopicPartition(*each) for each in partitions]
        with self._network.metrics.time_totals.spent_in("committed"):
            found = self._group.commits.committed(wanted, self._api_timeout_s if timeout is None else timeout)
        return {each: found.get(each) for each in wanted}

    @by_one_thread
    def group_metadata(self) -> GroupMetadata:
        """Returns the group and this member's ids, for `Producer.send_offsets_to_transaction`. Does not block."""
        self._group.commits.require_group()
        return GroupMetadata(self._group.group_id or "", self._group.identity)

    @property
    def throttle_times(self) -> ThrottleTimes:
        """The throttle times of the responses to fetches, by which brokers delay a client beyond its quota."""
        return self._network.throttling.times[ApiKey.FETCH]

    def metrics(self) -> Metrics:
        """Returns the metrics of this consumer, by name, group and tags as in Java's consumer. Does not block."""
        from kafkapy.client.metric_names import consumer_metrics

        return consumer_metrics(self._network, self._subscription)

    @by_one_thread
    def close(self, timeout: float = 30.0) -> None:
        """Commits if auto-commit is on, leaves the group, and closes the connections. May be called again.

        Blocks up to `timeout` seconds; an automatic commit that fails is logged.
        """
        if self._is_closed:
            return
        self._is_closed = True
        try:
            with self._network.uninterrupted():
                self._group.close(timeout)
        finally:
            if self._telemetry is not None:
                self._telemetry.end()
            self._network.close()
            self._interceptors.notify("close")

    # Internal

    def _poll(self, timeout: float, collect: Callable[[], Polled]) -> Polled:
        self._check_open()
        if not self._subscription.is_automatic and not self._subscription.is_manual:
            raise NotSubscribed("Consumer is not subscribed to any topics or assigned any partitions")
        end_ms = self._network.clock.monotonic_ms() + int(timeout * 1000)
        self._network.metrics.polled()
        try:
            return self._poll_until(end_ms, collect)
        finally:
            self._network.metrics.poll_ended()

    def _poll_until(self, end_ms: int, collect: Callable[[], Polled]) -> Polled:
        """Calls `ConsumerGroup.poll` and then `collect`, again and again, until `collect` returns records. Returns
        them. Blocks.

        Returns an empty result if `collect` finds no records until the monotonic time `end_ms`.
        """
        while True:
            self._network.raise_if_interrupted()
            self._group.poll(end_ms)
            found = collect()
            if found:
                return found
            left_ms = end_ms - self._network.clock.monotonic_ms()
            if left_ms <= 0:
                self._network.try_step()
                return collect()
            self._network.wait_until(lambda: self._fetcher.has_records or self._group.needs_attention, left_ms / 1000)

    def _collect(self) -> list[ConsumerRecord]:
        with self._network.lock:
            return self._fetcher.collect(self._max_records)

    def _finish(self, records: list[ConsumerRecord]) -> ConsumerRecords:
        """Deserializes polled records, passes them to the interceptors, and returns the result.

        If the poll has emptied a partition's buffer, first sends the next fetch, so that the broker prepares the
        response while this method works.
        """
        if records and self._fetcher.is_hungry:
            self._network.try_step()
        if self._key_deserializer is not None or self._value_deserializer is not None:
            records = self._all_deserialized(records)
        if records and self._interceptors:
            records = self._interceptors.transform("on_consume", records)
        return ConsumerRecords(records)

    def _all_deserialized(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """Returns the records with their keys and values deserialized.

        If a deserializer raises an error, the positions go back to this record and to those behind it, so that no
        record is lost. Returns the records before it, or raises UnreadableRecords if there are none.
        """
        done: list[ConsumerRecord] = []
        try:
            for record in records:
                done.append(self._deserialized(record))
        except Exception as error:
            refused = records[len(done)]
            self._read_again(records[len(done) :])
            if not done:
                partition = TopicPartition(refused.topic, refused.partition)
                raise UnreadableRecords(partition, [(refused.offset, refused.offset)], error) from error
        return done

    def _read_again(self, records: list[ConsumerRecord]) -> None:
        """Moves the position of each partition back to the first of these records, which were just collected."""
        first: dict[TopicPartition, int] = {}
        for record in records:
            first.setdefault(TopicPartition(record.topic, record.partition), record.offset)
        with self._network.lock:
            for topic_partition, offset in first.items():
                self._subscription.state(topic_partition).jump(offset)

    def _deserialized(self, record: ConsumerRecord) -> ConsumerRecord:
        key, value = record.key, record.value
        if self._key_deserializer is not None:
            key = self._key_deserializer(record.topic, key)
        if self._value_deserializer is not None:
            value = self._value_deserializer(record.topic, value)
        return record.with_content(key, value)

    def _seek_by(self, partitions: Iterable[TopicPartition], timestamp: int) -> None:
        wanted = list(partitions) or list(self._subscription.partitions)
        with self._network.lock:
            for each in wanted:
                self._subscription.state(each).jump_by(timestamp)
        for each in wanted:
            self._drop_unread(each)
        self._network.wake_for(0)

    def _drop_unread(self, partition: TopicPartition) -> None:
        """Drops the partition's records that iteration has polled but not returned; called after the position was
        changed.
        """
        if self._unread:
            self._unread[:] = [each for each in self._unread if (each.topic, each.partition) != partition]

    def _look_up(
        self, wanted: Mapping[TopicPartition, int], timeout: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        limit = self._api_timeout_s if timeout is None else timeout
        return look_up_all(self._network, wanted, self._fetcher.isolation_level, limit)

    def _to_commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        if offsets is None:
            return self._group.commits.positions()
        return with_metadata(offsets)

    def _on_committed(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        self._interceptors.notify("on_commit", offsets)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClientClosed("This consumer has already been closed.")
