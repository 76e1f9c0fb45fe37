"""Large batches are decompressed on the handler pool, with the same result as on the reactor's thread."""

from __future__ import annotations

import pytest

from kafkapy._core.bytes.compression import CODEC_NAMES, compress, work_to_open
from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.errors import Error
from kafkapy.protocol.messages.produce import ProduceRequest
from kafkapy.server.handlers.produce import handle_produce
from kafkapy.server.opening_ahead import LARGEST_WORK
from tests.harness.handler import HandlerHarness
from tests.harness.replica import partition_image
from tests.harness.transaction_handler import TransactionHandlerHarness
from tests.reference.record_batch import wrap_batch


class HeldPool:
    """A pool that runs submitted work when the test requests it."""

    def __init__(self):
        self.submitted = []

    def submit(self, work):
        self.submitted.append(work)

    def run(self):
        submitted, self.submitted = self.submitted, []
        for continuation in [work() for work in submitted]:
            continuation()


@pytest.fixture
def harness(tmp_path):
    made = HandlerHarness(tmp_path)
    made.services.handler_pool = HeldPool()
    made.put_topic("t", [partition_image(), partition_image()])
    return made


def large(codec, size=60_000_000, count=1):
    builder = RecordBatchBuilder(compression=codec)
    for _ in range(count):
        builder.append(1_700_000_000_000, None, bytes(size))
    return builder.build()


def send(harness, records_by_index, *, acks=-1):
    data = [
        ProduceRequest.PartitionProduceData(index=index, records=records) for index, records in records_by_index.items()
    ]
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=data)
    return harness.send(handle_produce, ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic]), 12)


def found_in(answer):
    (topic,) = answer.response.responses
    return {each.index: (each.error_code, each.base_offset) for each in topic.partition_responses}


def test_a_large_batch_lets_others_pass(harness):
    slow = send(harness, {0: large(1), 1: large(0, 10)})
    quick = send(harness, {0: large(1, 100)})
    assert (slow.is_answered, found_in(quick)) == (False, {0: (0, 0)})
    harness.services.handler_pool.run()
    assert found_in(slow) == {0: (0, 1), 1: (0, 0)}
    assert harness.partition().log.log_end_offset == 2


def test_what_is_wrong_with_it_is_answered_as_ever(harness):
    bomb = wrap_batch(compress(1, bytes(400_000_000)), attributes=1, count=1, last_offset_delta=0)
    damaged = bytearray(large(1))
    damaged[-1] ^= 1
    answers = [send(harness, {0: bomb}), send(harness, {0: bytes(damaged)}), send(harness, {0: large(1)}, acks=7)]
    assert not any(answer.is_answered for answer in answers)
    harness.services.handler_pool.run()
    assert [found_in(answer)[0][0] for answer in answers] == [
        Error.INVALID_RECORD,
        Error.CORRUPT_MESSAGE,
        Error.INVALID_REQUIRED_ACKS,
    ]
    assert harness.partition().log.log_end_offset == 0


def test_a_partition_that_is_gone_meanwhile(harness):
    answer = send(harness, {0: large(1)})
    del harness.manager.partitions["t", 0]
    harness.services.handler_pool.run()
    assert found_in(answer)[0][0] == Error.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("version", "error"),
    [(10, Error.INVALID_TXN_STATE), (11, Error.TRANSACTION_ABORTABLE)],
)
def test_a_transaction_that_ends_while_its_batch_is_opened_is_not_opened_again(tmp_path, version, error):
    harness = TransactionHandlerHarness(tmp_path)
    harness.services.handler_pool = HeldPool()
    producer = harness.producer()
    assert harness.add(producer, 0) == [Error.NONE]
    answer = harness.produce(producer, 0, version=version, compression=1, value=bytes(60_000_000))
    assert not answer.is_answered
    assert harness.end(producer, commit=True, version=4).error_code == Error.NONE
    harness.services.handler_pool.run()
    assert found_in(answer)[0][0] == error
    log = harness.partition("t", 0).log
    assert (log.log_end_offset, log.last_stable_offset) == (1, 1)  # the commit marker alone
    assert log.producers.entries[producer[0]].transaction_first_offset < 0


@pytest.mark.parametrize("version", [11, 12])
def test_a_transactional_batch_is_appended_once_it_is_opened_and_verified(tmp_path, version):
    harness = TransactionHandlerHarness(tmp_path)
    harness.services.handler_pool = HeldPool()
    producer = harness.producer()
    if version == 11:
        assert harness.add(producer, 0) == [Error.NONE]
    answer = harness.produce(producer, 0, version=version, compression=1, value=bytes(60_000_000))
    harness.services.handler_pool.run()
    assert found_in(answer) == {0: (Error.NONE, 0)}
    log = harness.partition("t", 0).log
    assert (log.log_end_offset, log.last_stable_offset) == (1, 0)


@pytest.mark.parametrize("codec", range(1, 5))
def test_the_bound_is_one_and_no_wild_guess(codec):
    for size in (0, 1, 1000, 70_000, 3_000_000):
        body = bytes(range(256)) * (size // 256 + 1)
        data = wrap_batch(compress(codec, body), attributes=codec, count=1, last_offset_delta=0)
        found = work_to_open(memoryview(data))
        assert found >= len(body), CODEC_NAMES[codec]
        if codec != 1:
            assert found <= 4 * len(body) + 2 * 131072  # a byte of snappy or zstd counts as two bytes of lz4
    assert work_to_open(memoryview(large(codec))) > LARGEST_WORK
    for end in range(200):
        work_to_open(memoryview(data)[:end])
    assert work_to_open(memoryview(large(0))) == 0
