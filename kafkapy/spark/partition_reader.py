"""Records of a range as Arrow batches, by way of the consumer's records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from kafkapy._core.fetched_records import ConsumerRecord
from kafkapy.client.consumer import Consumer
from kafkapy.spark.columns import arrow_schema
from kafkapy.types import TopicPartition

POLL_S = 1.0
_CELLS: dict[str, Callable[[ConsumerRecord], Any]] = {
    "key": lambda record: record.key,
    "value": lambda record: record.value,
    "topic": lambda record: record.topic,
    "partition": lambda record: record.partition,
    "offset": lambda record: record.offset,
    "timestamp": lambda record: record.timestamp * 1000,
    "timestampType": lambda record: record.timestamp_type,
    "headers": lambda record: [{"key": name, "value": content} for name, content in record.headers] or None,
}


class PartitionReader:
    """Owns a consumer of one partition.  For one thread."""

    def __init__(
        self,
        properties: Mapping[str, Any],
        topic: str,
        partition: int,
        start_offset: int,
        end_offset: int,
        *,
        columns: Sequence[str],
        batch_rows: int,
    ) -> None:
        own = {"auto.offset.reset": "none", "enable.auto.commit": "false", "max.poll.records": str(batch_rows)}
        self._where = TopicPartition(topic, partition)
        self._start, self._end = start_offset, end_offset
        self._columns = columns
        self._consumer = Consumer({**properties, **own})

    def __iter__(self) -> Iterator[Any]:
        import pyarrow as arrow  # Spark's workers have it

        schema = arrow_schema(self._columns)
        self._consumer.assign([self._where])
        self._consumer.seek(self._where, self._start)
        while self._consumer.position(self._where) < self._end:
            records: list[ConsumerRecord] = [each for each in self._consumer.poll(POLL_S) if each.offset < self._end]
            if records:
                cells = [
                    arrow.array([_CELLS[name](record) for record in records], schema.field(name).type)
                    for name in self._columns
                ]
                yield arrow.RecordBatch.from_arrays(cells, schema=schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()
