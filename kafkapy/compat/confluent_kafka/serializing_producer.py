"""SerializingProducer of confluent-kafka: a producer with serializers for keys and values."""

from __future__ import annotations

from typing import Any

from kafkapy.compat.confluent_kafka._producer import OnDelivery, Producer
from kafkapy.compat.confluent_kafka._records import Headers
from kafkapy.compat.confluent_kafka._serdes import close_serdes, offer_cluster_id, take_serdes
from kafkapy.compat.confluent_kafka.error import KeySerializationError, ValueSerializationError
from kafkapy.compat.confluent_kafka.serialization import MessageField, SerializationContext


class SerializingProducer(Producer):
    """A producer with serializers, which its configuration has under `key.serializer` and `value.serializer`.

    A serializer is called with the key or the value and a SerializationContext, and returns bytes.
    """

    def __init__(self, conf: dict[str, Any]) -> None:
        serdes = take_serdes(conf, "key.serializer", "value.serializer")
        self._key_serializer, self._value_serializer = serdes.key, serdes.value
        self._owned_serdes = serdes.owned
        super().__init__(serdes.conf)
        offer_cluster_id(serdes, self.cluster_id)

    def produce(  # type: ignore[override]
        self,
        topic: str,
        key: Any = None,
        value: Any = None,
        partition: int = -1,
        on_delivery: OnDelivery | None = None,
        timestamp: int = 0,
        headers: Headers | None = None,
    ) -> None:
        """Serializes a key and a value and adds the record. Does not block.

        Raises KeySerializationError or ValueSerializationError if a serializer fails, BufferError if the queue is full,
        and KafkaException for a record that is too large or an unknown partition.
        """
        self._check_open()
        if not isinstance(topic, str):
            raise TypeError(f"topic must be a str, not {type(topic).__name__}")
        context = SerializationContext(topic, MessageField.KEY, headers)
        if self._key_serializer is not None:
            try:
                key = self._key_serializer(key, context)
            except Exception as error:
                raise KeySerializationError(error) from error
        context.field = MessageField.VALUE
        if self._value_serializer is not None:
            try:
                value = self._value_serializer(value, context)
            except Exception as error:
                raise ValueSerializationError(error) from error
        # A serializer may have added headers to those of the context.
        super().produce(
            topic, value, key, partition, on_delivery=on_delivery, timestamp=timestamp, headers=context.headers
        )

    def close(self) -> bool:
        """Closes the producer, and the serializers that were made by builders in the configuration; returns True."""
        result = super().close()
        close_serdes(self._owned_serdes)
        return result
