"""Redriving a topic of dead letters: its records go back to the topics that they came from, each at most once."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from kafkapy.client import ConsumerRecord
from kafkapy.client.reliable.conditions import parse_condition
from kafkapy.client.reliable.redrive import Redrive
from kafkapy.console.changes.change import Change, Field, Fields, Plan, required, whole_number
from kafkapy.console.changes.replay import READING_TIME_S
from kafkapy.console.cluster_view import ClusterView
from kafkapy.console.figures import counted, segment
from kafkapy.console.problem import Problem
from kafkapy.errors import KafkapyError

MOST_REDRIVEN = 10_000
_REASONS = {
    "other": "left out by the conditions",
    "moved_before": "moved before",
    "no_origin": "without a topic to go to",
    "no_topic": "whose topic does not exist",
    "full": "left for a later pass",
}


def _plan(view: ClusterView, fields: Fields) -> Plan:
    topic, target = required(fields, "topic"), fields.get("target", "").strip() or None
    view.topic(topic)
    view.check_unmasked(topic, "A redrive")
    lines = [line.strip() for line in fields.get("where", "").splitlines() if line.strip()]
    try:
        conditions = [parse_condition(line) for line in lines]
    except (ValueError, KafkapyError) as error:
        raise Problem(400, f"This is no condition: {error}") from None
    most = whole_number(fields, "count", 1, MOST_REDRIVEN, MOST_REDRIVEN)

    by_topic: Counter[str] = Counter()
    end_s = time.monotonic() + READING_TIME_S

    def count(record: ConsumerRecord, where: str) -> None:
        by_topic[where] += 1
        if time.monotonic() > end_s:
            raise Problem(504, f"The dead letters could not be read within {READING_TIME_S:.0f} s; choose fewer.")

    choice: dict[str, Any] = {"conditions": conditions, "target": target, "most": most}
    counts = Redrive(view.properties, topic, **choice, on_record=count).run(is_dry=True)
    if not by_topic:
        left = ", ".join(f"{counts[name]} {text}" for name, text in _REASONS.items() if counts.get(name))
        raise Problem(409, f"No record of {topic} would be moved{f': {left}' if left else ''}.")

    def apply() -> str:
        moved = Redrive(view.properties, topic, **choice).run()["moved"]
        return f"{counted(moved, 'record')} of {topic} went back."

    command = ["redrive", "--from", topic, *(["--to", target] if target else [])]
    for line in lines:
        command += ["--where", line]
    rows: list[tuple[object, ...]] = [(f"go to {where}", number) for where, number in sorted(by_topic.items())]
    rows += [(text, counts[name]) for name, text in _REASONS.items() if counts.get(name)]
    return Plan(
        f"This dry run has found {counted(by_topic.total(), 'dead letter')} to move. Each is moved once: the offsets "
        f"of the group kafkapy-redrive-{topic} are committed in the same transaction.",
        ((*command, "--count", str(most)),),
        apply,
        f"/topics/{segment(topic)}",
        ("Records that", "Number"),
        rows,
    )


REDRIVE = Change(
    "redrive",
    "Redrive dead letters",
    (
        Field("topic", "Topic of dead letters", is_required=True, is_fixed=True),
        Field("target", "To topic", "empty: the topic in the headers of each record"),
        Field("where", "Conditions", "one on each line, such as key=a, header.type=order or json.amount>=100", lines=3),
        Field("count", "At most", f"empty: {MOST_REDRIVEN}"),
    ),
    _plan,
)
