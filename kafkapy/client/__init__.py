"""The Python client for kafkapy and Apache Kafka: Producer, Consumer, Admin, and their asyncio counterparts.

Every exception that they raise for a broker, a configuration or a call in the wrong state derives from `KafkapyError`.
An error of a broker is an `ApiError`, whose `error` is the protocol's error code (`Error`).
"""

from typing import TYPE_CHECKING, Any

from kafkapy._core.bytes.arrow_batch import ArrowBatch
from kafkapy._core.client.fetched_records import ConsumerRecord
from kafkapy._core.client.record_accumulator import DeliveryFuture, RecordMetadata
from kafkapy.client.asynchronous import AsyncConsumer, AsyncProducer
from kafkapy.client.columnar import ArrowBatches, RangeReader
from kafkapy.client.consumer import Consumer, ConsumerRecords
from kafkapy.client.consumer_group import RebalanceListener
from kafkapy.client.coordinator import GroupMetadata, OffsetAndMetadata
from kafkapy.client.errors import (
    ClientClosed,
    LogTruncated,
    NoOffsetForPartition,
    NotSubscribed,
    RequestTimedOut,
    SubscriptionError,
    TransactionError,
    WakeupError,
)
from kafkapy.client.partitioner import Partitioner
from kafkapy.client.producer import Producer
from kafkapy.client.subscription import SubscriptionPattern
from kafkapy.errors import ApiError, ConfigError, Error, KafkapyError
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.client.admin import Admin

__all__ = [
    "Admin",
    "ApiError",
    "ArrowBatch",
    "ArrowBatches",
    "AsyncConsumer",
    "AsyncProducer",
    "ClientClosed",
    "ConfigError",
    "Consumer",
    "ConsumerRecord",
    "ConsumerRecords",
    "DeliveryFuture",
    "Error",
    "GroupMetadata",
    "KafkapyError",
    "LogTruncated",
    "NoOffsetForPartition",
    "NotSubscribed",
    "OffsetAndMetadata",
    "Partitioner",
    "Producer",
    "RangeReader",
    "RebalanceListener",
    "RecordMetadata",
    "RequestTimedOut",
    "SubscriptionError",
    "SubscriptionPattern",
    "TopicPartition",
    "TransactionError",
    "WakeupError",
]


def __getattr__(name: str) -> Any:
    """Imports Admin when it is first used, because its many protocol messages would delay the start of a producer."""
    if name == "Admin":
        from kafkapy.client.admin import Admin

        return Admin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
