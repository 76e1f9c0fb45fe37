"""Adding the rows of tables to an accumulator: the same batches as by `send`, and the rows of each batch."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kafkapy._core.bytes.arrow_input import ArrowInput
from kafkapy._core.bytes.record_batch import RecordBatch
from kafkapy._core.client.arrow_sender import ArrowSender
from kafkapy._core.client.record_accumulator import RecordAccumulator
from kafkapy.errors import ApiError, Error

PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Accumulator(RecordAccumulator):
    """Chooses sticky partitions in turn; partitions of `t` may be added by `known_partitions`."""

    def __init__(self, **settings):
        super().__init__(**{"memory_limit": 1 << 20, "batch_size": 1000, "max_record_bytes": 100_000, **settings})
        self.takes_plain_records = True
        self.is_plain = True
        self.opened = self.closed = 0
        self.known_partitions = 0
        self.slow: list[tuple] = []

    def _takes_encoded_records(self):
        return self.is_plain

    def _send_slowly(self, topic, value, key, partition, timestamp, headers, on_delivery):
        self.slow.append((value, key, partition, timestamp, headers))
        if value == "wrong":
            raise TypeError("the value is wrong")
        if value == "bad":
            raise ValueError("the value is bad")
        if value in ("large", "fenced"):
            raise ApiError(Error.MESSAGE_TOO_LARGE if value == "large" else Error.PRODUCER_FENCED)
        return self.append(self.topics[topic].queues[partition or 0], 0, key, value, headers)

    def _add_partitions(self, topic):
        self.add_topic(topic, self.known_partitions)

    def _choose_sticky(self, queues):
        queues.sticky = (queues.sticky + 1) % len(queues.queues)
        queues.sticky_bytes = 0

    def _on_batch_closed(self):
        self.closed += 1

    def _on_queue_opened(self):
        self.opened += 1


class Delivery:
    """Records the batches that have begun and ended."""

    def __init__(self):
        self.begun = 0
        self.finished: list[tuple[int, list]] = []

    def begin(self):
        self.begun += 1

    def finish(self, rows, count):
        failures = [(list(numbers), error) for numbers, error in rows.failures()]
        self.finished.append((count, failures))


def sending(accumulator, table, partitions=1):
    queues = accumulator.add_topic("t", partitions)
    delivery = Delivery()
    return ArrowSender(accumulator, ArrowInput(table), queues, delivery), delivery


def batches_of(accumulator):
    return [batch for queue in accumulator.topics["t"].queues for batch in queue.all_batches()]


def finish(batch, error=None):
    if error is None:
        batch.complete(0, -1)
    else:
        batch.fail(error)
    for listener in batch.take_callbacks():
        listener.notify()


def test_rows_become_the_batches_that_send_would_make():
    rows = [
        {
            "key": None if number % 3 == 0 else f"k{number % 11}",
            "value": None if number % 7 == 0 else b"v" * (number % 90),
            "partition": number % 5 if number % 4 == 0 else None,
            "timestamp": 1_000_000 - number,
            "headers": [("a", b"1"), ("b", None)][: number % 3] if number % 2 else None,
        }
        for number in range(400)
    ]
    kinds = [("key", pa.string()), ("value", pa.binary()), ("partition", pa.int32()), ("timestamp", pa.int64()),
             ("headers", PAIRS)]  # fmt: skip
    structs = [
        {**row, "headers": row["headers"] and [{"key": name, "value": value} for name, value in row["headers"]]}
        for row in rows
    ]
    table = pa.Table.from_pylist(structs, pa.schema(kinds))
    expected, found = Accumulator(), Accumulator()
    expected.add_topic("t", 5)
    for row in rows:
        expected.send("t", **row)
    sender, delivery = sending(found, pa.concat_tables([table.slice(0, 150), table.slice(150)]), 5)
    assert sender.advance() and sender.row == 400
    mine, theirs = batches_of(found), batches_of(expected)
    assert [bytes(batch.encode()) for batch in mine] == [bytes(batch.encode()) for batch in theirs]
    for batch in mine:
        RecordBatch(batch.encode()).ensure_valid()
    topics = (found.topics["t"], expected.topics["t"])
    assert len({(each.sticky, each.sticky_bytes) for each in topics}) == 1
    assert (found.opened, found.records_appended, found.memory_used) == (5, 400, expected.memory_used)
    assert delivery.begun == len(mine) and found.closed == len(mine) - 5


def test_keys_may_be_ignored_and_times_are_those_of_sending():
    accumulator = Accumulator(ignore_keys=True)
    sender, _ = sending(accumulator, pa.table({"key": ["a", "b", "c"], "value": ["x"] * 3}), 3)
    assert sender.advance()
    (batch,) = batches_of(accumulator)
    times = {record.timestamp for record in RecordBatch(batch.encode())}
    assert batch.queue.partition == 0 and len(times) == 1 and times.pop() > 1_700_000_000_000


def test_the_rows_of_a_failed_batch_are_known():
    accumulator = Accumulator()
    table = pa.table({"value": ["v"] * 6, "partition": [0, 1, 1, 0, 1, 0]})
    sender, delivery = sending(accumulator, table, 2)
    assert sender.advance()
    accumulator.append(accumulator.topics["t"].queues[1], 0, None, b"of another sender")
    first, second = batches_of(accumulator)
    error = ApiError(Error.INVALID_RECORD)
    finish(second, error)
    finish(first)
    assert delivery.finished == [(3, [([1, 2, 4], error)]), (3, [])]


def test_the_rows_of_a_failed_part_are_known():
    accumulator = Accumulator()
    queue = accumulator.add_topic("t", 1).queues[0]
    accumulator.append(queue, 0, None, b"of another sender")
    sender, delivery = sending(accumulator, pa.table({"value": ["v"] * 7}))
    assert sender.advance()
    whole = queue.take()
    first, second = whole.split()
    third, fourth = second.split()
    errors = [ApiError(Error.INVALID_RECORD), ApiError(Error.MESSAGE_TOO_LARGE)]
    finish(third)
    finish(first, errors[0])
    assert delivery.finished == []
    finish(fourth, errors[1])
    start = first.record_count
    middle = start + third.record_count
    assert whole.outcomes() == [(0, start, errors[0]), (start, middle, None), (middle, 8, errors[1])]
    failed = [list(range(start - 1)), list(range(middle - 1, 7))]
    assert delivery.finished == [(7, [(failed[0], errors[0]), (failed[1], errors[1])])]
    assert min(start, middle - start, 8 - middle) > 0


def test_a_batch_of_two_tables_informs_both():
    accumulator = Accumulator()
    (first, one), (second, two) = (sending(accumulator, pa.table({"value": ["v"] * 2})) for _ in range(2))
    assert first.advance() and second.advance()
    (batch,) = batches_of(accumulator)
    error = ApiError(Error.INVALID_RECORD)
    finish(batch, error)
    assert one.finished == two.finished == [(2, [([0, 1], error)])]


def test_without_memory_the_row_is_sent_later():
    accumulator = Accumulator(memory_limit=2500)
    sender, delivery = sending(accumulator, pa.table({"value": [b"x" * 600] * 5}))
    assert not sender.advance() and sender.row == 2
    assert not sender.advance() and sender.send_refused_row() is None
    finish(accumulator.topics["t"].queues[0].take())
    assert sender.send_refused_row() is True and sender.row == 3
    assert not sender.advance()
    finish(accumulator.topics["t"].queues[0].take())
    finish(accumulator.topics["t"].queues[0].take())
    assert sender.advance() and sender.row == 5
    assert delivery.finished == [(1, [])] * 3 and delivery.begun == 5


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        ({"partition": pa.array([1, 0, 7])}, ValueError, "Row 2: topic t has no partition 7: it has 2 partitions"),
        ({"partition": pa.array([1, 0, -1])}, ValueError, "Row 2: topic t has no partition -1: it has 2 partitions"),
        ({"timestamp": pa.array([1, 0, -1])}, ValueError, "Row 2: invalid timestamp -1"),
        ({"headers": pa.array([[], None, [{"key": None, "value": b"x"}]], PAIRS)}, ValueError, "Row 2: the key of a"),
        ({"key": pa.array(["a", None, "x" * 500])}, ApiError, "Row 2: The message is 58. bytes when serialized"),
    ],
)
def test_a_row_that_cannot_be_sent_is_named(columns, error, words):
    accumulator = Accumulator(max_record_bytes=500)
    table = pa.concat_tables([pa.table({"value": ["v"] * 3, **columns}).slice(at, 1) for at in range(3)])
    sender, _ = sending(accumulator, table, 2)
    with pytest.raises(error, match=words):
        sender.advance()
    assert (sender.row, accumulator.records_appended) == (2, 2)


def test_partitions_that_were_added_are_found():
    accumulator = Accumulator()
    sender, _ = sending(accumulator, pa.table({"value": ["v"], "partition": [4]}), 2)
    accumulator.known_partitions = 5
    assert sender.advance()
    assert [batch.queue.partition for batch in batches_of(accumulator)] == [4]


def test_rows_for_serializers_are_sent_as_objects():
    accumulator = Accumulator()
    accumulator.takes_plain_records = accumulator.is_plain = False
    table = pa.table({"key": ["k", None], "value": [b"1", None], "timestamp": [5, None],
                      "headers": pa.array([[{"key": "h", "value": b"x"}], None], PAIRS)})  # fmt: skip
    sender, delivery = sending(accumulator, table)
    assert sender.advance() and sender.row == 2
    assert accumulator.slow == [(b"1", "k", None, 5, [("h", b"x")]), (None, None, None, None, None)]
    (batch,) = batches_of(accumulator)
    finish(batch)
    assert delivery.finished == [(2, [])]


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ("wrong", TypeError, "^Row 1: the value is wrong"),
        ("bad", ValueError, "^Row 1: the value is bad"),
        ("large", ApiError, "^MESSAGE_TOO_LARGE: Row 1: The request included a message larger"),
        ("fenced", ApiError, "^PRODUCER_FENCED: There is a newer producer"),
    ],
)
def test_errors_of_serializers_name_the_row_and_others_stay_the_same(value, error, words):
    accumulator = Accumulator()
    accumulator.takes_plain_records = accumulator.is_plain = False
    sender, _ = sending(accumulator, pa.table({"value": ["v", value]}))
    with pytest.raises(error, match=words):
        sender.advance()


def test_a_batch_that_is_finished_before_its_row_is_noted_is_not_forgotten():
    class Finishing(Accumulator):
        """Every record is delivered before `send` returns."""

        def _send_slowly(self, *record):
            future = super()._send_slowly(*record)
            finish(future.batch.queue.take())
            return future

    accumulator = Finishing()
    accumulator.takes_plain_records = accumulator.is_plain = False
    sender, delivery = sending(accumulator, pa.table({"value": ["v"] * 3}))
    assert sender.advance()
    assert delivery.finished == [(1, [])] * 3
