"""Queries on the topic of trace records: by the id of a trace, or by a record; and the export to a collector."""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafkapy.client.consumer import Consumer
from kafkapy.client.partitioner import default_partition
from kafkapy.client.reliable.relay import consumer_keys
from kafkapy.client.reliable.topic_scan import all_partitions, scan
from kafkapy.client.reliable.trace_records import Span, TraceRecord, otlp_json, spans_of, unpack_trace
from kafkapy.errors import ConfigError
from kafkapy.types import TopicPartition

# The most trace records that a query keeps.
MOST_TRACE_RECORDS = 100_000
_EXPORT_TIMEOUT_S = 10.0


class TraceQuery:
    """Reads a topic of trace records from `from_ms` on (None: from its beginning). Blocks."""

    def __init__(self, properties: Mapping[str, Any], topic: str, from_ms: int | None = None) -> None:
        """Finds the partitions of the topic. Raises ConfigError if the topic does not exist."""
        self._properties = dict(properties)
        self._topic = topic
        self._from_ms = from_ms
        self._partitions = all_partitions(properties, topic)
        self.counts: Counter[str] = Counter()
        if not self._partitions:
            raise ConfigError(f"The topic {topic} of trace records does not exist")

    def by_trace(self, trace_ids: frozenset[bytes]) -> list[TraceRecord]:
        """Returns the trace records of some traces, at most MOST_TRACE_RECORDS; `counts` has the number of those left
        out.

        Reads only the partitions in which the trace records of these traces are.
        """
        count = len(self._partitions)
        numbers = {default_partition(each, count) for each in trace_ids}
        found: list[TraceRecord] = []
        for record in self._read([each for each in self._partitions if each.partition in numbers]):
            if record.trace_id in trace_ids:
                if len(found) >= MOST_TRACE_RECORDS:
                    self.counts["left_out"] += 1
                else:
                    found.append(record)
        return found

    def by_record(self, topic: str, partition: int, offset: int) -> list[TraceRecord]:
        """Returns all trace records of the traces in which the record at this offset occurs."""
        place = (topic, partition, offset)
        ids = {
            each.trace_id for each in self._read(self._partitions) if (each.topic, each.partition, each.offset) == place
        }
        return self.by_trace(frozenset(ids)) if ids else []

    def spans(self, records: Sequence[TraceRecord]) -> list[Span]:
        """Combines trace records to spans, in the order of their beginning."""
        return spans_of(records)

    def _read(self, partitions: Sequence[TopicPartition]) -> Iterator[TraceRecord]:
        starts: dict[TopicPartition, int | None] = dict.fromkeys(partitions)
        if self._from_ms is not None:
            with Consumer(consumer_keys(self._properties)) as consumer:
                times = consumer.offsets_for_times(dict.fromkeys(partitions, self._from_ms))
                ends = consumer.end_offsets(partitions)
            starts = {each: ends[each] if found is None else found.offset for each, found in times.items()}
        for record in scan(self._properties, starts):
            try:
                yield unpack_trace(record.value)
            except ValueError:
                self.counts["unreadable"] += 1


def export(url: str, spans: Sequence[Span]) -> None:
    """Sends spans to a collector; `url` is its address, to which `/v1/traces` is added unless it has a path.

    Raises ConfigError for an address that is not HTTP, and OSError if the collector does not accept the spans.
    """
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{url} is not the address of a collector, such as http://localhost:4318")
    address = url if url.count("/") > 2 and not url.endswith("/") else url.rstrip("/") + "/v1/traces"
    body = json.dumps(otlp_json(spans)).encode()
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"}, method="POST")
    with urllib.request.urlopen(request, timeout=_EXPORT_TIMEOUT_S) as response:
        response.read()
