"""A share session (KIP-932): the partitions that a share consumer fetches from one broker. This module does no I/O."""

from __future__ import annotations

from collections.abc import Collection

from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition

NEW_EPOCH, FINAL_EPOCH = 0, -1
_LARGEST_EPOCH = 2**31 - 1


class SharePartition(NamedTuple):
    """A partition with the id of its topic, which the requests of share sessions contain."""

    topic_id: bytes
    topic_partition: TopicPartition


class ShareSession:
    """A share consumer's session at one broker.

    `epoch` is that of the next request; NEW_EPOCH makes the broker open the session. Invariant: `partitions` are those
    that the session has after the requests so far.
    """

    def __init__(self) -> None:
        self.epoch = NEW_EPOCH
        self.partitions: set[SharePartition] = set()

    @property
    def is_open(self) -> bool:
        """Returns whether the broker has the session, so that it accepts acknowledgements."""
        return self.epoch != NEW_EPOCH

    def plan(self, wanted: Collection[SharePartition]) -> tuple[list[SharePartition], list[SharePartition]]:
        """Sets the partitions of the session to `wanted`. Returns the list of partitions that the next request must add
        to the session, and the list of those that it must remove.
        """
        if not self.is_open:
            self.partitions.clear()
        added = [each for each in wanted if each not in self.partitions]
        forgotten = sorted(self.partitions.difference(wanted))
        self.partitions = set(wanted)
        return added, forgotten

    def confirm(self) -> None:
        """Advances the epoch after a response, because the broker has counted the request."""
        self.epoch = 1 if self.epoch == _LARGEST_EPOCH else self.epoch + 1

    def lose(self) -> None:
        """Forgets the session; the next fetch opens a new one."""
        self.epoch = NEW_EPOCH
        self.partitions.clear()
