"""A consumer's part in its group: rebalances within `poll`, starting at committed offsets, leaving."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from kafkapy.client.coordinator import Coordinator, MemberIdentity, OffsetAndMetadata, fetch_offsets
from kafkapy.client.coordinator_request import POLL_MS, is_retried
from kafkapy.client.group_membership import GroupMembership
from kafkapy.client.network import NEVER, Network
from kafkapy.client.offset_commits import OffsetCommits, Offsets
from kafkapy.client.subscription import Subscription
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.client.configuration import ClientConfig

log = logging.getLogger("kafkapy.client")

LONGEST_LEAVING_S = 5.0


class RebalanceListener(Protocol):
    """The callbacks of a rebalance, for `Consumer.subscribe`; every method may be left out.

    They are called by the thread that calls `poll`, `unsubscribe` or `close`, within that call, and may commit.
    """

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Is called before partitions are revoked. Their positions can be committed here for the last time."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Is called after new partitions were assigned.

        With a cooperative assignor or the consumer protocol, `partitions` are only those that the consumer did not have
        before; otherwise they are all assigned partitions.
        """

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Is called when other members may own the partitions already, so that commits would fail.

        Without this method `on_partitions_revoked` is called.
        """


class ConsumerGroup:
    """One consumer's part in its group; owns the consumer's Coordinator, GroupMembership and OffsetCommits.

    The client's network loop calls `run` in every pass, with `Network.lock` held. The other methods are called by the
    application's thread without this lock, unless their description says otherwise.
    """

    def __init__(
        self,
        network: Network,
        subscription: Subscription,
        config: ClientConfig,
        on_committed: Callable[[Offsets], object] = lambda offsets: None,
    ) -> None:
        self._network = network
        self._subscription = subscription
        self._config = config
        self.group_id: str | None = config["group.id"]
        self._coordinator = Coordinator(network, self.group_id or "")
        self._membership = _make_membership(network, self._coordinator, subscription, config)
        self.commits = OffsetCommits(network, self._coordinator, self._membership, subscription, config, on_committed)
        self._listener: Any = None
        self._has_request = False
        self._not_before_ms = 0  # monotonic; when the committed offsets may be requested again after an error
        self._attempts = 0
        self._known_counts: dict[str, int] = {}
        self._rebalancing_since_ms: int | None = None  # monotonic; None if no rebalance is in progress

    @property
    def identity(self) -> MemberIdentity:
        """The member id and generation with which this consumer is a member of its group, or was one last."""
        return self._membership.last_identity

    @property
    def has_member_id(self) -> bool:
        """Returns whether the consumer has a member id at present; False after the membership was lost."""
        return bool(self._membership.identity.member_id)

    @property
    def is_stable(self) -> bool:
        """Returns whether the consumer is a member, and no rebalance is in progress."""
        membership = self._membership
        return (
            membership.is_member
            and not membership.is_rebalancing
            and not membership.rejoin_wanted
            and membership.new_assignment is None
        )

    # Called by the network

    def run(self, monotonic_ms: int) -> int:
        """Fetches committed offsets, checks the subscribed topics for changes, and calls the membership's `run`.

        Returns the monotonic time (ms) at which to run again.
        """
        if self.group_id is None:
            for state in self._subscription.partitions.values():
                state.wants_committed = False
            return NEVER
        due = self._find_committed(monotonic_ms)
        if self._subscription.is_automatic:
            self._watch_topics()
            due = min(due, self._membership.run(monotonic_ms))
        return due

    def _find_committed(self, monotonic_ms: int) -> int:
        wanted = [
            topic_partition for topic_partition, state in self._subscription.partitions.items() if state.wants_committed
        ]
        if not wanted or self._has_request:
            return NEVER
        if monotonic_ms < self._not_before_ms:
            return self._not_before_ms
        if self._membership.failure is not None:
            return NEVER  # until `poll` has raised it
        if self._membership.coordinator_node(monotonic_ms) is None:
            return self._coordinator.next_attempt_ms(monotonic_ms)
        self._has_request = True

        def found(offsets: dict[TopicPartition, OffsetAndMetadata], error: Exception | None) -> None:
            self._has_request = False
            if error is not None:
                if not is_retried(error):
                    self._membership.failure = error
                pause_ms = self._network.retry_backoff.pause_ms(self._attempts)
                self._not_before_ms = self._network.clock.monotonic_ms() + pause_ms
                self._attempts += 1
                return
            self._attempts = 0
            for topic_partition in wanted:
                state = self._subscription.partitions.get(topic_partition)
                if state is not None and state.wants_committed:
                    state.wants_committed = False
                    if topic_partition in offsets:
                        state.jump(offsets[topic_partition].offset, offsets[topic_partition].leader_epoch)
                        state.found_committed = offsets[topic_partition].offset

        fetch_offsets(self._network, self._coordinator, wanted, found, require_stable=True)
        return monotonic_ms + POLL_MS

    def _watch_topics(self) -> None:
        """Notifies the membership if subscribed topics were created or deleted, or have got more partitions."""
        cluster = self._network.cluster
        topics = self._subscription.matching(cluster.topics)
        counts = {name: len(cluster.topics[name].partitions) for name in topics if name in cluster.topics}
        if counts != self._known_counts:
            self._known_counts = counts
            self._membership.topics_changed()

    # Called by the application's thread

    def subscription_changed(self, listener: Any) -> None:
        """Stores the listener, and requests a rebalance and the topics' metadata; called with `Network.lock` held."""
        self._listener = listener
        pattern = self._subscription.pattern is not None
        self._network.metadata.set_topics(self._subscription.topics, wants_all=pattern)
        self._membership.subscription_changed()
        self._membership.last_poll_ms = self._network.clock.monotonic_ms()

    def assigned_manually(self) -> None:
        """Lets manually assigned partitions start at the committed offsets; called with `Network.lock` held."""
        for state in self._subscription.partitions.values():
            if state.position is None and state.reset is None:
                state.wants_committed = self.group_id is not None

    @property
    def has_error(self) -> bool:
        """Returns whether `take_error` returns an error."""
        return self._membership.fatal is not None or self._membership.failure is not None

    def take_error(self) -> Exception | None:
        """Returns the error that the application has to be told of; None if there is none.

        An error from which the membership may recover is returned once: the next poll tries again.
        """
        failure, self._membership.failure = self._membership.failure, None
        return self._membership.fatal or failure

    @property
    def needs_attention(self) -> bool:
        """Returns whether `poll` has to run a callback, raise the membership's fatal error, join the group, or
        apply an assignment.

        Read with `Network.lock` held.
        """
        membership = self._membership
        return (
            self.commits.has_callbacks
            or self.has_error
            or (self._subscription.is_automatic and (membership.rejoin_wanted or membership.new_assignment is not None))
        )

    def poll(self, end_ms: int) -> None:
        """Runs callbacks, rebalances and commits as far as they are due; blocks until `end_ms` (monotonic) at most.

        Raises the membership's error, or the error of the lookup of committed offsets.
        """
        now = self._network.clock.monotonic_ms()
        self._membership.last_poll_ms = now
        self.commits.call_back()
        if self._subscription.is_automatic:
            self._rebalance(end_ms)
        error = self.take_error()
        if error is not None:
            raise error
        self.commits.commit_if_due(now)

    def _rebalance(self, end_ms: int) -> None:
        """Revokes partitions, joins the group, and applies the assignment.

        Blocks until `end_ms` (monotonic) at most; a later poll continues if the rebalance is not finished by then.
        """
        membership = self._membership
        while True:
            if self._rebalancing_since_ms is None and (membership.must_revoke or membership.is_rebalancing):
                self._rebalancing_since_ms = self._network.clock.monotonic_ms()
            if membership.must_revoke:
                try:
                    self._revoke_before_join()
                finally:  # even if the listener raises, because the coordinator waits for the member
                    with self._network.lock:
                        membership.begin_join()
            if not membership.is_rebalancing:
                return
            if membership.new_assignment is None:
                left_ms = end_ms - self._network.clock.monotonic_ms()
                self._network.wait_until(self._has_result, max(left_ms, 0) / 1000)
            if self.has_error:
                return
            if membership.new_assignment is not None:
                self._apply_assignment()
            elif self._network.clock.monotonic_ms() >= end_ms:
                return

    def _has_result(self) -> bool:
        membership = self._membership
        return membership.new_assignment is not None or self.has_error or membership.is_lost

    def _revoke_before_join(self) -> None:
        """Drops all partitions before joining, if the membership was lost or the protocol is eager.

        If the membership was lost, calls `on_partitions_lost`. Otherwise commits if auto-commit is on, and calls
        `on_partitions_revoked`. A cooperative member that was not lost commits too, and keeps its partitions.
        """
        membership = self._membership
        owned = sorted(self._subscription.partitions)
        if membership.is_lost:
            membership.is_lost = False
            self._drop(owned)
            self._notify("on_partitions_lost", owned)
        elif not membership.is_cooperative:
            try:
                self._commit_before_loss()
                self._notify("on_partitions_revoked", owned)
            finally:
                self._drop(owned)
        else:
            self._commit_before_loss()

    def _apply_assignment(self) -> None:
        """Revokes the partitions that are not in the new assignment, then adds the new ones."""
        membership = self._membership
        with self._network.lock:
            if membership.new_assignment is None:
                return  # the membership was lost again
            assigned = set(membership.take_assignment())
        previous = set(self._subscription.partitions)
        revoked, added = sorted(previous - assigned), sorted(assigned - previous)
        try:
            if revoked:
                self._commit_before_loss()
                self._notify("on_partitions_revoked", revoked)
        finally:  # even if the listener raises, because the coordinator waits for it
            with self._network.lock:
                self._subscription.replace(sorted(assigned))
                for topic_partition in added:
                    self._subscription.partitions[topic_partition].wants_committed = True
                membership.assignment_applied(has_revoked=bool(revoked))
            self._network.wake_for(0)
            if self._rebalancing_since_ms is not None:
                self._network.metrics.rebalanced(self._rebalancing_since_ms)
                self._rebalancing_since_ms = None
            self._notify("on_partitions_assigned", added, always=bool(revoked) or membership.REPORTS_NO_CHANGE)

    def _commit_before_loss(self) -> None:
        if self._membership.identity.member_id:
            self.commits.commit_before_loss()

    def _drop(self, partitions: Sequence[TopicPartition]) -> None:
        with self._network.lock:
            self._subscription.replace(set(self._subscription.partitions) - set(partitions))

    def _notify(self, name: str, partitions: list[TopicPartition], *, always: bool = False) -> None:
        if self._listener is None or not (partitions or always):
            return
        method = getattr(self._listener, name, None)
        if method is None and name == "on_partitions_lost":
            method = getattr(self._listener, "on_partitions_revoked", None)
        if method is None:
            return
        began_ms = self._network.clock.monotonic_ms()
        try:
            method(partitions)
        finally:
            self._network.metrics.listener_called(name, began_ms)

    # Leaving

    def leave(self, timeout_s: float) -> None:
        """Commits if auto-commit is on, notifies the listener, and leaves the group.

        Does nothing without a subscription to topics. Blocks up to `timeout_s` seconds for the commit, and up to the
        lesser of `timeout_s` and LONGEST_LEAVING_S for the request to leave.
        """
        if not self._subscription.is_automatic:
            return
        membership = self._membership
        self._rebalancing_since_ms = None
        owned = sorted(self._subscription.partitions)
        if membership.is_lost or membership.identity.generation < 0:
            self._notify("on_partitions_lost", owned)
        else:  # also within a rebalance, in which a cooperative member keeps its partitions
            # The coordinator may read the commit only after the other members have joined too.
            is_joining = not membership.is_member
            self.commits.commit_before_loss(min(timeout_s, LONGEST_LEAVING_S) if is_joining else timeout_s)
            self._notify("on_partitions_revoked", owned)
        has_left: list[bool] = []
        with self._network.lock:
            membership.send_leave("the consumer unsubscribed from all topics", lambda: has_left.append(True))
            membership.forget_membership(lost=False)
            membership.failure = None  # of the group that was left
        self._network.wait_until(lambda: bool(has_left), min(timeout_s, LONGEST_LEAVING_S))

    def close(self, timeout_s: float) -> None:
        """Leaves the group; with manually assigned partitions, commits if auto-commit is on. Blocks."""
        if self._subscription.is_automatic:
            self.leave(timeout_s)
        elif self._subscription.is_manual:
            self.commits.commit_before_loss(timeout_s)
        self.commits.call_back()


def _make_membership(
    network: Network, coordinator: Coordinator, subscription: Subscription, config: ClientConfig
) -> GroupMembership:
    """Returns the membership of the configured protocol; the module of the other protocol is not imported."""
    if config["group.protocol"].lower() == "consumer":
        from kafkapy.client.consumer_membership import ConsumerMembership

        return ConsumerMembership(network, coordinator, subscription, config)
    from kafkapy.client.classic_membership import ClassicMembership

    return ClassicMembership(network, coordinator, subscription, config)
