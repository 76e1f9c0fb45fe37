"""A consumer's subscription, its assigned partitions, and its position in each of them. This module does no I/O."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from enum import IntEnum

from kafkapy._core.client.fetched_records import FetchedRecords
from kafkapy.client.cluster import TopicInfo
from kafkapy.client.errors import SubscriptionError
from kafkapy.client.metrics import ClientMetrics, PartitionMetrics
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition


class ResetStrategy(IntEnum):
    """The position at which a partition without a committed offset starts; the values are ListOffsets' timestamps."""

    LATEST = -1
    EARLIEST = -2


class PartitionState:
    """The state of one assigned partition.

    `position` is the offset of the next record for the application (None: not known yet); `fetch_offset` is the offset
    of the next fetch; the records between the two offsets are buffered. `generation` counts the jumps, that is the
    changes of the position other than by reading. The response to a fetch that was sent before a jump is discarded.
    """

    __slots__ = (
        "buffers",
        "checked_epoch",
        "fetch_offset",
        "found_committed",
        "generation",
        "high_watermark",
        "is_checking",
        "is_fetching",
        "is_paused",
        "last_collect",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "metrics",
        "not_before_ms",
        "position",
        "preferred_replica",
        "reset",
        "until_offset",
        "wants_committed",
    )

    def __init__(self, position: int | None = None) -> None:
        self.position = position
        self.fetch_offset = -1 if position is None else position
        self.buffers: deque[FetchedRecords] = deque()
        self.generation = 0
        self.is_paused = False
        self.is_fetching = False
        self.reset: int | None = None  # the timestamp that ListOffsets looks up
        self.until_offset: int | None = None  # reading stops before this offset
        self.wants_committed = False
        self.found_committed = -1  # the committed offset at which reading has started; -1 if there was none
        self.not_before_ms = 0
        self.preferred_replica = -1
        self.leader_epoch = -1  # of the record before `position`
        self.checked_epoch = -1  # the leader epoch under which `position` was found valid
        self.is_checking = False
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.metrics: PartitionMetrics | None = None  # None until records were read
        self.last_collect = 0  # the number of the last `collect` that served this partition first

    def jump(self, position: int | None, leader_epoch: int = -1) -> None:
        """Sets the position and drops the buffered records.

        `position` is None if it is not known yet. `leader_epoch` is that of the record before the position, -1 if
        unknown.
        """
        self.position = position
        self.leader_epoch = leader_epoch
        self.checked_epoch = -1
        self.fetch_offset = -1 if position is None else position
        self.buffers.clear()
        self.generation += 1
        self.not_before_ms = 0
        self.reset = None
        self.wants_committed = False

    def jump_by(self, timestamp: int) -> None:
        """Makes the position unknown, until ListOffsets has looked up the offset at a timestamp (-1: latest, -2:
        earliest).
        """
        self.jump(None)
        self.reset = timestamp

    def advance(self, fetched: FetchedRecords) -> None:
        """Moves the position past the records that were taken from `fetched`, the first buffer.

        Removes the buffer when it is exhausted.
        """
        self.position = fetched.next_offset
        self.leader_epoch = fetched.leader_epoch
        if fetched.is_exhausted:
            self.buffers.popleft()
            self.position = max(fetched.next_offset, fetched.end_offset)

    @property
    def lag(self) -> int | None:
        """The number of offsets from the position to the high watermark; None if one of them is not known."""
        return None if self.position is None or self.high_watermark < 0 else max(self.high_watermark - self.position, 0)

    @property
    def lead(self) -> int | None:
        """The number of offsets from the log start to the position.

        None if the position is not known, or no fetch response has arrived yet.
        """
        if self.position is None or self.high_watermark < 0:
            return None
        return max(self.position - max(self.log_start_offset, 0), 0)

    def measure(self, metrics: ClientMetrics) -> None:
        """Records the present lag and lead in the partition's metrics, such as records-lag; does nothing if they are
        not known.
        """
        lag, lead = self.lag, self.lead
        if lag is None or lead is None:
            return
        if self.metrics is None:
            self.metrics = PartitionMetrics(metrics)
        self.metrics.lag.add(lag)
        self.metrics.lead.add(lead)

    @property
    def is_fetchable(self) -> bool:
        """Returns whether records may be fetched: the position is known, and the partition is not paused.

        If `until_offset` is set, the offset of the next fetch must also be smaller, because reading stops there.
        """
        if self.position is None or self.is_paused:
            return False
        return self.until_offset is None or self.fetch_offset < self.until_offset


