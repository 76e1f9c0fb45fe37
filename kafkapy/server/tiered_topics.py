"""The refusal to start with topics in tiered storage, which kafkapy does not have."""

from __future__ import annotations

from kafkapy.config.topic_config import REMOTE_STORAGE
from kafkapy.errors import ConfigError
from kafkapy.metadata.image import TOPIC_RESOURCE, MetadataImage

_MOST_NAMED = 3


def refuse_tiered_topics(image: MetadataImage, node_id: int) -> None:
    """Raises ConfigError if the node has a replica of a topic with remote.storage.enable=true.

    A part of the records of such a topic is only in the remote storage. Without it, clients could not read these
    records, and the log would begin after them; Apache Kafka would then delete them as records before the log start.
    """
    tiered = []
    for (resource_type, name), overrides in image.configs.items():
        if resource_type != TOPIC_RESOURCE or overrides.get(REMOTE_STORAGE, "").strip().lower() != "true":
            continue
        topic = image.topics.by_name.get(name)
        if topic is not None and any(node_id in partition.replicas for partition in topic.partitions.values()):
            tiered.append(name)
    if not tiered:
        return
    names = ", ".join(sorted(tiered)[:_MOST_NAMED]) + (", ..." if len(tiered) > _MOST_NAMED else "")
    raise ConfigError(
        f"{len(tiered)} topic(s) with replicas on this broker have {REMOTE_STORAGE}=true ({names}): kafkapy has no "
        "tiered storage, and the records there could not be read. First disable tiered storage for these topics by "
        "Apache Kafka, or delete them"
    )
