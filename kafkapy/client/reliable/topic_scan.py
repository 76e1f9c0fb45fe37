"""Reads the committed records of partitions from given offsets to their present ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from kafkapy._core.client.fetched_records import ConsumerRecord
from kafkapy.client.consumer import Consumer
from kafkapy.client.errors import RequestTimedOut
from kafkapy.client.reliable.relay import consumer_keys
from kafkapy.types import TopicPartition

_POLL_S = 0.2


def scan(
    properties: Mapping[str, Any], starts: Mapping[TopicPartition, int | None], timeout_s: float = 300.0
) -> Iterator[ConsumerRecord]:
    """Yields the committed records of partitions from the given offsets (None: the first) to the high watermarks.

    Waits for the end of transactions that are open at the call, so that no committed record below the high watermarks
    is left out. Blocks; raises RequestTimedOut if no record could be read for `timeout_s` seconds.
    """
    plain = {
        **consumer_keys(properties),
        "group.id": None,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "key.deserializer": "bytes",
        "value.deserializer": "bytes",
        "allow.auto.create.topics": False,
    }
    for key in ("group.protocol", "group.instance.id", "group.remote.assignor", "interceptor.classes"):
        plain.pop(key, None)
    with Consumer({**plain, "isolation.level": "read_uncommitted"}) as any_record:
        ends = any_record.end_offsets(starts)
        begins = any_record.beginning_offsets(starts)
    with Consumer({**plain, "isolation.level": "read_committed"}) as consumer:
        consumer.assign(starts)
        for partition, offset in starts.items():
            consumer.seek(partition, max(offset or 0, begins.get(partition, 0)))
        unread = {each for each in starts if consumer.position(each) < ends.get(each, 0)}
        deadline_s = time.monotonic() + timeout_s
        while unread:
            for record in consumer.poll(_POLL_S):
                deadline_s = time.monotonic() + timeout_s
                if record.offset < ends[TopicPartition(record.topic, record.partition)]:
                    yield record
            read = {each for each in unread if consumer.position(each) >= ends[each]}
            consumer.pause(read)
            unread -= read
            if time.monotonic() > deadline_s:
                raise RequestTimedOut(f"{min(unread)} could not be read to its end within {timeout_s} s")


def all_partitions(properties: Mapping[str, Any], topic: str) -> list[TopicPartition]:
    """Returns the partitions of a topic; empty if the topic does not exist. Blocks."""
    with Consumer({**consumer_keys(properties), "allow.auto.create.topics": False}) as consumer:
        return [TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)]
