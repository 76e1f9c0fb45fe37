"""The classes of confluent-kafka for asyncio."""

from kafkapy.compat.confluent_kafka.aio._consumer import AIOConsumer, AsyncDeserializingConsumer
from kafkapy.compat.confluent_kafka.aio._producer import AIOProducer, AsyncSerializingProducer

__all__ = ["AIOConsumer", "AIOProducer", "AsyncDeserializingConsumer", "AsyncSerializingProducer"]
