"""A consumer's membership in a group of the consumer protocol (KIP-848): the coordinator assigns the partitions.

ConsumerGroupHeartbeat is the only request. It contains the fields that have changed since the last request with a
response (all fields when the member joins, or after a lost response). The response may contain an assignment. The
member applies the assignment within `poll`, and the next heartbeat names the partitions that the member owns; until
then the coordinator does not assign the revoked partitions to another member.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafkapy._core.bytes.message import Message
from kafkapy.client.coordinator import Coordinator, MemberIdentity
from kafkapy.client.group_membership import GroupMembership
from kafkapy.client.network import NEVER, Network
from kafkapy.client.subscription import Subscription
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafkapy.types import TopicPartition, random_uuid, uuid_to_string

if TYPE_CHECKING:
    from kafkapy.client.configuration import ClientConfig

log = logging.getLogger("kafkapy.client")

_JOINING_EPOCH, _LEAVING_EPOCH, _STATIC_LEAVING_EPOCH = 0, -1, -2
# The coordinator has removed this member, which may join again.
_FENCED = frozenset((Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID))
_RETRIED = frozenset(
    (
        Error.NOT_COORDINATOR,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.NETWORK_EXCEPTION,
        Error.REQUEST_TIMED_OUT,
    )
)
_TOO_OLD = (
    "The cluster does not support the new CONSUMER group protocol. Set group.protocol=classic on the consumer configs "
    "to revert to the CLASSIC protocol until the cluster is upgraded."
)
_TOO_OLD_FOR_PATTERNS = (
    "The cluster does not support regular expressions resolution on the broker (SubscriptionPattern)"
)
Assigned = dict[bytes, list[int]]  # topic id -> partitions


class ConsumerMembership(GroupMembership):
    """A consumer's membership in a group of the consumer protocol; implements GroupMembership.

    A change of the subscription or of the owned partitions is sent at once; otherwise a heartbeat is sent as often as
    the coordinator asks. Invariant: `_owned` are the partitions that the application reads, by topic id. `_assigned` is
    the target assignment as long as the names of some of its topics are unknown; otherwise it is None.
    """

    _API = ApiKey.CONSUMER_GROUP_HEARTBEAT
    REPORTS_NO_CHANGE = False
    COMMITS_BEFORE_JOINING = True

    def __init__(
        self, network: Network, coordinator: Coordinator, subscription: Subscription, config: ClientConfig
    ) -> None:
        super().__init__(network, coordinator, subscription, config)
        self._member_id = uuid_to_string(random_uuid())  # does not change until the consumer is closed
        self._is_joined = False
        self._is_joining = False
        self._sent: dict[str, Any] = {}  # the request's fields that the coordinator knows
        self._owned: Assigned = {}
        self._assigned: Assigned | None = None
        self._offered: Assigned = {}  # `new_assignment` by topic id
        self._applying: Assigned | None = None  # the assignment that `poll` is applying
        self._heartbeat_in_flight = False
        self._interval_ms = 0
        self._next_heartbeat_ms = 0
        self._not_before_ms = 0
        self._attempts = 0

    @property
    def is_cooperative(self) -> bool:
        return True

    @property
    def is_member(self) -> bool:
        return self._is_joined

    @property
    def must_revoke(self) -> bool:
        return self.rejoin_wanted

    @property
    def is_rebalancing(self) -> bool:
        return self.new_assignment is not None

    def begin_join(self) -> None:
        self.rejoin_wanted = False
        self.identity = self.identity._replace(generation=_JOINING_EPOCH, member_id=self._member_id)
        self._is_joining = True
        self._sent.clear()
        self._owned = {}
        self._not_before_ms = 0

    def subscription_changed(self) -> None:
        if not self._is_joined and not self._is_joining:
            self.rejoin_wanted = True

    def topics_changed(self) -> None:
        """Does nothing, because every `run` compares the subscribed topics with those of the last heartbeat."""

    def take_assignment(self) -> list[TopicPartition]:
        self._applying = self._offered
        return super().take_assignment()

    def assignment_applied(self, *, has_revoked: bool) -> None:
        if self._applying is not None:  # otherwise the membership was lost during `poll`
            self._owned, self._applying = self._applying, None

    # Heartbeats

    def run(self, monotonic_ms: int) -> int:
        if (
            self.fatal is not None
            or not (self._is_joined or self._is_joining)
            or self._leave_if_poll_is_late(monotonic_ms)
        ):
            return NEVER
        self._offer()
        node_id = self.coordinator_node(monotonic_ms)
        if node_id is None:
            is_refused = self._coordinator.fatal is not None  # until `poll` has raised the failure
            return self._poll_deadline_ms() if is_refused else self._coordinator.next_attempt_ms(monotonic_ms)
        if self._heartbeat_in_flight:
            return self._poll_deadline_ms()
        changes = self._changes()
        due = max(self._not_before_ms, 0 if changes else self._next_heartbeat_ms)
        if monotonic_ms < due:
            return min(due, self._poll_deadline_ms())
        self._send_heartbeat(node_id, changes, monotonic_ms)
        return min(self._next_heartbeat_ms, self._poll_deadline_ms())

    def _fields(self) -> dict[str, Any]:
        """Returns the current values of the fields of a ConsumerGroupHeartbeat request, by the fields' names."""
        subscription = self._subscription
        names = sorted(subscription.matching(self._network.cluster.topics))
        fields: dict[str, Any] = {
            "instance_id": self.identity.instance_id,
            "rack_id": self._config["client.rack"] or None,
            "rebalance_timeout_ms": self._config["max.poll.interval.ms"],
            "subscribed_topic_names": names,
            "server_assignor": self._config["group.remote.assignor"],
            "topic_partitions": self._owned,
        }
        if subscription.server_pattern is not None or self._sent.get("subscribed_topic_regex"):
            # An empty pattern withdraws the previous one.
            fields["subscribed_topic_regex"] = subscription.server_pattern or ""
        return fields

    def _changes(self) -> dict[str, Any]:
        return {name: value for name, value in self._fields().items() if self._sent.get(name) != value}

    def _send_heartbeat(self, node_id: int, changes: dict[str, Any], monotonic_ms: int) -> None:
        identity = self.identity

        def on_response(response: ConsumerGroupHeartbeatResponse | None, version: int, error: Exception | None) -> None:
            self._heartbeat_in_flight = False
            if identity.generation == self.identity.generation and (self._is_joined or self._is_joining):
                self._handle(changes, response, error)

        self._heartbeat_in_flight = True
        self._next_heartbeat_ms = monotonic_ms + max(self._interval_ms, 1)
        self._network.submit(node_id, self._API, lambda version: self._request(version, identity, changes), on_response)

    def _request(self, version: int, identity: MemberIdentity, changes: dict[str, Any]) -> Message:
        """Returns a heartbeat; `changes` maps the names of the fields that have changed since the last heartbeat to
        their values.

        Raises ApiError with UNSUPPORTED_VERSION if `version` lacks one of these fields.
        """
        fields = dict(changes)
        if "topic_partitions" in fields:
            fields["topic_partitions"] = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in fields["topic_partitions"].items()
            ]
        if version < 1 and fields.get("subscribed_topic_regex"):
            raise ApiError(Error.UNSUPPORTED_VERSION, _TOO_OLD_FOR_PATTERNS)
        return ConsumerGroupHeartbeatRequest(
            group_id=self._coordinator.key, member_id=identity.member_id, member_epoch=identity.generation, **fields
        )

    def _too_old(self, failure: ApiError) -> ApiError:
        """Returns the error for the application after a heartbeat has failed with UNSUPPORTED_VERSION.

        Its message says whether the broker is too old for the protocol or only for subscriptions with patterns.
        """
        return failure if failure.message == _TOO_OLD_FOR_PATTERNS else ApiError(failure.error, _TOO_OLD)

    def _handle(
        self, changes: dict[str, Any], response: ConsumerGroupHeartbeatResponse | None, error: Exception | None
    ) -> None:
        if response is None:
            self._failed(error if isinstance(error, ApiError) else ApiError(Error.NETWORK_EXCEPTION, str(error)))
        elif response.error_code:
            self._failed(ApiError(Error.of(response.error_code), response.error_message))
        else:
            self._attempts = 0
            self._sent.update(changes)
            self.identity = self.last_identity = self.identity._replace(generation=response.member_epoch)
            self._is_joined, is_first, self._is_joining = True, self._is_joining, False
            self._interval_ms = response.heartbeat_interval_ms
            self._next_heartbeat_ms = self._network.clock.monotonic_ms() + self._interval_ms
            if response.assignment is not None:
                self._assigned = {
                    each.topic_id: sorted(each.partitions) for each in response.assignment.topic_partitions
                }
            elif is_first:
                self._assigned = {}
            self._offer(always=is_first)

    def _failed(self, failure: ApiError) -> None:
        code = failure.error
        self._not_before_ms = self._network.clock.monotonic_ms() + self._network.retry_backoff.pause_ms(self._attempts)
        self._attempts += 1
        if code in _RETRIED:
            self._coordinator.on_error(code)
            self._sent.clear()  # the request may not have arrived: the next one has all fields
        elif code in _FENCED:
            log.info("The coordinator of group %s has removed this member: %s", self._coordinator.key, code.name)
            self.forget_membership(lost=True)
        elif code is Error.UNSUPPORTED_VERSION:
            self.fatal = self._too_old(failure)
        elif not code.retriable:
            self.fatal = failure

    def _offer(self, *, always: bool = False) -> None:
        """Sets `new_assignment`, which `poll` applies, to the assigned partitions whose topic names are known.

        Requests the names of the other topics. If `always` is False, and these partitions were set before, are owned
        already, or are being applied, sets nothing.
        """
        if self._assigned is None:
            return
        names = {info.topic_id: name for name, info in self._network.cluster.topics.items()}
        known = {topic_id: each for topic_id, each in self._assigned.items() if topic_id in names}
        self._network.metadata.want_ids(self._assigned.keys() - known.keys())
        if len(known) == len(self._assigned):
            self._assigned = None
        now = self._owned if self._applying is None else self._applying
        if known == (now if self.new_assignment is None else self._offered) and not always:
            return
        self._offered = known
        self.new_assignment = [
            TopicPartition(names[topic_id], number) for topic_id, each in known.items() for number in each
        ]

    # Leaving

    def forget_membership(self, *, lost: bool, keeps_id: bool = False) -> None:
        self.identity = MemberIdentity(instance_id=self.identity.instance_id)
        if not lost:
            self.last_identity = self.identity
        self._is_joined = self._is_joining = False
        self._sent.clear()
        self._owned = {}
        self._assigned = self._applying = None
        self.is_lost = lost
        self.rejoin_wanted = True
        self.new_assignment = None

    def send_leave(self, reason: str, on_done: Callable[[], None] = lambda: None) -> None:
        """Sends a heartbeat that leaves the group; `on_done` is called afterwards, or at once if nothing is sent.

        The partitions of a static member stay assigned for the session time-out.
        """
        identity = self.identity
        now = self._network.clock.monotonic_ms()
        node_id = self.coordinator_node(now)
        if node_id is None or not self._is_joined:
            on_done()
            return
        epoch = _LEAVING_EPOCH if identity.instance_id is None else _STATIC_LEAVING_EPOCH
        fields = {} if identity.instance_id is None else {"instance_id": identity.instance_id}
        leaving = identity._replace(generation=epoch)
        self._network.submit(
            node_id,
            self._API,
            lambda version: self._request(version, leaving, fields),
            lambda response, version, error: on_done(),
        )
