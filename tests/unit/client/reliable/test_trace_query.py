"""Queries of trace records, without a broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kafkapy.client.reliable.trace_query import TraceQuery
from kafkapy.client.reliable.trace_records import TraceRecord
from kafkapy.types import TopicPartition


def event(trace: bytes, stage: str, topic: str = "orders", partition: int = 0, offset: int = 7) -> TraceRecord:
    return TraceRecord(stage, trace * 16, b"s" * 8, b"", 1, "host", "client", topic, partition, offset)


class Query(TraceQuery):
    """A query of one partition with these trace records."""

    def __init__(self, records: Sequence[TraceRecord]) -> None:
        self._partitions = [TopicPartition("traces", 0)]
        self._records = records
        self.counts = Counter()

    def _read(self, partitions: Sequence[TopicPartition]) -> Iterator[TraceRecord]:
        return iter(self._records)


def test_a_record_is_found_with_all_events_of_its_traces() -> None:
    sent, received = event(b"a", "sent", offset=-1), event(b"a", "received")
    others = [
        event(b"b", "received", offset=8),
        event(b"c", "received", partition=1),
        event(b"d", "received", topic="payments"),
    ]
    query = Query([sent, *others, received])
    assert query.by_record("orders", 0, 7) == [sent, received]
    assert query.by_record("orders", 0, 9) == []
    assert query.by_trace(frozenset({b"b" * 16})) == others[:1]
