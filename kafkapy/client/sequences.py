"""What makes a producer idempotent: its id and epoch, and the sequence numbers of each partition's batches.  Pure."""

from __future__ import annotations

from typing import NamedTuple

from kafkapy._core.client.record_accumulator import PartitionQueue, ProducerBatch

NO_PRODUCER = (-1, -1)
LARGEST_EPOCH = 2**15 - 1
_SEQUENCES = 2**31


class ProducerIdentity(NamedTuple):
    """Id and epoch that the broker knows a producer by."""

    producer_id: int = -1
    epoch: int = -1

    @property
    def is_valid(self) -> bool:
        return self.producer_id >= 0

    def next_epoch(self) -> ProducerIdentity:
        """The same producer with the next epoch; without an id if there is none left."""
        return ProducerIdentity(self.producer_id, self.epoch + 1) if self.epoch < LARGEST_EPOCH - 1 else NOBODY


NOBODY = ProducerIdentity()


def sequence_after(sequence: int, count: int) -> int:
    """The sequence `count` records later: after 2^31 - 1 comes 0."""
    return (sequence + count) % _SEQUENCES


class PartitionSequences:
    """The sequences of one partition, and its batches that have one and are not done, in order.

    Invariant: batches get their sequence when they are first sent and keep it until they are done or the epoch
    changes; after a failure they are sent again in that order, each only when it is the first. Until one is
    acknowledged they go one by one: a broker that has not heard of a producer takes whatever sequence comes first, so
    behind one that it has refused (it does not lead the partition yet) another would get in.
    """

    __slots__ = ("is_known", "next_sequence", "producer_id", "unfinished")

    def __init__(self) -> None:
        self.producer_id = -1
        self.is_known = False  # `producer_id` to the partition's leader
        self.next_sequence = 0
        self.unfinished: list[ProducerBatch] = []

    def assign(self, batch: ProducerBatch, identity: ProducerIdentity, is_transactional: bool) -> None:
        """Gives a batch that is sent for the first time its sequence."""
        self.producer_id = identity.producer_id
        batch.set_producer(identity.producer_id, identity.epoch, self.next_sequence, is_transactional)
        self.next_sequence = sequence_after(self.next_sequence, batch.record_count)
        self.unfinished.append(batch)

    def may_send(self, batch: ProducerBatch, limit: int) -> bool:
        """Whether a batch at the head of its queue may leave: one that was sent before only if nothing before it is
        open, a new one if fewer than `limit` are."""
        if batch.has_sequence:
            return not self.unfinished or self.unfinished[0] is batch
        return len(self.unfinished) < (limit if self.is_known else 1)

    def acknowledge(self, batch: ProducerBatch) -> None:
        """The partition's leader has a batch."""
        self.is_known = True
        self.finish(batch)

    def is_first(self, batch: ProducerBatch) -> bool:
        return bool(self.unfinished) and self.unfinished[0] is batch

    def finish(self, batch: ProducerBatch) -> None:
        """A batch is done, whatever has become of it."""
        if batch in self.unfinished:
            self.unfinished.remove(batch)

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """A batch is sent in parts, which have its sequences."""
        if batch in self.unfinished:
            at = self.unfinished.index(batch)
            self.unfinished[at : at + 1] = parts

    def restart(self, identity: ProducerIdentity, is_transactional: bool) -> None:
        """A new epoch: sequences begin at 0, those of the unfinished batches too, in the same order."""
        self.is_known = self.is_known and identity.producer_id == self.producer_id
        self.producer_id = identity.producer_id
        self.next_sequence = 0
        unfinished, self.unfinished = self.unfinished, []
        for batch in unfinished:
            self.assign(batch, identity, is_transactional)


def sequences_of(queue: PartitionQueue) -> PartitionSequences:
    """The sequences of a queue's partition, which it holds."""
    found = queue.state
    if found is None:
        found = queue.state = PartitionSequences()
    assert isinstance(found, PartitionSequences)
    return found
