"""The accumulator: batches by partition, their bytes, their memory, and the outcome of futures."""

from __future__ import annotations

import gc

import pytest

from kafkapy._core.bytes.record_batch import RecordBatch, validate_batches
from kafkapy._core.client.record_accumulator import RecordAccumulator
from kafkapy.errors import ApiError, Error


class Accumulator(RecordAccumulator):
    """Counts the calls of its subclass methods, and refuses a record that cannot be added at once."""

    def __init__(self, **settings):
        super().__init__(**{"memory_limit": 1 << 20, "batch_size": 1000, "max_record_bytes": 100_000, **settings})
        self.asked: list[str] = []
        self.takes_plain_records = True

    def _send_slowly(self, *record):
        self.asked.append("slowly")
        raise LookupError

    def _choose_sticky(self, queues):
        self.asked.append("sticky")
        queues.sticky = (queues.sticky + 1) % len(queues.queues)
        queues.sticky_bytes = 0

    def _on_batch_closed(self):
        self.asked.append("closed")

    def _on_queue_opened(self):
        self.asked.append("opened")


def records_of(batch):
    assert len(batch.encode()) == RecordBatch(batch.encode()).size_in_bytes
    RecordBatch(batch.encode()).ensure_valid()
    return [(each.key, each.value, each.headers, each.timestamp) for each in RecordBatch(batch.encode())]


def test_records_of_every_form():
    accumulator = Accumulator()
    accumulator.add_topic("t", 1)
    accumulator.send("t", b"value", b"key", partition=0, timestamp=5)
    accumulator.send("t", "wörter", bytearray(b"k"), partition=0, timestamp=3, headers={"a": b"1", "b": None})
    accumulator.send("t", None, None, partition=0, timestamp=7, headers=[("a", "x"), ("a", memoryview(b"y"))])
    (batch,) = accumulator.topics["t"].queues[0].all_batches()
    assert records_of(batch) == [
        (b"key", b"value", (), 5),
        (b"k", "wörter".encode(), (("a", b"1"), ("b", None)), 3),
        (None, None, (("a", b"x"), ("a", b"y")), 7),
    ]
    summaries = validate_batches(
        bytearray(batch.encode()), max_message_bytes=1 << 20, wall_ms=10, stamps_append_time=False,
        before_max_ms=1 << 62, after_max_ms=1 << 62, compacted=False,
    )  # fmt: skip
    assert (summaries[0].record_count, summaries[0].max_timestamp) == (3, 7)


@pytest.mark.parametrize("key", [b"key", None])
def test_a_record_for_a_topic_without_partitions_is_refused(key):
    accumulator = Accumulator()
    accumulator.add_topic("t", 0)
    with pytest.raises(ValueError, match="Topic t has no partitions"):
        accumulator.send("t", b"value", key)


def test_a_batch_has_its_compression_ratio_and_the_size_of_its_largest_record():
    for codec, ratios in ((0, (1.0, 1.0)), (1, (0.0, 0.5))):
        accumulator = Accumulator(codec=codec)
        accumulator.add_topic("t", 1)
        for size in (10, 300, 20):
            accumulator.send("t", b"v" * size, partition=0)
        (batch,) = accumulator.topics["t"].queues[0].all_batches()
        batch.encode()
        # The length, the attributes, the deltas of timestamp and offset, the null key, the value's length, the headers.
        assert batch.largest_record == 2 + 1 + 1 + 1 + 1 + 2 + 300 + 1
        assert ratios[0] <= batch.compression_ratio <= ratios[1]


def test_a_full_batch_is_closed_and_the_next_begins():
    accumulator = Accumulator()
    accumulator.add_topic("t", 1)
    for _ in range(25):
        accumulator.send("t", b"x" * 90, partition=0)
    queue = accumulator.topics["t"].queues[0]
    sizes = [len(batch.encode()) for batch in queue.all_batches()]
    assert accumulator.asked == ["opened", "closed", "closed"]
    assert queue.closed_count == 2 and len(sizes) == 3
    assert all(size <= 1000 for size in sizes)
    assert accumulator.memory_used == 3000


