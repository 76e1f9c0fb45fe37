"""The exceptions of confluent-kafka's serializing producer and deserializing consumers."""

from __future__ import annotations

from kafkapy.compat.confluent_kafka._errors import KafkaError, KafkaException, code_of
from kafkapy.compat.confluent_kafka._records import Message
from kafkapy.compat.confluent_kafka.serialization import SerializationError

__all__ = [
    "ConsumeError",
    "KafkaError",
    "KafkaException",
    "KeyDeserializationError",
    "KeySerializationError",
    "ProduceError",
    "SerializationError",
    "ValueDeserializationError",
    "ValueSerializationError",
]


class _KafkaClientError(KafkaException):
    """The base of the errors of one record: `args[0]` is a KafkaError, `exception` the exception that caused it.

    `kafka_message` is the record as a Message, or None if the record was not produced.
    """

    def __init__(
        self, kafka_error: KafkaError, exception: Exception | None = None, kafka_message: Message | None = None
    ) -> None:
        super().__init__(kafka_error)
        self.exception = exception
        self.kafka_message = kafka_message

    @property
    def code(self) -> int:
        """The code of the error."""
        code: int = self.args[0].code()
        return code

    @property
    def name(self) -> str:
        """The name of the error."""
        name: str = self.args[0].name()
        return name


class ConsumeError(_KafkaClientError):
    """A message could not be consumed; `kafka_message` is the message as it was received."""


class KeyDeserializationError(ConsumeError, SerializationError):
    """The deserializer of keys has failed."""

    def __init__(self, exception: Exception | None = None, kafka_message: Message | None = None) -> None:
        error = KafkaError(code_of("_KEY_DESERIALIZATION"), str(exception))
        super().__init__(error, exception, kafka_message)


class ValueDeserializationError(ConsumeError, SerializationError):
    """The deserializer of values has failed."""

    def __init__(self, exception: Exception | None = None, kafka_message: Message | None = None) -> None:
        error = KafkaError(code_of("_VALUE_DESERIALIZATION"), str(exception))
        super().__init__(error, exception, kafka_message)


class ProduceError(_KafkaClientError):
    """A record could not be produced."""

    def __init__(self, kafka_error: KafkaError, exception: Exception | None = None) -> None:
        super().__init__(kafka_error, exception)


class KeySerializationError(ProduceError, SerializationError):
    """The serializer of keys has failed."""

    def __init__(self, exception: Exception | None = None) -> None:
        super().__init__(KafkaError(code_of("_KEY_SERIALIZATION"), str(exception)), exception)


class ValueSerializationError(ProduceError, SerializationError):
    """The serializer of values has failed."""

    def __init__(self, exception: Exception | None = None) -> None:
        super().__init__(KafkaError(code_of("_VALUE_SERIALIZATION"), str(exception)), exception)
