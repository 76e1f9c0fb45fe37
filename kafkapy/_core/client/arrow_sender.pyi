from array import array
from typing import Any

from kafkapy._core.bytes.arrow_input import ArrowInput
from kafkapy._core.client.record_accumulator import ProducerBatch, RecordAccumulator, TopicQueues

class BatchRows:
    batch: ProducerBatch
    def notify(self) -> None: ...
    def failures(self) -> list[tuple[array[int], BaseException]]: ...

class ArrowSender:
    row: int
    def __init__(
        self, accumulator: RecordAccumulator, source: ArrowInput, queues: TopicQueues, delivery: Any
    ) -> None: ...
    def advance(self) -> bool: ...
    def send_refused_row(self) -> bool | None: ...
