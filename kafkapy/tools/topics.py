"""The tool `kafka-topics`: creates, deletes, lists and describes topics, and adds partitions."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from kafkapy.client.admin import (
    PARTITIONS_OF_A_RESPONSE,
    Admin,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from kafkapy.config.table import TOPIC_ROWS
from kafkapy.errors import ApiError, ConfigError, Error
from kafkapy.tools.bootstrap import BOOTSTRAP_SERVER, COMMAND_CONFIG, JSON, ZOOKEEPER, admin_properties
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.json_output import print_json
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import run_tool, sentence
from kafkapy.tools.topic_description import REPLICATION_REPORTS, describe
from kafkapy.tools.topic_filter import ensure_exist, topics_of

LARGEST_REPLICATION_FACTOR = 2**15 - 1
COLLISION_WARNING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To "
    "avoid issues it is best to use either, but not both."
)
PARTITIONS_WARNING = (
    "WARNING: If partitions are increased for a topic that has a key, the partition logic or ordering of the messages "
    "will be affected"
)
CONFIG_WARNING = (
    "WARNING: Altering topic configuration from this script has been deprecated and may be removed in future "
    "releases.\n         Going forward, please use kafka-configs.sh for this functionality"
)
ACTIONS = ("list", "describe", "create", "alter", "delete")
# flag -> the actions that it may be combined with
_ACTIONS_OF_FLAG = {
    "config": ("alter", "create"),
    "partitions": ("alter", "create"),
    "replication-factor": ("create",),
    "replica-assignment": ("create", "alter"),
    **dict.fromkeys(REPLICATION_REPORTS, ("describe",)),
    "topics-with-overrides": ("describe",),
    "if-exists": ("alter", "delete", "describe"),
    "if-not-exists": ("create",),
    "exclude-internal": ("list", "describe"),
}
_TO_ALTER_CONFIGS = " (To alter topic configurations, the kafka-configs tool can be used.)"


def check(arguments: Arguments) -> None:
    """Raises UsageError or ToolError for a command line that Apache Kafka's tool refuses."""
    if sum(map(arguments.has, ACTIONS)) != 1:
        raise UsageError("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
    if arguments.has("delete-config") and not arguments.has("zookeeper"):
        print(
            "delete-config option is no longer supported and deprecated since version 4.0. The config will be fully "
            "removed in future releases.",
            file=sys.stderr,
        )
    if not arguments.has("bootstrap-server"):
        raise ToolError("--bootstrap-server must be specified")
    if arguments.has("describe") and arguments.has("if-exists"):
        if not arguments.has("topic") and not arguments.has("topic-id"):
            raise UsageError("--topic or --topic-id is required to describe a topic")
        if arguments.has("topic") and arguments.has("topic-id"):
            print(
                "Only topic id will be used when both --topic and --topic-id are specified and topicId is not "
                "Uuid.ZERO_UUID"
            )
    if not arguments.has("list") and not arguments.has("describe"):
        arguments.require("topic")
    if arguments.has("alter") and not arguments.has("zookeeper"):
        if arguments.has("config"):
            what = 'Option combination "[[config], [bootstrap-server]]" can\'t be used with option "[alter]"'
            raise UsageError(what + _TO_ALTER_CONFIGS)
        arguments.require("partitions")
    if arguments.has("delete-config") and arguments.has("zookeeper"):
        arguments.exclude("delete-config", *(action for action in ACTIONS if action != "alter"))
    for name, actions in _ACTIONS_OF_FLAG.items():
        arguments.exclude(name, *(action for action in ACTIONS if action not in actions))
    if arguments.has("create"):
        arguments.exclude("replica-assignment", "partitions", "replication-factor")
    for report in REPLICATION_REPORTS:
        arguments.exclude(report, "topics-with-overrides")


def run(arguments: Arguments) -> int:
    """Carries out the action; returns the exit code, which is 1 after an error.

    Errors are printed to standard output, as by Apache Kafka's tool.
    """
    check(arguments)
    with Admin(admin_properties(arguments)) as admin:
        try:
            _action(admin, arguments)
        except (ApiError, ConfigError, ValueError) as error:
            print(f"Error while executing topic command : {sentence(error)}")
            return 1
    return 0


def _action(admin: Admin, arguments: Arguments) -> None:
    if arguments.has("create"):
        create(admin, arguments)
    elif arguments.has("alter"):
        alter(admin, arguments)
    elif arguments.has("list"):
        list_topics(admin, arguments)
    elif arguments.has("describe"):
        describe(admin, arguments)
    else:
        delete(admin, arguments)


def create(admin: Admin, arguments: Arguments) -> None:
    """Carries out `--create`: creates a topic."""
    name = arguments["topic"]
    configs = _configs(arguments.values("config"))
    assignments = parse_assignments(arguments["replica-assignment"])
    if "." in name or "_" in name:
        print(COLLISION_WARNING)
    factor, count = arguments["replication-factor"], arguments["partitions"]
    if factor is not None and not 1 <= factor <= LARGEST_REPLICATION_FACTOR:
        largest = LARGEST_REPLICATION_FACTOR
        raise ValueError(f"The replication factor must be between 1 and {largest} inclusive")
    if count is not None and count < 1:
        raise ValueError("The partitions must be greater than 0")
    new = NewTopic(
        name,
        partitions=-1 if count is None else count,
        replication_factor=-1 if factor is None else factor,
        assignments=None if assignments is None else dict(enumerate(assignments)),
        configs=configs,
    )
    try:
        created = admin.create_topics([new]).check()[name]
    except ApiError as error:
        if error.error is Error.TOPIC_ALREADY_EXISTS and arguments.has("if-not-exists"):
            return
        raise
    if arguments["json"]:
        shown = {"topic": name, "partitions": created.partitions, "replication_factor": created.replication_factor}
        print_json({**shown, "configs": created.configs})
    else:
        print(f"Created topic {name}.")


def alter(admin: Admin, arguments: Arguments) -> None:
    """Carries out `--alter`: adds partitions to topics.

    With --zookeeper it also changes configurations, as in Kafka 0.8 to 2.8.
    """
    names = topics_of(admin, arguments)
    ensure_exist(names, arguments)
    if arguments.has("zookeeper"):
        alter_configs(admin, names, _configs(arguments.values("config")), arguments.values("delete-config"))
        if not arguments.has("partitions"):
            return
        print(PARTITIONS_WARNING)
    count = arguments["partitions"]
    assignments = parse_assignments(arguments["replica-assignment"])
    if not names:
        return
    new: dict[str, NewPartitions | int] = {}
    for name, described in admin.describe_topics(names).check().items():
        existing = len(described.partitions)
        new[name] = count if assignments is None else NewPartitions(count, assignments[existing:])
    admin.create_partitions(new).check()
    if arguments.has("zookeeper"):
        print("Adding partitions succeeded!")


def alter_configs(admin: Admin, names: Sequence[str], added: Mapping[str, str | None], deleted: Sequence[str]) -> None:
    """Sets the keys in `added` to their values, and resets the keys in `deleted` to their defaults.

    `names` has the topics. Prints the same lines as Kafka 2.8. Raises ValueError for an unknown key.
    """
    if not added and not deleted:
        return
    for key in deleted:
        if key not in TOPIC_ROWS:
            raise ValueError(f"Unknown topic config name: {key}")
    changes = [ConfigChange(key, value) for key, value in added.items()]
    changes += [ConfigChange(key, None, ConfigOperation.DELETE) for key in deleted]
    print(CONFIG_WARNING)
    admin.incremental_alter_configs({ConfigResource(ResourceType.TOPIC, name): changes for name in names}).check()
    for name in names:
        print(f"Updated config for topic {name}.")


def list_topics(admin: Admin, arguments: Arguments) -> None:
    """Carries out `--list`: prints the names of topics."""
    names = topics_of(admin, arguments)
    if arguments["json"]:
        print_json(names)
    else:
        print("\n".join(names))


def delete(admin: Admin, arguments: Arguments) -> None:
    """Carries out `--delete`: deletes topics."""
    names = topics_of(admin, arguments)
    ensure_exist(names, arguments)
    admin.delete_topics(names).check()
    if arguments.has("zookeeper"):
        for name in names:
            print(f"Topic {name} is marked for deletion.")
            print("Note: This will have no impact if delete.topic.enable is not set to true.")


def parse_assignments(text: str | None) -> list[list[int]] | None:
    """Parses the broker ids of the replicas of each partition, such as `1:2,2:3` for two partitions.

    Returns None if `text` is None. Raises ValueError for an invalid text.
    """
    if text is None:
        return None
    assignments: list[list[int]] = []
    for number, part in enumerate(text.split(",")):
        brokers = [int(each) for each in part.split(":")]
        duplicates = sorted({broker for broker in brokers if brokers.count(broker) > 1})
        if duplicates:
            shown = ",".join(map(str, duplicates))
            raise ValueError(f"Partition replica lists may not contain duplicate entries: {shown}")
        if assignments and len(brokers) != len(assignments[0]):
            raise ValueError(f"Partition {number} has different replication factor: {brokers}")
        assignments.append(brokers)
    return assignments


def _configs(words: list[str]) -> dict[str, str | None]:
    configs: dict[str, str | None] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ValueError(
                'requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".'
            )
        if key.strip() not in TOPIC_ROWS:
            raise ValueError(f"Unknown topic config name: {key.strip()}")
        configs[key.strip()] = value.strip()
    return configs


_KEYS = "".join(f"\n\t{name}" for name in sorted(TOPIC_ROWS))
OPTIONS = (
    BOOTSTRAP_SERVER,
    ZOOKEEPER,
    COMMAND_CONFIG,
    Option("list", "List all available topics."),
    Option("create", "Create a new topic."),
    Option("delete", "Delete a topic."),
    Option(
        "alter",
        "Alter the number of partitions and replica assignment. (To alter topic configurations, the kafka-configs "
        "tool can be used.)",
    ),
    Option("describe", "List details for the given topics."),
    Option(
        "topic",
        "The topic to create, alter, describe or delete. It also accepts a regular expression, except for --create "
        "option.",
        "topic",
    ),
    Option("topic-id", "The topic-id to describe.", "topic-id"),
    Option(
        "config",
        f"A topic configuration override for the topic being created, as name=value. The keys are:{_KEYS}",
        "name=value",
        completes="topic-key",
    ),
    Option("delete-config", "No longer supported.", "name", is_deprecated=True),
    Option(
        "partitions",
        "The number of partitions for the topic being created or altered. If not supplied with --create, the topic "
        "uses the cluster default. (WARNING: If partitions are increased for a topic that has a key, the partition "
        "logic or ordering of the messages will be affected).",
        "# of partitions",
        INTEGER,
    ),
    Option(
        "replication-factor",
        "The replication factor for each partition in the topic being created. If not supplied, the topic uses the "
        "cluster default.",
        "replication factor",
        INTEGER,
    ),
    Option(
        "replica-assignment",
        "A list of manual partition-to-broker assignments for the topic being created or altered.",
        "broker_id_for_part1_replica1 : broker_id_for_part1_replica2 , broker_id_for_part2_replica1 : "
        "broker_id_for_part2_replica2 , ...",
    ),
    Option("under-replicated-partitions", "If set when describing topics, only show under-replicated partitions."),
    Option(
        "unavailable-partitions",
        "If set when describing topics, only show partitions whose leader is not available.",
    ),
    Option(
        "under-min-isr-partitions",
        "If set when describing topics, only show partitions whose isr count is less than the configured minimum.",
    ),
    Option(
        "at-min-isr-partitions",
        "If set when describing topics, only show partitions whose isr count is equal to the configured minimum.",
    ),
    Option("topics-with-overrides", "If set when describing topics, only show topics that have overridden configs."),
    Option(
        "if-exists",
        "If set when altering or deleting or describing topics, the action will only execute if the topic exists.",
    ),
    Option(
        "if-not-exists",
        "If set when creating topics, the create request will not fail if the topic already exists.",
    ),
    Option(
        "exclude-internal",
        "Exclude internal topics when listing or describing topics. By default, the internal topics are included.",
    ),
    Option(
        "partition-size-limit-per-response",
        "The maximum partition size to be included in one DescribeTopicPartitions response.",
        "maximum number of partitions per response",
        INTEGER,
        PARTITIONS_OF_A_RESPONSE,
    ),
    JSON,
)


TOOL = Tool(
    name="topics",
    description="This tool helps to create, delete, describe, or change a topic.",
    run=run,
    options=OPTIONS,
    examples=(
        Example(
            "Create a topic of three partitions that retains records for a day",
            "--bootstrap-server localhost:9092 --create --topic prices --partitions 3 --config retention.ms=86400000",
        ),
        Example("All topics", "--bootstrap-server localhost:9092 --list"),
        Example("The replicas of a topic's partitions", "--bootstrap-server localhost:9092 --describe --topic prices"),
        Example("Add partitions", "--bootstrap-server localhost:9092 --alter --topic prices --partitions 6"),
        Example(
            "Delete all topics whose names begin with test-",
            "--bootstrap-server localhost:9092 --delete --topic 'test-.*'",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
