"""The client: produce to, consume from and look after kafkapy or Apache Kafka, from Python."""

from typing import TYPE_CHECKING, Any

from kafkapy._core.bytes.arrow_batch import ArrowBatch
from kafkapy._core.client.fetched_records import ConsumerRecord
from kafkapy._core.client.record_accumulator import DeliveryFuture, RecordMetadata
from kafkapy.client.asynchronous import AsyncConsumer, AsyncProducer
from kafkapy.client.columnar import RangeReader
from kafkapy.client.consumer import Consumer, ConsumerRecords
from kafkapy.client.coordinator import GroupMetadata, OffsetAndMetadata
from kafkapy.client.group import RebalanceListener
from kafkapy.client.network import WakeupError
from kafkapy.client.partitioner import Partitioner
from kafkapy.client.producer import Producer
from kafkapy.client.subscription import SubscriptionPattern
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.client.admin import Admin

__all__ = [
    "Admin",
    "ArrowBatch",
    "AsyncConsumer",
    "AsyncProducer",
    "Consumer",
    "ConsumerRecord",
    "ConsumerRecords",
    "DeliveryFuture",
    "GroupMetadata",
    "OffsetAndMetadata",
    "Partitioner",
    "Producer",
    "RangeReader",
    "RebalanceListener",
    "RecordMetadata",
    "SubscriptionPattern",
    "TopicPartition",
    "WakeupError",
]


def __getattr__(name: str) -> Any:
    """Admin brings the messages of half the protocol, which a producer's start does not wait for."""
    if name == "Admin":
        from kafkapy.client.admin import Admin

        return Admin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
