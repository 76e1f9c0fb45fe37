"""A consumer group's state (KIP-848): members, epochs, target assignment, owners. This module uses no clock and no log.

The group epoch counts the changes of members, subscriptions and topics. The assignment epoch is the group epoch for
which the target assignment was computed.

assigning      the assignment epoch is behind the group epoch, so that the target has to be computed again
reconciling    a member is behind the assignment epoch, has to revoke partitions, or waits for others to release them
stable         every member has its target
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kafkapy.coordinator.group.assignment import Assignment
from kafkapy.coordinator.group.consumer_member import ConsumerMember
from kafkapy.coordinator.group.member_group import CommittingGroup
from kafkapy.coordinator.group.offset_requests import CommitCall, OffsetToCommit
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple

# The types of a consumer group's records.
CONSUMER_KEYS = frozenset((3, 4, 5, 6, 7, 8, 16))


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched.

    `version` is the offset of the metadata that were searched, and `timestamp_ms` the time of the search in ms since
    1970.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class ConsumerGroup(CommittingGroup[ConsumerMember]):
    """A group of the consumer protocol, with its members. It changes only when records are replayed. Only the thread
    that owns it may use it.

    Invariants: `static_members` maps each member's instance id to its member id; `owners` has, for each partition, the
    only member that may consume it; `topic_subscribers` counts the members that subscribe to each topic, by name or by
    a resolved regular expression.

    `resolving` holds the regular expressions that are being evaluated on another thread. `regexes_topics` are the
    topics of the cluster for which expressions were last evaluated, and `regexes_checked_ms` is the monotonic time at
    which this evaluation began.
    """

    group_type = protocol_type = "consumer"

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.static_members: dict[str, str] = {}
        self.target: dict[str, Assignment] = {}
        self.owners: dict[tuple[bytes, int], str] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        self.topic_subscribers: Counter[str] = Counter()
        self.resolving: frozenset[str] = frozenset()
        self.regexes_checked_ms = 0
        self.regexes_topics: object = None

    # -- changes, by replay

    def put(self, member: ConsumerMember) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            self._forget(old)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.topic_subscribers.update(self.topics_of(member))
        for owned in (member.assigned, member.pending_revocation):
            for topic_id, partitions in owned.items():
                for partition in partitions:
                    self.owners[topic_id, partition] = member.member_id

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._forget(member)

    def _forget(self, member: ConsumerMember) -> None:
        self._remove_subscribers(self.topics_of(member))
        if self.static_members.get(member.instance_id or "") == member.member_id:
            del self.static_members[member.instance_id or ""]
        for owned in (member.assigned, member.pending_revocation):
            for topic_id, partitions in owned.items():
                for partition in partitions:
                    if self.owners.get((topic_id, partition)) == member.member_id:
                        del self.owners[topic_id, partition]

    def put_regex(self, pattern: str, resolved: ResolvedRegex | None) -> None:
        """Sets the topics that the expression matches; None removes the expression."""
        subscribers = [member for member in self.members.values() if member.subscribed_topic_regex == pattern]
        for member in subscribers:
            self._remove_subscribers(self.topics_of(member))
        if resolved is None:
            self.regexes.pop(pattern, None)
        else:
            self.regexes[pattern] = resolved
        for member in subscribers:
            self.topic_subscribers.update(self.topics_of(member))

    def _remove_subscribers(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self.topic_subscribers[topic] -= 1
            if not self.topic_subscribers[topic]:
                del self.topic_subscribers[topic]

    # -- queries

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """Returns the topics that the member subscribes to by name or by expression, even if they do not exist."""
        names = frozenset(member.subscribed_topic_names)
        resolved = self.regexes.get(member.subscribed_topic_regex)
        return names if resolved is None else names | resolved.topics

    def subscribed_topics(self, changed: ConsumerMember | None = None, without: Iterable[str] = ()) -> set[str]:
        """Returns the topics that the group would subscribe to if `changed` replaced the member with the same id, and
        the members with the ids in `without` left."""
        topics = set(self.topic_subscribers)
        gone = [self.members[member_id] for member_id in without if member_id in self.members]
        if changed is not None:
            topics |= self.topics_of(changed)
            gone += [self.members[changed.member_id]] if changed.member_id in self.members else []
        lost = Counter(topic for member in gone for topic in self.topics_of(member))
        kept = frozenset() if changed is None else self.topics_of(changed)
        return topics - {t for t, count in lost.items() if count >= self.topic_subscribers[t] and t not in kept}

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.topic_subscribers

    def preferred_assignor(self, assignors: Sequence[str], changed: ConsumerMember | None = None) -> str:
        """Returns the assignor that most members request, out of `assignors`.

        The first one wins if several are requested equally often, or none is requested. `changed` is counted instead of
        the present state of the member with the same id.
        """
        members = dict(self.members)
        if changed is not None:
            members[changed.member_id] = changed
        votes = Counter(member.server_assignor for member in members.values() if member.server_assignor is not None)
        return max(assignors, key=votes.__getitem__)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Returns whether a partition of the member's target still belongs to another member."""
        for topic_id, partitions in self.target.get(member.member_id, {}).items():
            for partition in partitions:
                owner = self.owners.get((topic_id, partition))
                if owner is not None and owner != member.member_id:
                    return True
        return False

    # -- validation

    def static_member(self, instance_id: str, member_id: str) -> ConsumerMember:
        """Returns the member with this instance id.

        Raises ApiError: UNKNOWN_MEMBER_ID if no member has the instance id, and FENCED_INSTANCE_ID if the member that
        has it has another member id.
        """
        current = self.static_members.get(instance_id)
        if current is None:
            raise ApiError(Error.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if current != member_id:
            message = f"Static member {member_id} with instance id {instance_id} was fenced by member {current}."
            raise ApiError(Error.FENCED_INSTANCE_ID, message)
        return self.members[current]

    # -- commits

    def may_commit_as_classic(self, member: ConsumerMember) -> bool:
        return member.classic is not None

    def commit_errors(self, member: ConsumerMember, call: CommitCall) -> Sequence[Error]:
        if member.classic is not None and call.generation_id != member.member_epoch:
            raise ApiError(Error.ILLEGAL_GENERATION)
        return super().commit_errors(member, call)

    def assignment_epoch_of(self, member: ConsumerMember, entry: OffsetToCommit) -> int | None:
        for owned in (member.assigned, member.pending_revocation):
            since = owned.get(entry.topic_id, {}).get(entry.partition)
            if since is not None:
                return since
        return None
