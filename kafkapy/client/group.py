"""A consumer's group as its application sees it: rebalances within poll, commits, committed positions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from kafkapy.client.coordinator import (
    Coordinator,
    MemberIdentity,
    OffsetAndMetadata,
    commit_offsets,
    fetch_offsets,
)
from kafkapy.client.exchange import POLL_MS, passes, until_answered
from kafkapy.client.membership import Membership, Phase
from kafkapy.client.network import NEVER, Network
from kafkapy.client.subscription import Subscription
from kafkapy.errors import ApiError, ConfigError, Error
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.client.configuration import ClientConfig

log = logging.getLogger("kafkapy.client")


class RebalanceListener(Protocol):
    """What `subscribe` may be given; every method may be left out. Called within `poll` and `close`, and may commit."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """These go to others; this is the last moment to commit for them."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """These have come; with a cooperative assignor, besides those that stayed."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """These belong to others already. Left out: `on_partitions_revoked` is called."""


class ConsumerGroup:
    """Owns the coordinator, the membership and auto-commit of one consumer.  `run` is a task of the network and has the
    seat; everything else is called by the consumer's thread without it."""

    def __init__(self, network: Network, subscription: Subscription, config: ClientConfig) -> None:
        self._network = network
        self._subscription = subscription
        self._config = config
        self.group_id: str | None = config["group.id"]
        self._coordinator = Coordinator(network, self.group_id or "")
        self._membership = Membership(network, self._coordinator, subscription, config)
        self._listener: Any = None
        self._auto_commit_ms: int | None = (
            config["auto.commit.interval.ms"] if config["enable.auto.commit"] and self.group_id is not None else None
        )
        self._next_commit_ms = 0
        self._done: list[Callable[[], None]] = []  # callbacks of commits, for the application's thread
        self._is_asking = False
        self._known_counts: dict[str, int] = {}

    def require(self) -> None:
        """ConfigError unless there is a group."""
        if self.group_id is None:
            raise ConfigError("To use the group management or offset commit APIs, you must provide a valid group.id")

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
                        state.jump(offsets[where].offset)

        fetch_offsets(self._network, self._coordinator, wanted, found, require_stable=True)
        return now_ms + POLL_MS

    def _watch_topics(self) -> None:
        """A rebalance is due when topics that are subscribed to come, go or grow."""
        cluster = self._network.cluster
        topics = self._subscription.matching(
            name
            for name, info in cluster.topics.items()
            if not (info.is_internal and self._config["exclude.internal.topics"])
        )
        counts = {name: len(cluster.topics[name].partitions) for name in topics if name in cluster.topics}
        if counts != self._known_counts:
            self._known_counts = counts
            if self._membership.phase is Phase.STABLE:
                self._membership.rejoin_wanted = True
                self._membership.reason = "cached metadata has changed"

    # The consumer's side

    def subscription_changed(self, listener: Any) -> None:
        """Other topics than before; the seat is held."""
        self._listener = listener
        pattern = self._subscription.pattern is not None
        self._network.metadata.set_topics(self._subscription.topics, wants_all=pattern)
        self._membership.rejoin_wanted = True
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
            bool(self._done)
            or membership.fatal is not None
            or (self._subscription.is_automatic and (membership.rejoin_wanted or membership.new_assignment is not None))
        )

    def poll(self, end_ms: int) -> None:
        """Whatever the application has to hear of, and the auto-commit that is due. Waits at most until `end_ms`."""
        now = self._network.clock.monotonic_ms()
        self._membership.last_poll_ms = now
        self._call_back()
        if self._subscription.is_automatic:
            self._rebalance(end_ms)
        if self._membership.fatal is not None:
            raise self._membership.fatal
        if self._auto_commit_ms is not None and now >= self._next_commit_ms:
            if self._next_commit_ms:
                self.commit_async(self.positions(), _log_failure)
            self._next_commit_ms = now + self._auto_commit_ms

    def _rebalance(self, end_ms: int) -> None:
        """Gives up what goes, joins, and takes what comes; goes on in a later poll if the time is over."""
        membership = self._membership
        while True:
            if membership.rejoin_wanted and membership.phase in (Phase.UNJOINED, Phase.STABLE):
                self._give_up()
                with self._network.seat:
                    membership.begin_join()
            if membership.phase is Phase.UNJOINED or (
                membership.phase is Phase.STABLE
                and (membership.new_assignment is None and not membership.rejoin_wanted)
            ):
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
        assert membership.new_assignment is not None
        assigned, before = set(membership.new_assignment), set(self._subscription.partitions)
        gone, new = sorted(before - assigned), sorted(assigned - before)
        if gone:
            self._commit_before_loss()
            self._tell("on_partitions_revoked", gone)
        with self._network.seat:
            membership.new_assignment = None
            self._subscription.replace(sorted(assigned))
            for where in new:
                self._subscription.partitions[where].wants_committed = True
            if gone and membership.is_cooperative:
                membership.rejoin_wanted = True  # so that they can be given to others
                membership.reason = "need to revoke partitions and re-join"
        self._tell("on_partitions_assigned", new, always=True)
        self._network.wake_for(0)

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

    # Commits

    @property
    def identity(self) -> MemberIdentity:
        """Who the group knows this consumer as."""
        return self._membership.identity

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where the application is in every partition that it has a position of."""
        return {
            where: OffsetAndMetadata(state.position, "", state.leader_epoch)
            for where, state in self._subscription.partitions.items()
            if state.position is not None
        }

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_s: float) -> None:
        """Commits and waits; ApiError, TimeoutError."""
        self.require()
        self._call_back()
        if offsets:
            until_answered(
                self._network,
                self._coordinator,
                lambda node_id, done: commit_offsets(
                    self._network, self._coordinator, self._membership.identity, offsets, lambda e: done(None, e)
                ),
                timeout_s,
                "offsets were committed",
            )

    def commit_async(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], on_done: Callable[[Exception | None], None]
    ) -> None:
        """Commits and calls back from a later poll."""
        self.require()

        def done(error: Exception | None) -> None:
            self._done.append(lambda: on_done(error))

        if not offsets:
            return
        if not self._knows_coordinator():
            done(ApiError(Error.COORDINATOR_NOT_AVAILABLE))
            return
        with self._network.seat:
            commit_offsets(self._network, self._coordinator, self._membership.identity, offsets, done)
        self._network.try_drive()

    def committed(
        self, partitions: Sequence[TopicPartition], timeout_s: float
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What is committed of these partitions."""
        self.require()
        found: dict[TopicPartition, OffsetAndMetadata] = until_answered(
            self._network,
            self._coordinator,
            lambda node_id, done: fetch_offsets(
                self._network, self._coordinator, partitions, done, require_stable=True
            ),
            timeout_s,
            "the committed offsets were found",
        )
        return found

    def _knows_coordinator(self) -> bool:
        with self._network.seat:
            return self._coordinator.node(self._network.clock.monotonic_ms()) is not None

    def _commit_before_loss(self) -> None:
        """What auto-commit owes before partitions go."""
        if self._auto_commit_ms is None or not self._membership.identity.member_id:
            return
        try:
            self.commit(self.positions(), self._config["default.api.timeout.ms"] / 1000)
        except (ApiError, TimeoutError) as error:
            _log_failure(error)

    def _call_back(self) -> None:
        while self._done:
            self._done.pop(0)()

    # Leaving

    def leave(self, timeout_s: float) -> None:
        """Commits if it is owed, tells the listener, and leaves the group."""
        if not self._subscription.is_automatic:
            return
        owned = sorted(self._subscription.partitions)
        if self._membership.phase is Phase.STABLE and not self._membership.is_lost:
            self._commit_before_loss()
            self._tell("on_partitions_revoked", owned)
        gone: list[bool] = []
        with self._network.seat:
            self._membership.send_leave("the consumer unsubscribed from all topics", lambda: gone.append(True))
            self._membership.forget_membership(lost=False)
        self._network.wait_until(lambda: bool(gone), min(timeout_s, 5.0))

    def close(self, timeout_s: float) -> None:
        """`leave`; a consumer with partitions chosen by hand commits if auto-commit is on."""
        if self._subscription.is_automatic:
            self.leave(timeout_s)
        elif self._auto_commit_ms is not None and self._subscription.is_manual:
            try:
                self.commit(self.positions(), timeout_s)
            except (ApiError, TimeoutError) as error:
                _log_failure(error)
        self._call_back()


def _log_failure(error: Exception | None) -> None:
    if error is not None:
        log.warning("Auto-commit failed: %s", error)
