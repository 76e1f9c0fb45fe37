"""Sequences of an idempotent producer: assigned once, the same in every attempt, restarted with a new epoch."""

from __future__ import annotations

from kafkapy._core.client.record_accumulator import RecordAccumulator
from kafkapy.client.sequences import (
    LARGEST_EPOCH,
    NO_IDENTITY,
    PartitionSequences,
    ProducerIdentity,
    sequence_after,
)

WHO = ProducerIdentity(7, 0)


class Accumulator(RecordAccumulator):
    def _on_queue_opened(self):
        """Does nothing: this accumulator has no sender."""


def batches(*counts):
    accumulator = Accumulator(memory_limit=1 << 20, batch_size=16384, max_record_bytes=1 << 20)
    made = []
    for count in counts:
        queue = accumulator.add_topic(f"t{len(made)}", 1).queues[0]
        for _ in range(count):
            accumulator.append(queue, 1, None, b"v")
        made.append(queue.take())
    return made


def test_batches_get_consecutive_sequences():
    sequences, (first, second) = PartitionSequences(), batches(3, 2)
    for batch in (first, second):
        sequences.assign(batch, WHO, False)
    assert (first.sequence, second.sequence, sequences.next_sequence) == (0, 3, 5)
    assert (first.epoch, first.has_sequence) == (0, True)


def test_only_the_first_is_sent_again_and_new_ones_while_there_is_room():
    sequences, (first, second, third) = PartitionSequences(), batches(1, 1, 1)
    sequences.assign(first, WHO, False)
    sequences.assign(second, WHO, False)
    assert sequences.may_send(first, WHO, 2) and not sequences.may_send(second, WHO, 2)
    assert not sequences.may_send(third, WHO, 2)
    sequences.acknowledge(first)
    assert sequences.may_send(second, WHO, 2) and sequences.may_send(third, WHO, 2)


def test_the_first_goes_alone_until_the_leader_knows_the_producer():
    sequences, (first, second, third) = PartitionSequences(), batches(1, 1, 1)
    sequences.assign(first, WHO, False)
    assert not sequences.may_send(second, WHO, 5) and sequences.may_send(first, WHO, 5)
    sequences.acknowledge(first)
    sequences.assign(second, WHO, False)
    assert sequences.may_send(third, WHO, 5)
    sequences.restart(WHO.next_epoch(), False)
    assert sequences.may_send(third, WHO.next_epoch(), 5)
    other = ProducerIdentity(8, 0)
    sequences.restart(other, False)
    assert not sequences.may_send(third, other, 5)


def test_a_new_epoch_numbers_the_unfinished_from_zero():
    sequences, (first, second, third) = PartitionSequences(), batches(2, 3, 1)
    for batch in (first, second, third):
        sequences.assign(batch, WHO, False)
    sequences.finish(first)
    sequences.restart(WHO.next_epoch(), False)
    assert [(batch.sequence, batch.epoch) for batch in (second, third)] == [(0, 1), (3, 1)]
    assert sequences.next_sequence == 4


def test_a_partition_moves_to_a_new_epoch_without_unfinished_batches():
    sequences, (first, second) = PartitionSequences(), batches(2, 3)
    sequences.assign(first, WHO, False)
    assert sequences.may_send(first, WHO.next_epoch(), 5) and not sequences.may_send(second, WHO.next_epoch(), 5)
    assert (first.epoch, first.sequence) == (0, 0)
    sequences.acknowledge(first)
    assert sequences.may_send(second, WHO.next_epoch(), 5)
    sequences.assign(second, WHO.next_epoch(), False)
    assert (second.epoch, second.sequence, sequences.next_sequence) == (1, 0, 3)


def test_a_batch_whose_fate_is_unknown_holds_back_new_ones_until_a_later_batch_shows_it():
    sequences, (known, first, second, third) = PartitionSequences(), batches(1, 2, 3, 1)
    sequences.assign(known, WHO, False)
    sequences.acknowledge(known)
    sequences.assign(first, WHO, False)
    sequences.assign(second, WHO, False)
    sequences.give_up(first, is_refused=False)
    sequences.finish(first)
    sequences.resolve()
    assert sequences.is_unresolved and sequences.may_send(second, WHO, 5) and not sequences.may_send(third, WHO, 5)
    sequences.acknowledge(second)
    sequences.resolve()
    assert not sequences.is_broken and sequences.may_send(third, WHO, 5)


def test_the_last_batch_whose_fate_is_unknown_breaks_the_sequences():
    sequences, (first, second) = PartitionSequences(), batches(2, 1)
    sequences.assign(first, WHO, False)
    sequences.give_up(first, is_refused=False)
    sequences.finish(first)
    sequences.resolve()
    assert sequences.is_broken and not sequences.may_send(second, WHO, 5)


def test_a_refused_batch_breaks_the_sequences_unless_an_earlier_one_is_unfinished():
    sequences, (first, second) = PartitionSequences(), batches(2, 1)
    sequences.assign(first, WHO, False)
    sequences.assign(second, WHO, False)
    sequences.give_up(second, is_refused=True)
    assert not sequences.is_broken and sequences.is_unresolved
    sequences.give_up(first, is_refused=True)
    assert sequences.is_broken


def test_responses_in_another_order_do_not_lower_the_acknowledged_end():
    sequences, (known, first, second) = PartitionSequences(), batches(1, 2, 3)
    sequences.assign(known, WHO, False)
    sequences.acknowledge(known)
    sequences.assign(first, WHO, False)
    sequences.assign(second, WHO, False)
    sequences.acknowledge(second)
    sequences.acknowledge(first)
    assert sequences.acknowledged_end == sequences.next_sequence == 6


def test_after_the_largest_sequence_comes_zero():
    assert sequence_after(2**31 - 1, 1) == 0
    assert sequence_after(2**31 - 3, 5) == 2


def test_epochs_run_out():
    assert ProducerIdentity(1, 5).next_epoch() == (1, 6)
    assert ProducerIdentity(1, 2**15 - 2).next_epoch() is NO_IDENTITY


def test_a_producer_whose_epochs_are_used_up_has_no_identity():
    last = ProducerIdentity(7, LARGEST_EPOCH - 2).next_epoch()
    assert last == (7, LARGEST_EPOCH - 1)
    assert last.next_epoch() is NO_IDENTITY and not NO_IDENTITY.is_valid
