"""The overview of a cluster: its health and its figures, from its topics, log directories and groups."""

from __future__ import annotations

from collections import Counter

from kafkapy.client.admin import GroupListing
from kafkapy.console.history import FIGURES, LAG, RECORDS
from kafkapy.console.pages.history import curves_of
from kafkapy.console.visit import Page, Visit
from kafkapy.errors import ApiError

LISTED_TOPICS = 8


def show(visit: Visit) -> Page:
    """Returns the page with the state of a cluster: brokers, numbers of partitions and groups, and sizes."""
    view = visit.cluster
    cluster = view.describe()
    topics = list(view.topics().values())
    partitions = [each for topic in topics for each in topic.partitions]
    leaders = Counter([each.leader for each in partitions])
    replicas = Counter([broker for each in partitions for broker in each.replicas])
    behind = [each for each in partitions if len(each.isr) < len(each.replicas)]
    out_of_sync = Counter(broker for each in behind for broker in set(each.replicas) - set(each.isr))
    brokers = [
        {
            "node": node,
            "leaders": leaders[node.node_id],
            "replicas": replicas[node.node_id],
            "out_of_sync": out_of_sync[node.node_id],
            "bytes": _bytes_of(visit, node.node_id),
            "is_controller": cluster.controller is not None and cluster.controller.node_id == node.node_id,
        }
        for node in sorted(cluster.brokers)
    ]
    running = {each.node_id for each in cluster.brokers}
    lost = [
        {"id": each, "replicas": replicas[each], "out_of_sync": out_of_sync[each]}
        for each in sorted(replicas.keys() - running)
    ]
    groups, refused = _groups(visit)
    largest = sorted((each for each in topics if each.bytes), key=lambda each: -(each.bytes or 0))[:LISTED_TOPICS]
    return Page(
        "overview",
        {
            "tab": "overview",
            "description": cluster,
            "brokers": brokers,
            "curves": curves_of(visit, {name: FIGURES[name] for name in (RECORDS, LAG)}),
            "lost": lost,
            "topics": topics,
            "partitions": len(partitions),
            "replicas": sum(replicas.values()),
            "under_replicated": len(behind),
            "offline": leaders[-1],
            "bytes": sum(each.bytes or 0 for each in topics),
            "group_states": sorted(Counter(each.state or "Unknown" for each in groups).items()),
            "groups": groups,
            "groups_refused": refused,
            "largest": largest,
            "most_bytes": max((each.bytes or 0 for each in largest), default=0),
        },
    )


def _bytes_of(visit: Visit, broker: int) -> int | None:
    """Returns the size of a broker's replicas in bytes; None if the user may not read it."""
    try:
        directories = visit.cluster.log_dirs().values.get(broker)
    except ApiError:
        return None
    if directories is None:
        return None
    return sum(replica.size for directory in directories.values() for replica in directory.replicas.values())


def _groups(visit: Visit) -> tuple[list[GroupListing], str]:
    """Returns (groups, ""), or ([], reason why they cannot be read)."""
    try:
        return visit.cluster.groups(), ""
    except ApiError as error:
        return [], error.message