def test_keys_go_by_murmur2_and_others_stay_on_one_partition_for_a_batch():
    accumulator = Accumulator()
    accumulator.add_topic("t", 3)
    partitions = [accumulator.send("t", b"v", str(key)).batch.queue.partition for key in range(10)]
    assert "".join(map(str, partitions)) == "2022101002"
    without = [accumulator.send("t", b"x" * 200).batch.queue.partition for _ in range(12)]
    assert without == [0] * 5 + [1] * 5 + [2] * 2


def test_memory_that_is_used_up_is_asked_for():
    accumulator = Accumulator(memory_limit=2500)
    accumulator.add_topic("t", 3)
    first = accumulator.send("t", b"v", partition=0)
    accumulator.send("t", b"v", partition=1)
    with pytest.raises(LookupError):
        accumulator.send("t", b"v", partition=2)
    batch = first.batch.queue.take()
    batch.complete(70, -1)
    assert accumulator.memory_used == 1000
    accumulator.send("t", b"v", partition=2)


def test_a_record_that_is_too_large_is_refused():
    accumulator = Accumulator(max_record_bytes=500)
    accumulator.add_topic("t", 1)
    with pytest.raises(ApiError) as refused:
        accumulator.send("t", b"x" * 500, partition=0)
    assert refused.value.error is Error.MESSAGE_TOO_LARGE
    assert accumulator.memory_used == 0


def test_futures_tell_offsets_and_times():
    accumulator = Accumulator()
    accumulator.add_topic("t", 1)
    heard = []
    futures = [accumulator.send("t", b"v", b"k", partition=0, timestamp=at) for at in (10, 20)]
    futures.append(accumulator.send("t", None, partition=0, timestamp=30, on_delivery=lambda *told: heard.append(told)))
    batch = accumulator.topics["t"].queues[0].take()
    assert not futures[0].done()
    batch.complete(100, -1)
    for future in batch.take_callbacks():
        future.notify()
    assert [(each.result().offset, each.result().timestamp) for each in futures] == [(100, 10), (101, 20), (102, 30)]
    assert (heard[0][0].offset, heard[0][1]) == (102, None)
    assert (futures[2].result().serialized_key_size, futures[2].result().serialized_value_size) == (-1, -1)


def test_log_append_time_is_told():
    accumulator = Accumulator()
    accumulator.add_topic("t", 1)
    future = accumulator.send("t", b"v", partition=0, timestamp=10)
    future.batch.complete(0, 99)
    assert future.result().timestamp == 99


def test_a_failure_is_raised_and_told():
    accumulator = Accumulator()
    accumulator.add_topic("t", 1)
    future = accumulator.send("t", b"v", partition=0)
    future.batch.fail(ApiError(Error.NOT_ENOUGH_REPLICAS))
    heard = []
    future.add_done_callback(lambda *told: heard.append(told))
    assert isinstance(future.exception(), ApiError)
    assert heard == [(None, future.exception())]
    with pytest.raises(ApiError):
        future.result()


def test_batches_that_are_sent_again_keep_the_order_of_their_sequences():
    accumulator = Accumulator(batch_size=1)
    accumulator.add_topic("t", 1)
    for _ in range(4):
        accumulator.send("t", b"v", partition=0)
    queue = accumulator.topics["t"].queues[0]
    batches = [queue.take() for _ in range(3)]
    for sequence, batch in enumerate(batches):
        batch.set_producer(1, 0, sequence, False)
        batch.attempts = 1
    for index in (1, 0, 2):
        queue.put_back(batches[index])
    assert [each.sequence for each in queue.all_batches()] == [0, 1, 2, -1]


def test_a_batch_is_sent_from_its_own_memory_which_goes_when_it_is_done():
    accumulator = Accumulator()
    accumulator.add_topic("t", 1)
    future = accumulator.send("t", b"v" * 100, partition=0)
    batch = accumulator.topics["t"].queues[0].first()
    sent = batch.encode()
    before = bytes(sent)
    assert accumulator.send("t", b"w" * 100, partition=0).batch is not batch, "what is being sent is not written to"
    batch.set_producer(7, 0, 0, False)
    assert bytes(batch.encode()) != before
    batch.complete(5, -1)
    assert RecordBatch(sent).producer_id == 7, "whoever reads it keeps it"
    del sent
    with pytest.raises(BufferError):
        memoryview(batch)
    assert future.result().offset == 5


