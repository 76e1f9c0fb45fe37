"""Changes of groups: set their offsets, with a table of what will be read again or skipped, and delete them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from kafkapy.client.admin import OffsetAndMetadata
from kafkapy.console.changes.change import Change, Field, Fields, Plan, required
from kafkapy.console.cluster_view import ClusterView, Ends
from kafkapy.console.figures import counted, query
from kafkapy.console.message_query import time_of
from kafkapy.console.problem import Problem
from kafkapy.types import TopicPartition

_STRATEGIES = ("earliest", "latest", "time", "offset", "shift")
_FLAGS = {
    "earliest": "--to-earliest",
    "latest": "--to-latest",
    "offset": "--to-offset",
    "shift": "--shift-by",
    "time": "--to-datetime",
}


def _partitions(
    view: ClusterView, group: str, fields: Fields, committed: Mapping[TopicPartition, OffsetAndMetadata]
) -> list[TopicPartition]:
    """Returns the partitions that the form field `topics` names, by words `topic` or `topic:0,1`.

    If the field is empty, returns the partitions of which the group has committed an offset. Raises Problem if there
    are none, or if the field names a partition that does not exist.
    """
    found: list[TopicPartition] = []
    for word in fields.get("topics", "").split():
        topic, colon, numbers = word.partition(":")
        known = [each.partition for each in view.topic(topic).partitions]
        if not colon:
            found += [TopicPartition(topic, number) for number in known]
            continue
        for number in numbers.split(","):
            if not (number.isascii() and number.isdigit()) or int(number) not in known:
                raise Problem(400, f"The topic {topic} has no partition {number[:20]!r}.")
            found.append(TopicPartition(topic, int(number)))
    found = found or sorted(committed)
    if not found:
        raise Problem(400, f"The group {group} has committed no offsets; name the topics.")
    return found


def _chosen(
    view: ClusterView,
    fields: Fields,
    partitions: list[TopicPartition],
    ends: Mapping[TopicPartition, Ends],
    committed: Mapping[TopicPartition, OffsetAndMetadata],
) -> dict[TopicPartition, int]:
    """Returns the new offset of each partition, according to the form fields `to` (the strategy) and `value`.

    An offset outside of the log is replaced by the nearer end of the log. Raises Problem for invalid fields, or if the
    first or end offset of a log could not be read.
    """
    strategy, value = fields.get("to", "earliest"), fields.get("value", "").strip()
    if strategy not in _STRATEGIES:
        raise Problem(400, f"to is one of {', '.join(_STRATEGIES)}, not {strategy[:40]!r}.")
    times = view.offsets_at(partitions, time_of(value)) if strategy == "time" else {}
    found = {}
    for key in partitions:
        first, end = ends[key].first, ends[key].end
        if first is None or end is None:
            raise Problem(502, f"The ends of {key} cannot be read now.")
        if strategy == "earliest":
            wanted = first
        elif strategy == "latest":
            wanted = end
        elif strategy == "time":
            wanted = times[key] if times.get(key, -1) >= 0 else end
        else:
            digits = value.removeprefix("-") if strategy == "shift" else value
            if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
                raise Problem(400, f"{value[:40]!r} is not a whole number.")
            if strategy == "shift" and key not in committed:
                raise Problem(400, f"The group has committed no offset of {key}, so that it cannot be shifted.")
            wanted = int(value) + (committed[key].offset if strategy == "shift" else 0)
        found[key] = min(max(wanted, first), end)
    return found


def _plan_reset(view: ClusterView, fields: Fields) -> Plan:
    group = required(fields, "group")
    committed = view.admin.list_group_offsets([group])[group]
    described = view.admin.describe_groups([group]).values.get(group)
    if described is not None and described.members:
        raise Problem(
            409,
            f"The group {group} has {counted(len(described.members), 'member')}. Offsets can be set while no member is "
            "active; stop them first.",
        )
    partitions = _partitions(view, group, fields, committed)
    ends = view.ends(partitions)
    chosen = _chosen(view, fields, partitions, ends, committed)
    rows = []
    for key, new in chosen.items():
        old = committed[key].offset if key in committed else None
        again, skipped = (max(old - new, 0), max(new - old, 0)) if old is not None else ("", "")
        rows.append((str(key), "none" if old is None else old, new, again, skipped))
    strategy = fields.get("to", "earliest")
    command = ["consumer-groups", "--reset-offsets", "--group", group, _FLAGS[strategy]]
    if strategy == "time":
        moment = datetime.fromtimestamp(time_of(fields.get("value", "").strip()) / 1000, UTC)
        command.append(moment.isoformat(timespec="milliseconds").removesuffix("+00:00"))
    elif strategy not in ("earliest", "latest"):
        command.append(fields.get("value", "").strip())
    for word in fields.get("topics", "").split():
        command += ["--topic", word]
    command += ["--execute"] if fields.get("topics", "").split() else ["--all-topics", "--execute"]

    def apply() -> str:
        view.admin.alter_group_offsets(group, chosen).check()
        return f"The offsets of {counted(len(chosen), 'partition')} were set."

    return Plan(
        f"The offsets of the group {group} will be set.",
        (tuple(command),),
        apply,
        f"/group?{query(id=group)}",
        ("Partition", "Old offset", "New offset", "Read again", "Skipped"),
        rows,
        confirm=group,
    )


def _plan_deletion(view: ClusterView, fields: Fields) -> Plan:
    group = required(fields, "group")
    committed = view.admin.list_group_offsets([group])[group]

    def apply() -> str:
        view.admin.delete_groups([group]).check()
        return f"The group {group} was deleted."

    return Plan(
        f"The group {group} and its committed offsets will be deleted. This cannot be undone.",
        (("consumer-groups", "--delete", "--group", group),),
        apply,
        "/groups",
        ("Partition", "Committed offset", "Then"),
        [(str(key), each.offset, "none") for key, each in sorted(committed.items())],
        confirm=group,
    )


_GROUP = Field("group", "Group", is_required=True, is_fixed=True)
RESET_OFFSETS = Change(
    "reset-offsets",
    "Set the offsets of a group",
    (
        _GROUP,
        Field("topics", "Topics", "TOPIC or TOPIC:0,1, separated by spaces; empty: all that the group has committed"),
        Field("to", "To", choices=_STRATEGIES),
        Field("value", "Time, offset or shift", "2 h, 2026-01-31T12:00, 500 or -100"),
    ),
    _plan_reset,
    is_dangerous=True,
)
DELETE_GROUP = Change("delete-group", "Delete a group", (_GROUP,), _plan_deletion, is_dangerous=True)
