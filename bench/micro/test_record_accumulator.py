"""The accumulator: adding values of 100 bytes to batches of 16 KB, singly, in bulk and from tables, and encoding."""

import pyarrow
import pytest

from kafkapy._core.bytes.arrow_input import ArrowInput
from kafkapy._core.client.arrow_sender import ArrowSender
from kafkapy._core.client.record_accumulator import RecordAccumulator

COUNT = 1_000
VALUES = [b"%07d" % (index * 7919) + b"v" * 93 for index in range(COUNT)]
TABLE = pyarrow.table({"value": VALUES, "partition": [0] * COUNT, "timestamp": [1_000] * COUNT})


class Accumulator(RecordAccumulator):
    """An accumulator that is never full, and whose batches stay in it until the benchmark drains them."""

    def __init__(self):
        super().__init__(memory_limit=1 << 30, batch_size=16 << 10, max_record_bytes=1 << 20)
        self.takes_plain_records = True

    def _on_batch_closed(self):
        """Does nothing, because there is no sender to notify."""

    def _on_queue_opened(self):
        """Does nothing, because there is no sender to notify."""


def drain(fill):
    accumulator = Accumulator()
    queue = accumulator.add_topic("topic", 1).queues[0]
    fill(accumulator)
    return sum(batch.record_count for batch in queue.all_batches() if batch.encode())


def one_by_one(accumulator):
    for value in VALUES:
        accumulator.send("topic", value, partition=0, timestamp=1_000)


def many(accumulator):
    accumulator.send_many("topic", VALUES, partition=0, timestamp=1_000)


@pytest.mark.parametrize("fill", [one_by_one, many])
def test_fill(benchmark, fill):
    assert benchmark(drain, fill) == COUNT


class Delivery:
    """The delivery of a table, whose batches stay in the accumulator."""

    def begin(self):
        """Does nothing, because no batch is ever finished."""


def rows_of_a_table(accumulator):
    queues = accumulator.topics["topic"]
    assert ArrowSender(accumulator, ArrowInput(TABLE), queues, Delivery()).advance()


def test_fill_from_a_table(benchmark):
    assert benchmark(drain, rows_of_a_table) == COUNT
