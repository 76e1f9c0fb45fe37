"""Idempotent producing: the producer's id and epoch, and the sequence numbers of each partition's batches. This module
does no I/O.
"""

from __future__ import annotations

from kafkapy._core.client.record_accumulator import PartitionQueue, ProducerBatch
from kafkapy.named_tuple import NamedTuple

LARGEST_EPOCH = 2**15 - 1
_SEQUENCES = 2**31


class ProducerIdentity(NamedTuple):
    """The id and epoch by which brokers identify a producer; both are -1 if it has none."""

    producer_id: int = -1
    epoch: int = -1

    @property
    def is_valid(self) -> bool:
        """Returns whether an id was assigned."""
        return self.producer_id >= 0

    def next_epoch(self) -> ProducerIdentity:
        """Returns the identity with the same producer id and the next epoch; NO_IDENTITY if no epoch is left."""
        return ProducerIdentity(self.producer_id, self.epoch + 1) if self.epoch < LARGEST_EPOCH - 1 else NO_IDENTITY


NO_IDENTITY = ProducerIdentity()


def sequence_after(sequence: int, count: int) -> int:
    """Returns the sequence number that is `count` records after `sequence`. After 2147483647 it starts again at 0."""
    return (sequence + count) % _SEQUENCES


class PartitionSequences:
    """The next sequence of one partition, and its unfinished batches that have a sequence, in order.

    Invariant: a batch gets its identity and sequence when it is first sent and keeps them until it is finished, so that
    a broker that has written the batch recognizes it when it is sent again. There is one exception: the leader has
    refused the sequences (`is_broken`), so that it has written none of the unfinished batches. A partition moves to a
    new epoch of the producer when it has no unfinished batches (compare TransactionManager in Java).

    After a failure the batches are sent again in the order of their sequences, each one when it is the first unfinished
    batch. Until the first batch is acknowledged, batches are sent one at a time: a broker accepts any first sequence of
    a producer that it does not know, so a later batch could be written although the preceding batch was refused (by a
    broker that was not the leader yet).
    """

    __slots__ = (
        "acknowledged_end",
        "identity",
        "is_broken",
        "is_known",
        "is_unresolved",
        "next_sequence",
        "unfinished",
    )

    def __init__(self) -> None:
        self.identity = NO_IDENTITY  # of the partition's batches; the producer's may be newer
        self.is_known = False  # whether the partition's leader knows the producer id
        self.is_unresolved = False  # whether a batch was given up that the leader may have written
        self.is_broken = False  # whether the sequences have to start at 0 with another epoch
        self.next_sequence = 0
        self.acknowledged_end = 0  # the sequence after the last one that was acknowledged
        self.unfinished: list[ProducerBatch] = []

    def assign(self, batch: ProducerBatch, identity: ProducerIdentity, is_transactional: bool) -> None:
        """Assigns the next sequence to a batch that is sent for the first time, and writes the identity into the batch.

        With an identity that is new to the partition, the sequences start at 0. `is_transactional` marks the batch as
        part of a transaction.
        """
        if identity != self.identity:
            self.restart(identity, is_transactional)
        batch.set_producer(identity.producer_id, identity.epoch, self.next_sequence, is_transactional)
        self.next_sequence = sequence_after(self.next_sequence, batch.record_count)
        self.unfinished.append(batch)

    def may_send(self, batch: ProducerBatch, identity: ProducerIdentity, limit: int) -> bool:
        """Returns whether the first batch of the queue may be sent by a producer with this identity.

        A batch that was sent before may be sent if it is the first unfinished batch. A batch that was never sent may be
        sent if fewer than `limit` batches are unfinished, these have the same identity, and the outcome of all earlier
        batches is known. Until the leader has acknowledged a batch, the limit is 1.
        """
        if self.is_broken:
            return False
        if batch.has_sequence:
            return not self.unfinished or self.unfinished[0] is batch
        if self.is_unresolved or (self.unfinished and self.identity != identity):
            return False
        return len(self.unfinished) < (limit if self.is_known else 1)

    def acknowledge(self, batch: ProducerBatch) -> None:
        """Finishes a batch that the partition's leader has written."""
        self.is_known = True
        end = sequence_after(batch.sequence, batch.record_count)
        if 0 < (end - self.acknowledged_end) % _SEQUENCES < _SEQUENCES // 2:  # responses may arrive in another order
            self.acknowledged_end = end
        self.finish(batch)

    def give_up(self, batch: ProducerBatch, *, is_refused: bool) -> None:
        """Records that an unfinished batch has failed; `is_refused` says that the leader has certainly not written it.

        If the batch is the first unfinished one and was refused, the leader refuses all later batches too, and the
        sequences are broken. Otherwise it is not known whether the leader has written the batch; `resolve` decides this
        later.
        """
        if is_refused and self.is_first(batch):
            self.is_broken = True
        else:
            self.is_unresolved = True

    def resolve(self) -> None:
        """Decides whether the sequences must start again after a batch was given up. Does nothing while a batch is
        unfinished.

        If the leader has acknowledged the last batch that was sent, it has written the batches before it too, and the
        sequences go on. Otherwise the leader may lack a sequence, and they must start again at 0.
        """
        if self.is_unresolved and not self.unfinished:
            self.is_unresolved = False
            self.is_broken = self.is_broken or self.acknowledged_end != self.next_sequence

    def is_first(self, batch: ProducerBatch) -> bool:
        """Returns whether a batch is the first unfinished one."""
        return bool(self.unfinished) and self.unfinished[0] is batch

    def finish(self, batch: ProducerBatch) -> None:
        """Removes a batch that was written or has failed."""
        if batch in self.unfinished:
            self.unfinished.remove(batch)

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Replaces an unfinished batch by `parts`, into which it was split; each record keeps its sequence."""
        if batch in self.unfinished:
            index = self.unfinished.index(batch)
            self.unfinished[index : index + 1] = parts

    def restart(self, identity: ProducerIdentity, is_transactional: bool) -> None:
        """Starts again at sequence 0 for a new epoch; the unfinished batches get new sequences in the same order."""
        self.is_known = self.is_known and identity.producer_id == self.identity.producer_id
        self.identity = identity
        self.is_unresolved = self.is_broken = False
        self.next_sequence = self.acknowledged_end = 0
        unfinished, self.unfinished = self.unfinished, []
        for batch in unfinished:
            self.assign(batch, identity, is_transactional)


def sequences_of(queue: PartitionQueue) -> PartitionSequences:
    """Returns the sequences of a queue's partition, which are stored in the queue."""
    found = queue.state
    if found is None:
        found = queue.state = PartitionSequences()
    assert isinstance(found, PartitionSequences)
    return found
