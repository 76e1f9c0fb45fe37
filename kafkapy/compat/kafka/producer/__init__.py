"""The producer with the interface of kafka-python's `kafka.producer`."""

from __future__ import annotations

from kafkapy.compat.kafka.producer.kafka import KafkaProducer

__all__ = ["KafkaProducer"]