class SubscriptionPattern(NamedTuple):
    """A regular expression (RE2 syntax) for `Consumer.subscribe` that the group's coordinator evaluates.

    A topic is subscribed to if its whole name matches. `subscribe` raises ConfigError if `group.protocol` is classic.
    """

    pattern: str


class Subscription:
    """Owns the set of partitions that a consumer reads. They are assigned manually or by the consumer's group.

    A group subscription has topic names, a pattern that the client evaluates (`pattern`), or one that the coordinator
    evaluates (`server_pattern`).
    """

    def __init__(self, *, excludes_internal: bool = True) -> None:
        self.partitions: dict[TopicPartition, PartitionState] = {}
        self.topics: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        self.server_pattern: str | None = None
        self.is_manual = False
        self._excludes_internal = excludes_internal

    @property
    def is_automatic(self) -> bool:
        """Returns whether the group assigns the partitions."""
        return bool(self.topics) or self.pattern is not None or self.server_pattern is not None

    def subscribe(
        self, topics: Iterable[str], pattern: re.Pattern[str] | None = None, server_pattern: str | None = None
    ) -> None:
        """Subscribes to names or to a pattern, instead of the previous subscription.

        Raises SubscriptionError if partitions are assigned manually.
        """
        if self.is_manual:
            raise SubscriptionError("Subscription to topics, partitions and pattern are mutually exclusive")
        self.topics = frozenset(topics)
        self.pattern = pattern
        self.server_pattern = server_pattern

    def assign_manually(self, partitions: Iterable[TopicPartition]) -> None:
        """Assigns exactly these partitions; a partition that was assigned before keeps its state.

        Raises SubscriptionError if the consumer has subscribed to topics.
        """
        if self.is_automatic:
            raise SubscriptionError("Subscription to topics, partitions and pattern are mutually exclusive")
        self.replace(partitions)
        self.is_manual = bool(self.partitions)

    def replace(self, partitions: Iterable[TopicPartition]) -> None:
        """Replaces the assigned partitions; a partition that stays assigned keeps its state."""
        before = self.partitions
        self.partitions = {each: before.get(each) or PartitionState() for each in partitions}

    def unsubscribe(self) -> None:
        """Drops the subscription and all partitions."""
        self.partitions = {}
        self.topics = frozenset()
        self.pattern = None
        self.server_pattern = None
        self.is_manual = False

    def state(self, partition: TopicPartition) -> PartitionState:
        """Returns the state of an assigned partition; raises ValueError if it is not assigned."""
        found = self.partitions.get(partition)
        if found is None:
            raise ValueError(f"No current assignment for partition {partition}")
        return found

    def matching(self, topics: Mapping[str, TopicInfo]) -> frozenset[str]:
        """Returns the subscribed topics; for a pattern, the names in `topics` that match.

        Internal topics are left out of the matches if `exclude.internal.topics` is on.
        """
        if self.pattern is None:
            return self.topics
        return frozenset(
            name
            for name, info in topics.items()
            if self.pattern.search(name) and not (info.is_internal and self._excludes_internal)
        )


def reset_timestamp(strategy: str, wall_ms: int) -> int | None:
    """Returns the timestamp that ListOffsets looks up for the value `strategy` of `auto.offset.reset`.

    `wall_ms` is the present time, from which by_duration counts back. Returns None if `strategy` is "none".
    """
    if strategy == "none":
        return None
    if strategy.startswith("by_duration:"):
        return wall_ms - duration_ms(strategy.removeprefix("by_duration:"))
    return ResetStrategy[strategy.upper()]


def duration_ms(text: str) -> int:
    """Returns the milliseconds of an ISO 8601 duration (PnDTnHnMn.nS); raises ValueError if it is not one."""
    found = re.fullmatch(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", text)
    if found is None:
        raise ValueError(f"{text} is not a duration")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
