"""Brokers, the metadata quorum, the configuration of a broker, and log directories."""

from __future__ import annotations

from collections import Counter

from kafkapy.client.admin import QuorumDescription, ResourceType
from kafkapy.console.pages.topic import OWN_SOURCES, SOURCES
from kafkapy.console.problem import Problem
from kafkapy.console.visit import Page, Visit
from kafkapy.errors import ApiError


def show_all(visit: Visit) -> Page:
    """Returns the page of all brokers, with their numbers of leaders and replicas, and of the metadata quorum."""
    cluster = visit.cluster.describe()
    topics = visit.cluster.topics().values()
    partitions = [each for topic in topics for each in topic.partitions]
    leads = Counter(each.leader for each in partitions)
    preferred = Counter(each.replicas[0] for each in partitions if each.replicas)
    replicas = Counter(broker for each in partitions for broker in each.replicas)
    running = {each.node_id for each in cluster.brokers}
    quorum, refusal = _quorum(visit)
    return Page(
        "brokers",
        {
            "tab": "brokers",
            "description": cluster,
            "rows": [
                (node, leads[node.node_id], preferred[node.node_id], replicas[node.node_id])
                for node in sorted(cluster.brokers)
            ],
            "lost": [(each, preferred[each], replicas[each]) for each in sorted(replicas.keys() - running)],
            "quorum": quorum,
            "refusal": refusal,
        },
    )


def _quorum(visit: Visit) -> tuple[QuorumDescription | None, str]:
    """Returns (description of the metadata quorum, ""), or (None, reason why it cannot be read)."""
    try:
        return visit.cluster.admin.describe_metadata_quorum(), ""
    except ApiError as error:
        return None, error.message


def show_configuration(visit: Visit) -> Page:
    """Returns the page with the configuration of a broker, with the source of each value."""
    broker = int(visit.path["broker"])
    if broker not in {each.node_id for each in visit.cluster.describe().brokers}:
        raise Problem(404, f"The cluster has no broker {broker}.")
    entries = visit.cluster.configuration(ResourceType.BROKER, str(broker))
    only_set = visit.text("set") == "1"
    return Page(
        "broker",
        {
            "tab": "brokers",
            "broker": broker,
            "entries": [each for each in entries if not only_set or each.source not in (5,)],
            "sources": SOURCES,
            "own": OWN_SOURCES,
            "only_set": only_set,
        },
    )


def show_directories(visit: Visit) -> Page:
    """Returns the page with the log directories of all brokers, and the largest replicas."""
    found = visit.cluster.log_dirs()
    rows, replicas = [], []
    for broker, directories in sorted(found.values.items()):
        for path, directory in sorted(directories.items()):
            rows.append((broker, path, directory, sum(each.size for each in directory.replicas.values())))
            replicas += [(each.size, key, broker, path, each) for key, each in directory.replicas.items()]
    replicas.sort(key=lambda row: -row[0])
    return Page(
        "directories",
        {
            "tab": "directories",
            "rows": rows,
            "errors": found.errors,
            "largest": replicas[:50],
            "moving": [row for row in replicas if row[4].is_future],
        },
    )
