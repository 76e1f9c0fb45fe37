"""The changes that a user of the console can make. Each change has a form, a plan with the equivalent command of a
tool, and a function that carries out the plan."""

from __future__ import annotations

from kafkapy.console.changes.change import Change
from kafkapy.console.changes.group_changes import DELETE_GROUP, RESET_OFFSETS
from kafkapy.console.changes.partition_changes import ELECT_LEADERS, REASSIGN
from kafkapy.console.changes.record_changes import PRODUCE
from kafkapy.console.changes.redrive import REDRIVE
from kafkapy.console.changes.replay import REPLAY
from kafkapy.console.changes.topic_changes import ADD_PARTITIONS, ALTER_CONFIGURATION, CREATE_TOPIC, DELETE_TOPIC

CHANGES: dict[str, Change] = {
    each.name: each
    for each in (
        CREATE_TOPIC,
        ADD_PARTITIONS,
        ALTER_CONFIGURATION,
        DELETE_TOPIC,
        PRODUCE,
        REPLAY,
        REDRIVE,
        RESET_OFFSETS,
        DELETE_GROUP,
        REASSIGN,
        ELECT_LEADERS,
    )
}
