"""The native append of a follower and the Python path leave the same files and the same state, byte for byte.

A random log of a leader is fetched in random pieces, which may end within a batch, by two followers. It has plain,
idempotent and transactional batches, markers, several epochs, gaps as a compacted log has, and batches larger than a
segment; some pieces are damaged on the way.
"""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from kafkapy._core.bytes.message_set import build_message_set
from kafkapy._core.bytes.record_batch import RecordBatchBuilder, scan_batches
from kafkapy._core.gate.follower_append import end_of_fetched
from kafkapy.errors import ApiError, Error
from kafkapy.replica.fetcher.partition_log import AppendCounters, PartitionLog
from tests.directory_content import assert_unchanged, directory_content
from tests.harness.log import NOW_MS, LogHarness, batch
from tests.seeds import drawn_seed

PRODUCERS = range(3)


class Leader:
    """Produces random batches with offsets and epochs."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.offset = chance.choice((0, 0, 7))
        self.epoch = 0
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        self.producer_epochs = dict.fromkeys(PRODUCERS, 0)
        self.transactions: set[int] = set()
        self.timestamp = NOW_MS

    def batch(self) -> bytes:
        chance = self.chance
        self.offset += chance.choice((0, 0, 0, 3, 1000))
        if chance.random() < 0.003:
            self.offset += 2**31
        self.epoch += chance.choice((0,) * 30 + (1, 2))
        self.timestamp += chance.choice((-50, 0, 10, 1000))
        kind = chance.random()
        if kind < 0.03:
            return self.old_messages()
        producer = chance.choice(PRODUCERS)
        if kind < 0.15 and producer in self.transactions:
            return self.marker(producer)
        count = chance.choice((1, 1, 2, 40))
        keywords = {}
        if kind > 0.4:
            keywords = self.produced(producer, count)
        builder = RecordBatchBuilder(
            self.offset, partition_leader_epoch=self.epoch, compression=chance.choice((0, 0, 1)), **keywords
        )
        size = 400_000 if chance.random() < 0.01 else chance.choice((0, 10, 300))
        for number in range(count):
            builder.append(self.timestamp + number, None, chance.randbytes(size))
        self.offset += count
        return builder.build()

    def produced(self, producer: int, count: int) -> dict[str, object]:
        is_transactional = producer in self.transactions or self.chance.random() < 0.3
        if is_transactional:
            self.transactions.add(producer)
        elif self.chance.random() < 0.05:
            self.producer_epochs[producer] += 1
            self.sequences[producer] = 0
        sequence = self.sequences[producer]
        self.sequences[producer] += count
        return {
            "producer_id": producer,
            "producer_epoch": self.producer_epochs[producer],
            "base_sequence": sequence,
            "is_transactional": is_transactional,
        }

    def marker(self, producer: int) -> bytes:
        self.transactions.discard(producer)
        builder = RecordBatchBuilder(
            self.offset,
            partition_leader_epoch=self.epoch,
            producer_id=producer,
            producer_epoch=self.producer_epochs[producer],
            is_transactional=True,
            is_control=True,
        )
        is_commit = self.chance.random() < 0.5
        key = (0).to_bytes(2, "big") + int(is_commit).to_bytes(2, "big")
        builder.append(self.timestamp, key, (0).to_bytes(2, "big") + self.epoch.to_bytes(4, "big"))
        self.offset += 1
        return builder.build()

    def old_messages(self) -> bytes:
        message = build_message_set([(self.offset, self.timestamp, b"k", b"old")], magic=1)
        self.offset += 1
        return message


def state(log):
    producers = log.producers
    return {
        "offsets": (log.log_start_offset, log.log_end_offset, log.high_watermark, log.recovery_point),
        "epochs": log.leader_epochs.entries,
        "segments": [
            (
                segment.base_offset,
                segment.size,
                segment.bytes_since_last_index_entry,
                segment.max_timestamp,
                segment.offset_of_max_timestamp,
                segment.is_free_of_aborted,
            )
            for segment in log.segments
        ],
        "producers": {
            key: (
                entry.producer_epoch,
                entry.coordinator_epoch,
                entry.last_timestamp,
                entry.transaction_first_offset,
                entry.batches,
            )
            for key, entry in producers.entries.items()
        },
        "map_end_offset": producers.map_end_offset,
        "unstable": producers.first_unstable_offset(log.high_watermark),
        "snapshots": producers.snapshots,
    }


def attempt(append, records, leader_epoch):
    try:
        append(records, leader_epoch)
    except ApiError as error:
        return error.error
    return Error.NONE


@pytest.mark.parametrize("number", range(6))
def test_both_paths_leave_the_same_files_and_the_same_state(tmp_path, number):
    chance = random.Random(drawn_seed() + number)
    config = {
        "segment.bytes": chance.choice((1 << 20, 1 << 30)),
        "index.interval.bytes": chance.choice((0, 300, 4096)),
        "segment.index.bytes": chance.choice((400, 1 << 20)),
        "flush.messages": chance.choice((500, 2**63 - 1)),
        "segment.ms": chance.choice((20_000, 2**62)),
    }
    (tmp_path / "native").mkdir()
    (tmp_path / "python").mkdir()
    native_harness, python_harness = LogHarness(tmp_path / "native"), LogHarness(tmp_path / "python")
    counters = AppendCounters()
    native, reference = native_harness.log(config), python_harness.log(config)
    native_log = PartitionLog(SimpleNamespace(log=native), counters)
    leader = Leader(chance)
    waiting = b""
    errors = set()
    predictions = 0
    for _ in range(150):
        while len(waiting) < 2000:
            waiting += leader.batch()
        fetched = bytearray(waiting[: chance.randint(1, len(waiting))] if chance.random() < 0.3 else waiting)
        if chance.random() < 0.1:
            fetched[chance.randrange(len(fetched))] ^= 1 << chance.randrange(8)
        epoch = leader.epoch - chance.choice((0, 0, 0, 1))
        end = native.log_end_offset
        found = attempt(native_log.append, memoryview(fetched), epoch)
        assert found == attempt(reference.append_as_follower, memoryview(bytes(fetched)), epoch)
        errors.add(found)
        predicted = end_of_fetched(memoryview(fetched), epoch)
        if predicted is not None and found is Error.NONE:
            assert predicted == (native.log_end_offset, native.latest_epoch)
            predictions += 1
        assert state(native) == state(reference)
        high_watermark = chance.randint(0, native.log_end_offset)
        assert native.follow_high_watermark(high_watermark) == reference.follow_high_watermark(high_watermark)
        if native.log_end_offset > end:
            waiting = behind(waiting, native.log_end_offset)
        if chance.random() < 0.02 and native.log_end_offset > native.log_start_offset:
            target = chance.randint(native.log_start_offset, native.log_end_offset)
            native.truncate_to(target)
            reference.truncate_to(target)
            assert state(native) == state(reference)
            waiting, leader = b"", Leader(chance)
            leader.offset, leader.epoch = native.log_end_offset, max(0, native.latest_epoch)
            leader.producer_epochs = dict.fromkeys(PRODUCERS, 50)
    assert counters.native > 20
    assert predictions > 20
    assert Error.NONE in errors
    native.close()
    reference.close()
    assert_unchanged(relative(tmp_path / "python"), relative(tmp_path / "native"))


def behind(records: bytes, offset: int) -> bytes:
    """Returns the bytes after the batches below `offset`."""
    position = 0
    while position + 12 <= len(records):
        size = 12 + int.from_bytes(records[position + 8 : position + 12], "big")
        if int.from_bytes(records[position : position + 8], "big") >= offset:
            break
        position += size
    return records[position:]


def relative(root):
    return {path.removeprefix(str(root)): content for path, content in directory_content(root).items()}


def test_the_usual_batches_need_no_python_object(tmp_path):
    harness = LogHarness(tmp_path)
    counters = AppendCounters()
    log = PartitionLog(SimpleNamespace(log=harness.log()), counters)
    leader = harness.log(name="leader")
    for number in range(100):
        leader.append_as_leader(batch(producer_id=5, producer_epoch=0, base_sequence=number), 0)
    fetched = leader.read(0, 1 << 20).records.read()
    assert log.append(memoryview(fetched), 0) == len(fetched)
    assert (counters.native, counters.python, counters.batches) == (1, 0, 100)
    assert counters.batches_accounted_in_python == 1  # the first batch of its producer
    assert len(scan_batches(fetched)[0]) == 100
