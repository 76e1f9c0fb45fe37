"""Idempotent and transactional producers of a log: sequences, duplicates, epochs, snapshots, last stable offset."""

import pytest

from kafkapy._core.broker_state.producer_table import BatchMetadata, ProducerEntry
from kafkapy.errors import ApiError, Error
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.producer_entry import LARGEST_SEQUENCE, sequence_before
from kafkapy.storage.producer_state import CompletedTransaction, ProducerStateManager
from kafkapy.types import TopicPartition

DAY = 86_400_000


@pytest.fixture
def producers(tmp_path):
    return ProducerStateManager(TopicPartition("t", 0), str(tmp_path), Filesystem())


def append(producers, first, last, offset, *, producer=1, epoch=0, transactional=False, timestamp=1000):
    assert producers.check_client_append(producer, epoch, first, last) is None
    count = last - first if last >= first else last + LARGEST_SEQUENCE - first + 1
    batch = BatchMetadata(first, last, offset, offset + count, timestamp)
    producers.append_data(producer, epoch, batch, transactional)
    producers.map_end_offset = offset + count + 1


def code_of(action):
    with pytest.raises(ApiError) as raised:
        action()
    return raised.value.error


def test_last_five_batches_are_remembered(producers):
    for number in range(7):
        append(producers, number * 10, number * 10 + 9, 100 + number * 10)
    assert producers.check_client_append(1, 0, 60, 69).first_offset == 160
    assert producers.check_client_append(1, 0, 20, 29).last_offset == 129
    assert code_of(lambda: producers.check_client_append(1, 0, 10, 19)) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert code_of(lambda: producers.check_client_append(1, 0, 71, 71)) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert code_of(lambda: producers.check_client_append(1, 0, 60, 65)) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_unknown_producer_may_begin_anywhere(producers):
    append(producers, 42, 42, 0)
    append(producers, 43, 43, 1)


def test_a_producer_without_an_epoch_may_begin_anywhere(producers):
    entry = ProducerEntry(1)
    assert entry.producer_epoch == -1
    producers.entries[1] = entry
    assert producers.check_client_append(1, 0, 5, 5) is None


def test_a_newer_epoch_fences_and_begins_at_sequence_0(producers):
    append(producers, 0, 4, 0, epoch=3)
    assert code_of(lambda: producers.check_client_append(1, 2, 5, 5)) == Error.INVALID_PRODUCER_EPOCH
    assert code_of(lambda: producers.check_client_append(1, 4, 5, 5)) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(producers, 0, 4, 5, epoch=4)
    assert producers.check_client_append(1, 4, 0, 4).first_offset == 5
    assert len(producers.entries[1].batches) == 1


def test_sequences_wrap(producers):
    append(producers, LARGEST_SEQUENCE - 1, LARGEST_SEQUENCE, 0)
    append(producers, 0, 3, 2)
    assert sequence_before(1, 3) == LARGEST_SEQUENCE - 1


def test_snapshot_vector_of_no_producers(producers, tmp_path):
    producers.map_end_offset = 5
    producers.take_snapshot(sync=True)
    assert (tmp_path / "00000000000000000005.snapshot").read_bytes().hex() == "000148674bc700000000"
    assert producers.take_snapshot(sync=True) is None


def test_snapshot_round_trip(producers, tmp_path):
    append(producers, 0, 9, 0, producer=7, epoch=2)
    append(producers, 5, 6, 10, producer=8, transactional=True)
    producers.append_marker(9, 1, 4, commit=True, offset=12, timestamp=1000)
    producers.map_end_offset = 13
    producers.take_snapshot(sync=False)
    loaded = ProducerStateManager(TopicPartition("t", 0), str(tmp_path), Filesystem())
    loaded.set_snapshots([13])
    loaded.reload(0, 20, 2000, DAY)
    assert loaded.map_end_offset == 13
    assert loaded.check_client_append(7, 2, 0, 9).first_offset == 0
    assert loaded.entries[8].transaction_first_offset == 10
    assert loaded.first_unstable_offset(20) == 10
    assert (loaded.entries[9].producer_epoch, loaded.entries[9].coordinator_epoch) == (1, 4)


