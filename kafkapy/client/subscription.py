"""What a consumer reads: its partitions, where it is in each, and what it subscribes to.  Pure."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from kafkapy._core.client.fetched_records import FetchedRecords
from kafkapy.client.cluster import TopicInfo
from kafkapy.types import TopicPartition


class ResetStrategy(IntEnum):
    """Where to begin without a position; the numbers are the protocol's timestamps of ListOffsets."""

    LATEST = -1
    EARLIEST = -2


class PartitionState:
    """One assigned partition.

    `position` is the next record that the application gets (None: not known yet); `fetch_offset` where the next fetch
    goes on, ahead of it by what is buffered. `generation` counts the jumps, so that an answer to a fetch from before
    one is thrown away.
    """

    __slots__ = (
        "buffers",
        "checked_epoch",
        "fetch_offset",
        "generation",
        "high_watermark",
        "is_checking",
        "is_fetching",
        "is_paused",
        "last_stable_offset",
        "last_turn",
        "leader_epoch",
        "log_start_offset",
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
        self.reset: int | None = None  # the timestamp that ListOffsets is asked for
        self.until_offset: int | None = None  # nothing is read from here on
        self.wants_committed = False
        self.not_before_ms = 0
        self.preferred_replica = -1
        self.leader_epoch = -1  # of the record before `position`
        self.checked_epoch = -1  # the leader's, that `position` is known to hold under
        self.is_checking = False
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.last_turn = 0  # of those in which several partitions had records, when this one came first

    def jump(self, position: int | None, leader_epoch: int = -1) -> None:
        """Another position: what was fetched is dropped. `leader_epoch`: of the record before it, if it is known."""
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
        """Another position, which ListOffsets has to find."""
        self.jump(None)
        self.reset = timestamp

    def take_from(self, fetched: FetchedRecords) -> None:
        """The application has taken records from the first buffer."""
        self.position = fetched.next_offset
        self.leader_epoch = fetched.leader_epoch
        if fetched.is_exhausted:
            self.buffers.popleft()
            self.position = max(fetched.next_offset, fetched.end_offset)

    @property
    def is_fetchable(self) -> bool:
        if self.position is None or self.is_paused:
            return False
        return self.until_offset is None or self.fetch_offset < self.until_offset


class SubscriptionError(RuntimeError):
    """Subscribing by names, by pattern and assigning partitions exclude each other."""


class SubscriptionPattern(NamedTuple):
    """A regular expression of RE2's syntax for `subscribe`, evaluated by the coordinator (group.protocol=consumer): a
    topic is read if the whole of its name matches."""

    pattern: str


class Subscription:
    """Owns the partitions of a consumer and how it comes by them: by hand, by names, or by a pattern, which is ours to
    evaluate (`pattern`) or the coordinator's (`server_pattern`)."""

    def __init__(self, *, excludes_internal: bool = True) -> None:
        self.partitions: dict[TopicPartition, PartitionState] = {}
        self.topics: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        self.server_pattern: str | None = None
        self.is_manual = False
        self._excludes_internal = excludes_internal

    @property
    def is_automatic(self) -> bool:
        """Whether the group says which partitions it reads."""
        return bool(self.topics) or self.pattern is not None or self.server_pattern is not None

    def subscribe(
        self, topics: Iterable[str], pattern: re.Pattern[str] | None = None, server_pattern: str | None = None
    ) -> None:
        """By names or by a pattern, in place of what was subscribed to before."""
        if self.is_manual:
            raise SubscriptionError("Subscription to topics, partitions and pattern are mutually exclusive")
        self.topics = frozenset(topics)
        self.pattern = pattern
        self.server_pattern = server_pattern

    def assign_manually(self, partitions: Iterable[TopicPartition]) -> None:
        """Exactly these partitions; those that it had keep their position."""
        if self.is_automatic:
            raise SubscriptionError("Subscription to topics, partitions and pattern are mutually exclusive")
        self.replace(partitions)
        self.is_manual = bool(self.partitions)

    def replace(self, partitions: Iterable[TopicPartition]) -> None:
        """Other partitions; those that stay keep their state."""
        before = self.partitions
        self.partitions = {each: before.get(each) or PartitionState() for each in partitions}

    def unsubscribe(self) -> None:
        self.partitions = {}
        self.topics = frozenset()
        self.pattern = None
        self.server_pattern = None
        self.is_manual = False

    def state(self, partition: TopicPartition) -> PartitionState:
        """The state of an assigned partition; ValueError for another."""
        found = self.partitions.get(partition)
        if found is None:
            raise ValueError(f"No current assignment for partition {partition}")
        return found

    def matching(self, topics: Mapping[str, TopicInfo]) -> frozenset[str]:
        """The topics that are subscribed to, for a pattern among those that there are."""
        if self.pattern is None:
            return self.topics
        return frozenset(
            name
            for name, info in topics.items()
            if self.pattern.search(name) and not (info.is_internal and self._excludes_internal)
        )


def reset_timestamp(strategy: str, now_ms: int) -> int | None:
    """What `auto.offset.reset` asks ListOffsets for; None if it is `none`."""
    if strategy == "none":
        return None
    if strategy.startswith("by_duration:"):
        return now_ms - duration_ms(strategy.removeprefix("by_duration:"))
    return ResetStrategy[strategy.upper()]


def duration_ms(text: str) -> int:
    """Milliseconds of an ISO 8601 duration of days, hours, minutes and seconds (PnDTnHnMn.nS)."""
    found = re.fullmatch(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", text)
    if found is None:
        raise ValueError(f"{text} is no duration")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
