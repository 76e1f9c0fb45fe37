"""Counts the elections of partition leaders that committed metadata contain."""

from __future__ import annotations

from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.topics_image import NO_LEADER, RECOVERING


class ElectionCounts:
    """The numbers of leader elections since the start of this node.

    The thread that applies committed metadata writes the numbers; any thread may read them. `unclean` is the number of
    unclean elections, `from_eligible` the number of elections of an eligible leader replica (KIP-966). If one delta
    (the changes between two images of the metadata) changes a partition several times, only the last leader is counted.
    """

    __slots__ = ("from_eligible", "unclean")

    def __init__(self) -> None:
        self.unclean = 0
        self.from_eligible = 0

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Adds the elections in `delta`, the changes of the metadata since the previous call, to the counts."""
        for topic in delta.changed_partitions:
            before = delta.image.topics.by_id.get(topic.topic_id)
            if before is None:
                continue
            for number, state in topic.partitions.items():
                old = before.partitions.get(number)
                if old is None or state.leader in (old.leader, NO_LEADER) or state.leader in old.isr:
                    continue
                if state.leader_recovery_state == RECOVERING:
                    self.unclean += 1
                elif state.leader in old.elr:
                    self.from_eligible += 1
