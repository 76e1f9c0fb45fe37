"""The fate of a record: which groups have read it, whether a transaction is open over it, when it will be deleted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkapy.client.admin import ResourceType
from kafkapy.console.cluster_view import ClusterView
from kafkapy.console.figures import counted, moment
from kafkapy.console.group_lag import MOST_GROUPS
from kafkapy.console.record_filter import Record
from kafkapy.errors import ApiError
from kafkapy.types import TopicPartition

_NAMED = 10


def fate_of(view: ClusterView, partition: TopicPartition, record: Record) -> list[tuple[str, str]]:
    """Returns pairs (label, sentence) on the open transaction, the groups and the deletion that concern a record.

    If the user may not read the facts for a sentence, the sentence says so. Blocks.
    """
    parts: tuple[tuple[str, Callable[[], str]], ...] = (
        ("Transaction", lambda: _transaction(view, partition, record.offset)),
        ("Groups", lambda: _groups(view, partition, record.offset)),
        ("Deletion", lambda: _deletion(view, partition, record)),
    )
    found = []
    for label, read in parts:
        try:
            found.append((label, read()))
        except ApiError as error:
            found.append((label, f"This cannot be read: {error.message}"))
    return found


def _transaction(view: ClusterView, partition: TopicPartition, offset: int) -> str:
    stable = view.ends([partition], read_committed=True)[partition].end
    if stable is not None and offset >= stable:
        return (
            f"A transaction is open from offset {stable} on; consumers of committed records cannot read this one yet."
        )
    return "No open transaction holds it back."


def _groups(view: ClusterView, partition: TopicPartition, offset: int) -> str:
    """Returns a sentence that names the groups that have read the record, and those that have not.

    A group has read the record if it has committed a later offset. Only groups with a committed offset of the partition
    are named.
    """
    asked = [each.group_id for each in view.groups() if each.type in ("Classic", "Consumer", "")][:MOST_GROUPS]
    committed = {
        group: offsets[partition].offset
        for group, offsets in view.admin.list_group_offsets({group: [partition] for group in asked}).values.items()
        if partition in offsets
    }
    passed = sorted(group for group, position in committed.items() if position > offset)
    waiting = sorted(set(committed) - set(passed))
    if not committed:
        return "No group has committed an offset of this partition."
    return f"Read by {_names(passed)}; not yet by {_names(waiting)}."


def _names(groups: Sequence[str]) -> str:
    if not groups:
        return "none"
    rest = f" and {counted(len(groups) - _NAMED, 'other')}" if len(groups) > _NAMED else ""
    return ", ".join(groups[:_NAMED]) + rest


def _deletion(view: ClusterView, partition: TopicPartition, record: Record) -> str:
    entries = {each.name: each.value for each in view.configuration(ResourceType.TOPIC, partition.topic)}
    policy = entries.get("cleanup.policy") or ""
    sentences = []
    if "compact" in policy:
        sentences.append("Compaction removes it once a later record has the same key.")
    retention_ms = int(entries.get("retention.ms") or -1)
    if "delete" in policy and retention_ms >= 0 and record.timestamp >= 0:
        at = moment(record.timestamp + retention_ms)
        sentences.append(f"Retention by time deletes it after {at} (UTC), when all of its segment is as old.")
    elif "delete" in policy and retention_ms < 0:
        sentences.append("Retention by time is off.")
    if "delete" in policy and int(entries.get("retention.bytes") or -1) >= 0:
        sentences.append(f"Retention by size keeps about {entries['retention.bytes']} bytes of the partition.")
    return " ".join(sentences) or "Nothing deletes it."
