"""The racks of a group's members and of partitions' replicas, as rack-aware assignors use them (KIP-881). This module
has no state and does no I/O.

Racks have an effect only under two conditions: at least one member is in a rack that has replicas, and at least one
partition does not have a replica in each of the racks that have replicas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kafkapy.types import TopicPartition

# Topic -> the racks of the replicas of each partition; the racks of a topic that is missing are not known.
PartitionRacks = Mapping[str, Sequence[frozenset[str]]]
NO_RACKS: PartitionRacks = {}
_NOWHERE: frozenset[str] = frozenset()


def racks_of(racks: PartitionRacks, topic: str, partition: int) -> frozenset[str]:
    """Returns the racks of a partition's replicas; the set is empty if they are not known."""
    known = racks.get(topic, ())
    return known[partition] if partition < len(known) else _NOWHERE


def are_racks_useful(member_racks: Iterable[str], partition_racks: Sequence[frozenset[str]]) -> bool:
    """Returns whether an assignment that considers racks can differ from one that does not.

    `member_racks` are the racks of the members, and `partition_racks` has the set of the racks of each partition's
    replicas.
    """
    every_rack = frozenset().union(*partition_racks)
    return not every_rack.isdisjoint(member_racks) and any(each != every_rack for each in partition_racks)


class RackMatching:
    """The members' racks, compared with the racks of the partitions that the members may get. The object does not
    change after its construction.
    """

    def __init__(
        self, member_racks: Mapping[str, str | None], racks: PartitionRacks, counts: Mapping[str, int]
    ) -> None:
        """Compares the racks of members and partitions, and stores the result.

        `member_racks` has the rack of each member, None if it has none; `racks` has the racks of the replicas of each
        topic's partitions, and `counts` the number of each topic's partitions.
        """
        self._member_racks = {member_id: rack for member_id, rack in member_racks.items() if rack}
        self._racks = racks
        self._readers = Counter(self._member_racks.values())
        every_partition = [racks_of(racks, topic, number) for topic in counts for number in range(counts[topic])]
        self.is_used = are_racks_useful(self._member_racks.values(), every_partition)

    def is_mismatch(self, member_id: str, partition: TopicPartition) -> bool:
        """Returns True if the member has a rack and the partition has no replica in it.

        Always returns False if racks cannot change the assignment (`are_racks_useful`).
        """
        rack = self._member_racks.get(member_id)
        return self.is_used and rack is not None and rack not in racks_of(self._racks, *partition)

    def is_near(self, member_id: str, partition: TopicPartition) -> bool:
        """Returns whether the member is in a rack with a replica of the partition."""
        return self._member_racks.get(member_id) in racks_of(self._racks, *partition)

    def fewest_readers_first(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Returns the partitions in the order in which to assign them within racks: partitions with few suitable
        members first.

        The suitable members of a partition are those in the racks of its replicas.
        """
        return sorted(partitions, key=lambda each: sum(self._readers[rack] for rack in racks_of(self._racks, *each)))
