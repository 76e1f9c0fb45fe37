"""The API of confluent-kafka on kafkapy's client.

A program that says `from confluent_kafka import Producer` can say `from kafkapy.compat.confluent_kafka import Producer`
instead. The configuration keys, the error codes and the behaviour are those of confluent-kafka 2.16 and librdkafka; a
key that cannot be honoured raises a KafkaException that says so.
"""

from importlib import import_module
from typing import Any

from kafkapy.compat.confluent_kafka import cimpl
from kafkapy.compat.confluent_kafka._constants import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
)
from kafkapy.compat.confluent_kafka._consumer import Consumer
from kafkapy.compat.confluent_kafka._errors import (
    ConcurrentModificationException,
    IllegalStateException,
    KafkaError,
    KafkaException,
)
from kafkapy.compat.confluent_kafka._hashing import consistent, fnv1a, murmur2
from kafkapy.compat.confluent_kafka._model import (
    AcknowledgeType,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    ElectionType,
    IsolationLevel,
    Node,
    ThrottleEvent,
    TopicCollection,
    TopicPartitionInfo,
)
from kafkapy.compat.confluent_kafka._producer import Producer
from kafkapy.compat.confluent_kafka._records import Message, Messages, TopicPartition, Uuid
from kafkapy.compat.confluent_kafka._share_consumer import ShareConsumer
from kafkapy.compat.confluent_kafka._version import __version__, libversion, version
from kafkapy.compat.confluent_kafka.deserializing_consumer import DeserializingConsumer
from kafkapy.compat.confluent_kafka.deserializing_share_consumer import DeserializingShareConsumer
from kafkapy.compat.confluent_kafka.serializing_producer import SerializingProducer

__all__ = [
    "OFFSET_BEGINNING",
    "OFFSET_END",
    "OFFSET_INVALID",
    "OFFSET_STORED",
    "TIMESTAMP_CREATE_TIME",
    "TIMESTAMP_LOG_APPEND_TIME",
    "TIMESTAMP_NOT_AVAILABLE",
    "AcknowledgeType",
    "ConcurrentModificationException",
    "Consumer",
    "ConsumerGroupState",
    "ConsumerGroupTopicPartitions",
    "ConsumerGroupType",
    "DeserializingConsumer",
    "DeserializingShareConsumer",
    "ElectionType",
    "IllegalStateException",
    "IsolationLevel",
    "KafkaError",
    "KafkaException",
    "Message",
    "Messages",
    "Node",
    "Producer",
    "SerializingProducer",
    "ShareConsumer",
    "ThrottleEvent",
    "TopicCollection",
    "TopicPartition",
    "TopicPartitionInfo",
    "Uuid",
    "__version__",
    "cimpl",
    "consistent",
    "fnv1a",
    "libversion",
    "murmur2",
    "version",
]

_SUBMODULES = ("admin", "aio", "error", "serialization")


def __getattr__(name: str) -> Any:
    """Imports the submodule `name` when it is first used as an attribute; raises AttributeError if there is none."""
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
