"""Python equivalents of Apache Kafka 0.8's Java clients: the old producer, SimpleConsumer and the high-level consumer.

They have the concepts of the originals, with the names of Python (`create_message_streams` for `createMessageStreams`),
and run on kafkapy's client: there is no ZooKeeper, so the brokers are named by `metadata.broker.list` or
`bootstrap.servers`, and offsets are committed to Kafka.
"""

from __future__ import annotations

from kafkapy.compat.kafka08.high_level_consumer import (
    Blacklist,
    ConsumerConnector,
    ConsumerTimeout,
    KafkaStream,
    MessageAndMetadata,
    Whitelist,
)
from kafkapy.compat.kafka08.producer import FailedToSendMessage, KeyedMessage, Producer, QueueFull
from kafkapy.compat.kafka08.simple_consumer import (
    EARLIEST_TIME,
    LATEST_TIME,
    FetchedMessages,
    MessageAndOffset,
    SimpleConsumer,
)

__all__ = [
    "EARLIEST_TIME",
    "LATEST_TIME",
    "Blacklist",
    "ConsumerConnector",
    "ConsumerTimeout",
    "FailedToSendMessage",
    "FetchedMessages",
    "KafkaStream",
    "KeyedMessage",
    "MessageAndMetadata",
    "MessageAndOffset",
    "Producer",
    "QueueFull",
    "SimpleConsumer",
    "Whitelist",
]
