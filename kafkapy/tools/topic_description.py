"""The action `kafka-topics --describe`: prints topics, and the partitions that the flags select."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkapy.client.admin import (
    Admin,
    ConfigEntry,
    ConfigResource,
    PartitionDescription,
    Reassignment,
    ResourceType,
    TopicDescription,
)
from kafkapy.config.row import ConfigSource
from kafkapy.errors import ApiError
from kafkapy.tools.json_output import print_json
from kafkapy.tools.option import Arguments
from kafkapy.tools.replicas import id_list
from kafkapy.tools.topic_filter import ensure_exist, topics_of
from kafkapy.types import ZERO_UUID, TopicPartition, uuid_from_string, uuid_to_string

MIN_ISR = "min.insync.replicas"
REPLICATION_REPORTS = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)


class DescribedPartition:
    """A partition with its topic's configuration and the reassignment in progress, if there is one."""

    def __init__(
        self, topic: str, info: PartitionDescription, configs: Mapping[str, ConfigEntry], move: Reassignment | None
    ) -> None:
        self.topic = topic
        self.info = info
        self._min_isr = int(configs[MIN_ISR].value or "1") if MIN_ISR in configs else 1
        self._move = move

    @property
    def replication_factor(self) -> int:
        """The number of replicas, without replicas that a reassignment in progress is adding."""
        move = self._move
        if move is not None and (move.adding or move.removing):
            return len(move.replicas) - len(move.adding)
        return len(self.info.replicas)

    def is_shown(self, arguments: Arguments, live: frozenset[int]) -> bool:
        """Returns whether the partition matches a flag such as --under-replicated-partitions.

        One match is enough, and without such a flag every partition matches. `live` has the ids of the live brokers.
        """
        has_leader = self.info.leader >= 0
        reports = {
            "under-replicated-partitions": len(self.info.isr) < self.replication_factor,
            "unavailable-partitions": not has_leader or self.info.leader not in live,
            "under-min-isr-partitions": not has_leader or len(self.info.isr) < self._min_isr,
            "at-min-isr-partitions": len(self.info.isr) == self._min_isr,
        }
        requested = [holds for report, holds in reports.items() if arguments.has(report)]
        return any(requested) if requested else True

    def line(self) -> str:
        """Returns the line that `--describe` prints for the partition."""
        info, move = self.info, self._move
        parts = [
            "",
            f"Topic: {self.topic}",
            f"Partition: {info.partition}",
            f"Leader: {info.leader if info.leader >= 0 else 'none'}",
            f"Replicas: {id_list(info.replicas)}",
            f"Isr: {id_list(info.isr)}",
        ]
        if move is not None:
            parts += [f"Adding Replicas: {id_list(move.adding)}", f"Removing Replicas: {id_list(move.removing)}"]
        parts.append(f"Elr: {'N/A' if info.elr is None else id_list(info.elr)}")
        parts.append(f"LastKnownElr: {'N/A' if info.last_known_elr is None else id_list(info.last_known_elr)}")
        return "\t".join(parts)


def describe(admin: Admin, arguments: Arguments) -> None:
    """Carries out `--describe`: prints the topics."""
    topics = _topics(admin, arguments)
    resources = [ConfigResource(ResourceType.TOPIC, topic.name) for topic in topics]
    configs = admin.describe_configs(resources).check() if resources else {}
    live = frozenset(each.node_id for each in admin.describe_cluster().brokers)
    moves = _moves(admin, topics)
    shown = []
    for topic in topics:
        entries = configs[ConfigResource(ResourceType.TOPIC, topic.name)]
        partitions = [
            DescribedPartition(topic.name, info, entries, moves.get(TopicPartition(topic.name, info.partition)))
            for info in topic.partitions
        ]
        if arguments["json"]:
            shown.append(_as_json(topic, entries, [each for each in partitions if each.is_shown(arguments, live)]))
        else:
            _print_topic(arguments, topic, entries, partitions)
            if not arguments.has("topics-with-overrides"):
                for each in partitions:
                    if each.is_shown(arguments, live):
                        print(each.line())
    if arguments["json"]:
        print_json(shown)


def _topics(admin: Admin, arguments: Arguments) -> list[TopicDescription]:
    topic_id = ZERO_UUID if arguments["topic-id"] is None else uuid_from_string(arguments["topic-id"])
    if topic_id != ZERO_UUID:
        known = {
            each.topic_id for each in admin.list_topics(include_internal=not arguments.has("exclude-internal")).values()
        }
        if topic_id in known:
            return list(admin.describe_topic_ids([topic_id]).check().values())
        if arguments.has("if-exists"):
            return []
        raise ValueError(f"TopicId '{arguments['topic-id']}' does not exist as expected")
    names = topics_of(admin, arguments)
    ensure_exist(names, arguments)
    described = admin.describe_topics(names, page_size=arguments["partition-size-limit-per-response"]).check()
    return [described[name] for name in names]


def _moves(admin: Admin, topics: Iterable[TopicDescription]) -> dict[TopicPartition, Reassignment]:
    wanted = [TopicPartition(topic.name, each.partition) for topic in topics for each in topic.partitions]
    try:
        return admin.list_partition_reassignments(wanted) if wanted else {}
    except ApiError as error:
        print(f"Couldn't query reassignments through the AdminClient API: {error.message}")
        return {}


def _print_topic(
    arguments: Arguments,
    topic: TopicDescription,
    configs: Mapping[str, ConfigEntry],
    partitions: list[DescribedPartition],
) -> None:
    overridden = _overridden(configs)
    if any(map(arguments.has, REPLICATION_REPORTS)) or (arguments.has("topics-with-overrides") and not overridden):
        return
    parts = [
        f"Topic: {topic.name}",
        f"TopicId: {uuid_to_string(topic.topic_id)}",
        f"PartitionCount: {len(topic.partitions)}",
        f"ReplicationFactor: {partitions[0].replication_factor if partitions else 0}",
        f"Configs: {','.join(f'{name}={value}' for name, value in overridden.items())}",
    ]
    if topic.topic_id == ZERO_UUID:
        del parts[1]
    print("\t".join(parts))


def _overridden(configs: Mapping[str, ConfigEntry]) -> dict[str, str | None]:
    """Returns the configuration values that are not built-in defaults, by key.

    Values that the broker's configuration sets for all topics are included.
    """
    return {name: entry.value for name, entry in configs.items() if entry.source != ConfigSource.DEFAULT}


def _as_json(
    topic: TopicDescription, configs: Mapping[str, ConfigEntry], partitions: list[DescribedPartition]
) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": uuid_to_string(topic.topic_id),
        "is_internal": topic.is_internal,
        "configs": _overridden(configs),
        "partitions": [each.info._asdict() for each in partitions],
    }
