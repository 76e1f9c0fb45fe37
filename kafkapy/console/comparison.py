"""The differences of two topics, or of the topics of two clusters: partitions, configuration, number of offsets
and content."""

from __future__ import annotations

import time
from collections.abc import Iterable
from hashlib import blake2b

from kafkapy.client.admin import ConfigResource, ResourceType
from kafkapy.console.cluster_view import ClusterView, TopicSummary
from kafkapy.console.message_query import MessageQuery, ranges_of
from kafkapy.console.problem import Problem
from kafkapy.console.record_filter import Record
from kafkapy.console.record_search import RecordSearch
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition

# The bounds of one comparison: topics of each cluster, and what is read of each topic.
MOST_TOPICS = 5_000
MOST_COMPARED = 50_000
COMPARING_TIME_S = 20.0
SHOWN_KEYS = 50
_CONTENT_DIGEST_BYTES = 12
_OWN_VALUE = 1  # the source of a value that was set for the topic (KIP-226)


class Difference(NamedTuple):
    """A property of two topics, with its values `left` and `right`, which may be equal.

    A value is None if the topic does not have the property.
    """

    name: str
    left: object
    right: object

    @property
    def is_same(self) -> bool:
        """Returns whether both values are equal."""
        return self.left == self.right


class ContentDifference(NamedTuple):
    """The number of keys whose last values in two topics are equal or differ, and of keys that only one topic has.

    Records without a key are compared by their values. `examples` are keys that differ or that only one topic has, as
    text. `is_whole` is False if only the first records were read.
    """

    same: int
    differing: int
    only_left: int
    only_right: int
    examples: tuple[str, ...]
    is_whole: bool


def topic_differences(left: ClusterView, name: str, right: ClusterView, other: str) -> list[Difference]:
    """Returns the properties of the topic `name` of the cluster `left` and of the topic `other` of the cluster `right`.

    Equal properties are included. Numbers of offsets are sums over the partitions. Raises Problem if one of the topics
    does not exist.
    """
    described = [view.topic(topic) for view, topic in ((left, name), (right, other))]
    partitions = [len(each.partitions) for each in described]
    replicas = [max((len(one.replicas) for one in each.partitions), default=0) for each in described]
    lengths = [
        _records(view, each.name, len(each.partitions)) for view, each in zip((left, right), described, strict=True)
    ]
    sizes = [view.topic_bytes().get(topic) for view, topic in ((left, name), (right, other))]
    configs = [
        {each.name: each.value for each in view.configuration(ResourceType.TOPIC, topic) if not each.is_sensitive}
        for view, topic in ((left, name), (right, other))
    ]
    found = [
        Difference("partitions", *partitions),
        Difference("replicas", *replicas),
        Difference("offsets from the first to the end", *lengths),
        Difference("bytes of all replicas", *sizes),
    ]
    return found + [
        Difference(key, configs[0].get(key), configs[1].get(key))
        for key in sorted(configs[0].keys() | configs[1].keys())
    ]


def _records(view: ClusterView, topic: str, partitions: int) -> int | None:
    ends = view.ends([TopicPartition(topic, number) for number in range(partitions)])
    lengths = [each.length for each in ends.values()]
    return None if None in lengths else sum(each or 0 for each in lengths)


def cluster_differences(left: ClusterView, right: ClusterView) -> list[tuple[str, list[Difference]]]:
    """Returns the names of the topics that differ between two clusters, each with the properties that differ.

    If only one cluster has a topic, its only property is the number of partitions, which is None for the cluster
    without the topic. Raises Problem if a cluster has more than MOST_TOPICS topics.
    """
    topics = [{name: each for name, each in view.topics().items() if not each.is_internal} for view in (left, right)]
    if max(map(len, topics)) > MOST_TOPICS:
        raise Problem(400, f"Only clusters of at most {MOST_TOPICS} topics can be compared; compare single topics.")
    common = sorted(topics[0].keys() & topics[1].keys())
    configs = [_overrides(view, common) for view in (left, right)]
    lengths = [
        _lengths(view, [found[name] for name in common]) for view, found in zip((left, right), topics, strict=True)
    ]
    rows = []
    for name in sorted(topics[0].keys() | topics[1].keys()):
        if name not in topics[0] or name not in topics[1]:
            sides = (len(found[name].partitions) if name in found else None for found in topics)
            rows.append((name, [Difference("partitions", *sides)]))
            continue
        pair = (topics[0][name], topics[1][name])
        found = [
            Difference("partitions", *(len(each.partitions) for each in pair)),
            Difference("replicas", *(each.replication_factor for each in pair)),
            Difference("offsets from the first to the end", lengths[0][name], lengths[1][name]),
            *(
                Difference(key, configs[0][name].get(key), configs[1][name].get(key))
                for key in sorted(configs[0][name].keys() | configs[1][name].keys())
            ),
        ]
        if any(not each.is_same for each in found):
            rows.append((name, [each for each in found if not each.is_same]))
    return rows


