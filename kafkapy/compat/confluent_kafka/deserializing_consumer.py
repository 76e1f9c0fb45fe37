"""DeserializingConsumer of confluent-kafka: a consumer with deserializers for keys and values."""

from __future__ import annotations

from typing import Any

from kafkapy.compat.confluent_kafka._consumer import Consumer
from kafkapy.compat.confluent_kafka._records import Message
from kafkapy.compat.confluent_kafka._serdes import close_serdes, offer_cluster_id, take_serdes
from kafkapy.compat.confluent_kafka.error import ConsumeError, KeyDeserializationError, ValueDeserializationError
from kafkapy.compat.confluent_kafka.serialization import MessageField, SerializationContext


class DeserializingConsumer(Consumer):
    """A consumer with deserializers, which its configuration has under `key.deserializer` and `value.deserializer`.

    A deserializer is called with the bytes and a SerializationContext, and returns the key or the value.
    """

    def __init__(self, conf: dict[str, Any]) -> None:
        serdes = take_serdes(conf, "key.deserializer", "value.deserializer")
        self._key_deserializer, self._value_deserializer = serdes.key, serdes.value
        self._owned_serdes = serdes.owned
        super().__init__(serdes.conf)
        offer_cluster_id(serdes, self.cluster_id)

    def poll(self, timeout: float = -1) -> Message | None:
        """Returns the next message with the deserialized key and value, or None after `timeout` seconds.

        A `timeout` of -1 means no limit. Raises ConsumeError if the consumer reports an error or the end of a
        partition, and KeyDeserializationError or ValueDeserializationError if a deserializer fails.
        """
        message = super().poll(timeout)
        if message is None:
            return None
        error = message.error()
        if error is not None:
            raise ConsumeError(error, kafka_message=message)
        topic = message.topic()
        assert topic is not None
        context = SerializationContext(topic, MessageField.KEY, message.headers())
        key, value = message.key(), message.value()
        if self._key_deserializer is not None:
            try:
                key = self._key_deserializer(key, context)
            except Exception as failure:
                raise KeyDeserializationError(failure, message) from failure
        if self._value_deserializer is not None:
            context.field = MessageField.VALUE
            try:
                value = self._value_deserializer(value, context)
            except Exception as failure:
                raise ValueDeserializationError(failure, message) from failure
        message.set_key(key)
        message.set_value(value)
        return message

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Raises NotImplementedError, as in confluent-kafka."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the consumer, and the deserializers that were made by builders in the configuration."""
        super().close()
        close_serdes(self._owned_serdes)
