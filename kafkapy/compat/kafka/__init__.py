"""A drop-in replacement of kafka-python 3.0: KafkaProducer, KafkaConsumer, KafkaAdminClient, structs and errors.

    import kafkapy.compat.kafka as kafka

Submodules have the names of the original's, such as `kafkapy.compat.kafka.errors`.
"""

from __future__ import annotations

from kafkapy.compat.kafka.admin import KafkaAdminClient
from kafkapy.compat.kafka.configuration import VERSION
from kafkapy.compat.kafka.consumer import KafkaConsumer
from kafkapy.compat.kafka.consumer.subscription_state import AsyncConsumerRebalanceListener, ConsumerRebalanceListener
from kafkapy.compat.kafka.producer import KafkaProducer
from kafkapy.compat.kafka.protocol.consumer import IsolationLevel, OffsetSpec
from kafkapy.compat.kafka.serializer import DefaultSerializer, Deserializer, JsonSerializer, Serializer
from kafkapy.compat.kafka.structs import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    TopicPartition,
    TopicPartitionReplica,
)

__version__ = VERSION

__all__ = [
    "AsyncConsumerRebalanceListener",
    "ConsumerGroupMetadata",
    "ConsumerRebalanceListener",
    "DefaultSerializer",
    "Deserializer",
    "IsolationLevel",
    "JsonSerializer",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaProducer",
    "OffsetAndMetadata",
    "OffsetSpec",
    "Serializer",
    "TopicPartition",
    "TopicPartitionReplica",
    "__version__",
]
