"""Replaying a range of a topic, or the records that a filter selects, into a new topic, in one transaction."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator

from kafkapy.client import Producer
from kafkapy.client.admin import NewTopic
from kafkapy.console.changes.change import Change, Field, Fields, Plan, key_values, required, whole_number
from kafkapy.console.cluster_view import ClusterView
from kafkapy.console.figures import counted, segment, size
from kafkapy.console.message_query import MessageQuery, Ranges, ranges_of, time_of
from kafkapy.console.problem import Problem
from kafkapy.console.record_filter import FIELDS, OPERATIONS, Record, parse_filters
from kafkapy.console.record_search import Progress, RecordSearch

# A replay is one transaction and one request of the browser, so it is bounded.
MOST_REPLAYED = 100_000
MOST_REPLAYED_BYTES = 256 << 20
READING_TIME_S = 60.0
_TRANSACTION_MS = 180_000
_STARTS = ("oldest", "offset", "time")


class _Source:
    """The records of a topic that are selected by a form.

    Each iteration over the object reads them from the cluster again.
    """

    def __init__(self, view: ClusterView, fields: Fields) -> None:
        self._view = view
        self.topic = required(fields, "topic")
        view.check_unmasked(self.topic, "A replay")
        self.partitions = view.topic(self.topic).partitions
        numbers = [each.partition for each in self.partitions]
        chosen = whole_number(fields, "partition", 0, max(numbers), -1)
        start = fields.get("from", "") or "oldest"
        if start not in _STARTS:
            raise Problem(400, f"from is one of {', '.join(_STARTS)}, not {start[:40]!r}.")
        filters = parse_filters(*([fields.get(name, "").strip()] for name in ("field", "name", "operation", "text")))
        at = fields.get("at", "").strip()
        self._query = MessageQuery(start, at, None, MOST_REPLAYED + 1, filters, "auto", "auto", committed_only=True)
        self._ranges = self._bounded(
            ranges_of(self._query, view, self.topic, numbers if chosen < 0 else [chosen]),
            fields.get("until", "").strip(),
        )

    def _bounded(self, ranges: Ranges, until: str) -> Ranges:
        """Returns the ranges of offsets without the records from the time `until` on.

        Each range ends before the first record that is not older than `until`. `until` is the text of a time; "" leaves
        the ranges unchanged.
        """
        if not until:
            return ranges
        found = self._view.offsets_at(ranges, time_of(until))
        return {
            key: (start, max(start, min(end, found[key])) if found.get(key, -1) >= 0 else end)
            for key, (start, end) in ranges.items()
        }

    def __iter__(self) -> Iterator[Record]:
        """Yields the selected records. Raises Problem if there are too many records, or if they cannot be read."""
        search = RecordSearch(self._view.properties, self._query, self._ranges)
        end_s = time.monotonic() + READING_TIME_S
        count = total = 0
        for found in search.run():
            if time.monotonic() > end_s:
                search.stop()
            if isinstance(found, Progress):
                continue
            count += 1
            total += len(found.key or b"") + len(found.value or b"")
            if count > MOST_REPLAYED or total > MOST_REPLAYED_BYTES:
                raise Problem(
                    400,
                    f"More than {counted(MOST_REPLAYED, 'record')} or {size(MOST_REPLAYED_BYTES)} are selected. "
                    "Choose a shorter range or a narrower filter.",
                )
            yield found
        if search.progress.end_reason != "All records were read.":
            raise Problem(
                504, f"The range could not be read within {READING_TIME_S:.0f} s: {search.progress.end_reason}"
            )


def _plan(view: ClusterView, fields: Fields) -> Plan:
    source = _Source(view, fields)
    target = required(fields, "target")
    configs = key_values(fields.get("configuration", ""))
    replicas = max(len(each.replicas) for each in source.partitions)
    topic = NewTopic(target, len(source.partitions), replicas, configs=configs)
    view.admin.create_topics([topic], validate_only=True).check()
    counts: Counter[int] = Counter()
    sizes: Counter[int] = Counter()
    for record in source:
        counts[record.partition] += 1
        sizes[record.partition] += len(record.key or b"") + len(record.value or b"")

    def apply() -> str:
        view.admin.create_topics([topic]).check()
        written = _write(view, source, target)
        return f"{counted(written, 'record')} of the topic {source.topic} were written to the topic {target}."

    command = ["topics", "--create", "--topic", target, "--partitions", str(topic.partitions)]
    command += ["--replication-factor", str(replicas)]
    for key, value in configs.items():
        command += ["--config", f"{key}={value}"]
    return Plan(
        f"This dry run has found {counted(counts.total(), 'record')} with {size(sizes.total())} of keys and values in "
        f"the topic {source.topic}. They will be written in one transaction to a new topic {target}, with their keys, "
        "headers, timestamps and partitions. Records that arrive before you apply are included unless an end is given. "
        "The command creates the topic only; no tool does the rest.",
        (tuple(command),),
        apply,
        f"/topics/{segment(target)}?from=oldest",
        ("Partition", "Records", "Keys and values"),
        [(number, counts[number], size(sizes[number])) for number in sorted(counts)],
    )


def _write(view: ClusterView, source: _Source, target: str) -> int:
    """Writes the records of `source` to the topic `target` in one transaction, and returns their number.

    After an error the transaction is aborted, so that consumers with `read_committed` read none of them.
    """
    settings = {
        **view.properties,
        "transactional.id": f"kafkapy-console-replay-{secrets.token_hex(8)}",
        "transaction.timeout.ms": _TRANSACTION_MS,
        "linger.ms": 20,
    }
    settings.pop("default.api.timeout.ms", None)
    count = 0
    with Producer(settings) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        try:
            for record in source:
                producer.send(
                    target,
                    record.value,
                    key=record.key,
                    partition=record.partition,
                    timestamp=record.timestamp if record.timestamp >= 0 else None,
                    headers=list(record.headers),
                )
                count += 1
            producer.commit_transaction()
        except BaseException:
            producer.abort_transaction()
            raise
    return count


REPLAY = Change(
    "replay",
    "Replay records into a new topic",
    (
        Field("topic", "Topic", is_required=True, is_fixed=True),
        Field("target", "New topic", is_required=True),
        Field("partition", "Partition", "empty: all"),
        Field("from", "Start", choices=_STARTS),
        Field("at", "Offset or time of the start", "15 min, 2026-01-31T12:00"),
        Field("until", "End", "a time; empty: the present end"),
        Field("field", "Filter", choices=tuple(FIELDS)),
        Field("name", "Header or path of the filter"),
        Field("operation", "Operation", choices=tuple(OPERATIONS)),
        Field("text", "Text", "empty: all records"),
        Field(
            "configuration",
            "Configuration of the new topic",
            "key=value, one on each line; retention.ms=-1 keeps records with old timestamps",
            lines=3,
        ),
    ),
    _plan,
)
