"""A consumer's group as its application sees it: rebalances within poll, positions that were committed, leaving."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from kafkapy.client.coordinator import Coordinator, MemberIdentity, OffsetAndMetadata, fetch_offsets
from kafkapy.client.exchange import POLL_MS, passes
from kafkapy.client.group_membership import GroupMembership
from kafkapy.client.network import NEVER, Network
from kafkapy.client.offset_commits import OffsetCommits, Offsets
from kafkapy.client.subscription import Subscription
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.client.configuration import ClientConfig

log = logging.getLogger("kafkapy.client")

_LONGEST_LEAVING_S = 5.0


class RebalanceListener(Protocol):
    """What `subscribe` may be given; every method may be left out. Called within `poll` and `close`, and may commit."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """These go to others; this is the last moment to commit for them."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """These have come; with a cooperative assignor or the consumer protocol, besides those that stayed."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """These belong to others already. Left out: `on_partitions_revoked` is called."""


class ConsumerGroup:
    """Owns the coordinator, the membership and the commits of one consumer.  `run` is a task of the network and has the
    seat; everything else is called by the consumer's thread without it."""

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
        self._is_asking = False
        self._known_counts: dict[str, int] = {}

    @property
    def identity(self) -> MemberIdentity:
        """Who the group knows this consumer as."""
        return self._membership.identity

    # The network's side

    def run(self, now_ms: int) -> int:
        """Positions of newly assigned partitions, subscriptions that match other topics now, the membership."""
        if self.group_id is None:
            for state in self._subscription.partitions.values():
                state.wants_committed = False
            return NEVER
        due = self._find_committed(now_ms)
        if self._subscription.is_automatic:
            self._watch_topics()
            due = min(due, self._membership.run(now_ms))
        return due

    def _find_committed(self, now_ms: int) -> int:
        wanted = [where for where, state in self._subscription.partitions.items() if state.wants_committed]
        if not wanted or self._is_asking:
            return NEVER
        if self._coordinator.node(now_ms) is None:
            return self._coordinator.next_attempt_ms(now_ms)
        self._is_asking = True

        def found(offsets: dict[TopicPartition, OffsetAndMetadata], error: Exception | None) -> None:
            self._is_asking = False
            if error is not None:
                if not passes(error):
                    self._membership.fatal = error
                return
            for where in wanted:
                state = self._subscription.partitions.get(where)
                if state is not None and state.wants_committed:
                    state.wants_committed = False
                    if where in offsets:
                        state.jump(offsets[where].offset, offsets[where].leader_epoch)

        fetch_offsets(self._network, self._coordinator, wanted, found, require_stable=True)
        return now_ms + POLL_MS

    def _watch_topics(self) -> None:
        """A rebalance may be due when topics that are subscribed to come, go or grow."""
        cluster = self._network.cluster
        topics = self._subscription.matching(cluster.topics)
        counts = {name: len(cluster.topics[name].partitions) for name in topics if name in cluster.topics}
        if counts != self._known_counts:
            self._known_counts = counts
            self._membership.topics_changed()

    # The consumer's side

    def subscription_changed(self, listener: Any) -> None:
        """Other topics than before; the seat is held."""
        self._listener = listener
        pattern = self._subscription.pattern is not None
        self._network.metadata.set_topics(self._subscription.topics, wants_all=pattern)
        self._membership.subscription_changed()
        self._membership.last_poll_ms = self._network.clock.monotonic_ms()

    def assigned_manually(self) -> None:
        """Partitions chosen by hand begin at what the group has committed; the seat is held."""
        for state in self._subscription.partitions.values():
            if state.position is None and state.reset is None:
                state.wants_committed = self.group_id is not None

    @property
    def needs_attention(self) -> bool:
        """Whether `poll` has something to do here, with the seat held."""
        membership = self._membership
        return (
            self.commits.has_callbacks
            or membership.fatal is not None
            or (self._subscription.is_automatic and (membership.rejoin_wanted or membership.new_assignment is not None))
        )

    def poll(self, end_ms: int) -> None:
        """Whatever the application has to hear of, and the auto-commit that is due. Waits at most until `end_ms`."""
        now = self._network.clock.monotonic_ms()
        self._membership.last_poll_ms = now
        self.commits.call_back()
        if self._subscription.is_automatic:
            self._rebalance(end_ms)
        if self._membership.fatal is not None:
            raise self._membership.fatal
        self.commits.commit_if_due(now)

    def _rebalance(self, end_ms: int) -> None:
        """Gives up what goes, joins, and takes what comes; goes on in a later poll if the time is over."""
        membership = self._membership
        while True:
            if membership.must_give_up:
                self._give_up()
                with self._network.seat:
                    membership.begin_join()
            if not membership.is_rebalancing:
                return
            if membership.new_assignment is None:
                left_ms = end_ms - self._network.clock.monotonic_ms()
                self._network.wait_until(self._has_news, max(left_ms, 0) / 1000)
            if membership.fatal is not None:
                return
            if membership.new_assignment is not None:
                self._take_over()
            elif self._network.clock.monotonic_ms() >= end_ms:
                return

    def _has_news(self) -> bool:
        membership = self._membership
        return membership.new_assignment is not None or membership.fatal is not None or membership.is_lost

    def _give_up(self) -> None:
        """Before a rebalance: an eager member gives up everything, a cooperative one only what is lost already."""
        membership = self._membership
        owned = sorted(self._subscription.partitions)
        if membership.is_lost:
            membership.is_lost = False
            self._drop(owned)
            self._tell("on_partitions_lost", owned)
        elif not membership.is_cooperative:
            self._commit_before_loss()
            self._tell("on_partitions_revoked", owned)
            self._drop(owned)

    def _take_over(self) -> None:
        """After a rebalance: what goes, then what comes."""
        membership = self._membership
        with self._network.seat:
            if membership.new_assignment is None:
                return  # lost again in the meantime
            assigned = set(membership.take_assignment())
        before = set(self._subscription.partitions)
        gone, new = sorted(before - assigned), sorted(assigned - before)
        try:
            if gone:
                self._commit_before_loss()
                self._tell("on_partitions_revoked", gone)
        finally:  # whatever the listener raises: the coordinator counts on it
            with self._network.seat:
                self._subscription.replace(sorted(assigned))
                for where in new:
                    self._subscription.partitions[where].wants_committed = True
                membership.assignment_taken(gave_up=bool(gone))
            self._network.wake_for(0)
            self._tell("on_partitions_assigned", new, always=True)

    def _commit_before_loss(self) -> None:
        if self._membership.identity.member_id:
            self.commits.commit_before_loss()

    def _drop(self, partitions: Sequence[TopicPartition]) -> None:
        with self._network.seat:
            self._subscription.replace(set(self._subscription.partitions) - set(partitions))

    def _tell(self, what: str, partitions: list[TopicPartition], *, always: bool = False) -> None:
        if self._listener is None or not (partitions or always):
            return
        method = getattr(self._listener, what, None)
        if method is None and what == "on_partitions_lost":
            method = getattr(self._listener, "on_partitions_revoked", None)
        if method is not None:
            method(partitions)

    # Leaving

    def leave(self, timeout_s: float) -> None:
        """Commits if it is owed, tells the listener, and leaves the group."""
        if not self._subscription.is_automatic:
            return
        membership = self._membership
        owned = sorted(self._subscription.partitions)
        if membership.is_lost:
            self._tell("on_partitions_lost", owned)
        elif membership.is_member:
            self.commits.commit_before_loss(timeout_s)
            self._tell("on_partitions_revoked", owned)
        gone: list[bool] = []
        with self._network.seat:
            membership.send_leave("the consumer unsubscribed from all topics", lambda: gone.append(True))
            membership.forget_membership(lost=False)
        self._network.wait_until(lambda: bool(gone), min(timeout_s, _LONGEST_LEAVING_S))

    def close(self, timeout_s: float) -> None:
        """`leave`; a consumer with partitions chosen by hand commits if auto-commit is on."""
        if self._subscription.is_automatic:
            self.leave(timeout_s)
        elif self._subscription.is_manual:
            self.commits.commit_before_loss(timeout_s)
        self.commits.call_back()


def _make_membership(
    network: Network, coordinator: Coordinator, subscription: Subscription, config: ClientConfig
) -> GroupMembership:
    """The one of the configured protocol; a consumer is of one only, and loads no more."""
    if config["group.protocol"].lower() == "consumer":
        from kafkapy.client.consumer_membership import ConsumerMembership

        return ConsumerMembership(network, coordinator, subscription, config)
    from kafkapy.client.membership import Membership

    return Membership(network, coordinator, subscription, config)
