"""Creates the broker's internal topics when they are first needed."""

from __future__ import annotations

import logging
from concurrent.futures import Future

from kafkapy.config import BrokerConfig
from kafkapy.controller.topics import CreatedTopic, NewTopic, PlacementRules, create_topics
from kafkapy.errors import Error
from kafkapy.metadata.internal_topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kafkapy.server.services import Services

logger = logging.getLogger("kafka.server.DefaultAutoTopicCreationManager")


def create_internal_topic(services: Services, topic: str) -> None:
    """Asks the controller to create the topic, without waiting for it; clients retry.

    The topic never has fewer replicas than configured: as in Kafka, it is not created while there are fewer brokers.
    """
    wanted = _described(services.config, topic)
    rules = PlacementRules(services.config, services.node_id, policies=services.policies)
    future = services.controller.submit(lambda image: create_topics(image, [wanted], rules))
    future.add_done_callback(lambda done: _report(topic, done))


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


def _report(topic: str, done: Future[dict[str, CreatedTopic]]) -> None:
    failure = done.exception()
    if failure is not None:
        logger.warning("Auto topic creation of %s failed: %s", topic, failure)
        return
    error = done.result()[topic].error
    if error.error not in (Error.NONE, Error.TOPIC_ALREADY_EXISTS):
        logger.warning(
            "Auto topic creation of %s failed with error %s: %s", topic, Error(error.error).name, error.message
        )
