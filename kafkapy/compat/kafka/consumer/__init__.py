"""The consumer with the interface of kafka-python's `kafka.consumer`."""

from __future__ import annotations

from kafkapy.compat.kafka.consumer.group import KafkaConsumer

__all__ = ["KafkaConsumer"]
