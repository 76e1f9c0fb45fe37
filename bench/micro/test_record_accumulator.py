"""The accumulator: adding values of 100 bytes to batches of 16 KB, singly and in bulk, and encoding the batches."""

import pytest

from kafkapy._core.client.record_accumulator import RecordAccumulator

COUNT = 1_000
VALUES = [b"%07d" % (index * 7919) + b"v" * 93 for index in range(COUNT)]


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
