"""Creates the topics that the reliability patterns need: retry topics, topics of dead letters, and topics of services
such as the delay service.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.client.admin import Admin
from kafkapy.client.admin.topics import NewPartitions, NewTopic
from kafkapy.client.reliable.retry_plan import RetryPlan
from kafkapy.errors import ApiError, ConfigError, Error

# A record may wait in a retry topic while the processor is stopped; this is the time until it would be lost.
RETRY_RETENTION_MS = 14 * 24 * 3600 * 1000
# Dead letters are kept until an operator deletes them.
RETAINED_FOREVER = "-1"


def create_chain(admin: Admin, plan: RetryPlan) -> None:
    """Creates the missing retry topics and topics of dead letters, with as many partitions as their original topics.

    An existing one that has fewer partitions gets more. Raises ConfigError if an original topic does not exist.
    """
    for topic, retry_topics, dead_letters in plan.chains():
        count = partition_count(admin, topic)
        if count is None:
            raise ConfigError(f"The topic {topic} does not exist")
        retention_ms = RETRY_RETENTION_MS + 2 * max(plan.delays_ms, default=0)
        for each in retry_topics:
            ensure_topic(admin, each, count, {"retention.ms": str(retention_ms)})
        ensure_topic(admin, dead_letters, count, {"retention.ms": RETAINED_FOREVER})


def partition_count(admin: Admin, topic: str) -> int | None:
    """Returns the number of partitions of a topic; None if the topic does not exist."""
    results = admin.describe_topics([topic])
    error = results.errors.get(topic)
    if error is not None:
        if error.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
            return None
        raise error
    return len(results[topic].partitions)


def ensure_topic(admin: Admin, topic: str, partitions: int, configs: Mapping[str, str | None]) -> int:
    """Creates a topic unless it exists, adds partitions if it has fewer than `partitions`, and returns how many it has.

    `configs` are the configuration of a new topic. Raises ApiError if the brokers refuse to create or to add.
    """
    present = partition_count(admin, topic)
    if present is None:
        results = admin.create_topics([NewTopic(topic, partitions, configs=configs)])
        error = results.errors.get(topic)
        if error is None:
            return partitions
        if error.error is not Error.TOPIC_ALREADY_EXISTS:
            raise ApiError(error.error, f"The topic {topic} cannot be created: {error}")
        present = partition_count(admin, topic) or partitions
    if present < partitions:
        failed = admin.create_partitions({topic: NewPartitions(partitions)}).errors.get(topic)
        if failed is not None and failed.error is not Error.INVALID_PARTITIONS:
            raise failed
        return partitions
    return present