def test_records_sent_together_have_one_time_and_futures_of_their_own():
    accumulator = Accumulator()
    accumulator.add_topic("t", 1)
    futures = accumulator.send_many("t", [b"v"] * 100, [b"k"] * 100, partition=0)
    batches = accumulator.topics["t"].queues[0].all_batches()
    assert sum(len(records_of(batch)) for batch in batches) == 100 and len(batches) > 1
    assert len({record[3] for batch in batches for record in records_of(batch)}) == 1
    assert [future.index for future in futures[:3]] == [0, 1, 2]
    with pytest.raises(ValueError, match="shorter"):
        accumulator.send_many("t", [b"v"] * 2, [b"k"])


@pytest.mark.parametrize("failing", [0, 1])
def test_the_error_of_a_part_is_the_error_of_the_batch_that_was_split(failing):
    accumulator = Accumulator()
    accumulator.add_topic("t", 1)
    futures = [accumulator.send("t", b"v", partition=0) for _ in range(4)]
    whole = accumulator.topics["t"].queues[0].take()
    parts = whole.split()
    halves = parts[failing].split()
    halves[0].fail(ApiError(Error.MESSAGE_TOO_LARGE))
    halves[1].complete(7, -1)
    assert not whole.is_done
    parts[1 - failing].complete(5, -1)
    assert whole.is_done and parts[failing].error is whole.error is halves[0].error
    assert [future.exception() is None for future in futures] == [index != 2 * failing for index in range(4)]


def test_parts_wait_before_batches_with_later_sequences_and_batches_without_one():
    accumulator = Accumulator(batch_size=1)
    accumulator.add_topic("t", 1)
    for _ in range(3):
        accumulator.send("t", b"v", partition=0)
    queue = accumulator.topics["t"].queues[0]
    (first, second), third = (queue.take(), queue.take()), queue.first()
    first.set_producer(1, 0, 0, False)
    second.set_producer(1, 0, 1, False)
    for batch in (second, first):
        queue.put_back(batch)
    assert queue.all_batches() == [first, second, third]
    assert not first.is_part and first.attempts == 0


class FinishingSender:
    """Finishes a batch as soon as garbage is collected, as a sender on another thread may do at that moment."""

    def __init__(self, queue, skipped=0):
        self.queue = queue
        self.skipped = skipped  # collections that leave the batch as it is
        self.listeners = []
        self.held = []

    def use_up_lists(self):
        """Uses up the lists that the interpreter has for reuse: making the next list then collects garbage."""
        self.held.extend([] for _ in range(100))

    def __call__(self, phase, info):
        self.use_up_lists()
        self.skipped -= 1
        if self.skipped < 0 and self.queue.batch_count and self.queue.first().record_count:
            batch = self.queue.take()
            batch.complete(0, -1)
            self.listeners += batch.take_callbacks()


def collecting_at_each_allocation(sender, call):
    """Returns the result of `call`, during which the sender runs at each allocation of a container."""
    thresholds = gc.get_threshold()
    sender.use_up_lists()
    gc.callbacks.append(sender)
    gc.set_threshold(1)
    try:
        result = call()
        sender.skipped = 0
        sender("stop", {})
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(sender)
    return result


def test_a_callback_is_not_lost_when_the_batch_is_finished_while_a_record_is_sent():
    accumulator = Accumulator()
    sender = FinishingSender(accumulator.add_topic("t", 1).queues[0])
    heard = []
    future = collecting_at_each_allocation(
        sender,
        lambda: accumulator.send("t", b"v", partition=0, on_delivery=lambda *told: heard.append(told)),
    )
    assert future.done() and sender.listeners == [future]
    future.notify()
    assert [metadata.offset for metadata, error in heard] == [0]


@pytest.mark.parametrize("skipped", range(4))
def test_a_callback_is_not_lost_when_the_batch_is_finished_while_it_is_added(skipped):
    accumulator = Accumulator()
    sender = FinishingSender(accumulator.add_topic("t", 1).queues[0], skipped)
    heard = []

    def callback(metadata, error):
        heard.append(metadata.offset)

    future = accumulator.send("t", b"v", partition=0)
    collecting_at_each_allocation(sender, lambda: future.add_done_callback(callback))
    for listener in sender.listeners:
        listener.notify()
    assert future.done() and heard == [0]
