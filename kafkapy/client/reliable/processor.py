"""Passes records to a handler. Records whose handling fails go through retry topics with growing delays, and end as
dead letters.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from kafkapy.client.admin import Admin
from kafkapy.client.consumer import ConsumerRecords
from kafkapy.client.reliable.chain_headers import (
    ChainState,
    delivery_of,
    error_text,
    headers_after_failure,
    headers_behind_key,
    state_of,
)
from kafkapy.client.reliable.chain_topics import create_chain
from kafkapy.client.reliable.held_records import HeldRecords
from kafkapy.client.reliable.key_order import Place, WaitingKeys
from kafkapy.client.reliable.records import Delivery, Output, SourceRecord, UnusableOutput, checked_outputs
from kafkapy.client.reliable.refusals import Refusals
from kafkapy.client.reliable.relay import IDLE_WAIT_S, Batch, Relay, admin_keys
from kafkapy.client.reliable.relay_service import RelayService
from kafkapy.client.reliable.retry_plan import RetryPlan, Step
from kafkapy.client.reliable.topic_scan import scan
from kafkapy.errors import ConfigError
from kafkapy.types import Clock, SystemClock, TopicPartition

log = logging.getLogger("kafkapy.client")

Handler = Callable[[Delivery], object]
DEFAULT_DELAYS_S = (5.0, 60.0, 600.0)
MOST_WAITING_KEYS = 100_000
# A transaction is committed after this time at the latest, so that slow handlers do not exceed its time-out.
_SLICE_MS = 1000


class Processor(RelayService):
    """Calls a handler for each record of some topics, exactly once as far as its outputs are concerned.

    `handler(delivery)` returns the outputs to send (`Output`), or None. If it raises an exception, the record moves to
    the next retry topic, where its partition is paused until the record is due. If it raises `Failure`, or if there is
    no further retry topic, the record moves to the topic of dead letters. Outputs, moved records and offsets are
    committed in one transaction, so that every input ends once in the outputs or in the dead letters, even if processes
    are killed. The handler may be called again for a record whose transaction was aborted.

    topics: the topics to read; their retry topics and topics of dead letters get as many partitions as they have.
        Without `creates_topics` they must exist.
    retries: the delays before the further attempts, in seconds.
    keeps_order: a record waits while an earlier record with its key is in a retry topic. All topics of a chain need
        equally many partitions, and all members of the group need this setting.
    most_waiting_keys: the number of keys that may wait at the same time; a partition with a record of a further key is
        paused.
    instance: a name for this process that no other process of the group has at the same time. A process that
        starts again under its name after a crash continues at once. Without a name, it has to wait for ten seconds,
        until its old transaction has timed out. If another process starts with the name, `run` raises NameTaken.
    settings: further configuration keys of the clients, with `_` instead of `.`.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        topics: Collection[str],
        group: str,
        properties: Mapping[str, Any] | None = None,
        retries: Sequence[float] = DEFAULT_DELAYS_S,
        keeps_order: bool = False,
        instance: str | None = None,
        creates_topics: bool = True,
        most_waiting_keys: int = MOST_WAITING_KEYS,
        clock: Clock | None = None,
        **settings: Any,
    ) -> None:
        """Connects to the brokers; raises ConfigError for values that cannot be used together."""
        self._handler = handler
        self._properties = {**(properties or {}), **{key.replace("_", "."): settings[key] for key in settings}}
        self.plan = RetryPlan(topics, [round(delay * 1000) for delay in retries])
        self._group = group
        self._clock = clock or SystemClock()
        self._order = WaitingKeys(most_waiting_keys) if keeps_order else None
        self._held = HeldRecords()
        self._known_topics: set[str] = set()
        self._unrestored: set[Place] = set()  # the waiting keys of these partitions were not read yet
        self._refusals = Refusals()
        if keeps_order and self._properties.get("group.protocol", "classic") != "classic":
            raise ConfigError("keeps_order needs the range assignor of group.protocol=classic")
        if creates_topics:
            with Admin(admin_keys(self._properties)) as admin:
                create_chain(admin, self.plan)
        ordered = {"partition.assignment.strategy": "range"} if keeps_order else {}
        self.relay = Relay(self._properties, group, self, instance=instance, consumer_settings=ordered)

    @property
    def counts(self) -> Mapping[str, int]:
        """The numbers of records since the start.

        handled: successful attempts. failed: failed ones. retried: records moved to a retry topic. dead: dead letters.
        behind_key: records moved because an earlier record with their key waits. outputs: records sent by handlers.
        invalid_headers: headers of the chain that could not be read. aborted: transactions that were repeated.
        """
        return self.relay.counts

    # Called by the relay

    def topics(self) -> Collection[str]:
        return self.plan.all_read()

    def assigned(self, relay: Relay, partitions: Collection[TopicPartition]) -> None:
        if self._order is None:
            return
        for partition in partitions:
            base, _ = self.plan.place_of(partition.topic)
            self._order.forget((base, partition.partition))
            self._unrestored.add((base, partition.partition))

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._held.forget(partitions)
        for partition in partitions:
            base, level = self.plan.place_of(partition.topic)
            if self._order is not None and level == 0:
                self._order.forget((base, partition.partition))

    def wait_s(self, now_ms: int) -> float:
        next_ms = self._held.next_ms()
        return IDLE_WAIT_S if next_ms is None else min(max(next_ms - now_ms, 0) / 1000, IDLE_WAIT_S)

    def step(self, relay: Relay, records: ConsumerRecords, batch: Batch) -> None:
        end_ms = self._clock.monotonic_ms() + _SLICE_MS
        self._refusals.begin()
        due = self._held.take_due(self._clock.wall_ms())
        is_over = False
        for partition, ordered in [*due.items(), *records.by_partition().items()]:
            until_ms, done = 0, 0
            while done < len(ordered) and not is_over:
                later_ms = self._pass(relay, partition, ordered[done], batch)
                if later_ms is not None:
                    until_ms = later_ms
                    break
                done += 1
                is_over = relay.is_single or self._clock.monotonic_ms() >= end_ms
            if done < len(ordered):
                self._held.hold(relay.consumer, partition, until_ms, ordered[done:])
            elif partition in due:
                relay.consumer.resume([partition])

    def committed(self) -> None:
        self._refusals.committed()
        if self._order is not None:
            self._order.confirm()

    def aborted(self, error: Exception) -> None:
        self._held.clear(self.relay.consumer)
        if self._order is not None:
            self._order.roll_back()
        self._refusals.aborted(error)

    # Internal

    def _pass(self, relay: Relay, partition: TopicPartition, record: SourceRecord, batch: Batch) -> int | None:
        """Handles a record, or moves it behind an earlier record with its key, and returns None.

        Adds the record's outputs and its offset to the transaction `batch`. If the record is not due yet, or if too
        many keys wait, does neither, and returns the time at which to call this method again for the record, in ms
        since 1970.
        """
        base, level = self.plan.place_of(record.topic)
        place = (base, record.partition)
        if place in self._unrestored:
            self._restore(place)
        if relay.is_single:
            self._refusals.tries((record.topic, record.partition, record.offset))
        state = state_of(record)
        now_ms = self._clock.wall_ms()
        # A header that is later than any delay of the chain does not come from the chain, or from a wrong clock.
        due_ms = min(state.due_ms, max(record.timestamp, 0) + max(self.plan.delays_ms, default=0))
        if due_ms > now_ms:
            return due_ms
        batch.counts["invalid_headers"] += len(state.invalid)
        if self._order is not None:
            if self._order.is_behind(place, record.key, level):
                self._move(place, record, self.plan.behind_its_key(base, level, state), None, batch)
                batch.counts["behind_key"] += 1
                self._order.change(place, record.key, level, -1)
                batch.passed(partition, record.offset)
                return None
            if level == 0 and self._order.is_full_for(place, record.key):
                return now_ms + 1000
        self._attempt(relay, place, level, record, state, batch)
        if self._order is not None:
            self._order.change(place, record.key, level, -1)
        batch.passed(partition, record.offset)
        return None

    def _attempt(
        self, relay: Relay, place: Place, level: int, record: SourceRecord, state: ChainState, batch: Batch
    ) -> None:
        error = self._refusals.error_of((record.topic, record.partition, record.offset))
        outputs: list[Output] = []
        if error is None:
            try:
                outputs = list(checked_outputs(self._handler(delivery_of(record, state))))
                self._check(relay, outputs)
            except Exception as raised:
                error = raised
        if error is not None:
            batch.counts["failed"] += 1
            step = self.plan.after_failure(place[0], level, state, error, self._clock.wall_ms())
            self._move(place, record, step, error, batch)
            batch.counts["dead" if step.is_dead else "retried"] += 1
            return
        for output in outputs:
            batch.send(output)
        batch.counts["handled"] += 1
        batch.counts["outputs"] += len(outputs)

    def _check(self, relay: Relay, outputs: Sequence[Output]) -> None:
        """Raises UnusableOutput if one of the outputs names a topic that does not exist."""
        for output in outputs:
            if output.topic not in self._known_topics:
                if not relay.topic_exists(output.topic):
                    raise UnusableOutput(f"The topic {output.topic} of an output does not exist")
                self._known_topics.add(output.topic)

    def _move(self, place: Place, record: SourceRecord, step: Step, error: Exception | None, batch: Batch) -> None:
        """Sends a record, in the transaction `batch`, to the next topic of the record's retry chain. `step` names this
        topic.

        `place` is the original topic and the number of the partition. `error` is the exception that the handler has
        raised, or None if the record moves because it has to stay behind an earlier record with its key.
        """
        if error is None:
            headers = headers_behind_key(record.headers, step.state, self._group)
        else:
            headers = headers_after_failure(
                record.headers, step.state, error_text(error), self._group, is_dead=step.is_dead
            )
        count = self.relay.partition_count(step.topic)
        batch.send(Output(step.topic, record.value, record.key, headers, place[1] % count))
        if self._order is not None and not step.is_dead:
            self._order.change(place, record.key, step.state.level, 1)

    def _restore(self, place: Place) -> None:
        """Reads the retry topics of a partition, to find the keys whose records wait in them.

        `place` is the original topic and the number of the partition. Raises ConfigError if another member reads one of
        the retry topics' partitions.
        """
        order = self._order
        assert order is not None
        base, number = place
        levels = {
            TopicPartition(self.plan.retry_topic(base, level), number): level
            for level in range(1, len(self.plan.delays_ms) + 1)
        }
        missing = levels.keys() - self.relay.consumer.assignment()
        if missing:
            raise ConfigError(
                f"keeps_order needs one member for {base}-{number} and {min(missing)}: the topics of the chain must "
                "have equally many partitions"
            )
        committed = self.relay.consumer.committed(levels)
        starts = {each: None if found is None else found.offset for each, found in committed.items()}
        order.forget(place)
        for record in scan(self._properties, starts):
            order.change(place, record.key, levels[TopicPartition(record.topic, record.partition)], 1)
        order.confirm()
        self._unrestored.discard(place)
