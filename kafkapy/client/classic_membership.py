"""A consumer's membership in a group of the classic protocol: joining, leading, heartbeats, leaving."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum, auto

from kafkapy.client.assignors import ASSIGNORS, STICKY, Assignor
from kafkapy.client.configuration import ClientConfig
from kafkapy.client.consumer_protocol import (
    PROTOCOL_TYPE,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafkapy.client.coordinator import Coordinator, MemberIdentity
from kafkapy.client.group_membership import GroupMembership
from kafkapy.client.network import NEVER, Network
from kafkapy.client.subscription import Subscription
from kafkapy.errors import ApiError, ConfigError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest
from kafkapy.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kafkapy.types import TopicPartition

log = logging.getLogger("kafkapy.client")

# How much longer than max.poll.interval.ms the response to JoinGroup may take.
_JOIN_GRACE_MS = 5000
# `poll` raises these errors every time.
_FATAL = frozenset((Error.FENCED_INSTANCE_ID, Error.UNSUPPORTED_VERSION))
# `poll` raises these errors once, and the next `poll` tries again: rights may be granted, and another member may leave.
_RAISED = frozenset(
    (
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.INVALID_GROUP_ID,
        Error.INVALID_SESSION_TIMEOUT,
        Error.GROUP_MAX_SIZE_REACHED,
    )
)


class Phase(Enum):
    """The phases of a classic member.

    A member changes from UNJOINED to JOINING only within the consumer's `poll`, because `poll` first notifies the
    application of revoked partitions.
    """

    UNJOINED = auto()
    JOINING = auto()  # JoinGroup is to be sent
    LEADING = auto()  # the leader waits for the topics' metadata before it assigns
    SYNCING = auto()  # JoinGroup or SyncGroup is in flight
    STABLE = auto()


class ClassicMembership(GroupMembership):
    """A consumer's membership in a group of the classic protocol; implements GroupMembership.

    It sends JoinGroup, SyncGroup, Heartbeat and LeaveGroup.
    """

    def __init__(
        self, network: Network, coordinator: Coordinator, subscription: Subscription, config: ClientConfig
    ) -> None:
        super().__init__(network, coordinator, subscription, config)
        self.assignors = find_assignors(config["partition.assignment.strategy"])
        self.phase = Phase.UNJOINED
        self.reason = ""
        self._assignor = self.assignors[0]
        self._joined: JoinGroupResponse | None = None
        self._not_before_ms = 0
        self._next_heartbeat_ms: int = 0
        self._heartbeat_in_flight = False
        # What the eager sticky assignor reports in the next join, when the partitions have been revoked.
        self._last_assignment: list[TopicPartition] = []
        self._last_generation = -1

    @property
    def is_cooperative(self) -> bool:
        """Returns whether every configured assignor is cooperative."""
        return all(each.is_cooperative for each in self.assignors)

    @property
    def is_member(self) -> bool:
        return self.phase is Phase.STABLE

    @property
    def must_revoke(self) -> bool:
        return self.rejoin_wanted and self.phase in (Phase.UNJOINED, Phase.STABLE)

    @property
    def is_rebalancing(self) -> bool:
        if self.phase is Phase.STABLE:
            return self.new_assignment is not None or self.rejoin_wanted
        return self.phase is not Phase.UNJOINED

    def begin_join(self) -> None:
        self.rejoin_wanted = False
        self.phase = Phase.JOINING
        self._not_before_ms = 0

    def subscription_changed(self) -> None:
        self.rejoin_wanted = True

    def topics_changed(self) -> None:
        if self.phase is Phase.STABLE:
            self.rejoin_wanted = True
            self.reason = "cached metadata has changed"

    def take_assignment(self) -> list[TopicPartition]:
        self.last_identity = self.identity  # not before, because the new generation may lack partitions of the old one
        return super().take_assignment()

    def assignment_applied(self, *, has_revoked: bool) -> None:
        if has_revoked and self.is_cooperative:
            self.rejoin_wanted = True  # so that the revoked partitions can be assigned to other members
            self.reason = "need to revoke partitions and re-join"

    def run(self, monotonic_ms: int) -> int:
        must_not_join = self.failure is not None and self.phase is not Phase.STABLE
        if self.phase is Phase.UNJOINED or self.fatal is not None or must_not_join:
            return NEVER
        node_id = self.coordinator_node(monotonic_ms)
        if node_id is None:
            return NEVER if self._coordinator.fatal is not None else self._coordinator.next_attempt_ms(monotonic_ms)
        if self.phase is Phase.JOINING:
            if monotonic_ms < self._not_before_ms:
                return self._not_before_ms
            self._join(node_id)
            return NEVER
        if self.phase is Phase.LEADING:
            self._lead()
            return NEVER
        return self._keep_alive(node_id, monotonic_ms) if self.phase is Phase.STABLE else NEVER

    # Joining

    def _join(self, node_id: int) -> None:
        self._joined = None
        topics = self._subscription.matching(self._network.cluster.topics)
        owned = (list(self._subscription.partitions), self.identity.generation)
        previous = (self._last_assignment, self._last_generation)
        rack = self._config["client.rack"]
        protocols = [
            JoinGroupRequest.JoinGroupRequestProtocol(
                name=each.name,
                metadata=encode_subscription(each, topics, *(previous if each is STICKY else owned), rack),
            )
            for each in self.assignors
        ]
        interval_ms: int = self._config["max.poll.interval.ms"]

        def build(version: int) -> JoinGroupRequest:
            request = JoinGroupRequest(
                group_id=self._coordinator.key,
                session_timeout_ms=self._config["session.timeout.ms"],
                member_id=self.identity.member_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=protocols,
            )
            if version >= 1:
                request.rebalance_timeout_ms = interval_ms
            if version >= 5:
                request.group_instance_id = self.identity.instance_id
            if version >= 8:
                request.reason = self.reason
            return request

        # The coordinator responds when every member has joined.
        self.phase = Phase.SYNCING
        timeout_ms = max(self._network.request_timeout_ms, interval_ms + _JOIN_GRACE_MS)
        self._network.submit(node_id, ApiKey.JOIN_GROUP, build, self._on_joined, timeout_ms=timeout_ms)

    def _on_joined(self, response: JoinGroupResponse | None, version: int, error: Exception | None) -> None:
        if self.phase is not Phase.SYNCING:
            return  # the member has left
        if response is None:
            self._coordinator.forget()
            self._retry_join()
            return
        code = Error.of(response.error_code)
        if code is Error.MEMBER_ID_REQUIRED:
            self.identity = self.identity._replace(member_id=response.member_id)
            self.phase = Phase.JOINING
        elif code:
            self._failed(code)
        else:
            self.identity = self.identity._replace(generation=response.generation_id, member_id=response.member_id)
            self._assignor = next(each for each in self.assignors if each.name == response.protocol_name)
            self._joined = response
            if response.leader == response.member_id and not response.skip_assignment:
                self.phase = Phase.LEADING
                topics = {
                    topic
                    for member in response.members
                    for topic in decode_subscription(self._assignor, member.metadata, None).topics
                }
                for topic in topics:
                    self._network.metadata.add_topic(topic)
            else:
                self._sync([])

    def _lead(self) -> None:
        """Assigns the partitions as the group's leader, and sends SyncGroup with the assignments.

        If the metadata of a topic are not known yet, requests them and sends nothing. The partitions are then assigned
        after the metadata have arrived. After an error of the assignor, sends nothing; `poll` raises the error.
        """
        assert self._joined is not None
        members = {
            each.member_id: decode_subscription(self._assignor, each.metadata, each.group_instance_id)
            for each in self._joined.members
        }
        cluster = self._network.cluster
        topics = {topic for member in members.values() for topic in member.topics}
        if any(topic not in cluster.topics and topic not in cluster.errors for topic in topics):
            self._network.metadata.request_update()
            return
        counts = {topic: len(cluster.topics[topic].partitions) for topic in topics if topic in cluster.topics}
        try:
            assigned = self._assignor.assign(members, counts, cluster.racks(counts))
            assignments = [
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=each, assignment=encode_assignment(partitions))
                for each, partitions in assigned.items()
            ]
        except Exception as error:  # of an assignor of the application
            self.failure = error
            self.phase, self.rejoin_wanted, self.reason = Phase.UNJOINED, True, f"rebalance failed due to {error}"
            return
        log.info("Group %s: %s by %s", self._coordinator.key, assigned, self._assignor.name)
        self._sync(assignments)

    def _sync(self, assignments: list[SyncGroupRequest.SyncGroupRequestAssignment]) -> None:
        self.phase = Phase.SYNCING
        node_id = self.coordinator_node(self._network.clock.monotonic_ms())
        if node_id is None:
            self._retry_join()
            return

        def build(version: int) -> SyncGroupRequest:
            request = SyncGroupRequest(
                group_id=self._coordinator.key,
                generation_id=self.identity.generation,
                member_id=self.identity.member_id,
                assignments=assignments,
            )
            if version >= 3:
                request.group_instance_id = self.identity.instance_id
            if version >= 5:
                request.protocol_type, request.protocol_name = PROTOCOL_TYPE, self._assignor.name
            return request

        timeout_ms = max(self._network.request_timeout_ms, self._config["max.poll.interval.ms"] + _JOIN_GRACE_MS)
        self._network.submit(node_id, ApiKey.SYNC_GROUP, build, self._on_synced, timeout_ms=timeout_ms)

    def _on_synced(self, response: SyncGroupResponse | None, version: int, error: Exception | None) -> None:
        if self.phase is not Phase.SYNCING:
            return
        if response is None:
            self._coordinator.forget()
            self._retry_join()
        elif response.error_code:
            self._failed(Error.of(response.error_code))
        else:
            self.new_assignment = decode_assignment(bytes(response.assignment))
            self._last_assignment, self._last_generation = list(self.new_assignment), self.identity.generation
            self.phase = Phase.STABLE
            self._next_heartbeat_ms = self._network.clock.monotonic_ms() + self._config["heartbeat.interval.ms"]

    # Heartbeats

    def _keep_alive(self, node_id: int, monotonic_ms: int) -> int:
        if self._leave_if_poll_is_late(monotonic_ms):
            return NEVER
        last = self._poll_deadline_ms()
        if monotonic_ms < self._next_heartbeat_ms or self._heartbeat_in_flight:
            return min(last, NEVER if self._heartbeat_in_flight else self._next_heartbeat_ms)
        self._heartbeat_in_flight = True
        self._next_heartbeat_ms = monotonic_ms + self._config["heartbeat.interval.ms"]
        identity = self.identity

        def build(version: int) -> HeartbeatRequest:
            request = HeartbeatRequest(
                group_id=self._coordinator.key, generation_id=identity.generation, member_id=identity.member_id
            )
            if version >= 3:
                request.group_instance_id = identity.instance_id
            return request

        def on_response(response: HeartbeatResponse | None, version: int, error: Exception | None) -> None:
            self._heartbeat_in_flight = False
            if response is None:
                self._coordinator.forget()
            elif response.error_code and identity == self.identity and self.phase is Phase.STABLE:
                self._on_heartbeat_error(Error.of(response.error_code))

        self._network.submit(
            node_id, ApiKey.HEARTBEAT, build, on_response, timeout_ms=self._config["session.timeout.ms"]
        )
        return self._next_heartbeat_ms

    def _on_heartbeat_error(self, code: Error) -> None:
        if code is Error.REBALANCE_IN_PROGRESS:
            self.reason = "group is already rebalancing"
            self.rejoin_wanted = True
        elif code in (Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID):
            self.forget_membership(lost=True, keeps_id=code is Error.ILLEGAL_GENERATION)
        elif code in _FATAL:
            self.fatal = ApiError(code)
        elif code in _RAISED:
            self.failure = ApiError(code)
        else:
            self._coordinator.on_error(code)

    def _failed(self, code: Error) -> None:
        """Handles the error of JoinGroup or SyncGroup.

        An error in _FATAL, after which the consumer cannot join, is stored in `fatal`. After any other error the next
        attempt to join is prepared; after one in _RAISED it waits until `poll` has raised the error.
        """
        if code in _FATAL:
            self.fatal = ApiError(code)
            return
        if code in _RAISED:
            self.failure = ApiError(code)
        self._coordinator.on_error(code)
        if code in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            member_id = self.identity.member_id if code is Error.ILLEGAL_GENERATION else ""
            self.identity = MemberIdentity(member_id=member_id, instance_id=self.identity.instance_id)
        self._retry_join(at_once=code in (Error.UNKNOWN_MEMBER_ID, Error.REBALANCE_IN_PROGRESS))

    def _retry_join(self, *, at_once: bool = False) -> None:
        self.phase = Phase.JOINING
        pause_ms = 0 if at_once else self._network.retry_backoff.pause_ms(0)
        self._not_before_ms = self._network.clock.monotonic_ms() + pause_ms

    # Leaving

    def forget_membership(self, *, lost: bool, keeps_id: bool = False) -> None:
        member_id = self.identity.member_id if keeps_id else ""
        self.identity = MemberIdentity(member_id=member_id, instance_id=self.identity.instance_id)
        if not lost:
            self.last_identity = self.identity
        self.phase = Phase.UNJOINED
        self.is_lost = lost
        self.rejoin_wanted = True
        self.new_assignment = None

    def send_leave(self, reason: str, on_done: Callable[[], None] = lambda: None) -> None:
        """Sends LeaveGroup unless the member is static; `on_done` is called in either case.

        The partitions of a static member stay assigned for session.timeout.ms. LeaveGroup is also not sent if the
        member has no member id yet, or if its coordinator is not known.
        """
        identity = self.identity
        now = self._network.clock.monotonic_ms()
        node_id = self.coordinator_node(now)
        if node_id is None or not identity.member_id or identity.instance_id is not None:
            on_done()
            return

        def build(version: int) -> LeaveGroupRequest:
            if version < 3:
                return LeaveGroupRequest(group_id=self._coordinator.key, member_id=identity.member_id)
            member = LeaveGroupRequest.MemberIdentity(member_id=identity.member_id)
            if version >= 5:
                member.reason = reason
            return LeaveGroupRequest(group_id=self._coordinator.key, members=[member])

        self._network.submit(node_id, ApiKey.LEAVE_GROUP, build, lambda response, version, error: on_done())


def find_assignors(configured: list[object]) -> list[Assignor]:
    """Returns the assignors that `partition.assignment.strategy` names.

    `configured` is the value of that key: each element is a name, the name of a Java class, or an Assignor. Raises
    ConfigError for any other element, and if there is no element.
    """
    found = []
    for each in configured:
        assignor = each if isinstance(each, Assignor) else ASSIGNORS.get(str(each).removeprefix("class ").strip())
        if assignor is None:
            accepted = "range, roundrobin, sticky, cooperative-sticky, or an Assignor"
            raise ConfigError(
                f"Invalid value {each} for configuration partition.assignment.strategy: expected one of {accepted}"
            )
        found.append(assignor)
    if not found:
        raise ConfigError('Missing required configuration "partition.assignment.strategy"')
    return found
