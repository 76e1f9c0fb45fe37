"""The changes that consoles have recorded in the audit topic, and the search for the change that has caused a record of
the metadata log."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping

from kafkapy._core.bytes.arrow_search import read_row
from kafkapy.client import RangeReader
from kafkapy.console.cluster_view import SLOW_S, ClusterView
from kafkapy.console.problem import Problem
from kafkapy.errors import ApiError
from kafkapy.metadata.history import LoggedRecord, MetadataHistory
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition

# The newest records of the audit topic that are read.
MOST_AUDITED = 10_000
_AUDIT_READING_S = 5.0
# The clocks of the console and the controller may differ by this time; names decide between changes in it.
_TOLERANCE_MS = 2_000
# The duration of a change whose end the topic does not have.
_LONGEST_CHANGE_MS = 60_000
# The changes that write these records. The time alone would attribute the creation of a topic to a change of the topic
# that followed within the tolerance.
_CAUSES = {
    "TopicRecord": ("create-topic", "produce", "redrive", "replay"),
    "RemoveTopicRecord": ("delete-topic",),
}


class AuditedChange(NamedTuple):
    """A change that a user has made with a console.

    `began_ms` and `ended_ms` are the times of its two records in ms since 1970; `ended_ms` is None if the second record
    is missing. `name` is the topic, group or other resource that the change concerns. `state` is the state in the last
    record.
    """

    user: str
    change: str
    name: str
    began_ms: int
    ended_ms: int | None
    state: str

    def distance_ms(self, names: Container[object], wall_ms: int) -> int | None:
        """Returns the time in ms between the change and a metadata record that was written before or after the change;
        0 if the record was written during the change.

        `wall_ms` is the time of the record, and `names` are the resources that it names. Returns None if the change's
        `name` is not in `names`, or if the record is too early or too late to come from the change.
        """
        end_ms = self.began_ms + _LONGEST_CHANGE_MS if self.ended_ms is None else self.ended_ms
        away_ms = max(self.began_ms - wall_ms, wall_ms - end_ms, 0)
        return away_ms if self.name in names and away_ms <= _TOLERANCE_MS else None


def changes_of(view: ClusterView, topic: str) -> list[AuditedChange]:
    """Returns the changes in the newest records of the audit topic, the oldest first. Blocks.

    Returns an empty list if there is no audit topic, or if the user may not read it.
    """
    if not topic:
        return []
    return view.cached("audited changes", SLOW_S, lambda: _read(view, topic))


def _read(view: ClusterView, topic: str) -> list[AuditedChange]:
    partition = TopicPartition(topic, 0)
    try:
        view.topic(topic)
        ends = view.ends([partition])[partition]
        if ends.first is None or ends.end is None or not ends.length:
            return []
        start = max(ends.first, ends.end - MOST_AUDITED)
        values = []
        with RangeReader(view.properties) as reader:
            for batch in reader.read(partition, start, ends.end, columns=("value",), timeout=_AUDIT_READING_S):
                values += [read_row(batch, row)["value"] for row in range(len(batch))]
    except (ApiError, TimeoutError, Problem):
        return []
    return paired(values)


def paired(values: Iterable[bytes | None]) -> list[AuditedChange]:
    """Returns the changes that records of the audit topic describe. A change has two records, one before and one after
    it is made. Values that are not records of changes are skipped.
    """
    found: dict[str, AuditedChange] = {}
    for value in values:
        try:
            entry = json.loads(value or b"")
            key, wall_ms, state = str(entry["id"]), int(entry["time"]), str(entry["state"])
            fields = entry["fields"]
            name = str(fields.get("topic") or fields.get("name") or fields.get("group") or "")
            if state == "requested":
                found[key] = AuditedChange(str(entry["user"]), str(entry["change"]), name, wall_ms, None, state)
            elif key in found:
                found[key] = found[key]._replace(ended_ms=wall_ms, state=state)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return list(found.values())


def topic_names(history: MetadataHistory) -> dict[bytes, str]:
    """Returns the names of all topics of a history by id, including deleted topics."""
    found = {topic_id: each.name for topic_id, each in history.base.topics.by_id.items()}
    for record in history.between(history.base.offset, history.end_offset):
        if type(record.message).__name__ == "TopicRecord":
            found[record.message.topic_id] = record.message.name
    return found


def author_of(changes: list[AuditedChange], record: LoggedRecord, topics: Mapping[bytes, str]) -> str:
    """Returns the user and the change that have caused a metadata record, such as "ann: create-topic".

    Returns "" if no change fits. `topics` maps topic ids to names.
    """
    message = record.message
    names = {getattr(message, attribute, None) for attribute in ("name", "resource_name")}
    names.add(topics.get(getattr(message, "topic_id", None) or b""))
    names -= {None, ""}
    causes = _CAUSES.get(type(message).__name__)
    fitting = [
        (away_ms, at)
        for at, each in enumerate(changes)
        if (causes is None or each.change in causes)
        and (away_ms := each.distance_ms(names, record.wall_ms)) is not None
    ]
    if not fitting:
        return ""
    found = changes[min(fitting)[1]]
    return f"{found.user}: {found.change}"