class MirroredState(ProducerStateManager):
    """Stores the first offset of the earliest open transaction, as it was passed to the gate."""

    def set_transactions(self, first_ongoing, ended):
        self.first_ongoing = first_ongoing
        super().set_transactions(first_ongoing, ended)


def test_the_gate_is_given_the_earliest_transaction_of_a_snapshot(producers, tmp_path):
    append(producers, 0, 0, 0, producer=1)
    append(producers, 0, 0, 1, producer=2, transactional=True)
    append(producers, 1, 1, 2, producer=1, transactional=True)  # the snapshot has producer 1 first
    producers.take_snapshot(sync=False)
    loaded = MirroredState(TopicPartition("t", 0), str(tmp_path), Filesystem())
    loaded.set_snapshots([producers.map_end_offset])
    loaded.reload(0, 20, 2000, DAY)
    assert list(loaded.entries) == [1, 2]
    assert loaded.first_ongoing == 1
    assert loaded.last_stable_offset_after(CompletedTransaction(2, 1, 5, False)) == 2


def test_a_damaged_snapshot_gives_way_to_the_one_before(producers, tmp_path):
    append(producers, 0, 0, 0)
    producers.take_snapshot(sync=True)
    append(producers, 1, 1, 1)
    producers.take_snapshot(sync=True)
    (tmp_path / "00000000000000000002.snapshot").write_bytes(b"\0\1torn")
    producers.reload(0, 2, 2000, DAY)
    assert producers.map_end_offset == 1
    assert producers.entries[1].last_sequence == 0
    assert not (tmp_path / "00000000000000000002.snapshot").exists()


def test_expired_producers_are_forgotten_unless_in_a_transaction(producers):
    append(producers, 0, 0, 0, producer=1, timestamp=0)
    append(producers, 0, 0, 1, producer=2, timestamp=0, transactional=True)
    append(producers, 0, 0, 2, producer=3, timestamp=DAY)
    assert producers.remove_expired(DAY, DAY) == 1
    assert sorted(producers.entries) == [2, 3]


def test_the_first_unstable_offset_follows_open_and_unreplicated_transactions(producers):
    append(producers, 0, 0, 0, producer=1, transactional=True)
    append(producers, 0, 0, 1, producer=2, transactional=True)
    assert producers.first_unstable_offset(2) == 0
    completed = producers.append_marker(1, 0, 0, commit=False, offset=2, timestamp=0)
    assert completed == (1, 0, 2, True)
    assert producers.last_stable_offset_after(completed) == 1
    assert producers.first_unstable_offset(2) == 0
    assert producers.first_unstable_offset(3) == 1
    producers.append_marker(2, 0, 0, commit=True, offset=3, timestamp=0)
    assert producers.first_unstable_offset(4) is None
    assert not producers.has_transactions


def test_plain_batches_and_old_coordinators_are_refused_in_transactions(producers):
    append(producers, 0, 0, 0, transactional=True)
    assert code_of(lambda: producers.check_transactional(1, False)) == Error.INVALID_TXN_STATE
    producers.append_marker(1, 0, 5, commit=True, offset=1, timestamp=0)
    producers.check_transactional(1, False)
    assert code_of(lambda: producers.check_coordinator_epoch(1, 4)) == Error.TRANSACTION_COORDINATOR_FENCED


def test_the_log_of_a_move_knows_the_sequences_that_are_being_verified(producers, tmp_path):
    """After a move, the second batch of a producer was appended before the first one."""
    producers.begin_verification(7, 0, 0)
    moved = ProducerStateManager(TopicPartition("t", 0), str(tmp_path), Filesystem())
    moved.take_over(producers)
    assert code_of(lambda: moved.check_client_append(7, 0, 5, 9)) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
