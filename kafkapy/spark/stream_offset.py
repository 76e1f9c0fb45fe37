"""Offsets of a stream as Spark's checkpoint stores them, and the ranges of the micro-batch between two offsets. This
module has no state and does no I/O.

An offset has the JSON of Spark's Kafka source, `{"topic": {"0": 23}}`, and four more keys, which no topic can have:

    "$ids"      {"topic": "its id"}     identifies a topic that was deleted and created again
    "$from"     {"topic": {"2": 5}}     the starts of partitions that the previous offset does not have
    "$initial"  true                    the first offset of a query
    "$owner"    "hot-search"            the option checkpointOwner of the query

The checkpoint stores only the end of the first batch. To repeat this batch, Spark asks the reader for the first offset
again. With startingOffsets=latest, the reader could then return higher offsets than before. The end therefore stores
the starts in `$from`, so that a repeated batch has the same records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkapy.named_tuple import NamedTuple
from kafkapy.spark.topic_partitions import flatten, nest
from kafkapy.types import TopicPartition

INITIAL, FROM, IDS, OWNER = "$initial", "$from", "$ids", "$owner"


class StreamOffset(NamedTuple):
    """A position of a stream: in each partition the offset of the next record to read. The object does not change after
    its construction.

    `ids` maps each topic's name to its id. `starts` is about the batch that ends at this position: it has the first
    offset of each partition for which the position at the start of the batch has no valid offset. These are new
    partitions, partitions of topics that were created again, and all partitions of the first batch. `is_initial` is
    True for the first position of a query. `owner` is the name of the program to which the checkpoint belongs (the
    option checkpointOwner), or empty.
    """

    positions: dict[TopicPartition, int]
    ids: dict[str, str] = {}
    starts: dict[TopicPartition, int] = {}
    is_initial: bool = False
    owner: str = ""

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {**nest(self.positions)}
        if self.ids:
            found[IDS] = dict(sorted(self.ids.items()))
        if self.starts:
            found[FROM] = nest(self.starts)
        if self.is_initial:
            found[INITIAL] = True
        if self.owner:
            found[OWNER] = self.owner
        return found

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> StreamOffset:
        """Parses the JSON of an offset. Raises ConfigError if `found` is not an offset of this data source."""
        return cls(
            flatten("The checkpoint's offset", found),
            dict(found.get(IDS, {})),
            flatten("The checkpoint's offset", found.get(FROM, {})),
            bool(found.get(INITIAL)),
            str(found.get(OWNER, "")),
        )

    def is_same_topic(self, other: StreamOffset, topic: str) -> bool:
        """Returns False if the topic was deleted and created again between the two positions: its ids differ.

        Returns True if one of the positions has no id of the topic.
        """
        mine, theirs = self.ids.get(topic), other.ids.get(topic)
        return mine is None or theirs is None or mine == theirs


class OffsetRange(NamedTuple):
    """The records of one partition from offset `start` up to, but not including, `end`."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return max(self.end - self.start, 0)


class BatchPlan(NamedTuple):
    """The ranges of offsets of a micro-batch, the partitions without a known start, and sentences on lost records.

    The first offset to read in a partition is contained in the stream offset at which the batch begins, or in the one
    at which it ends. A partition is in `unknown` if neither of the two contains it.
    """

    ranges: list[OffsetRange]
    unknown: list[TopicPartition]
    losses: list[str]


def plan_micro_batch(start: StreamOffset, end: StreamOffset) -> BatchPlan:
    """Returns the plan of the micro-batch from the stream offset `start` up to the stream offset `end`."""
    plan = BatchPlan([], [], [])
    gone = sorted(set(start.positions) - set(end.positions))
    if gone:
        plan.losses.append(f"{', '.join(map(str, gone))} are gone")
    for partition, until in sorted(end.positions.items()):
        first = first_offset(start, end, partition)
        if first is None:
            plan.unknown.append(partition)
            continue
        if not start.is_same_topic(end, partition.topic) and partition in start.positions:
            plan.losses.append(f"The topic of partition {partition} was deleted and created again")
        elif until < first:
            plan.losses.append(f"Partition {partition}'s offset was changed from {first} to {until}")
        if until > first:
            plan.ranges.append(OffsetRange(partition, first, until))
    return plan


def first_offset(start: StreamOffset, end: StreamOffset, partition: TopicPartition) -> int | None:
    """Returns the offset in the partition at which the micro-batch from `start` to `end` begins.

    Returns None if neither `start` nor `end` contains the first offset of the partition.
    """
    offset = end.starts.get(partition)
    if offset is not None and (
        start.is_initial or partition not in start.positions or not start.is_same_topic(end, partition.topic)
    ):
        return offset
    if partition in start.positions and start.is_same_topic(end, partition.topic):
        return start.positions[partition]
    return None
