"""Checks of share and streams groups, from the answers of a running cluster and from one broker's metrics page.

`read_groups` asks the brokers; `check_groups` and `records_at_limit` have no side effects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from kafkapy.client.admin import LATEST, Admin, Subtopology
from kafkapy.errors import ApiError
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.diagnosis.finding import GOOD, NOTE, WARNING, Finding, Findings
from kafkapy.tools.metrics import address_in_file, fetch
from kafkapy.tools.option import ToolError

SHARE, STREAMS = "share groups", "streams groups"
# The least number of records on their last delivery, by group and topic, that is reported.
MANY_LAST_DELIVERIES = 100
_LAST_DELIVERIES = "kafkapy_sharegroup_last_deliveries"
_MOST_MISSING_SHOWN = 5


class ShareGroupFacts(NamedTuple):
    """The state and the number of members of a share group, and its lag: the records that it has yet to process."""

    state: str
    members: int
    lag: int


class StreamsGroupFacts(NamedTuple):
    """The state of a streams group, its topology, and the number of records that it has not processed."""

    state: str
    members: int
    subtopologies: tuple[Subtopology, ...]
    lag: int


class GroupFacts(NamedTuple):
    """The share and streams groups of a cluster, and the number of partitions of each topic."""

    share: Mapping[str, ShareGroupFacts]
    streams: Mapping[str, StreamsGroupFacts]
    partition_counts: Mapping[str, int]


def read_groups(admin: Admin) -> GroupFacts:
    """Returns the share and streams groups as the brokers report them.

    Groups that cannot be described, for example because they have ended in the meantime, are left out.
    """
    try:
        listed = admin.list_groups(types=["share", "streams"])
    except ApiError:
        return GroupFacts({}, {}, {})  # a broker before Apache Kafka 4.0, or without permission
    share = [each.group_id for each in listed if each.type == "Share"]
    streams = [each.group_id for each in listed if each.type == "Streams"]
    shares: dict[str, ShareGroupFacts] = {}
    if share:
        offsets = admin.list_share_group_offsets(share).values
        for name, group in admin.describe_share_groups(share).values.items():
            lag = sum(each.lag or 0 for each in offsets.get(name, {}).values() if each is not None)
            shares[name] = ShareGroupFacts(group.state, len(group.members), lag)
    described = admin.describe_streams_groups(streams).values if streams else {}
    lags = {name: _lag(admin, name) for name in described}
    return GroupFacts(
        shares,
        {
            name: StreamsGroupFacts(group.state, len(group.members), group.subtopologies, lags[name])
            for name, group in described.items()
        },
        {name: len(topic.partitions) for name, topic in admin.describe_topics().values.items()} if described else {},
    )


def _lag(admin: Admin, group: str) -> int:
    """Returns the number of records after the committed offsets of a group; 0 if no offset is committed."""
    committed = admin.list_group_offsets([group]).values.get(group, {})
    ends = admin.list_offsets(dict.fromkeys(committed, LATEST)).values if committed else {}
    return sum(max(0, end.offset - committed[partition].offset) for partition, end in ends.items())


def check_groups(facts: GroupFacts) -> Findings:
    """Yields the findings about share and streams groups; nothing if there are no such groups."""
    for name, share in sorted(facts.share.items()):
        if not share.members and share.lag:
            yield Finding(NOTE, SHARE, f"group {name} has no members, and {share.lag} records wait for it")
    if facts.share:
        lag = sum(each.lag for each in facts.share.values())
        yield Finding(GOOD, SHARE, f"{len(facts.share)} groups, which have not finished {lag} records")
    for name, streams in sorted(facts.streams.items()):
        if streams.state == "NotReady":
            yield Finding(
                WARNING,
                STREAMS,
                f"group {name} is not ready: {_why_not_ready(streams.subtopologies, facts.partition_counts)}",
                "its members process nothing until the topics are as the topology requires",
            )
        elif not streams.members and streams.lag:
            yield Finding(NOTE, STREAMS, f"group {name} has no members, and {streams.lag} records wait for it")
    if facts.streams:
        lag = sum(each.lag for each in facts.streams.values())
        yield Finding(GOOD, STREAMS, f"{len(facts.streams)} groups, which have not processed {lag} records")


def _why_not_ready(subtopologies: tuple[Subtopology, ...], partition_counts: Mapping[str, int]) -> str:
    """Returns why the coordinator cannot assign the tasks of a topology, as a clause for a message.

    `partition_counts` has the number of partitions of each topic that exists.
    """
    sources = sorted({topic for each in subtopologies for topic in each.source_topics})
    missing = [topic for topic in sources if topic not in partition_counts]
    if missing:
        return f"{_listed('source topic', missing)} not exist"
    for each in subtopologies:
        counts = {topic: partition_counts[topic] for topic in each.source_topics}
        if len(set(counts.values())) > 1:
            shown = ", ".join(f"{topic} has {count}" for topic, count in sorted(counts.items()))
            return f"the topics of subtopology {each.subtopology_id} may have to be partitioned alike: {shown}"
    internal = sorted({topic for each in subtopologies for topic in each.internal_topics})
    missing = [topic for topic in internal if topic not in partition_counts]
    if missing:
        return f"{_listed('internal topic', missing)} not exist; the group may lack the permission to create them"
    return "the coordinator has not validated its topology yet"


def _listed(noun: str, topics: list[str]) -> str:
    """Returns the beginning of a message about topics, such as "source topics a, b do" or "source topic a does".

    `noun` is the noun in the singular, such as "source topic". Many topics are shortened to "and N more".
    """
    shown = ", ".join(topics[:_MOST_MISSING_SHOWN]) + (
        f" and {len(topics) - _MOST_MISSING_SHOWN} more" if len(topics) > _MOST_MISSING_SHOWN else ""
    )
    return f"{noun} {shown} does" if len(topics) == 1 else f"{noun}s {shown} do"


def check_last_deliveries(path: str) -> Findings:
    """Yields a warning for each share group with many records in flight that have reached the limit of deliveries.

    The group drops such a record if a consumer releases it once more (share.delivery.count.limit). The numbers are read
    from one running broker: `path` is its configuration file, which names its metrics listener.
    """
    try:
        page = fetch(address_in_file(path))
    except ToolError as error:
        yield Finding(NOTE, SHARE, f"the records in flight are not known: {error}")
        return
    yield from records_at_limit(page)


def records_at_limit(page: str) -> Findings:
    """Yields a warning for each group and topic with many records in flight that have reached the limit of deliveries.

    `page` is the text of a metrics page.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for family in text_string_to_metric_families(page):
        if family.name == _LAST_DELIVERIES:
            for sample in family.samples:
                counts[sample.labels["group"], sample.labels["topic"]] += int(sample.value)
    for (group, topic), count in sorted(counts.items()):
        if count >= MANY_LAST_DELIVERIES:
            yield Finding(
                WARNING,
                SHARE,
                f"{count} records of topic {topic} are at the delivery limit of group {group}",
                "the group drops them if they are released once more: look for the error of its consumers, or raise "
                "share.delivery.count.limit of the group",
            )
