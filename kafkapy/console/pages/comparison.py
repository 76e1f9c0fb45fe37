"""The page that compares two topics, or the topics of two clusters."""

from __future__ import annotations

from typing import Any

from kafkapy.console.comparison import cluster_differences, content_difference, topic_differences
from kafkapy.console.problem import Problem
from kafkapy.console.visit import Page, Visit


def show(visit: Visit) -> Page:
    """Returns the page that compares two topics, or all topics of this cluster with all topics of another cluster.

    These are the parameters of the URL. `other` is the name of the other cluster; the default is this cluster. `topic`
    is a topic of this cluster; if it is missing, all topics are compared. `with` is the topic to compare with; the
    default is the topic with the same name in the other cluster. `all=1` also shows equal properties, and `content=1`
    compares the records.
    """
    other_name = visit.text("other") or visit.cluster.name
    topic, other_topic = visit.text("topic"), visit.text("with")
    other = visit.view_of(other_name)
    other.check_reachable()
    values: dict[str, Any] = {
        "tab": "compare",
        "other": other_name,
        "topic_name": topic,
        "other_topic": other_topic,
        "rows": None,
        "topics": None,
        "content": None,
        "shows_all": visit.text("all") == "1",
        "reads_content": visit.text("content") == "1",
    }
    other_topic = other_topic or topic
    if other_topic and not topic:
        raise Problem(400, "Name the topic to compare with, too.")
    if topic and (topic, visit.cluster.name) == (other_topic, other_name):
        raise Problem(400, "Name another topic, or another cluster: this is the same topic twice.")
    if topic:
        values["rows"] = topic_differences(visit.cluster, topic, other, other_topic)
        if values["reads_content"]:
            values["content"] = content_difference(visit.cluster, topic, other, other_topic)
    elif other_name != visit.cluster.name:
        values["topics"] = cluster_differences(visit.cluster, other)
    return Page("comparison", values)
