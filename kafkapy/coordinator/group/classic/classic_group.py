"""A classic group's state: its members, generation and protocol. This module uses no clock, no log and no timers.

+-------+  first join   +---------------------+  all joined   +----------------------+
| Empty | ------------> | PreparingRebalance  | ------------> | CompletingRebalance  |
+-------+ <------------ +---------------------+ <------------ +----------------------+
            none left      ^ join, leave,         join, leave       | leader's sync
                           | expiry                                 v
                           +---------------------------------- +--------+
                                                               | Stable |       any -> Dead
                                                               +--------+
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum

from kafkapy.coordinator.group.classic.classic_member import ClassicMember, MemberTally
from kafkapy.coordinator.group.classic.subscription import subscribed_topics
from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.group.offset_requests import CommitCall
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.describe_groups import DescribeGroupsResponse

CONSUMER_PROTOCOL_TYPE = "consumer"


class GroupState(Enum):
    """The states of a classic group; the values are the names in ListGroups and DescribeGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


# The states from which each state may be entered.
VALID_PREVIOUS_STATES: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}
REBALANCEABLE_STATES = VALID_PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]


class ClassicGroup:
    """A group of the classic protocol, with its members. Only the thread that owns it may use it.

    Invariants: `leader_id` is the id of a member unless the group has no members; `pending_members` (ids that clients
    have received, but have not joined with) and `members` are disjoint, and only `add` and `remove` add and remove
    members, because they maintain the counts; `static_members` maps each member's instance id to its member id;
    `protocol_name` is None in Empty; in CompletingRebalance and Stable every member supports that protocol.
    """

    group_type = "classic"
    # A member of the classic protocol joins the group itself.
    is_replaceable = False

    def __init__(self, group_id: str, wall_ms: int, state: GroupState = GroupState.EMPTY) -> None:
        self.group_id = group_id
        self.state = state
        self.previous_state = state
        self.state_timestamp_ms = wall_ms
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self._tally = MemberTally()
        self.static_members: dict[str, str] = {}
        self.pending_members: set[str] = set()
        self.pending_sync_members: set[str] = set()
        self.new_member_added = False
        self.subscribed_topics: frozenset[str] | None = None

    # -- transitions

    def transition_to(self, state: GroupState, wall_ms: int) -> None:
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise AssertionError(f"group {self.group_id} cannot go from {self.state.value} to {state.value}")
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = wall_ms

    def init_next_generation(self, wall_ms: int) -> None:
        """Ends the join phase of a rebalance: increases the generation, and enters CompletingRebalance, or Empty if the
        group has no members. `wall_ms` is the time of the change of state, in milliseconds since 1970."""
        self.generation_id += 1
        self.pending_sync_members.clear()
        if self.members:
            self.protocol_name = self.select_protocol()
            self.transition_to(GroupState.COMPLETING_REBALANCE, wall_ms)
        else:
            self.protocol_name = None
            self.transition_to(GroupState.EMPTY, wall_ms)
        self.compute_subscribed_topics()
        self._check_generation()

    def _check_generation(self) -> None:
        """Asserts that no pending id is a member, that the leader is a member, and that every member supports the
        protocol."""
        assert self.pending_members.isdisjoint(self.members), f"group {self.group_id}: a pending member has joined"
        if self.members:
            assert self.leader_id in self.members, f"group {self.group_id}: the leader {self.leader_id} is not a member"
            supporters = self._tally.supporters[self.protocol_name or ""]
            assert supporters == len(self.members), (
                f"group {self.group_id}: a member does not support {self.protocol_name}"
            )

    def is_in(self, *states: GroupState) -> bool:
        return self.state in states

    # -- members

    def add(self, member: ClassicMember) -> None:
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        if member.member_id in self.members:
            self.members[member.member_id].leave_tally()
        self.members[member.member_id] = member
        member.enter_tally(self._tally)
        self.pending_members.discard(member.member_id)
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id

    def remove(self, member_id: str) -> ClassicMember | None:
        """Removes a member or a pending id. Returns the removed member, or None if no member has this id.

        When the leader is removed, the member that joined first becomes the leader.
        """
        self.pending_members.discard(member_id)
        self.pending_sync_members.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is not None:
            member.leave_tally()
        if member is not None and self.static_members.get(member.group_instance_id or "") == member_id:
            del self.static_members[member.group_instance_id or ""]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        return member

    def replace_static_member(self, group_instance_id: str, old_member_id: str, new_member_id: str) -> ClassicMember:
        """Changes the member id of a static member from `old_member_id` to `new_member_id`, and returns the member.

        The caller has to respond with FENCED_INSTANCE_ID to requests that wait under the old id.
        """
        member = self.members.pop(old_member_id)
        self.pending_sync_members.discard(old_member_id)
        member.member_id = new_member_id
        self.members[new_member_id] = member
        self.static_members[group_instance_id] = new_member_id
        if self.leader_id == old_member_id:
            self.leader_id = new_member_id
        return member

    def elect_joined_leader(self) -> bool:
        """Chooses a new leader among the members that have joined the next generation. If the present leader has joined
        it, the leader stays. Returns False if no member has joined the next generation."""
        leader = self.members.get(self.leader_id or "")
        if leader is not None and leader.join_responder is not None:
            return True
        joined = next((member for member in self.members.values() if member.join_responder is not None), None)
        if joined is None:
            return False
        self.leader_id = joined.member_id
        return True

    def validate_member(self, member_id: str, group_instance_id: str | None) -> ClassicMember:
        """Returns the member with this id.

        `group_instance_id` is the instance id in the request, or None for a dynamic member. Raises ApiError:
        UNKNOWN_MEMBER_ID if no member has the member id or no member has the instance id, and FENCED_INSTANCE_ID if the
        member with the instance id has another member id.
        """
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                raise ApiError(Error.UNKNOWN_MEMBER_ID)
            if current != member_id:
                raise ApiError(Error.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(Error.UNKNOWN_MEMBER_ID)
        return member

    @property
    def joined_count(self) -> int:
        return self._tally.waiting

    @property
    def has_all_members_joined(self) -> bool:
        return not self.pending_members and self.joined_count == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # -- protocols

    def candidate_protocols(self) -> set[str]:
        """Returns the protocols that every member supports."""
        return {name for name, count in self._tally.supporters.items() if count == len(self.members)}

    def supports(self, protocol_type: str, protocols: list[tuple[str, bytes]]) -> bool:
        """Returns True if a member with this protocol type and these protocols may join.

        `protocols` are pairs (name, metadata). At least one of them must be supported by every present member.
        """
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        # If the group has only pending ids and no members, both counts are 0 and every protocol is accepted.
        supporters, everyone = self._tally.supporters, len(self.members)
        has_common_protocol = any(supporters[name] == everyone for name, _ in protocols)
        return self.protocol_type == protocol_type and has_common_protocol

    def select_protocol(self) -> str:
        """Returns the protocol with the most votes.

        Each member votes for the first of its protocols that all members support. Of protocols with equal votes, the
        protocol that got the first vote wins.
        """
        candidates = self.candidate_protocols()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes, key=votes.__getitem__)

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def compute_subscribed_topics(self) -> None:
        """Sets `subscribed_topics` to the topics that the members subscribe to, or to None if they are unknown.

        The topics are unknown if the protocol type of the group is not `consumer`, if no protocol is selected yet, or
        if the metadata of a member cannot be read.
        """
        if not self.uses_consumer_protocol:
            self.subscribed_topics = None
        elif not self.members:
            self.subscribed_topics = frozenset()
        elif self.protocol_name is None:
            self.subscribed_topics = None
        else:
            self.subscribed_topics = subscribed_topics(
                member.metadata(self.protocol_name) for member in self.members.values()
            )

    def is_subscribed_to(self, topic: str) -> bool:
        """Returns whether a member subscribes to the topic, or may subscribe to it because its metadata cannot be
        read."""
        if self.state is GroupState.EMPTY:
            return False
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    # -- listings

    @property
    def state_name(self) -> str:
        return self.state.value

    def describe_classic(self) -> DescribeGroupsResponse.DescribedGroup:
        """Returns the group with its members for DescribeGroups; the metadata of members is included only in a stable
        group."""
        is_stable = self.state is GroupState.STABLE
        members = [
            DescribeGroupsResponse.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(self.protocol_name) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in self.members.values()
        ]
        return DescribeGroupsResponse.DescribedGroup(
            group_id=self.group_id,
            group_state=self.state.value,
            protocol_type=self.protocol_type or "",
            protocol_data=(self.protocol_name or "") if is_stable else "",
            members=members,
        )

    # -- offsets

    def validate_commit(self, call: CommitCall) -> Sequence[Error]:
        if self.state is GroupState.DEAD:
            raise ApiError(Error.COORDINATOR_NOT_AVAILABLE)
        if call.generation_id < 0 and self.state is GroupState.EMPTY:
            return ()
        if not call.names_member:
            raise ApiError(Error.UNKNOWN_MEMBER_ID)
        self._validate_generation(call)
        if self.state is GroupState.COMPLETING_REBALANCE:
            raise ApiError(Error.REBALANCE_IN_PROGRESS)
        return ()

    def validate_transactional_commit(self, call: CommitCall) -> Sequence[Error]:
        """Raises ApiError if the whole TxnOffsetCommit must be refused. Otherwise returns (), which means that all
        offsets of the request may be committed.

        The member is validated only if the request names a member. Clients from before KIP-447 name no member, and are
        fenced by their transactional id alone.
        """
        if self.state is GroupState.DEAD:
            raise ApiError(Error.COORDINATOR_NOT_AVAILABLE)
        if call.names_member and not (call.generation_id < 0 and self.state is GroupState.EMPTY):
            self._validate_generation(call)
        return ()

    def _validate_generation(self, call: CommitCall) -> None:
        self.validate_member(call.member_id, call.group_instance_id)
        if call.generation_id != self.generation_id:
            raise ApiError(Error.ILLEGAL_GENERATION)

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raises nothing: OffsetFetch does not validate members of the classic protocol."""

    def validate_offset_deletion(self) -> None:
        if self.state is not GroupState.EMPTY and not self.uses_consumer_protocol:
            raise ApiError(Error.NON_EMPTY_GROUP)

    def retention_start_ms(self, topic: str, committed: CommittedOffset) -> int | None:
        """Returns the wall-clock time (ms) from which the offset's retention counts, or None if it does not expire.

        The retention counts from the departure of the last member if the group has had members and is empty now, and
        from the commit of the offset otherwise. While the group has members, an offset does not expire if a member
        subscribes to the topic, if the subscriptions are unknown, or during a rebalance, which may change them.
        """
        if self.protocol_type is None:
            return committed.commit_timestamp_ms  # A simple consumer has no group management.
        if self.state is GroupState.EMPTY:
            return self.state_timestamp_ms
        if self.state is not GroupState.STABLE or self.subscribed_topics is None or topic in self.subscribed_topics:
            return None
        return committed.commit_timestamp_ms

    # -- deletion

    @property
    def is_unused(self) -> bool:
        return self.state is GroupState.EMPTY and not self.pending_members

    def validate_deletion(self) -> None:
        if self.state is not GroupState.EMPTY:
            raise ApiError(Error.NON_EMPTY_GROUP)
