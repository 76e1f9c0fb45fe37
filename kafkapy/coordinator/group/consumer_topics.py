"""The properties of topics that assignments depend on, read from one metadata image."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from kafkapy.coordinator.group.consumer_assignors import AssignedTopic
from kafkapy.metadata.image import MetadataImage


def assigned_topics(image: MetadataImage, names: Iterable[str]) -> dict[bytes, AssignedTopic]:
    """Returns the topics with these names, by topic id; names of topics that do not exist are left out."""
    topics = {}
    for name in sorted(names):
        topic = image.topics.by_name.get(name)
        if topic is not None:
            topics[topic.topic_id] = AssignedTopic(topic.topic_id, sorted(topic.partitions), _racks(image, name))
    return topics


def topic_ids(image: MetadataImage, names: Iterable[str]) -> frozenset[bytes]:
    by_name = image.topics.by_name
    return frozenset(by_name[name].topic_id for name in names if name in by_name)


def metadata_hash(image: MetadataImage, names: Iterable[str]) -> int:
    """Returns a signed 64-bit digest of the metadata that an assignment depends on: topic ids, partitions and racks.
    Returns 0 if there are no topics.

    Apache Kafka computes a different digest. Each group therefore computes its target again after Apache Kafka has been
    replaced by kafkapy, or the reverse.
    """
    digest = hashlib.blake2b(digest_size=8)
    has_topics = False
    for topic in assigned_topics(image, names).values():
        has_topics = True
        racks = sorted((partition, sorted(names)) for partition, names in topic.racks.items())
        digest.update(topic.topic_id)
        digest.update(repr((len(topic.partitions), racks)).encode())
    return int.from_bytes(digest.digest(), "big", signed=True) if has_topics else 0


def _racks(image: MetadataImage, name: str) -> dict[int, frozenset[str]]:
    racks = {broker_id: broker.rack for broker_id, broker in image.brokers.items() if broker.rack}
    if not racks:
        return {}
    return {
        number: frozenset(racks[replica] for replica in partition.replicas if replica in racks)
        for number, partition in image.topics.by_name[name].partitions.items()
    }
