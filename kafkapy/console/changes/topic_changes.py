"""Changes of topics: create, add partitions, configure, delete."""

from __future__ import annotations

from kafkapy.client.admin import (
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from kafkapy.config.dynamic import dynamic_row
from kafkapy.console.changes.change import Change, Field, Fields, Plan, key_values, required, whole_number
from kafkapy.console.cluster_view import ClusterView
from kafkapy.console.figures import counted, segment
from kafkapy.console.problem import Problem

_TOPIC = Field("topic", "Topic", is_required=True, is_fixed=True)
_KINDS = {"topic": ResourceType.TOPIC, "broker": ResourceType.BROKER, "group": ResourceType.GROUP}
_TOOL_TYPES = {"topic": "topics", "broker": "brokers", "group": "groups"}
MOST_PARTITIONS = 100_000


def _plan_creation(view: ClusterView, fields: Fields) -> Plan:
    name = required(fields, "topic")
    partitions = whole_number(fields, "partitions", 1, MOST_PARTITIONS, -1)
    replicas = whole_number(fields, "replicas", 1, 1000, -1)
    configs = key_values(fields.get("configuration", ""))
    topic = NewTopic(name, partitions, replicas, configs=configs)
    validated = view.admin.create_topics([topic], validate_only=True)[name]
    command = ["topics", "--create", "--topic", name]
    command += ["--partitions", str(partitions)] if partitions > 0 else []
    command += ["--replication-factor", str(replicas)] if replicas > 0 else []
    for key, value in configs.items():
        command += ["--config", f"{key}={value}"]

    def apply() -> str:
        view.admin.create_topics([topic]).check()
        return f"The topic {name} was created."

    shown = [(key, "", value) for key, value in configs.items()]
    rows = [("partitions", "", validated.partitions), ("replicas", "", validated.replication_factor), *shown]
    summary = f"A topic {name} will be created. The broker has validated it."
    return Plan(summary, (tuple(command),), apply, f"/topics/{segment(name)}", ("Property", "Now", "Then"), rows)


def _plan_partitions(view: ClusterView, fields: Fields) -> Plan:
    name = required(fields, "topic")
    now = len(view.topic(name).partitions)
    total = whole_number(fields, "partitions", 1, MOST_PARTITIONS)
    if total <= now:
        raise Problem(400, f"The topic {name} has {counted(now, 'partition')}; partitions can only be added.")
    view.admin.create_partitions({name: total}, validate_only=True).check()

    def apply() -> str:
        view.admin.create_partitions({name: total}).check()
        return f"The topic {name} has {total} partitions now."

    return Plan(
        f"{counted(total - now, 'partition')} will be added. This cannot be undone, and records with the same key may "
        "go to another partition than before.",
        (("topics", "--alter", "--topic", name, "--partitions", str(total)),),
        apply,
        f"/topics/{segment(name)}/partitions",
        ("Property", "Now", "Then"),
        [("partitions", now, total)],
    )


def _plan_configuration(view: ClusterView, fields: Fields) -> Plan:
    kind, name = fields.get("kind", "topic"), required(fields, "name")
    if kind not in _KINDS:
        raise Problem(400, f"kind is one of {', '.join(_KINDS)}, not {kind[:40]!r}.")
    resource = ConfigResource(_KINDS[kind], name)
    entries = {each.name: each for each in view.configuration(resource.type, name)}
    wanted = key_values(fields.get("set", ""))
    removed = [line.strip() for line in fields.get("remove", "").splitlines() if line.strip()]
    changes = [ConfigChange(key, value) for key, value in wanted.items()]
    changes += [ConfigChange(key, None, ConfigOperation.DELETE) for key in removed]
    if not changes:
        raise Problem(400, "No key is set and none is removed.")
    view.admin.incremental_alter_configs({resource: changes}, validate_only=True).check()
    secret = {each.name for each in changes if _is_secret(kind, each.name, entries.get(each.name))}
    rows = []
    for each in changes:
        entry = entries.get(each.name)
        now = "unknown" if entry is None else "hidden" if each.name in secret else entry.value
        then = "(the default)" if each.value is None else "hidden" if each.name in secret else each.value
        rows.append((each.name, now, then))
    command = ["configs", "--alter", "--entity-type", _TOOL_TYPES[kind], "--entity-name", name]
    shown = [f"{key}={'***' if key in secret else _quoted(value)}" for key, value in wanted.items()]
    command += ["--add-config", ",".join(shown)] if wanted else []
    command += ["--delete-config", ",".join(removed)] if removed else []

    def apply() -> str:
        view.admin.incremental_alter_configs({resource: changes}).check()
        return f"The configuration of {kind} {name} was changed."

    target = f"/topics/{segment(name)}/configuration" if kind == "topic" else f"/brokers/{segment(name)}"
    return Plan(
        f"{counted(len(changes), 'key')} of {kind} {name} will change. The broker has validated the values.",
        (tuple(command),),
        apply,
        "/groups" if kind == "group" else target,
        ("Key", "Now", "Then"),
        rows,
        audited={"set": "\n".join(f"{key}={'***' if key in secret else value}" for key, value in wanted.items())},
    )


def _is_secret(kind: str, key: str, entry: ConfigEntry | None) -> bool:
    """Returns whether the value of a key must not be shown.

    `entry` is the key's entry in the present configuration, None if there is none: brokers do not describe the
    passwords of a listener before they are set.
    """
    if entry is not None and entry.is_sensitive:
        return True
    row = dynamic_row(key)
    return kind == "broker" and (row.sensitive if row is not None else entry is None)


def _quoted(value: str) -> str:
    """Returns `value` in the form that --add-config accepts: in square brackets if it contains a comma."""
    return f"[{value}]" if "," in value else value


def _plan_deletion(view: ClusterView, fields: Fields) -> Plan:
    name = required(fields, "topic")
    topic = view.topic(name)
    size = view.topic_bytes().get(name)

    def apply() -> str:
        view.admin.delete_topics([name]).check()
        return f"The topic {name} was deleted."

    rows: list[tuple[object, ...]] = [
        ("partitions", len(topic.partitions), 0),
        ("bytes of all replicas", size if size is not None else "unknown", 0),
    ]
    return Plan(
        f"The topic {name} and all its records will be deleted. This cannot be undone.",
        (("topics", "--delete", "--topic", name),),
        apply,
        "/topics",
        ("Property", "Now", "Then"),
        rows,
        confirm=name,
    )


CREATE_TOPIC = Change(
    "create-topic",
    "Create a topic",
    (
        Field("topic", "Name", is_required=True),
        Field("partitions", "Partitions", "empty: the broker's default"),
        Field("replicas", "Replicas", "empty: the broker's default"),
        Field("configuration", "Configuration", "key=value, one on each line", lines=4),
    ),
    _plan_creation,
)
ADD_PARTITIONS = Change(
    "add-partitions",
    "Add partitions",
    (_TOPIC, Field("partitions", "Partitions afterwards", is_required=True)),
    _plan_partitions,
)
ALTER_CONFIGURATION = Change(
    "alter-configuration",
    "Change a configuration",
    (
        Field("kind", "Of a", choices=tuple(_KINDS), is_fixed=True),
        Field("name", "Name", is_required=True, is_fixed=True),
        Field("set", "Set", "key=value, one on each line", lines=6),
        Field("remove", "Remove", "keys that get their default, one on each line", lines=3),
    ),
    _plan_configuration,
)
DELETE_TOPIC = Change("delete-topic", "Delete a topic", (_TOPIC,), _plan_deletion, is_dangerous=True)
