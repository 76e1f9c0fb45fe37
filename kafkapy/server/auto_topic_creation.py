"""Creates the topics that a Metadata request names and that do not exist (auto.create.topics.enable)."""

from __future__ import annotations

import logging
from concurrent.futures import Future

from kafkapy.controller.topic_name import is_valid_topic_name
from kafkapy.controller.topics import CreatedTopic, NewTopic, PlacementRules, create_topics
from kafkapy.errors import Error
from kafkapy.metadata.internal_topics import GROUP_METADATA_TOPIC, INTERNAL_TOPICS, TRANSACTION_STATE_TOPIC
from kafkapy.server.internal_topics import create_internal_topic
from kafkapy.server.services import Services

logger = logging.getLogger("kafka.server.DefaultAutoTopicCreationManager")


def create_missing_topic(services: Services, topic: str) -> Error:
    """Asks the controller to create the topic, without waiting; returns the error for the client, which will retry."""
    if not is_valid_topic_name(topic):
        return Error.INVALID_TOPIC_EXCEPTION
    if topic in (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC):
        create_internal_topic(services, topic)
    elif topic not in INTERNAL_TOPICS:
        rules = PlacementRules(services.config, services.node_id, policies=services.policies)
        future = services.controller.submit(lambda image: create_topics(image, [NewTopic(topic)], rules))
        future.add_done_callback(lambda done: _report(topic, done))
    return Error.UNKNOWN_TOPIC_OR_PARTITION


def _report(topic: str, done: Future[dict[str, CreatedTopic]]) -> None:
    failure = done.exception()
    if failure is not None:
        logger.warning("Auto topic creation of %s failed: %s", topic, failure)
        return
    error = done.result()[topic].error
    if error.error not in (Error.NONE, Error.TOPIC_ALREADY_EXISTS):
        logger.warning("Auto topic creation of %s failed: %s %s", topic, Error(error.error).name, error.message)
