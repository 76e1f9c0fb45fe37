"""One topic: its partitions with replicas, ISR, offsets and sizes, its groups with their lag, its configuration."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from kafkapy.client.admin import ResourceType, TopicDescription
from kafkapy.console.group_lag import lags_of
from kafkapy.console.history import topic_series
from kafkapy.console.old_consumers import old_groups
from kafkapy.console.pages.history import curves_of
from kafkapy.console.visit import Page, Visit
from kafkapy.errors import ApiError
from kafkapy.types import TopicPartition

# The sources of a configuration value, by the protocol's numbers.
SOURCES = {
    1: "topic",
    2: "broker",
    3: "all brokers",
    4: "broker's file",
    5: "default",
    6: "broker's loggers",
    7: "client metrics",
    8: "group",
}
OWN_SOURCES = (1, 2, 8)


def _values(visit: Visit, part_name: str) -> tuple[TopicDescription, dict[str, Any]]:
    topic = visit.cluster.topic(visit.path["topic"])
    return topic, {"tab": "topics", "part_name": part_name, "topic": topic}


def show_partitions(visit: Visit) -> Page:
    """Returns the page with the partitions of a topic."""
    topic, values = _values(visit, "partitions")
    keys = [TopicPartition(topic.name, each.partition) for each in topic.partitions]
    ends = visit.cluster.ends(keys)
    sizes, refusal = _sizes(visit, topic.name)
    rows = [
        {
            "partition": each,
            "ends": ends[key],
            "sizes": sizes.get(key.partition, []),
            "most": max((size for _, _, size in sizes.get(key.partition, [])), default=None),
        }
        for each, key in zip(topic.partitions, keys, strict=True)
    ]
    counts = [ends[key].length for key in keys]
    values |= {
        "rows": rows,
        "curves": curves_of(visit, {topic_series(topic.name): ("Records in the last hour", "per second")}),
        "refusal": refusal,
        "records": None if None in counts else sum(each or 0 for each in counts),
        "bytes": sum(size for each in sizes.values() for _, _, size in each),
        "under_replicated": sum(len(each.isr) < len(each.replicas) for each in topic.partitions),
        "offline": sum(each.leader < 0 for each in topic.partitions),
    }
    return Page("partitions", values)


def _sizes(visit: Visit, topic: str) -> tuple[dict[int, list[tuple[int, str, int]]], str]:
    """Returns (replicas, reason) for a topic. The replicas are lists of (broker id, log directory, bytes) by partition.

    The reason says why some replicas are missing; it is "" if every broker has reported its replicas.
    """
    found: dict[int, list[tuple[int, str, int]]] = defaultdict(list)
    try:
        directories = visit.cluster.log_dirs()
    except ApiError as error:
        return {}, error.message
    for broker, by_path in sorted(directories.values.items()):
        for path, directory in by_path.items():
            for key, replica in directory.replicas.items():
                if key.topic == topic:
                    found[key.partition].append((broker, path, replica.size))
    return found, "; ".join(sorted({error.message for error in directories.errors.values()}))


def show_configuration(visit: Visit) -> Page:
    """Returns the page with the configuration of a topic, with the source of each value."""
    topic, values = _values(visit, "configuration")
    entries = visit.cluster.configuration(ResourceType.TOPIC, topic.name)
    only_set = visit.text("set") == "1"
    values |= {
        "entries": [each for each in entries if not only_set or each.source in OWN_SOURCES],
        "sources": SOURCES,
        "own": OWN_SOURCES,
        "only_set": only_set,
    }
    return Page("configuration", values)


def show_groups(visit: Visit) -> Page:
    """Returns the page with the groups that have committed offsets of a topic, with their lag."""
    topic, values = _values(visit, "groups")
    keys = [TopicPartition(topic.name, each.partition) for each in topic.partitions]
    found, unread = lags_of(visit.cluster, keys)
    old = old_groups(visit.cluster)
    reading = []
    for each in old.groups:
        lags = tuple(lag for lag in each.partitions or () if lag.partition.topic == topic.name)
        if lags:
            reading.append(each._replace(partitions=lags))
    return Page("topic_groups", {**values, "groups": found, "unread": unread, "old": old, "old_groups": reading})
