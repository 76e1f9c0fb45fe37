"""The list of topics, sorted and filtered, with the number of records of each topic that is shown."""

from __future__ import annotations

from kafkapy.console.cluster_view import TopicSummary
from kafkapy.console.visit import Page, Visit, part_of
from kafkapy.types import TopicPartition

_ORDERS = {
    "name": lambda topic: topic.name,
    "size": lambda topic: (-(topic.bytes or 0), topic.name),
    "partitions": lambda topic: (-len(topic.partitions), topic.name),
    "problems": lambda topic: (-topic.offline, -topic.under_replicated, topic.name),
}


def show_all(visit: Visit) -> Page:
    """Returns the page with the list of topics. Numbers of records are read only for the topics that the page shows."""
    wanted = visit.text("q")
    order = visit.choice("sort", tuple(_ORDERS), "name")
    shows_internal = visit.text("internal") == "1"
    topics = [
        each
        for each in visit.cluster.topics().values()
        if wanted.lower() in each.name.lower() and (shows_internal or not each.is_internal)
    ]
    topics.sort(key=_ORDERS[order])
    part = part_of(topics, visit)
    ends = visit.cluster.ends([key for topic in part.rows for key in topic.keys()])  # noqa: SIM118

    def records(topic: TopicSummary) -> int | None:
        counts = [ends[TopicPartition(topic.name, each.partition)].length for each in topic.partitions]
        return None if None in counts else sum(each or 0 for each in counts)

    return Page(
        "topics",
        {
            "tab": "topics",
            "part": part._replace(rows=[(topic, records(topic)) for topic in part.rows]),
            "wanted": wanted,
            "order": order,
            "orders": tuple(_ORDERS),
            "shows_internal": shows_internal,
            "bytes": sum(each.bytes or 0 for each in topics),
        },
    )
