"""Creates the topics that a Metadata request names and that do not exist (auto.create.topics.enable)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.controller.topic_name import is_valid_topic_name
from kafkapy.controller.topics import NewTopic
from kafkapy.errors import Error
from kafkapy.metadata.internal_topics import GROUP_METADATA_TOPIC, INTERNAL_TOPICS, TRANSACTION_STATE_TOPIC
from kafkapy.server.internal_topics import create_internal_topic
from kafkapy.server.services import Services
from kafkapy.server.topic_request import request_topic

if TYPE_CHECKING:
    from kafkapy.server.request_context import RequestContext


def create_missing_topic(services: Services, topic: str, context: RequestContext | None = None) -> Error:
    """Requests the creation of the topic from the controller, and does not wait for it.

    Returns the error for the response to the client: INVALID_TOPIC_EXCEPTION for an invalid name, otherwise
    UNKNOWN_TOPIC_OR_PARTITION, after which the client retries. `context` is the context of a client's request: the
    topic is created in the name of this client, which needs the permission to create it. If `context` is None, the
    topic is created in the name of this broker.
    """
    if not is_valid_topic_name(topic):
        return Error.INVALID_TOPIC_EXCEPTION
    if topic in (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC):
        create_internal_topic(services, topic)
    elif topic not in INTERNAL_TOPICS:
        request_topic(services, NewTopic(topic), context)
    return Error.UNKNOWN_TOPIC_OR_PARTITION
