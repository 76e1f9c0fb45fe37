"""The replicas of partitions: their lookup in descriptions of topics, and their text."""

from __future__ import annotations

from collections.abc import Iterable

from kafkapy.client.admin import TopicDescription
from kafkapy.types import TopicPartition


def replicas_of(topics: Iterable[TopicDescription]) -> dict[TopicPartition, tuple[int, ...]]:
    """Returns the replicas of all partitions of the topics, the preferred leader first."""
    return {TopicPartition(topic.name, each.partition): each.replicas for topic in topics for each in topic.partitions}


def id_list(broker_ids: Iterable[int]) -> str:
    """Returns broker ids as text, such as `1,2,3`."""
    return ",".join(map(str, broker_ids))
