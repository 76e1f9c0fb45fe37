"""A share group's state (KIP-932): members, epochs, target assignment, initialized partitions. This module uses no
clock and no log.

Members of a share group share partitions, so a member gets its whole target at once. Only partitions whose state the
share coordinator has initialized are assigned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kafkapy.coordinator.group.assignment import Assignment
from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.group.member_group import MemberGroup
from kafkapy.coordinator.group.offset_requests import CommitCall
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple

# The types of a share group's records.
SHARE_KEYS = frozenset((10, 11, 12, 13, 14, 15))


class ShareMember(NamedTuple):
    """A member of a share group. The object does not change after its construction. `subscribed_topic_names` are
    sorted.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = 0
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    assigned: Assignment = {}

    @property
    def subscription(self) -> tuple[object, ...]:
        """The tuple of the member's fields that its subscription record contains, for the comparison of two states of a
        member."""
        return self.rack_id, self.client_id, self.client_host, self.subscribed_topic_names


class TopicPartitions(NamedTuple):
    """Partitions of a topic. `timestamp_ms` is the time at which the initialization of their share states began
    (milliseconds since 1970)."""

    topic: str
    partitions: frozenset[int]
    timestamp_ms: int = 0


class StatePartitions(NamedTuple):
    """The partitions of a share group whose states are being initialized or exist, and the names of the topics whose
    states are being deleted, all by topic id. The object does not change after its construction.
    """

    initializing: Mapping[bytes, TopicPartitions] = {}
    initialized: Mapping[bytes, TopicPartitions] = {}
    deleting: Mapping[bytes, str] = {}

    @property
    def assignable(self) -> dict[bytes, frozenset[int]]:
        """The partitions that may be assigned to members, by topic id. These are the partitions whose states are
        initialized.
        """
        return {topic_id: topic.partitions for topic_id, topic in self.initialized.items()}


class ShareGroup(MemberGroup[ShareMember]):
    """A share group with its members. It changes only when records are replayed. Only the thread that owns it may use
    it."""

    group_type = protocol_type = "share"
    is_replaceable = False
    is_unused = False  # share groups do not expire

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.target: dict[str, Assignment] = {}
        self.states = StatePartitions()
        self.topic_subscribers: Counter[str] = Counter()

    # -- changes, by replay

    def put(self, member: ShareMember) -> None:
        self._remove_subscriber(self.members.get(member.member_id))
        self.members[member.member_id] = member
        self.topic_subscribers.update(member.subscribed_topic_names)

    def remove(self, member_id: str) -> None:
        self._remove_subscriber(self.members.pop(member_id, None))

    def _remove_subscriber(self, member: ShareMember | None) -> None:
        for topic in () if member is None else member.subscribed_topic_names:
            self.topic_subscribers[topic] -= 1
            if not self.topic_subscribers[topic]:
                del self.topic_subscribers[topic]

    # -- queries

    def subscribed_topics(self, changed: ShareMember | None = None, without: str | None = None) -> set[str]:
        """Returns the topics that the members of the group subscribe to.

        If `changed` is given, it counts instead of the member with the same id, or as a new member if there is none.
        Otherwise the member with the id `without`, if it is given, does not count.
        """
        gone = without if changed is None else changed.member_id
        topics: set[str] = set() if changed is None else set(changed.subscribed_topic_names)
        old = self.members.get(gone or "")
        lost = frozenset() if old is None else frozenset(old.subscribed_topic_names)
        return topics | {each for each, count in self.topic_subscribers.items() if count > (each in lost)}

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.topic_subscribers

    @property
    def state_name(self) -> str:
        """The state in ShareGroupDescribe and ListGroups. Any thread may read it."""
        return "Stable" if self.members else "Empty"

    def has_unassigned_partitions(self) -> bool:
        """Returns True if an initialized partition of a topic that members subscribe to is assigned to no member."""
        assigned: dict[bytes, set[int]] = {}
        for target in self.target.values() if self.members else ():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return bool(self.members) and any(
            topic.topic in self.topic_subscribers and assigned.get(topic_id, set()) != topic.partitions
            for topic_id, topic in self.states.initialized.items()
        )

    # -- validation

    def validate_commit(self, call: CommitCall) -> Sequence[Error]:
        raise ApiError(Error.GROUP_ID_NOT_FOUND)

    def validate_transactional_commit(self, call: CommitCall) -> Sequence[Error]:
        raise ApiError(Error.GROUP_ID_NOT_FOUND)

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        raise ApiError(Error.GROUP_ID_NOT_FOUND)

    def validate_offset_deletion(self) -> None:
        raise ApiError(Error.GROUP_ID_NOT_FOUND)

    def retention_start_ms(self, topic: str, committed: CommittedOffset) -> int | None:
        return committed.commit_timestamp_ms


def with_partitions(
    topics: Mapping[bytes, TopicPartitions], added: Mapping[bytes, TopicPartitions]
) -> dict[bytes, TopicPartitions]:
    """Returns the partitions that are in `topics` or `added`, by topic id. A topic in both has the name and time of
    `added`."""
    union = dict(topics)
    for topic_id, topic in added.items():
        known = union.get(topic_id)
        union[topic_id] = topic if known is None else topic._replace(partitions=known.partitions | topic.partitions)
    return union


def without_partitions(
    topics: Mapping[bytes, TopicPartitions], removed: Mapping[bytes, Iterable[int]]
) -> dict[bytes, TopicPartitions]:
    """Returns the partitions of `topics` that are not in `removed`, by topic id; a topic without such a partition is
    left out."""
    left = {}
    for topic_id, topic in topics.items():
        kept = topic.partitions.difference(removed.get(topic_id, ()))
        if kept:
            left[topic_id] = topic._replace(partitions=kept)
    return left