def _overrides(view: ClusterView, topics: Iterable[str]) -> dict[str, dict[str, str | None]]:
    """Returns, for each topic, the configuration that was set for the topic itself, without sensitive values."""
    resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in topics}
    found = view.admin.describe_configs(list(resources.values())).values if resources else {}
    return {
        name: {
            key: entry.value
            for key, entry in found.get(resource, {}).items()
            if entry.source == _OWN_VALUE and not entry.is_sensitive
        }
        for name, resource in resources.items()
    }


def _lengths(view: ClusterView, topics: list[TopicSummary]) -> dict[str, int | None]:
    ends = view.ends([key for topic in topics for key in topic.keys()])  # noqa: SIM118
    found: dict[str, int | None] = {}
    for topic in topics:
        lengths = [ends[key].length for key in topic.keys()]  # noqa: SIM118
        found[topic.name] = None if None in lengths else sum(each or 0 for each in lengths)
    return found


def content_difference(left: ClusterView, name: str, right: ClusterView, other: str) -> ContentDifference:
    """Compares the last value of each key in one topic with the last value of the same key in another topic.

    The topics are `name` in the cluster `left`, and `other` in the cluster `right`. Reads at most MOST_COMPARED records
    of each topic. Raises Problem if a topic has a masking rule.
    """
    values, names, is_whole = [], [], True
    for view, topic in ((left, name), (right, other)):
        view.check_unmasked(topic, "Comparing content")
        found, shown, was_whole = _last_values(view, topic)
        values.append(found)
        names.append(shown)
        is_whole = is_whole and was_whole
    only_left = values[0].keys() - values[1].keys()
    only_right = values[1].keys() - values[0].keys()
    common = values[0].keys() & values[1].keys()
    differing = {key for key in common if values[0][key] != values[1][key]}
    examples = sorted({**names[0], **names[1]}[key] for key in {*only_left, *only_right, *differing})[:SHOWN_KEYS]
    return ContentDifference(
        len(common) - len(differing), len(differing), len(only_left), len(only_right), tuple(examples), is_whole
    )


def _last_values(view: ClusterView, topic: str) -> tuple[dict[bytes, bytes], dict[bytes, str], bool]:
    """Reads a topic and returns (last values, keys, is complete).

    Both dictionaries are indexed by the digest of a record's key. The first has the digest of the key's last value, the
    second the key as readable text. A record without a key is stored under the digest of its value. The bool is False
    if only the first records were read.
    """
    query = MessageQuery("oldest", "", None, MOST_COMPARED, (), "auto", "auto", committed_only=True)
    numbers = [each.partition for each in view.topic(topic).partitions]
    search = RecordSearch(view.properties, query, ranges_of(query, view, topic, numbers))
    end_s = time.monotonic() + COMPARING_TIME_S
    values: dict[bytes, bytes] = {}
    names: dict[bytes, str] = {}
    for found in search.run():
        if time.monotonic() > end_s:
            search.stop()
        if isinstance(found, Record):
            value = b"\0" if found.value is None else _digest(found.value)
            key = b"v" + value if found.key is None else b"k" + _digest(found.key)
            values[key] = value
            content = found.value if found.key is None else found.key
            names[key] = "null" if content is None else content[:80].decode("utf-8", "backslashreplace")
    return values, names, search.progress.end_reason == "All records were read."


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_CONTENT_DIGEST_BYTES).digest()
