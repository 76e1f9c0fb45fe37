"""DeserializingShareConsumer of confluent-kafka: a share consumer with deserializers for keys and values."""

from __future__ import annotations

from typing import Any

from kafkapy.compat.confluent_kafka._errors import KafkaError, code_of
from kafkapy.compat.confluent_kafka._records import Message, Messages
from kafkapy.compat.confluent_kafka._share_consumer import ShareConsumer
from kafkapy.compat.confluent_kafka.serialization import MessageField, SerializationContext


class DeserializingShareConsumer(ShareConsumer):
    """A share consumer with deserializers: its configuration has `key.deserializer` and `value.deserializer`.

    A deserializer is called with the bytes and a SerializationContext, and returns the key or the value.
    """

    def __init__(self, conf: dict[str, Any]) -> None:
        rest = dict(conf)
        self._key_deserializer = rest.pop("key.deserializer", None)
        self._value_deserializer = rest.pop("value.deserializer", None)
        super().__init__(rest)

    def poll(self, timeout: float = -1) -> Messages:
        """Returns the next messages with deserialized keys and values; empty after `timeout` seconds (-1: no limit).

        A message that cannot be deserialized keeps its bytes and gets an `error()`.
        """
        messages = super().poll(timeout)
        for message in messages:
            if message.error() is None:
                self._deserialize(message)
        return messages

    def _deserialize(self, message: Message) -> None:
        topic = message.topic()
        assert topic is not None
        context = SerializationContext(topic, MessageField.KEY, message.headers())
        key, value = message.key(), message.value()
        try:
            if self._key_deserializer is not None:
                key = self._key_deserializer(key, context)
        except Exception as error:
            message.set_error(KafkaError(code_of("_KEY_DESERIALIZATION"), str(error)))
            return
        try:
            if self._value_deserializer is not None:
                context.field = MessageField.VALUE
                value = self._value_deserializer(value, context)
        except Exception as error:
            message.set_error(KafkaError(code_of("_VALUE_DESERIALIZATION"), str(error)))
            return
        message.set_key(key)
        message.set_value(value)
