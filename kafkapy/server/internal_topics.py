"""Creates the broker's internal topics when they are first needed."""

from __future__ import annotations

from kafkapy.config import BrokerConfig
from kafkapy.controller.topics import NewTopic
from kafkapy.metadata.internal_topics import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    ZOOKEEPER_TREE_TOPIC,
)
from kafkapy.server.services import Services
from kafkapy.server.topic_request import request_topic

# The largest transaction of the tree.
ZOOKEEPER_TRANSACTION_BYTES = 128 * 1024 * 1024


def create_internal_topic(services: Services, topic: str) -> None:
    """Asks the controller to create the topic, without waiting for it; clients retry.

    The topic never has fewer replicas than configured: as in Kafka, it is not created while there are fewer brokers.
    """
    request_topic(services, _described(services.config, topic))


def _described(config: BrokerConfig, topic: str) -> NewTopic:
    if topic == TRANSACTION_STATE_TOPIC:
        return NewTopic(
            topic,
            config.transaction_state_log_num_partitions,
            config.transaction_state_log_replication_factor,
            configs={
                "unclean.leader.election.enable": "false",
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": str(config.transaction_state_log_min_isr),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
            },
        )
    if topic == SHARE_GROUP_STATE_TOPIC:
        return NewTopic(
            topic,
            config.share_coordinator_state_topic_num_partitions,
            config.share_coordinator_state_topic_replication_factor,
            configs={
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "segment.bytes": str(config.share_coordinator_state_topic_segment_bytes),
                "retention.ms": "-1",
                "min.insync.replicas": str(config.share_coordinator_state_topic_min_isr),
            },
        )
    if topic == ZOOKEEPER_TREE_TOPIC:
        return NewTopic(
            topic,
            1,
            config.zookeeper_tree_topic_replication_factor,
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
                "min.insync.replicas": str(config.zookeeper_tree_topic_min_isr),
                # All records of a transaction are in one batch: also the end of a session with many nodes.
                "max.message.bytes": str(ZOOKEEPER_TRANSACTION_BYTES),
                "unclean.leader.election.enable": "false",
            },
        )
    if topic != GROUP_METADATA_TOPIC:
        raise ValueError(f"{topic} is not an internal topic that is served")
    return NewTopic(
        topic,
        config.offsets_topic_num_partitions,
        config.offsets_topic_replication_factor,
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        },
    )
