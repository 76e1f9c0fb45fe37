"""The Python client for kafkapy and Apache Kafka: Producer, Consumer, ShareConsumer and Admin, and AsyncProducer,
AsyncConsumer and AsyncShareConsumer for asyncio.

Every exception that they raise for a broker, a configuration or a call in the wrong state derives from `KafkapyError`.
An error of a broker is an `ApiError`, whose `error` is the protocol's error code (`Error`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkapy._core.bytes.arrow_batch import ArrowBatch
    from kafkapy._core.client.fetched_records import ConsumerRecord
    from kafkapy._core.client.record_accumulator import DeliveryFuture, RecordMetadata
    from kafkapy.client.acknowledgements import AcknowledgeType
    from kafkapy.client.admin import Admin
    from kafkapy.client.arrow_delivery import ArrowDelivery
    from kafkapy.client.asynchronous import AsyncConsumer, AsyncProducer, AsyncShareConsumer
    from kafkapy.client.columnar import ArrowBatches, RangeReader
    from kafkapy.client.consumer import Consumer, ConsumerRecords
    from kafkapy.client.consumer_group import RebalanceListener
    from kafkapy.client.coordinator import GroupMetadata, OffsetAndMetadata
    from kafkapy.client.errors import (
        AcknowledgementError,
        AuthenticationError,
        ClientClosed,
        ConcurrentUse,
        LogTruncated,
        NoOffsetForPartition,
        NotSubscribed,
        RequestTimedOut,
        RowFailure,
        SubscriptionError,
        TransactionError,
        UndeliveredRows,
        UnreadableRecords,
        WakeupError,
    )
    from kafkapy.client.logging import KafkaHandler
    from kafkapy.client.metrics import MetricName
    from kafkapy.client.partitioner import Partitioner
    from kafkapy.client.producer import Producer
    from kafkapy.client.share_consumer import ShareConsumer
    from kafkapy.client.subscription import SubscriptionPattern
    from kafkapy.errors import ApiError, ConfigError, Error, KafkapyError
    from kafkapy.types import TopicPartition

__all__ = [
    "AcknowledgeType",
    "AcknowledgementError",
    "Admin",
    "ApiError",
    "ArrowBatch",
    "ArrowBatches",
    "ArrowDelivery",
    "AsyncConsumer",
    "AsyncProducer",
    "AsyncShareConsumer",
    "AuthenticationError",
    "ClientClosed",
    "ConcurrentUse",
    "ConfigError",
    "Consumer",
    "ConsumerRecord",
    "ConsumerRecords",
    "DeliveryFuture",
    "Error",
    "GroupMetadata",
    "KafkaHandler",
    "KafkapyError",
    "LogTruncated",
    "MetricName",
    "NoOffsetForPartition",
    "NotSubscribed",
    "OffsetAndMetadata",
    "Partitioner",
    "Producer",
    "RangeReader",
    "RebalanceListener",
    "RecordMetadata",
    "RequestTimedOut",
    "RowFailure",
    "ShareConsumer",
    "SubscriptionError",
    "SubscriptionPattern",
    "TopicPartition",
    "TransactionError",
    "UndeliveredRows",
    "UnreadableRecords",
    "WakeupError",
]

_NAMES: dict[str, tuple[str, ...]] = {
    "kafkapy._core.bytes.arrow_batch": ("ArrowBatch",),
    "kafkapy._core.client.fetched_records": ("ConsumerRecord",),
    "kafkapy._core.client.record_accumulator": ("DeliveryFuture", "RecordMetadata"),
    "kafkapy.client.acknowledgements": ("AcknowledgeType",),
    "kafkapy.client.admin": ("Admin",),
    "kafkapy.client.arrow_delivery": ("ArrowDelivery",),
    "kafkapy.client.asynchronous": ("AsyncConsumer", "AsyncProducer", "AsyncShareConsumer"),
    "kafkapy.client.columnar": ("ArrowBatches", "RangeReader"),
    "kafkapy.client.consumer": ("Consumer", "ConsumerRecords"),
    "kafkapy.client.consumer_group": ("RebalanceListener",),
    "kafkapy.client.coordinator": ("GroupMetadata", "OffsetAndMetadata"),
    "kafkapy.client.errors": (
        "AcknowledgementError",
        "AuthenticationError",
        "ClientClosed",
        "ConcurrentUse",
        "LogTruncated",
        "NoOffsetForPartition",
        "NotSubscribed",
        "RequestTimedOut",
        "RowFailure",
        "SubscriptionError",
        "TransactionError",
        "UndeliveredRows",
        "UnreadableRecords",
        "WakeupError",
    ),
    "kafkapy.client.metrics": ("MetricName",),
    "kafkapy.client.logging": ("KafkaHandler",),
    "kafkapy.client.partitioner": ("Partitioner",),
    "kafkapy.client.producer": ("Producer",),
    "kafkapy.client.share_consumer": ("ShareConsumer",),
    "kafkapy.client.subscription": ("SubscriptionPattern",),
    "kafkapy.errors": ("ApiError", "ConfigError", "Error", "KafkapyError"),
    "kafkapy.types": ("TopicPartition",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used, so that a program loads only the modules that it needs.

    For example, the broker uses the connections of this package but no producer or consumer, and a producer does not
    need the many protocol messages of Admin.
    """
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
