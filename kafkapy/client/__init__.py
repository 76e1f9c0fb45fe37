"""The client: produce to and consume from kafkapy or Apache Kafka, from Python."""

from kafkapy._core.arrow_batch import ArrowBatch
from kafkapy._core.fetched_records import ConsumerRecord
from kafkapy._core.record_accumulator import DeliveryFuture, RecordMetadata
from kafkapy.client.asynchronous import AsyncConsumer, AsyncProducer
from kafkapy.client.columnar import RangeReader
from kafkapy.client.consumer import Consumer, ConsumerRecords, WakeupError
from kafkapy.client.coordinator import GroupMetadata, OffsetAndMetadata
from kafkapy.client.group import RebalanceListener
from kafkapy.client.partitioner import Partitioner
from kafkapy.client.producer import Producer
from kafkapy.client.subscription import SubscriptionPattern
from kafkapy.types import TopicPartition

__all__ = [
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
