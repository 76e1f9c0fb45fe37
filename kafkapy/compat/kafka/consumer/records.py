"""Records as kafka-python returns them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkapy.compat.kafka.serializer import as_deserializer
from kafkapy.compat.kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafkapy._core.client import fetched_records


class ConsumerRecord(NamedTuple):
    """A record in kafka-python's form.

    `timestamp` is in ms since 1970; `timestamp_type` is 0 for the producer's time and 1 for the broker's. The sizes are
    the numbers of bytes of the serialized key, value and headers; they are -1 for a key or value that is null, and for
    a record without headers. `checksum` is None.
    """

    topic: str
    partition: int
    leader_epoch: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: Any
    value: Any
    headers: list[tuple[str, bytes]]
    checksum: int | None
    serialized_key_size: int
    serialized_value_size: int
    serialized_header_size: int


class RecordConverter:
    """Deserializes the records of kafkapy's client and converts them."""

    def __init__(self, key_deserializer: Any, value_deserializer: Any) -> None:
        self._key_deserializer = as_deserializer(key_deserializer)
        self._value_deserializer = as_deserializer(value_deserializer)

    def close(self) -> None:
        """Closes the deserializers."""
        for each in (self._key_deserializer, self._value_deserializer):
            if hasattr(each, "close"):
                each.close()

    def by_partition(
        self, records: Sequence[fetched_records.ConsumerRecord]
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Returns the records of one poll, converted to kafka-python's form, by partition.

        In `records`, the records of each partition must be next to each other, and there must be at least one record.
        """
        convert = self.convert
        first, last = records[0], records[-1]
        if first.partition == last.partition and first.topic == last.topic:
            return {TopicPartition(first.topic, first.partition): [convert(each) for each in records]}
        groups = groupby(records, key=lambda record: (record.topic, record.partition))
        return {TopicPartition(*partition): [convert(each) for each in group] for partition, group in groups}

    def convert(self, record: fetched_records.ConsumerRecord) -> ConsumerRecord:
        """Deserializes the key and the value of a record, and returns the record in kafka-python's form."""
        key, value, headers = record.key, record.value, record.headers
        key_size = -1 if key is None else len(key)
        value_size = -1 if value is None else len(value)
        header_size = -1
        pairs: list[Any] = []
        if headers:
            pairs = list(headers)
            header_size = sum(len(name.encode()) + len(each or b"") for name, each in pairs)
        if self._key_deserializer is not None:
            key = self._key_deserializer.deserialize(record.topic, pairs, key)
        if self._value_deserializer is not None:
            value = self._value_deserializer.deserialize(record.topic, pairs, value)
        return _new(
            ConsumerRecord,
            (
                record.topic,
                record.partition,
                record.leader_epoch,
                record.offset,
                record.timestamp,
                record.timestamp_type,
                key,
                value,
                pairs,
                None,
                key_size,
                value_size,
                header_size,
            ),
        )


# Faster than the constructor, and the fields are complete.
_new = tuple.__new__
