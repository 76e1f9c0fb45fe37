"""A consumer's membership in a group of the consumer protocol (KIP-848): the coordinator assigns, the member follows.

One request does everything. A heartbeat says what has changed since the last that was answered (all of it when the
member joins, or after an answer got lost), and its answer may carry an assignment. The member takes it within `poll`
and says with the next heartbeat what it has now; until then nobody else gets what it gave up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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
# The group goes on without this member, which may join again.
_FENCED = frozenset((Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID))
_PASSING = frozenset(
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
    """As its base says.  A change of the subscription or of what is owned goes out at once, else a heartbeat goes as
    often as the coordinator wants.

    Invariant: `_owned` is what the application reads, by topic id; `_assigned` what it is to read.
    """

    def __init__(
        self, network: Network, coordinator: Coordinator, subscription: Subscription, config: ClientConfig
    ) -> None:
        super().__init__(network, coordinator, subscription, config)
        self._member_id = uuid_to_string(random_uuid())  # for the life of this consumer
        self._is_joined = False
        self._is_joining = False
        self._sent: dict[str, Any] = {}  # what the coordinator knows
        self._owned: Assigned = {}
        self._assigned: Assigned | None = None
        self._offered: Assigned = {}  # what `new_assignment` stands for
        self._taking: Assigned | None = None  # what `poll` is taking
        self._heartbeat_is_out = False
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
    def must_give_up(self) -> bool:
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
        """The next turn looks for itself what the subscription comes to."""

    def take_assignment(self) -> list[TopicPartition]:
        self._taking = self._offered
        return super().take_assignment()

    def assignment_taken(self, *, gave_up: bool) -> None:
        if self._taking is not None:  # else the membership was lost meanwhile
            self._owned, self._taking = self._taking, None

    # The exchange

    def run(self, now_ms: int) -> int:
        if self.fatal is not None or not (self._is_joined or self._is_joining) or self._is_stuck(now_ms):
            return NEVER
        self._offer()
        node_id = self._coordinator_node(now_ms)
        if node_id is None:
            return NEVER if self.fatal is not None else self._coordinator.next_attempt_ms(now_ms)
        if self._heartbeat_is_out:
            return self._poll_deadline_ms()
        news = self._news()
        due = max(self._not_before_ms, 0 if news else self._next_heartbeat_ms)
        if now_ms < due:
            return min(due, self._poll_deadline_ms())
        self._beat(node_id, news, now_ms)
        return min(self._next_heartbeat_ms, self._poll_deadline_ms())

    def _wanted(self) -> dict[str, Any]:
        """What the coordinator should know, by the request's fields."""
        subscription = self._subscription
        names = sorted(subscription.matching(self._network.cluster.topics))
        wanted: dict[str, Any] = {
            "instance_id": self.identity.instance_id,
            "rack_id": self._config["client.rack"] or None,
            "rebalance_timeout_ms": self._config["max.poll.interval.ms"],
            "subscribed_topic_names": names,
            "server_assignor": self._config["group.remote.assignor"],
            "topic_partitions": self._owned,
        }
        if subscription.server_pattern is not None or self._sent.get("subscribed_topic_regex"):
            # An empty one takes back what was said before.
            wanted["subscribed_topic_regex"] = subscription.server_pattern or ""
        return wanted

    def _news(self) -> dict[str, Any]:
        return {name: value for name, value in self._wanted().items() if self._sent.get(name) != value}

    def _beat(self, node_id: int, news: dict[str, Any], now_ms: int) -> None:
        asked = self.identity
        has_pattern = bool(news.get("subscribed_topic_regex"))

        def build(version: int) -> ConsumerGroupHeartbeatRequest:
            fields = dict(news)
            if "topic_partitions" in fields:
                fields["topic_partitions"] = [
                    ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=partitions)
                    for topic_id, partitions in fields["topic_partitions"].items()
                ]
            if version < 1 and has_pattern:
                raise ApiError(Error.UNSUPPORTED_VERSION, _TOO_OLD_FOR_PATTERNS)
            return ConsumerGroupHeartbeatRequest(
                group_id=self._coordinator.key, member_id=asked.member_id, member_epoch=asked.generation, **fields
            )

        def answered(response: ConsumerGroupHeartbeatResponse | None, version: int, error: Exception | None) -> None:
            self._heartbeat_is_out = False
            if asked.generation == self.identity.generation and (self._is_joined or self._is_joining):
                self._heed(news, response, error)

        self._heartbeat_is_out = True
        self._next_heartbeat_ms = now_ms + max(self._interval_ms, 1)
        self._network.submit(node_id, ApiKey.CONSUMER_GROUP_HEARTBEAT, build, answered)

    def _heed(
        self, news: dict[str, Any], response: ConsumerGroupHeartbeatResponse | None, error: Exception | None
    ) -> None:
        if response is None:
            self._failed(error if isinstance(error, ApiError) else ApiError(Error.NETWORK_EXCEPTION, str(error)))
        elif response.error_code:
            self._failed(ApiError(Error.of(response.error_code), response.error_message))
        else:
            self._attempts = 0
            self._sent.update(news)
            self.identity = self.identity._replace(generation=response.member_epoch)
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
        if code in _PASSING:
            self._coordinator.heed(code)
            self._sent.clear()  # it may have got lost, or its answer: the next one says all again
        elif code in _FENCED:
            log.info("Group %s goes on without this member: %s", self._coordinator.key, code.name)
            self.forget_membership(lost=True)
        elif code is Error.UNSUPPORTED_VERSION:
            too_old_for_patterns = failure.message == _TOO_OLD_FOR_PATTERNS
            self.fatal = failure if too_old_for_patterns else ApiError(code, _TOO_OLD)
        elif not code.retriable:
            self.fatal = failure

    def _offer(self, *, always: bool = False) -> None:
        """Gives `poll` what is assigned, as far as the names of the topics are known; asks for the others."""
        if self._assigned is None:
            return
        names = {info.topic_id: name for name, info in self._network.cluster.topics.items()}
        known = {topic_id: each for topic_id, each in self._assigned.items() if topic_id in names}
        self._network.metadata.want_ids(self._assigned.keys() - known.keys())
        if len(known) == len(self._assigned):
            self._assigned = None
        now = self._owned if self._taking is None else self._taking
        if known == (now if self.new_assignment is None else self._offered) and not always:
            return
        self._offered = known
        self.new_assignment = [
            TopicPartition(names[topic_id], number) for topic_id, each in known.items() for number in each
        ]

    # Leaving

    def forget_membership(self, *, lost: bool, keeps_id: bool = False) -> None:
        self.identity = MemberIdentity(instance_id=self.identity.instance_id)
        self._is_joined = self._is_joining = False
        self._sent.clear()
        self._owned = {}
        self._assigned = self._taking = None
        self.is_lost = lost
        self.rejoin_wanted = True
        self.new_assignment = None

    def send_leave(self, reason: str, on_done: Callable[[], None] = lambda: None) -> None:
        """A static member leaves for the time being only: what it has stays its own for the session's time."""
        identity = self.identity
        now = self._network.clock.monotonic_ms()
        node_id = None if self._coordinator.fatal else self._coordinator_node(now)
        if node_id is None or not self._is_joined:
            on_done()
            return
        epoch = _LEAVING_EPOCH if identity.instance_id is None else _STATIC_LEAVING_EPOCH

        def build(version: int) -> ConsumerGroupHeartbeatRequest:
            return ConsumerGroupHeartbeatRequest(
                group_id=self._coordinator.key,
                member_id=identity.member_id,
                member_epoch=epoch,
                instance_id=identity.instance_id,
            )

        self._network.submit(
            node_id, ApiKey.CONSUMER_GROUP_HEARTBEAT, build, lambda response, version, error: on_done()
        )
