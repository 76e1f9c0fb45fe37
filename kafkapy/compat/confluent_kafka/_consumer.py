"""Consumer of confluent-kafka, on kafkapy's consumer."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, Self

from kafkapy._core.client.fetched_records import ConsumerRecord, record_view, record_views
from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.client.errors import AuthenticationError, NotSubscribed, RequestTimedOut, WakeupError
from kafkapy.compat.confluent_kafka._client import LONGEST_SLICE_S, Client, seconds, time_left
from kafkapy.compat.confluent_kafka._commits import Commits, Offsets, OnCommit
from kafkapy.compat.confluent_kafka._config import CONSUMER, Settings, invalid
from kafkapy.compat.confluent_kafka._constants import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, OFFSET_STORED
from kafkapy.compat.confluent_kafka._errors import (
    KafkaError,
    code_of,
    kafka_error,
    kafka_exception,
    local_error,
)
from kafkapy.compat.confluent_kafka._group_metadata import group_metadata_bytes
from kafkapy.compat.confluent_kafka._inner_consumer import InnerConsumer
from kafkapy.compat.confluent_kafka._offsets import checked, epoch_of, partition_of, partitions_of, place_of, to_commit
from kafkapy.compat.confluent_kafka._rebalances import Rebalances
from kafkapy.compat.confluent_kafka._records import Message, TopicPartition, error_message
from kafkapy.compat.confluent_kafka._statistics import Progress, consumer_statistics
from kafkapy.compat.confluent_kafka._topic_patterns import subscription_of
from kafkapy.errors import ApiError, ConfigError, Error, KafkapyError
from kafkapy.types import TopicPartition as Place

OnRebalance = Callable[["Consumer", list[TopicPartition]], object]

# The records that one poll of kafkapy's consumer decodes for the next polls of this one.
_RECORDS_AHEAD = 2000
# While the program reads these records, the work for the group is done this often.
_ATTENTION_S = 0.5
# The longest time for which `close` waits for asynchronous commits.
_LONGEST_FINISH_S = 5.0
_MOST_OF_A_CALL = 1_000_000


class Consumer(Client):
    """Reads records from partitions that its group assigns (`subscribe`) or that the program chooses (`assign`).

    `Consumer(config)`; the keys are librdkafka's. Any thread may call a method while another one polls. Raises
    KafkaException for an invalid configuration, and ValueError if `group.id` is not set.
    """

    _closed_message = "Consumer closed"

    def __init__(self, *args: Any, **config: Any) -> None:
        conf = args[0] if args else config.pop("config", None)
        settings = Settings(CONSUMER, conf, config)
        if settings["group.id"] is None:
            raise ValueError("Failed to create consumer: group.id must be set")
        properties = settings.properties()
        properties["max.poll.records"] = _RECORDS_AHEAD
        try:
            client = InnerConsumer(properties)
        except ConfigError as error:
            raise invalid(f"Failed to create consumer: {error}") from error
        except KafkapyError as error:
            raise kafka_exception(error, "Failed to create consumer: ") from error
        self._client = client
        self._start(settings, client._network)
        self._on_commit: OnCommit | None = settings.callbacks.get("on_commit")
        self._committing = Commits(client, self._on_commit, self._callbacks.waiting)
        self._stores: bool = settings["enable.auto.offset.store"]
        self._reports_ends: bool = settings["enable.partition.eof"]
        self._commits: bool = settings["enable.auto.commit"] and settings["auto.commit.interval.ms"] > 0
        self._commit_interval_s: float = settings["auto.commit.interval.ms"] / 1000
        self._next_commit_s = time.monotonic() + self._commit_interval_s
        self._attention_s = 0.0
        self._buffer: deque[ConsumerRecord | Message] = deque()
        # topic -> partition -> offset of the last record that the program has received
        self._delivered: dict[str, dict[int, int]] = {}
        self._stored: dict[Place, OffsetAndMetadata] = {}
        self._reported_ends: dict[Place, int] = {}
        self._reported_topics: dict[str, Error] = {}
        self._on_assign: OnRebalance | None = None
        self._on_revoke: OnRebalance | None = None
        self._on_lost: OnRebalance | None = None
        self._assigning: list[Place] | None = None  # within `on_assign`
        self._revoking = False  # within `on_revoke` or `on_lost`
        self._in_callback = False  # of a rebalance, in which any thread may call methods while `poll` waits for it
        self._rebalances = 0  # the number of assignments and revocations
        self._callers = 0

    # Records

    def poll(self, timeout: float = -1) -> Message | None:
        """Returns the next message, or None after `timeout` seconds (-1: without a limit); blocks.

        A message with an `error()` is an event: the end of a partition, or an error of the consumer. Calls the
        callbacks of rebalances, commits, statistics and errors.
        """
        now_s = time.monotonic()
        if now_s >= self._attention_s or self._callbacks.waiting:
            self._attend(now_s)
        record: ConsumerRecord | Message | None
        try:
            record = self._buffer.popleft()
        except IndexError:
            record = self._await_next(seconds(timeout))
        if record is None or isinstance(record, Message):
            return record
        try:
            self._delivered[record.topic][record.partition] = record.offset
        except KeyError:
            self._delivered[record.topic] = {record.partition: record.offset}
        return record_view(Message, record)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Returns `num_messages` messages, or fewer after `timeout` seconds (-1: no limit). Blocks."""
        if not 0 <= num_messages <= _MOST_OF_A_CALL:
            raise ValueError("num_messages must be between 0 and 1000000 (1M)")
        limit_s = seconds(timeout)
        self._check_open()
        end_s = None if limit_s is None else time.monotonic() + limit_s
        self._attend(time.monotonic())
        found: list[Message] = []
        while len(found) < num_messages:
            if not self._buffer and not self._refill(None if end_s is None else max(end_s - time.monotonic(), 0)):
                break
            self._take(found, num_messages - len(found))
        return found

    def _await_next(self, limit_s: float | None) -> ConsumerRecord | Message | None:
        """Fetches messages and returns the first one, or None after `limit_s` seconds (None: no limit). Blocks."""
        end_s = None if limit_s is None else time.monotonic() + limit_s
        while not self._is_closed and self._refill(None if end_s is None else max(end_s - time.monotonic(), 0)):
            with suppress(IndexError):  # another thread has taken the message
                return self._buffer.popleft()
        self._check_open()
        return None

    def _take(self, found: list[Message], count: int) -> None:
        """Moves at most `count` messages from the buffer to `found`, and stores their offsets as delivered."""
        taken: list[ConsumerRecord | Message] = []
        with self._lock:
            if len(self._buffer) <= count:
                taken += self._taken_buffer()
            else:
                with suppress(IndexError):  # another thread may take records at the same time
                    while len(taken) < count:
                        taken.append(self._buffer.popleft())
        found += record_views(Message, taken, self._delivered)

    def _taken_buffer(self) -> deque[ConsumerRecord | Message]:
        """Removes all buffered records and returns them; each record is returned to one thread only.

        Threads remove records without `_lock` and add records with it. They read `_buffer` immediately before they call
        its method, and no thread switch occurs in between, so that no other thread uses the returned deque.
        """
        self._buffer, taken = deque(), self._buffer
        return taken

    def _attend(self, now_s: float) -> None:
        """Calls the program's waiting callbacks, and at intervals of `_ATTENTION_S` also serves the group.

        To serve the group is to perform its due work (heartbeats, joining) and to commit offsets if the commit interval
        is over. `now_s` is the monotonic time in seconds.
        """
        self._callbacks.serve()
        if now_s < self._attention_s or self._is_closed:
            return
        self._attention_s = min(now_s + _ATTENTION_S, self._callbacks.next_statistics_s)
        with self._lock:
            try:
                self._client.attend()
            except (AuthenticationError, WakeupError):
                pass  # `Callbacks.watch` has reported it
            except KafkapyError as error:
                message = error_message(kafka_error(error))
                self._buffer.append(message)
            self._commit_if_due(now_s)

    def _refill(self, limit_s: float | None) -> bool:
        """Fetches messages into the buffer. Returns False if the buffer is still empty after `limit_s` seconds.

        None for `limit_s` waits without a limit. Errors of the consumer become messages with an `error()`.
        """
        end_s = None if limit_s is None else time.monotonic() + limit_s
        while True:
            left_s = LONGEST_SLICE_S if end_s is None else min(max(end_s - time.monotonic(), 0), LONGEST_SLICE_S)
            with self._lock:
                self._check_open()
                if not self._buffer:  # otherwise another thread has filled it, or has put records back
                    self._fetch(left_s)
                self._commit_if_due(time.monotonic())
            self._callbacks.serve()
            if self._buffer:
                return True
            if end_s is not None and time.monotonic() >= end_s:
                return False
            if self._callers:
                time.sleep(0.001)  # lets the thread run that waits for the lock

    def _fetch(self, limit_s: float) -> None:
        """Polls kafkapy's consumer for at most `limit_s` seconds, and adds the records and events to the buffer."""
        try:
            records = self._client.poll(limit_s)
            self._buffer.extend(records)
        except NotSubscribed:
            self._client.await_commits(limit_s)  # of the partitions that the program has given up
        except (AuthenticationError, WakeupError):
            pass  # `Callbacks.watch` has reported it
        except KafkapyError as error:
            message = error_message(kafka_error(error))
            self._buffer.append(message)
        if self._reports_ends:
            self._report_ends()
        if not self._buffer:
            self._report_topics()

    def _report_ends(self) -> None:
        for place, position in self._client.ends_reached():
            if self._reported_ends.get(place) != position:
                self._reported_ends[place] = position
                error = KafkaError(code_of("_PARTITION_EOF"))
                message = error_message(error, place.topic, place.partition, position)
                self._buffer.append(message)

    def _report_topics(self) -> None:
        """Adds an error to the buffer for each subscribed topic that has become unavailable since the last call."""
        unavailable = self._client.unavailable()
        for topic, error in unavailable.items():
            if self._reported_topics.get(topic) != error:
                text = KafkaError(int(error)).str()
                reason = f"Subscribed topic not available: {topic}: {text}"
                message = error_message(KafkaError(int(error), reason), topic)
                self._buffer.append(message)
        self._reported_topics = unavailable

    # Subscription

    def subscribe(
        self,
        topics: list[str],
        on_assign: OnRebalance | None = None,
        on_revoke: OnRebalance | None = None,
        on_lost: OnRebalance | None = None,
    ) -> None:
        """Subscribes to topics; a name that begins with ^ is a regular expression.

        A later `poll` calls the callback for a rebalance as `callback(consumer, partitions)`, with this consumer and a
        list of TopicPartitions. Raises KafkaException for an empty list, an empty name or an invalid expression.
        """
        self._check_open()
        if not isinstance(topics, list) or not all(isinstance(each, str) for each in topics):
            raise TypeError("expected list of topic unicode strings")
        for name, callback in (("on_assign", on_assign), ("on_revoke", on_revoke), ("on_lost", on_lost)):
            if callback is not None and not callable(callback):
                raise TypeError(f"{name} expects a callable")
        if not topics or "" in topics:
            raise local_error("_INVALID_ARG", "Failed to set subscription: Local: Invalid argument or configuration")

        def subscribe() -> None:
            if not self._client.is_subscribed() and self._client.assignment():
                self._client.assign(())
            self._client.subscribe(subscription_of(topics), Rebalances(self))
            self._on_assign, self._on_revoke, self._on_lost = on_assign, on_revoke, on_lost

        self._call("Failed to set subscription: ", subscribe)

    def unsubscribe(self) -> None:
        """Leaves the group and drops the subscription and all partitions. Blocks."""
        self._check_open()

        def unsubscribe() -> None:
            self._client.unsubscribe()
            self._forget(None)

        self._call("Failed to remove subscription: ", unsubscribe)

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Reads exactly these partitions from their offsets, by default from their committed offsets.

        If `enable.auto.commit` is on, first commits the stored offsets of the former partitions, without blocking.
        In the callback `on_assign`, it only sets where reading begins, and raises KafkaException unless the partitions
        are exactly the ones that the group has assigned. Elsewhere, while topics are subscribed, it raises
        KafkaException unless the list is empty; an empty list then has no effect.
        """
        self._check_open()
        wanted = checked(partitions)
        if self._assigning is not None:
            if {Place(each.topic, each.partition) for each in wanted} != set(self._assigning):
                raise local_error("_NOT_IMPLEMENTED", "kafkapy assigns exactly the partitions that on_assign receives")
            self._call("Failed to set assignment: ", lambda: self._start_at(wanted))
            return

        def assign() -> None:
            if self._client.is_subscribed():
                if wanted:
                    raise local_error("_CONFLICT", "kafkapy cannot assign partitions while topics are subscribed")
                return
            self._commit_stored(None, self._committing.send)
            self._client.assign(())
            self._forget(None)
            self._client.assign([Place(each.topic, each.partition) for each in wanted])
            self._start_at(wanted)

        self._call("Failed to set assignment: ", assign)

    def unassign(self) -> None:
        """Stops reading all partitions. In a rebalance callback it has no effect: the group changes the assignment."""
        self._check_open()
        if not self._revoking and self._assigning is None:
            self.assign([])

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """Reads these partitions in addition to the assigned ones; in `on_assign`, only sets where reading begins.

        Raises KafkaException if a partition is assigned already.
        """
        self._check_open()
        wanted = checked(partitions)
        if self._assigning is not None:
            self._call("Failed to incremental assign: ", lambda: self._start_at(wanted))
            return

        def assign() -> None:
            before = self._client.assignment()
            for each in wanted:
                if Place(each.topic, each.partition) in before:
                    name = f"{each.topic} [{each.partition}]"
                    raise local_error("_CONFLICT", f"{name} is already part of the current assignment")
            self._client.assign([*before, *(Place(each.topic, each.partition) for each in wanted)])
            self._start_at(wanted)

        self._call("Failed to incremental assign: ", assign)

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """Stops reading these partitions.

        In a rebalance callback it has no effect: the group changes the assignment. Elsewhere, raises KafkaException if
        a partition is not assigned.
        """
        self._check_open()
        dropped = {Place(each.topic, each.partition) for each in checked(partitions)}
        if self._revoking or self._assigning is not None:
            return

        def unassign() -> None:
            for place in sorted(dropped - self._client.assignment()):
                name = f"{place.topic} [{place.partition}]"
                reason = "can't be unassigned since it is not in the current assignment"
                raise local_error("_INVALID_ARG", f"{name} {reason}")
            self._commit_stored(dropped, self._committing.send)
            self._client.assign([each for each in self._client.assignment() if each not in dropped])
            self._forget(dropped)

        self._call("Failed to incremental unassign: ", unassign)

    def assignment(self) -> list[TopicPartition]:
        """Returns the partitions that are assigned now."""
        self._check_open()
        return [TopicPartition(each.topic, each.partition) for each in sorted(self._client.assignment())]

    def _start_at(self, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            place = Place(each.topic, each.partition)
            if each.offset >= 0:
                self._client.seek(place, OffsetAndMetadata(each.offset, leader_epoch=epoch_of(each)))
            elif each.offset == OFFSET_BEGINNING:
                self._client.seek_to_beginning([place])
            elif each.offset == OFFSET_END:
                self._client.seek_to_end([place])
            elif each.offset in (OFFSET_INVALID, OFFSET_STORED) and (pending := self._committing.pending(place)):
                self._client.seek(place, pending)  # the group may not know this offset yet

    def _rebalanced(self, places: list[Place], callback: OnRebalance | None) -> None:
        self._rebalances += 1
        self._forget(set(places))
        if callback is None:
            return
        self._assigning, self._in_callback = places, True
        try:
            callback(self, [TopicPartition(each.topic, each.partition) for each in places])
        finally:
            self._assigning, self._in_callback = None, False

    def _revoked(self, places: list[Place], callback: OnRebalance | None, *, can_commit: bool) -> None:
        self._rebalances += 1
        self._drop_buffered(set(places))
        try:
            if callback is not None:
                self._revoking = self._in_callback = True
                callback(self, [TopicPartition(each.topic, each.partition) for each in places])
        finally:
            self._revoking = self._in_callback = False
            if can_commit:
                self._commit_stored(set(places), self._committing.commit_and_report)
            self._committing.drop(places, ApiError(Error.COORDINATOR_NOT_AVAILABLE))
            self._forget(set(places))

    def _drop_buffered(self, places: set[Place]) -> dict[Place, int]:
        """Removes the buffered records of partitions; returns the first removed offset of each partition with any.

        Called with `_lock`. Other threads may take the other records at the same time.
        """
        first: dict[Place, int] = {}
        kept: list[ConsumerRecord | Message] = []
        for each in self._taken_buffer() if self._buffer else ():
            if not isinstance(each, Message) and (place := place_of(each)) in places:
                first.setdefault(place, each.offset)
            else:
                kept.append(each)
        self._buffer.extend(kept)
        return first

    def _forget(self, places: set[Place] | None) -> None:
        """Removes the buffered records and the stored positions of partitions (None: of all partitions).

        Called with `_lock`.
        """
        self._committing.forget(places)
        if places is None:
            self._taken_buffer()
            self._delivered.clear()
            self._stored.clear()
            self._reported_ends.clear()
            return
        self._drop_buffered(places)
        for place in places:
            self._delivered.get(place.topic, {}).pop(place.partition, None)
            self._stored.pop(place, None)
            self._reported_ends.pop(place, None)

    # Positions

    def seek(self, partition: TopicPartition) -> None:
        """Sets the position in a partition to its `offset`, which may be OFFSET_BEGINNING or OFFSET_END.

        Raises KafkaException if the partition is not assigned.
        """
        self._check_open()
        place = Place(partition.topic, partition.partition)
        prefix = f"Failed to seek to offset {partition.offset}: "
        if place not in self._client.assignment():
            raise local_error("_UNKNOWN_PARTITION", f"{prefix}Local: Unknown partition")

        def seek() -> None:
            self._drop_buffered({place})
            self._start_at([partition])
            self._delivered.get(place.topic, {}).pop(place.partition, None)
            self._reported_ends.pop(place, None)

        self._call(prefix, seek)

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Returns the partitions with the offset after the last message that the program has received.

        The offset is OFFSET_INVALID if it has not received any.
        """
        self._check_open()
        found = []
        for each in checked(partitions):
            offset = self._delivered.get(each.topic, {}).get(each.partition)
            found.append(TopicPartition(each.topic, each.partition, OFFSET_INVALID if offset is None else offset + 1))
        return found

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Stops the delivery of messages of these partitions until `resume`; ignores those that are not assigned."""
        self._check_open()

        def pause() -> None:
            places = self._assigned(partitions)
            self._client.pause(places)
            for place, offset in self._drop_buffered(set(places)).items():
                self._client.seek(place, offset)

        self._call("Failed to pause partitions: ", pause)

    def resume(self, partitions: list[TopicPartition]) -> None:
        """Lets messages of paused partitions be delivered again. Ignores partitions that are not assigned."""
        self._check_open()
        self._call("Failed to resume partitions: ", lambda: self._client.resume(self._assigned(partitions)))

    def _assigned(self, partitions: list[TopicPartition]) -> list[Place]:
        assigned = self._client.assignment()
        places = [Place(each.topic, each.partition) for each in checked(partitions)]
        return [each for each in places if each in assigned]

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = -1, cached: bool = False
    ) -> tuple[int, int]:
        """Returns the first offset and the end offset of a partition.

        If `cached`, returns the offsets that the last fetch response reported, each OFFSET_INVALID if it is not known,
        and does not block. Otherwise looks up first one offset and then the other at the broker, and blocks for at most
        `timeout` seconds (-1: no limit).
        """
        self._check_open()
        place = Place(partition.topic, partition.partition)
        if cached:
            found = self._client.watermarks(place) or (-1, -1)
            return tuple(OFFSET_INVALID if each < 0 else each for each in found)  # type: ignore[return-value]
        left_s, prefix = time_left(timeout), "Failed to get watermark offsets: "

        def query() -> tuple[int, int]:
            self._require(place, left_s, prefix)
            first = self._client.beginning_offsets([place], left_s())[place]
            return first, self._client.end_offsets([place], left_s())[place]

        found_now: tuple[int, int] = self._call(prefix, query)
        return found_now

    def offsets_for_times(self, partitions: list[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
        """Returns, for each partition, the offset of the first record with the given timestamp or a later one. Blocks.

        The argument has the timestamp, in ms since 1970, in the field `offset` of each partition; -1 looks up the end,
        and -2 the beginning. The result has the found offset in the field `offset`, or OFFSET_END if there is no such
        record. Raises KafkaException if a partition does not exist.
        """
        self._check_open()
        wanted = {Place(each.topic, each.partition): each.offset for each in checked(partitions)}
        left_s, prefix = time_left(timeout), "Failed to get offsets: "

        def query() -> dict[Place, Any]:
            for place in wanted:
                self._require(place, left_s, prefix)
            return self._client.offsets_for_times(wanted, left_s())

        found = self._call(prefix, query)
        return [
            TopicPartition(place.topic, place.partition, OFFSET_END if each is None else each.offset)
            for place, each in ((place, found.get(place)) for place in wanted)
        ]

    def _require(self, place: Place, left_s: Callable[[], float], prefix: str) -> None:
        """Raises KafkaException, with a text that begins with `prefix`, if a partition does not exist. May block."""
        if self._client.lacks(place, left_s):
            raise local_error("_UNKNOWN_PARTITION", f"{prefix}Local: Unknown partition")

    # Commits

    def store_offsets(self, message: Message | None = None, offsets: list[TopicPartition] | None = None) -> None:
        """Stores offsets for the next commit: the offset after `message`, or the given `offsets`.

        Raises ValueError unless exactly one of the two arguments is given. Needs `enable.auto.offset.store=false`;
        raises KafkaException without it, and for a partition that is not assigned.
        """
        self._check_open()
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        if message is None and offsets is None:
            raise ValueError("expected either message or offsets")
        if self._stores:
            raise local_error("_INVALID_ARG", "StoreOffsets failed: Local: Invalid argument or configuration")
        wanted = to_commit(message, offsets)
        assigned = self._client.assignment()
        for place, offset in wanted.items():
            if place not in assigned:
                raise local_error("_STATE", "StoreOffsets failed: Local: Erroneous state")
            self._stored[place] = offset

    def commit(
        self,
        message: Message | None = None,
        offsets: list[TopicPartition] | None = None,
        asynchronous: bool = True,
        **legacy: Any,
    ) -> list[TopicPartition] | None:
        """Commits the offset after `message`, or the given `offsets`, or the stored offsets if both are None.

        If `asynchronous` is False, blocks and returns the partitions with their offsets. Otherwise returns None, and a
        later `poll` calls `on_commit`. `legacy` may have `async`, the old name of `asynchronous`. Raises ValueError for
        both `message` and `offsets`, and KafkaException if a blocking commit fails or there is no offset to commit.
        """
        self._check_open()
        asynchronous = legacy.pop("async", asynchronous)
        if legacy:
            raise TypeError(f"{next(iter(legacy))!r} is an invalid keyword argument for this function")
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        if message is not None and message.error() is not None:
            raise local_error("_INVALID_ARG", "Commit failed: the message is an error")
        wanted = self._uncommitted(None) if message is None and offsets is None else to_commit(message, offsets)
        if not wanted:
            if not asynchronous:
                raise local_error("_NO_OFFSET", "Commit failed: Local: No offset stored")
            self._committing.report_nothing(self.assignment() if offsets is None else offsets)
            return None
        if asynchronous:
            self._call("Commit failed: ", lambda: self._committing.send(wanted))
            return None
        self._call("Commit failed: ", lambda: self._committing.commit(wanted))
        return partitions_of(wanted)

    def committed(self, partitions: list[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
        """Returns the partitions with their committed offsets, or OFFSET_INVALID where none is committed. Blocks."""
        self._check_open()
        wanted = [Place(each.topic, each.partition) for each in checked(partitions)]
        left_s = time_left(timeout)
        found = self._call("Failed to get committed offsets: ", lambda: self._client.committed(wanted, left_s()))
        return [partition_of(place, found.get(place)) for place in wanted]

    def _uncommitted(self, places: set[Place] | None, *, rewound: bool = False) -> dict[Place, OffsetAndMetadata]:
        """Returns the stored offsets that are not committed yet; None for `places` means all partitions.

        Offsets below a committed one, to which the program has gone back, are left out unless `rewound` is True.
        """
        if self._stores:
            for topic, offsets in list(self._delivered.items()):  # another thread may receive records now
                for number, offset in list(offsets.items()):
                    self._stored[Place(topic, number)] = OffsetAndMetadata(offset + 1)
        found = {}
        for place, stored in list(self._stored.items()):
            before = self._committing.committed.get(place)
            if (places is None or place in places) and (
                before is None or stored.offset > before.offset or (rewound and stored != before)
            ):
                found[place] = stored
        return found

    def _commit_if_due(self, now_s: float) -> None:
        self._committing.send_postponed()
        if not self._commits or now_s < self._next_commit_s:
            return
        self._next_commit_s = now_s + self._commit_interval_s
        wanted = self._uncommitted(None)
        if wanted:
            self._committing.send(wanted)

    def _commit_stored(self, places: set[Place] | None, commit: Callable[[Offsets], object]) -> None:
        """Commits, by `commit`, the stored offsets of partitions that the consumer gives up, or of all (None).

        Does nothing without `enable.auto.commit`. A failure is only reported to `on_commit`.
        """
        wanted = self._uncommitted(places, rewound=True) if self._commits else None
        if wanted:
            commit(wanted)

    # The group and the end

    def consumer_group_metadata(self) -> bytes:
        """Returns the membership in the group, for `Producer.send_offsets_to_transaction`."""
        self._check_open()
        return group_metadata_bytes(self._client.group_metadata())

    def memberid(self) -> str | None:
        """Returns the member id of this consumer in its group, or None if the consumer has not joined the group yet."""
        self._check_open()
        return self._client.group_metadata().member.member_id or None

    def close(self) -> None:
        """Commits the stored offsets if `enable.auto.commit` is on, leaves the group and disconnects. Blocks."""
        if self._is_closed:
            return
        with self._lock:
            if not self._client.is_subscribed():
                self._commit_stored(None, self._committing.commit_and_report)
            self._committing.finish(_LONGEST_FINISH_S)
            try:
                self._client.close()
            except KafkapyError as error:
                raise kafka_exception(error, "Failed to close consumer: ") from error
            finally:
                self._is_closed = True
                self._taken_buffer()
                self._callbacks.serve()
                self._close_admin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, exc_traceback: Any) -> bool | None:
        self.close()
        return None

    def _call(self, prefix: str, call: Callable[[], Any]) -> Any:
        """Calls `call` while no other thread uses the consumer, and returns the result of the call.

        If `call` raises an exception of kafkapy's client, raises a KafkaException whose text begins with `prefix`.
        """
        self._callers += 1
        try:
            with nullcontext() if self._in_callback else self._lock:
                return call()
        except RequestTimedOut as error:
            raise local_error("_TIMED_OUT", f"{prefix}Local: Timed out") from error
        except ApiError as error:
            raise kafka_exception(error, prefix) from error
        except KafkapyError as error:
            raise kafka_exception(error, prefix) from error
        finally:
            self._callers -= 1

    def _statistics(self) -> str:
        progress = Progress(self._delivered, self._stored, self._committing.committed, self._rebalances)
        return consumer_statistics(self._settings, self._client, progress)
