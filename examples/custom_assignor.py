"""Assigns partitions by an assignor of one's own: a member gets partitions according to its weight.

An assignor has a name, by which the members of a group agree on it, and a function that the leader calls with all
members and the numbers of partitions. The weight of a member is a number at the end of its client's instance id. An
assignor applies to groups with `group.protocol=classic`; with the new protocol the broker assigns.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from example_support import join, make_topic, run

from kafkapy.client import Consumer, TopicPartition
from kafkapy.client.assignors import Assignor, GroupMember

PARTITIONS = 6


def weight_of(member: GroupMember) -> int:
    """Returns the weight of a member: 3 for the instance id `strong-3`, and 1 without a number."""
    end = (member.instance_id or "").rpartition("-")[2]
    return int(end) if end.isdigit() else 1


def assign_by_weight(
    members: Mapping[str, GroupMember], counts: Mapping[str, int], racks: Any = None
) -> dict[str, list[TopicPartition]]:
    """Gives each partition to the member with the fewest partitions for its weight; the instance id breaks a tie."""
    assigned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
    for topic in sorted({topic for member in members.values() for topic in member.topics}):
        readers = [each for each in members if topic in members[each].topics]
        for number in range(counts.get(topic, 0)):
            chosen = min(
                readers,
                key=lambda each: (
                    (len(assigned[each]) + 1) / weight_of(members[each]),
                    members[each].instance_id or "",
                ),
            )
            assigned[chosen].append(TopicPartition(topic, number))
    return assigned


BY_WEIGHT = Assignor("by-weight", assign_by_weight)


class Member(threading.Thread):
    """A member of the group on a thread of its own. `partitions` are those it has; `changed` is notified of each
    assignment."""

    def __init__(self, bootstrap: str, topic: str, group: str, instance: str, changed: threading.Condition) -> None:
        super().__init__(name=instance)
        self.partitions: set[TopicPartition] = set()
        self._settings = {"bootstrap_servers": bootstrap, "group_id": group, "group_instance_id": instance}
        self._topic = topic
        self._changed = changed
        self._is_stopped = threading.Event()

    def run(self) -> None:
        with Consumer(partition_assignment_strategy=[BY_WEIGHT], **self._settings) as consumer:
            consumer.subscribe([self._topic], self)
            while not self._is_stopped.is_set():
                consumer.poll(0.1)

    def stop(self) -> None:
        """Ends the thread."""
        self._is_stopped.set()

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        with self._changed:
            self.partitions.update(partitions)
            self._changed.notify_all()

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        with self._changed:
            self.partitions.difference_update(partitions)


def main(bootstrap: str, topic: str, group: str) -> None:
    make_topic(bootstrap, topic, PARTITIONS, is_exact=True)
    changed = threading.Condition()
    members = [Member(bootstrap, topic, group, name, changed) for name in ("strong-2", "weak-1")]
    try:
        for member in members:
            member.start()
        with changed:
            changed.wait_for(lambda: [len(each.partitions) for each in members] == [4, 2])
            for member in members:
                print(f"{member.name}: {' '.join(str(each.partition) for each in sorted(member.partitions))}")
    finally:
        for member in members:
            member.stop()
        join(members)


if __name__ == "__main__":
    run(main, __doc__, topic="example-weights", group="example-weights")
