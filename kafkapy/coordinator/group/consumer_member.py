"""One member of a consumer group (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.coordinator.group.member_state import MemberState
from kafkapy.named_tuple import NamedTuple

# topic id -> partition -> the assignment epoch in which the member got it
OwnedPartitions = Mapping[bytes, Mapping[int, int]]

LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2


class ClassicMetadata(NamedTuple):
    """The metadata of a member that uses the classic protocol.

    The protocols are pairs (name, metadata), the preferred protocol first.
    """

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class ConsumerMember(NamedTuple):
    """A member of a consumer group. The object does not change after its construction.

    The member may consume `assigned`; it may still consume `pending_revocation`, but has to revoke it.
    `subscribed_topic_names` are sorted. `subscribed_topic_regex` is empty if the member uses no expression. `classic`
    is None for members of the consumer protocol. The epoch of a static member that has left temporarily is -2.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str = ""
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None
    assigned: OwnedPartitions = {}
    pending_revocation: OwnedPartitions = {}

    @property
    def subscription(self) -> tuple[object, ...]:
        """The tuple of the member's fields that its subscription record contains, for the comparison of two states of a
        member."""
        return (
            self.instance_id,
            self.rack_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.subscribed_topic_names,
            self.subscribed_topic_regex,
            self.server_assignor,
            self.classic,
        )

    @property
    def current_assignment(self) -> tuple[object, ...]:
        """The tuple of the member's fields that its current-assignment record contains (epochs, state and partitions),
        for the comparison of two states of a member."""
        return (self.member_epoch, self.previous_member_epoch, self.state, self.assigned, self.pending_revocation)

    def owns(self, topic_id: bytes, partition: int) -> bool:
        return partition in self.assigned.get(topic_id, ()) or partition in self.pending_revocation.get(topic_id, ())

    def adopt_epoch(self, epoch: int, state: MemberState) -> ConsumerMember:
        return self._replace(member_epoch=epoch, previous_member_epoch=self.member_epoch, state=state)


def partitions_of(owned: OwnedPartitions) -> dict[bytes, frozenset[int]]:
    return {topic_id: frozenset(partitions) for topic_id, partitions in owned.items() if partitions}
