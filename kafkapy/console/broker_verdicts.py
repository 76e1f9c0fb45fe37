"""The reasons of a group's lag that only brokers know: delays by quotas, and batches larger than the group's fetches.

Brokers report quotas and fetches by client id, because a fetch request names neither the group nor the member. An entry
of a broker's report is therefore attributed to the group if a member of the group has the client id of the entry. For a
fetch, this member must also have the host of the entry, and the entry's partition must be assigned to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kafkapy.client.admin import GroupDescription, MemberDescription
from kafkapy.console.broker_facts import NOT_CONFIGURED, FactsUnknown
from kafkapy.console.cluster_view import ClusterView
from kafkapy.console.figures import duration, number, size
from kafkapy.console.group_lag import PartitionLag, Verdict, total
from kafkapy.types import TopicPartition

# The most brokers that are asked for one page.
MOST_BROKERS = 10
# An older fetch does not explain the present lag.
RECENT_MS = 60_000
_UNITS = {"consumer_byte_rate": "bytes per second", "request_percentage": "percent of a thread's time"}


def verdicts_of_brokers(
    view: ClusterView, described: GroupDescription | None, lags: Sequence[PartitionLag]
) -> tuple[list[Verdict], str]:
    """Returns sentences that explain the lag of a group (verdicts), and the reason why some facts are unknown; the
    reason is "" if all facts are known.

    `described` is None if the group's members are unknown. Without members or without lag there is nothing to explain,
    and the result is ([], ""). Blocks.
    """
    if described is None or not described.members or not total(lags):
        return [], ""
    if not view.facts.is_configured:
        return [], NOT_CONFIGURED
    cluster_id = view.describe().cluster_id
    found: list[Verdict] = []
    unknown: list[str] = []
    leaders = _leaders(view, (each.partition for each in lags if each.lag))
    if len(leaders) > MOST_BROKERS:
        unknown.append(f"Only {MOST_BROKERS} of the {len(leaders)} brokers that lead its partitions were asked.")
    for broker in leaders[:MOST_BROKERS]:
        try:
            quotas = view.facts.quotas(cluster_id, broker)
            fetches = view.facts.large_fetches(cluster_id, broker)
        except FactsUnknown as reason:
            unknown.append(f"Broker {broker}: {reason}")
            continue
        found += throttled(broker, quotas.entries, described.members)
        found += too_large(broker, fetches.entries, described.members, lags)
        if not (quotas.is_complete and fetches.is_complete):
            unknown.append(f"Broker {broker} has more entries than were read.")
    return found, " ".join(unknown[:3])


def _leaders(view: ClusterView, partitions: Iterable[TopicPartition]) -> list[int]:
    wanted = set(partitions)
    topics = {each.topic: view.topic(each.topic) for each in wanted}
    found = {
        part.leader
        for topic, described in topics.items()
        for part in described.partitions
        if part.leader >= 0 and TopicPartition(topic, part.partition) in wanted
    }
    return sorted(found)


def throttled(broker: int, quotas: Iterable[dict[str, Any]], members: Sequence[MemberDescription]) -> list[Verdict]:
    """Returns a verdict for each quota that has recently delayed fetches of a member."""
    names = {each.client_id for each in members}
    found = []
    for quota in quotas:
        if quota["quota"] not in _UNITS or not (quota["average_throttle_ms"] or quota["throttle_ms"]):
            continue
        sharing = [each for each in quota["clients"] if each["client_id"] in names]
        if not sharing:
            continue
        waits = f"; now for {duration(quota['throttle_ms'])}" if quota["throttle_ms"] else ""
        found.append(
            Verdict(
                "bad",
                f"The group is throttled: broker {broker} has delayed the client {sharing[0]['client_id']!r} of "
                f"{sharing[0]['user']} by {duration(quota['average_throttle_ms'])} on average in the quota's window"
                f"{waits}. The quota {quota['quota']} of {quota['rule']} permits "
                f"{number(quota['limit'])} {_UNITS[quota['quota']]}.",
            )
        )
    return found


def too_large(
    broker: int,
    fetches: Iterable[dict[str, Any]],
    members: Sequence[MemberDescription],
    lags: Sequence[PartitionLag],
) -> list[Verdict]:
    """Returns a verdict for the first partition in which a member's fetch has recently met a batch that is larger than
    the fetch permits; an empty list if there is none."""
    readers = {
        (each.client_id, each.host.removeprefix("/"), partition) for each in members for partition in each.partitions
    }
    lagging = {each.partition for each in lags if each.lag}
    for fetch in fetches:
        partition = TopicPartition(fetch["topic"], fetch["partition"])
        is_of_group = (fetch["client_id"], fetch["host"], partition) in readers
        if not is_of_group or partition not in lagging or fetch["age_ms"] > RECENT_MS:
            continue
        by_partition = fetch["batch_bytes"] > fetch["partition_max_bytes"]
        limit = fetch["partition_max_bytes"] if by_partition else fetch["max_bytes"]
        remedy = (
            "Raise max.partition.fetch.bytes of the consumer"
            if by_partition
            else "Raise fetch.max.bytes of the consumer or of the broker, or the quota that is lower"
        )
        return [
            Verdict(
                "warn",
                f"A record or batch is larger than its fetch: the batch at offset {fetch['fetch_offset']} of "
                f"{partition} has {size(fetch['batch_bytes'])}, and the fetches of {fetch['client_id']!r} permit "
                f"{size(limit)}. Broker {broker} sends such a batch nevertheless, but no further one of the partition "
                f"in the same response, so that the group reads slowly. {remedy}.",
            )
        ]
    return []
