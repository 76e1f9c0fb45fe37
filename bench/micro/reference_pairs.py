"""The same work by `_core` and by the slow Python of tests/reference, compared as a factor."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from kafkapy._core.bytes.arrow_batch import ArrowBatch
from kafkapy._core.bytes.crc32c import crc32c
from kafkapy._core.bytes.message_set import build_message_set, iterate_records
from kafkapy._core.bytes.murmur2 import murmur2
from kafkapy._core.bytes.offset_map import siphash
from kafkapy._core.bytes.record_batch import RecordBatch, RecordBatchBuilder
from kafkapy._core.client.fetched_records import FetchedRecords
from kafkapy._core.reactor.timing_wheel import TimingWheel
from kafkapy.protocol.messages.produce import ProduceRequest
from tests.reference import columns as slow_columns
from tests.reference import crc32c as slow_crc32c
from tests.reference import message_set as slow_message_set
from tests.reference import murmur2 as slow_murmur2
from tests.reference import offset_map as slow_offset_map
from tests.reference import record_batch as slow_record_batch
from tests.reference import timing_wheel as slow_timing_wheel
from tests.reference import wire as slow_wire

LEAST_SECONDS = 0.05
REPEATS = 9


class Pair(NamedTuple):
    core: Callable[[], object]
    reference: Callable[[], object]


def best_seconds(work: Callable[[], object]) -> float:
    """Returns the seconds of one call of `work`, measured in the best of several series of calls.

    A series is long enough to be measured.
    """
    count, best = 1, float("inf")
    for _ in range(REPEATS):
        while True:
            begin = time.perf_counter()
            for _ in range(count):
                work()
            took = time.perf_counter() - begin
            if took >= LEAST_SECONDS:
                break
            count *= 2
        best = min(best, took / count)
    return best


def speed_up(pair: Pair) -> float:
    return best_seconds(pair.reference) / best_seconds(pair.core)


def records(count: int) -> list[slow_record_batch.PlainRecord]:
    return [slow_record_batch.PlainRecord(index, 1_000 + index, b"key", b"v" * 100, ()) for index in range(count)]


def build_batch() -> bytes:
    builder = RecordBatchBuilder()
    for record in RECORDS:
        builder.append(record.timestamp, record.key, record.value)
    return builder.build()


def wheel_turn() -> object:
    wheel = TimingWheel()
    for deadline in range(0, 2_000, 2):
        wheel.add(deadline, object)
    return [wheel.advance(now) for now in range(0, 2_000, 100)]


def timers_turn() -> object:
    timers = slow_timing_wheel.Timers()
    for deadline in range(0, 2_000, 2):
        timers.add(deadline, None)
    return [timers.advance(now) for now in range(0, 2_000, 100)]


RECORDS = records(100)
BATCH = slow_record_batch.encode_batch(RECORDS)
BODY = BATCH[61:]
DATA = bytes(range(256)) * 16
MESSAGES = [(index, 1_000, b"key", b"v" * 100) for index in range(100)]
MESSAGE_SET = build_message_set(MESSAGES, magic=1)
PRODUCE = ProduceRequest(
    acks=1,
    timeout_ms=1000,
    topic_data=[
        ProduceRequest.TopicProduceData(
            name="topic", partition_data=[ProduceRequest.PartitionProduceData(index=0, records=BATCH)]
        )
    ],
)
PRODUCE_BYTES = PRODUCE.encode(7)
PRODUCE_CODEC = slow_wire.Codec("ProduceRequest", 7)

PAIRS = {
    "crc32c": Pair(lambda: crc32c(DATA), lambda: slow_crc32c.crc32c(DATA)),
    "record_batch.build": Pair(build_batch, lambda: slow_record_batch.encode_batch(RECORDS)),
    "record_batch.read": Pair(
        lambda: list(RecordBatch(BATCH)), lambda: slow_record_batch.decode_records(BODY, 0, 1_000, 100)
    ),
    "arrow_batch.fill": Pair(
        lambda: FetchedRecords(BATCH, "topic", 0, 0).fill(ArrowBatch()),
        lambda: slow_columns.visible(
            slow_columns.PlainBatch(slow_record_batch.decode_records(BODY, 0, 1_000, 100)), "topic", 0, 0, 100, "us"
        ),
    ),
    "murmur2": Pair(lambda: murmur2(DATA), lambda: slow_murmur2.murmur2(DATA)),
    "message_set.read": Pair(
        lambda: list(iterate_records(MESSAGE_SET)), lambda: slow_message_set.decode_messages(MESSAGE_SET)
    ),
    "offset_map.siphash": Pair(
        lambda: siphash(bytes(16), b"a key"), lambda: slow_offset_map.siphash(bytes(16), b"a key")
    ),
    "timing_wheel": Pair(wheel_turn, timers_turn),
    "wire.decode": Pair(lambda: ProduceRequest.decode(PRODUCE_BYTES, 7), lambda: PRODUCE_CODEC.decode(PRODUCE_BYTES)),
}
