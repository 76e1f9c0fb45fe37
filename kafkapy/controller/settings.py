"""The configuration on which the controller's decisions about partitions depend: its own values, and the values of
topics."""

from __future__ import annotations

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from kafkapy.named_tuple import NamedTuple

MIN_ISR = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"


class ControllerSettings(NamedTuple):
    """The active controller's own configuration. Overrides in the metadata, for a topic, a broker or the cluster, take
    precedence."""

    node_id: int = -1
    min_insync_replicas: int = 1
    unclean_leader_election: bool = False

    @classmethod
    def from_config(cls, config: BrokerConfig) -> ControllerSettings:
        return cls(config.node_id, config.min_insync_replicas, bool(config[UNCLEAN_ELECTION]))


DEFAULT_SETTINGS = ControllerSettings()


def effective_min_isr(image: MetadataImage, topic: str, settings: ControllerSettings = DEFAULT_SETTINGS) -> int:
    """Returns the min.insync.replicas of a topic, at most the number of replicas of its partition 0.

    The cap allows a topic with fewer replicas than the cluster's min.insync.replicas to have a complete ISR.
    """
    text = _override(image, topic, MIN_ISR, settings)
    minimum = int(text) if text else settings.min_insync_replicas
    found = image.topics.by_name.get(topic)
    first = None if found is None else found.partitions.get(0)
    return minimum if first is None else min(minimum, len(first.replicas))


def may_elect_uncleanly(image: MetadataImage, topic: str, settings: ControllerSettings = DEFAULT_SETTINGS) -> bool:
    """Returns True if the effective value of unclean.leader.election.enable is `true` for the topic."""
    text = _override(image, topic, UNCLEAN_ELECTION, settings)
    return text.strip().lower() == "true" if text else settings.unclean_leader_election


def _override(image: MetadataImage, topic: str, key: str, settings: ControllerSettings) -> str | None:
    """Returns the text of the override of the configuration key `key`, or None if there is no override. An override for
    the topic precedes one for the controller's node, which precedes one for the whole cluster."""
    for resource in ((TOPIC_RESOURCE, topic), (BROKER_RESOURCE, str(settings.node_id)), (BROKER_RESOURCE, "")):
        text = image.config(*resource).get(key)
        if text:
            return text
    return None
