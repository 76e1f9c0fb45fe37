"""The names of confluent-kafka's extension module, for programs that import from it."""

from kafkapy.compat.confluent_kafka._constants import *  # noqa: F403
from kafkapy.compat.confluent_kafka._consumer import Consumer
from kafkapy.compat.confluent_kafka._errors import (
    ConcurrentModificationException,
    IllegalStateException,
    KafkaError,
    KafkaException,
)
from kafkapy.compat.confluent_kafka._hashing import consistent, fnv1a, murmur2
from kafkapy.compat.confluent_kafka._producer import Producer
from kafkapy.compat.confluent_kafka._records import Message, TopicPartition, Uuid
from kafkapy.compat.confluent_kafka._share_consumer import ShareConsumer
from kafkapy.compat.confluent_kafka._version import libversion, version
from kafkapy.compat.confluent_kafka.admin._topic import NewPartitions, NewTopic

__all__ = [
    "ConcurrentModificationException",
    "Consumer",
    "IllegalStateException",
    "KafkaError",
    "KafkaException",
    "Message",
    "NewPartitions",
    "NewTopic",
    "Producer",
    "ShareConsumer",
    "TopicPartition",
    "Uuid",
    "consistent",
    "fnv1a",
    "libversion",
    "murmur2",
    "version",
]
