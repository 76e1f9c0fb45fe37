"""The committed offsets of a group, as the admin client of librdkafka requests them."""

from __future__ import annotations

import time

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

TIMEOUT = 30
NOT_YET = (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR)


def committed_offsets(
    admin: AdminClient, group: str, partitions: list[TopicPartition] | None = None
) -> dict[tuple[str, int], int]:
    """Returns the offsets by topic and partition. Retries, because a broker that has just started may still be loading
    the group."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group, partitions)])[group]
        try:
            found = asked.result(TIMEOUT).topic_partitions
        except KafkaException as error:
            if error.args[0].code() not in NOT_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return {(each.topic, each.partition): each.offset for each in found}
