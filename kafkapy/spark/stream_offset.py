"""What Spark writes into its checkpoint for us, and the range of a micro-batch that follows from two of them.  Pure.

It is the JSON of Spark's Kafka source, `{"topic": {"0": 23}}`, with three more keys, which no topic can have:

    "$ids"      {"topic": "its id"}     a topic that was deleted and created again is recognised by it
    "$from"     {"topic": {"2": 5}}     where the partitions begin that the offset before does not know
    "$initial"  true                    the first offset of a query

Spark asks for the first offset again when it repeats the first batch, and `latest` has moved on by then; the end of the
batch is in the checkpoint. So the end says in `$from` where the batch began, and a repeated batch has the same records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kafkapy.spark.topic_partitions import flatten, nest
from kafkapy.types import TopicPartition

INITIAL, FROM, IDS = "$initial", "$from", "$ids"


class StreamOffset(NamedTuple):
    """The next record of each partition; immutable by convention."""

    positions: dict[TopicPartition, int]
    ids: dict[str, str] = {}
    starts: dict[TopicPartition, int] = {}
    is_initial: bool = False

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {**nest(self.positions)}
        if self.ids:
            found[IDS] = dict(sorted(self.ids.items()))
        if self.starts:
            found[FROM] = nest(self.starts)
        if self.is_initial:
            found[INITIAL] = True
        return found

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> StreamOffset:
        """ConfigError if it is none of ours."""
        return cls(
            flatten("The checkpoint's offset", found),
            dict(found.get(IDS, {})),
            flatten("The checkpoint's offset", found.get(FROM, {})),
            bool(found.get(INITIAL)),
        )

    def is_same_topic(self, other: StreamOffset, topic: str) -> bool:
        """False if the topic was deleted and created again between the two."""
        mine, theirs = self.ids.get(topic), other.ids.get(topic)
        return mine is None or theirs is None or mine == theirs


class OffsetRange(NamedTuple):
    """Records [start, end) of one partition."""

    where: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return max(self.end - self.start, 0)


class BatchPlan(NamedTuple):
    """The ranges of a micro-batch. `unknown` are partitions that begin in it without a word on where; `losses` say in
    words which records it should have and cannot have."""

    ranges: list[OffsetRange]
    unknown: list[TopicPartition]
    losses: list[str]


def plan_batch(start: StreamOffset, end: StreamOffset) -> BatchPlan:
    """What lies between two offsets."""
    plan = BatchPlan([], [], [])
    gone = sorted(set(start.positions) - set(end.positions))
    if gone:
        plan.losses.append(f"{', '.join(map(str, gone))} are gone")
    for where, until in sorted(end.positions.items()):
        begin = first_offset(start, end, where)
        if begin is None:
            plan.unknown.append(where)
            continue
        if not start.is_same_topic(end, where.topic) and where in start.positions:
            plan.losses.append(f"The topic of partition {where} was deleted and created again")
        elif until < begin:
            plan.losses.append(f"Partition {where}'s offset was changed from {begin} to {until}")
        if until > begin:
            plan.ranges.append(OffsetRange(where, begin, until))
    return plan


def first_offset(start: StreamOffset, end: StreamOffset, where: TopicPartition) -> int | None:
    """Where a partition begins in the batch that ends with `end`; None if neither says."""
    told = end.starts.get(where)
    if told is not None and (
        start.is_initial or where not in start.positions or not start.is_same_topic(end, where.topic)
    ):
        return told
    if where in start.positions and start.is_same_topic(end, where.topic):
        return start.positions[where]
    return None
