"""The consumer: records of assigned partitions, or of those that its group gives it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from kafkapy._core.bytes.arrow_batch import ArrowBatch
from kafkapy._core.client.fetched_records import ConsumerRecord
from kafkapy.client.cluster import PartitionInfo
from kafkapy.client.columnar import MOST_BYTES, MOST_ROWS, PLAIN_COLUMNS, collect_columns
from kafkapy.client.configuration import ClientConfig, consumer_config
from kafkapy.client.coordinator import GroupMetadata, OffsetAndMetadata, with_metadata
from kafkapy.client.fetcher import Fetcher
from kafkapy.client.group import ConsumerGroup, RebalanceListener
from kafkapy.client.interceptors import Interceptors
from kafkapy.client.network import SYSTEM, Network, Surroundings
from kafkapy.client.offset_lookup import OffsetAndTimestamp, look_up_all
from kafkapy.client.serialization import find_deserializer
from kafkapy.client.subscription import Subscription, SubscriptionPattern
from kafkapy.errors import ConfigError
from kafkapy.types import Clock, TopicPartition

# Fetches, commits and heartbeats never wait for each other's answers on one connection.
IN_FLIGHT_LIMIT = 100
Topics = Iterable[str] | str | re.Pattern[str] | SubscriptionPattern
Taken = TypeVar("Taken")
OnCommit = Callable[[dict[TopicPartition, OffsetAndMetadata], Exception | None], object]


class ConsumerRecords(list[ConsumerRecord]):
    """What a poll returned: records, those of a partition in their order."""

    def by_partition(self) -> dict[TopicPartition, list[ConsumerRecord]]:
        """The records of each partition."""
        found: dict[TopicPartition, list[ConsumerRecord]] = {}
        for record in self:
            found.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        return found


class Consumer:
    """Reads records.  For one thread at a time, except `wakeup`; fetching, and heartbeats for the group, go on beside.

    `properties` are Apache Kafka's own configuration keys; as keyword arguments they have `_` for `.`:
    `Consumer(bootstrap_servers="localhost:9092", group_id="readers")`. Either `subscribe`, and the group says which
    partitions this member reads, or `assign` them. ConfigError for a configuration that cannot be.
    """

    def __init__(
        self,
        properties: Mapping[str, Any] | None = None,
        *,
        clock: Clock | None = None,
        surroundings: Surroundings = SYSTEM,
        **settings: Any,
    ) -> None:
        config = consumer_config(properties, **settings)
        self._config = config
        self._key_deserializer = find_deserializer("key.deserializer", config["key.deserializer"])
        self._value_deserializer = find_deserializer("value.deserializer", config["value.deserializer"])
        self._interceptors = Interceptors(config["interceptor.classes"])
        self._max_records: int = config["max.poll.records"]
        self._api_timeout_s: float = config["default.api.timeout.ms"] / 1000
        self._network = Network(config, in_flight_limit=IN_FLIGHT_LIMIT, clock=clock, surroundings=surroundings)
        self._network.metadata.allow_creation = config["allow.auto.create.topics"]
        self._subscription = Subscription(excludes_internal=config["exclude.internal.topics"])
        self._fetcher = Fetcher(self._network, self._subscription, config)
        self._group = ConsumerGroup(self._network, self._subscription, config, self._tell_committed)
        self._network.tasks += [self._group, self._fetcher]
        self._is_closed = False
        self.iterated: list[ConsumerRecord] = []  # what iterating has polled and not given out yet, the next one last
        self._network.start()

    @property
    def config(self) -> ClientConfig:
        """The typed configuration."""
        return self._config

    # What to read

    def subscribe(self, topics: Topics, listener: RebalanceListener | None = None) -> None:
        """Reads these topics, or all whose name a compiled pattern is found in, shared with the other members of the
        group; a SubscriptionPattern is the coordinator's to evaluate. `listener` hears of partitions that come and go,
        within `poll`."""
        self._check_open()
        self._group.commits.require_group()
        if isinstance(topics, SubscriptionPattern) and self._config["group.protocol"].lower() == "classic":
            raise ConfigError(
                "Subscribe to RE2/J pattern is not supported when using the CLASSIC protocol defined in config "
                "group.protocol"
            )
        with self._network.seat:
            if isinstance(topics, re.Pattern):
                self._subscription.subscribe((), topics)
            elif isinstance(topics, SubscriptionPattern):
                self._subscription.subscribe((), server_pattern=topics.pattern)
            else:
                self._subscription.subscribe([topics] if isinstance(topics, str) else topics)
            self._group.subscription_changed(listener)

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Reads exactly these partitions, without a group's help."""
        self._check_open()
        wanted = [TopicPartition(*each) for each in partitions]
        with self._network.seat:
            self._subscription.assign_manually(wanted)
            self._network.metadata.set_topics({each.topic for each in wanted})
            self._group.assigned_manually()

    def unsubscribe(self) -> None:
        """Reads nothing any more and leaves the group."""
        with self._network.undisturbed():
            self._group.leave(self._api_timeout_s)
        with self._network.seat:
            self._subscription.unsubscribe()
            self._network.metadata.set_topics(())
        self.iterated.clear()

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to; with a pattern, those that match it now."""
        return self._subscription.matching(self._network.cluster.topics)

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read."""
        return frozenset(self._subscription.partitions)

    # Records

    def poll(self, timeout: float = 0.0) -> ConsumerRecords:
        """The next records, at most max.poll.records; waits up to `timeout` seconds for the first. Keeps the membership
        alive, calls the rebalance listener, and commits when auto-commit is due.

        WakeupError after `wakeup`; ApiError for what cannot be repaired, such as a damaged batch.
        """
        return self._finish(self._poll(timeout, self._collect))

    def poll_arrow(
        self,
        timeout: float = 0.0,
        *,
        columns: Iterable[str] = PLAIN_COLUMNS,
        max_rows: int = MOST_ROWS,
        timestamp_unit: str = "us",
    ) -> list[ArrowBatch]:
        """As `poll`, but the next records come as columns: a list of batches for Arrow, each of one partition and of at
        most `max_rows` rows, decoded without the interpreter lock and without a Python object per record. Any Arrow
        library takes them without a copy: `pyarrow.record_batch(batch)`.

        `columns`: some of key, value, topic, partition, offset, timestamp, timestampType, headers, as in Spark's Kafka
        source (what is not asked for is not decoded). Positions and commits are as with `poll`; deserializers and
        interceptors see nothing of it, and max.poll.records does not count.
        """
        chosen = tuple(columns)

        def make() -> ArrowBatch:
            return ArrowBatch(chosen, max_rows=max_rows, max_bytes=MOST_BYTES, timestamp_unit=timestamp_unit)

        make()  # so that what cannot be asked for is refused before anything has come
        return self._poll(timeout, lambda: collect_columns(self._network, self._fetcher, make))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Records one by one, without end."""
        rest = self.iterated
        while True:
            while rest:
                yield rest.pop()
            rest += reversed(self.poll(1.0))

    def wakeup(self) -> None:
        """Makes the call that waits (`poll`, `commit`, `position`, `end_offsets` and so on), or the next one that does,
        raise WakeupError. `close` and the commits that auto-commit owes go on. Any thread."""
        self._network.interrupt()

    def forget_wakeup(self) -> None:
        """Takes back a `wakeup` that has found nobody waiting."""
        self._network.forget_interrupt()

    # Where to read

    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """The offset of the next record; waits for it to be found. TimeoutError."""
        state = self._subscription.state(partition)
        limit = self._api_timeout_s if timeout is None else timeout
        if not self._network.wait_until(lambda: state.position is not None or bool(self._fetcher.errors), limit):
            raise self._network.timed_out(
                f"Timeout of {limit} s expired before the position for partition {partition} was found"
            )
        if state.position is None:
            raise self._fetcher.errors.pop(0)
        return state.position

    def seek(self, partition: TopicPartition, offset: OffsetAndMetadata | int) -> None:
        """Goes on at an offset. One with a leader's epoch, as `committed` gives it, is held against the log first."""
        named = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        if named.offset < 0:
            raise ValueError("seek offset must not be a negative number")
        with self._network.seat:
            self._subscription.state(partition).jump(named.offset, named.leader_epoch)
        self._drop_rest(partition)

    def seek_to_time(self, timestamp: int, partitions: Iterable[TopicPartition] = ()) -> None:
        """Goes on at the first record with that timestamp (ms since 1970) or a later one, behind the last record where
        there is none; in these partitions, or in all."""
        if timestamp < 0:
            raise ValueError("The target time cannot be negative")
        self._seek_by(partitions, timestamp)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Goes on at the first record of these partitions, or of all."""
        self._seek_by(partitions, -2)

    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Goes on behind the last record of these partitions, or of all."""
        self._seek_by(partitions, -1)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Gives no records of these partitions until `resume`."""
        for each in partitions:
            self._subscription.state(each).is_paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for each in partitions:
            self._subscription.state(each).is_paused = False
        self._network.wake_for(0)

    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(where for where, state in self._subscription.partitions.items() if state.is_paused)

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Records between the position and the end, as the last fetch said; with read_committed, to the last stable
        offset. None if it is not known."""
        state = self._subscription.state(partition)
        end = state.last_stable_offset if self._fetcher.isolation_level else state.high_watermark
        return None if end < 0 or state.position is None else max(end - state.position, 0)

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        found = self._look_up({TopicPartition(*each): -2 for each in partitions}, timeout)
        return {where: each.offset for where, each in found.items() if each is not None}

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset behind the last record of each partition that this consumer could see."""
        found = self._look_up({TopicPartition(*each): -1 for each in partitions}, timeout)
        return {where: each.offset for where, each in found.items() if each is not None}

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition with that timestamp (ms since 1970) or a later one; None without one."""
        if any(timestamp < 0 for timestamp in timestamps.values()):
            raise ValueError("The target time cannot be negative")
        return self._look_up(timestamps, timeout)

    def partitions_for(self, topic: str, timeout: float | None = None) -> tuple[PartitionInfo, ...]:
        """The partitions of a topic; empty if there is no such topic."""
        metadata = self._network.metadata
        with self._network.seat:
            metadata.add_topic(topic)
            metadata.request_update()
            seen = metadata.updates
        limit = self._api_timeout_s if timeout is None else timeout

        def is_answered() -> bool:
            """An answer that was on its way already may know nothing of the topic."""
            cluster = self._network.cluster
            return metadata.updates > seen and (topic in cluster.topics or topic in cluster.errors)

        if not self._network.wait_until(is_answered, limit):
            raise self._network.timed_out(f"Timeout expired while fetching metadata of topic {topic}")
        info = self._network.cluster.topics.get(topic)
        return () if info is None else info.partitions

    # Commits

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commits these offsets (the next record to be read), or all positions, and waits for it. ApiError if the group
        has gone on without this member; TimeoutError."""
        self._group.commits.commit(self._to_commit(offsets), self._api_timeout_s if timeout is None else timeout)

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        on_commit: OnCommit | None = None,
    ) -> None:
        """Commits without waiting and without trying again; `on_commit(offsets, error)` is called within a later poll
        or commit."""
        wanted = self._to_commit(offsets)
        self._group.commits.commit_async(wanted, lambda error: on_commit(wanted, error) if on_commit else None)

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed of these partitions; None for one without."""
        wanted = [TopicPartition(*each) for each in partitions]
        found = self._group.commits.committed(wanted, self._api_timeout_s if timeout is None else timeout)
        return {each: found.get(each) for each in wanted}

    def group_metadata(self) -> GroupMetadata:
        """Who this consumer is in its group, for `Producer.send_offsets_to_transaction`."""
        self._group.commits.require_group()
        return GroupMetadata(self._group.group_id or "", self._group.identity)

    def close(self, timeout: float = 30.0) -> None:
        """Commits if auto-commit is on, leaves the group, and ends. May be called again."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            with self._network.undisturbed():
                self._group.close(timeout)
        finally:
            self._network.close()
            self._interceptors.tell("close")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Own

    def _poll(self, timeout: float, collect: Callable[[], list[Taken]]) -> list[Taken]:
        self._check_open()
        if not self._subscription.is_automatic and not self._subscription.is_manual:
            raise RuntimeError("Consumer is not subscribed to any topics or assigned any partitions")
        end_ms = self._network.clock.monotonic_ms() + int(timeout * 1000)
        while True:
            self._network.raise_if_interrupted()
            self._group.poll(end_ms)
            found = collect()
            if found:
                return found
            left_ms = end_ms - self._network.clock.monotonic_ms()
            if left_ms <= 0:
                self._network.try_drive()
                return collect()
            self._network.wait_until(lambda: self._fetcher.has_records or self._group.needs_attention, left_ms / 1000)

    def _collect(self) -> list[ConsumerRecord]:
        with self._network.seat:
            return self._fetcher.collect(self._max_records)

    def _finish(self, records: list[ConsumerRecord]) -> ConsumerRecords:
        """Deserialized, and through the interceptors; the next fetches leave meanwhile."""
        if records and self._fetcher.is_hungry:
            self._network.try_drive()
        if self._key_deserializer is not None or self._value_deserializer is not None:
            records = [self._deserialized(record) for record in records]
        if records and self._interceptors:
            records = self._interceptors.pass_on("on_consume", records)
        return ConsumerRecords(records)

    def _deserialized(self, record: ConsumerRecord) -> ConsumerRecord:
        key, value = record.key, record.value
        if self._key_deserializer is not None:
            key = self._key_deserializer(record.topic, key)
        if self._value_deserializer is not None:
            value = self._value_deserializer(record.topic, value)
        return record.with_content(key, value)

    def _seek_by(self, partitions: Iterable[TopicPartition], timestamp: int) -> None:
        wanted = list(partitions) or list(self._subscription.partitions)
        with self._network.seat:
            for each in wanted:
                self._subscription.state(each).jump_by(timestamp)
        for each in wanted:
            self._drop_rest(each)
        self._network.wake_for(0)

    def _drop_rest(self, partition: TopicPartition) -> None:
        """What iterating has not given out yet is of the old position."""
        if self.iterated:
            self.iterated[:] = [each for each in self.iterated if (each.topic, each.partition) != partition]

    def _look_up(
        self, wanted: Mapping[TopicPartition, int], timeout: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """ListOffsets until every partition has answered; TimeoutError."""
        limit = self._api_timeout_s if timeout is None else timeout
        return look_up_all(self._network, wanted, self._fetcher.isolation_level, limit)

    def _to_commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        if offsets is None:
            return self._group.commits.positions()
        return with_metadata(offsets)

    def _tell_committed(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        self._interceptors.tell("on_commit", offsets)

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("This consumer has already been closed.")
