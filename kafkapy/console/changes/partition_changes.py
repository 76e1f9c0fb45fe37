"""Changes of partitions: move their replicas, and elect their leaders."""

from __future__ import annotations

import json
import re

from kafkapy.client.admin import ElectionType
from kafkapy.console.changes.change import Change, Field, Fields, Plan, required
from kafkapy.console.cluster_view import ClusterView
from kafkapy.console.figures import counted, segment
from kafkapy.console.problem import Problem
from kafkapy.types import TopicPartition

_LINE = re.compile(r"\s*(\d{1,9})\s*[:=]\s*(\d+(?:\s*,\s*\d+)*|)\s*", re.ASCII)
_ELECTIONS = {"preferred": ElectionType.PREFERRED, "unclean": ElectionType.UNCLEAN}


def _plan_reassignment(view: ClusterView, fields: Fields) -> Plan:
    name = required(fields, "topic")
    partitions = {each.partition: each for each in view.topic(name).partitions}
    brokers = {each.node_id for each in view.describe().brokers}
    wanted: dict[TopicPartition, tuple[int, ...] | None] = {}
    rows = []
    for line in filter(str.strip, fields.get("replicas", "").splitlines()):
        found = _LINE.fullmatch(line)
        if found is None or int(found[1]) not in partitions:
            raise Problem(400, f"{line[:60]!r} is not PARTITION: BROKER,BROKER of a partition of {name}.")
        number, replicas = int(found[1]), tuple(int(each) for each in found[2].split(",") if each.strip())
        if not set(replicas) <= brokers or len(set(replicas)) != len(replicas):
            raise Problem(400, f"Partition {number}: {found[2]} has an unknown broker, or one twice.")
        wanted[TopicPartition(name, number)] = replicas or None
        then = ", ".join(map(str, replicas)) or "the move is cancelled"
        rows.append((number, ", ".join(map(str, partitions[number].replicas)), then))
    if not wanted:
        raise Problem(400, "No partition is named.")
    moves = [
        {"topic": name, "partition": key.partition, "replicas": list(each or partitions[key.partition].replicas)}
        for key, each in wanted.items()
    ]

    def apply() -> str:
        view.admin.alter_partition_reassignments(wanted).check()
        return f"{counted(len(wanted), 'partition')} will move; the page of partitions shows when they have."

    return Plan(
        f"The replicas of {counted(len(wanted), 'partition')} will move. The new replicas copy all records first.",
        (("reassign-partitions", "--execute", "--reassignment-json-file", "FILE"),),
        apply,
        f"/topics/{segment(name)}/partitions",
        ("Partition", "Replicas now", "Then"),
        rows,
        file=json.dumps({"version": 1, "partitions": moves}),
    )


def _plan_election(view: ClusterView, fields: Fields) -> Plan:
    name, kind = required(fields, "topic"), fields.get("kind", "preferred")
    if kind not in _ELECTIONS:
        raise Problem(400, f"kind is one of {', '.join(_ELECTIONS)}, not {kind[:40]!r}.")
    described = view.topic(name).partitions
    if kind == "preferred":
        chosen = [each for each in described if each.replicas and each.leader != each.replicas[0]]
    else:
        chosen = [each for each in described if each.leader < 0]
    if not chosen:
        state = "is led by its preferred replica" if kind == "preferred" else "has a leader"
        raise Problem(409, f"Each partition of {name} {state}; there is nothing to elect.")
    keys = [TopicPartition(name, each.partition) for each in chosen]

    def apply() -> str:
        view.admin.elect_leaders(_ELECTIONS[kind], keys).check()
        return f"The leaders of {counted(len(keys), 'partition')} were elected."

    risk = " Records that only other replicas have will be lost." if kind == "unclean" else ""
    return Plan(
        f"The leaders of {counted(len(keys), 'partition')} will be elected.{risk}",
        tuple(
            ("leader-election", "--election-type", kind, "--topic", name, "--partition", str(each.partition))
            for each in chosen
        ),
        apply,
        f"/topics/{segment(name)}/partitions",
        ("Partition", "Leader now", "Replicas"),
        [(each.partition, each.leader, ", ".join(map(str, each.replicas))) for each in chosen],
        confirm=name if kind == "unclean" else "",
    )


_TOPIC = Field("topic", "Topic", is_required=True, is_fixed=True)
REASSIGN = Change(
    "reassign",
    "Move replicas",
    (_TOPIC, Field("replicas", "Replicas", "PARTITION: BROKER,BROKER on each line; no broker cancels a move", lines=6)),
    _plan_reassignment,
)
ELECT_LEADERS = Change(
    "elect-leaders",
    "Elect leaders",
    (_TOPIC, Field("kind", "Election", choices=tuple(_ELECTIONS))),
    _plan_election,
)
