"""The offset commits of one consumer: synchronous, asynchronous and automatic."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kafkapy.client.coordinator import Coordinator, OffsetAndMetadata, OnCommitted, commit_offsets, fetch_offsets
from kafkapy.client.coordinator_request import POLL_MS, request_until_done
from kafkapy.client.group_membership import GroupMembership
from kafkapy.client.network import Network
from kafkapy.client.subscription import Subscription
from kafkapy.errors import ApiError, ConfigError, Error
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy._core.client.fetched_records import ConsumerRecord
    from kafkapy.client.configuration import ClientConfig

log = logging.getLogger("kafkapy.client")

_NO_MEMBER = (
    "Offset commit cannot be completed since the consumer is not part of an active group for auto partition "
    "assignment; it is likely that the consumer was kicked out of the group."
)
Offsets = dict[TopicPartition, OffsetAndMetadata]


class OffsetCommits:
    """The offset commits of one consumer, including auto-commit.

    The application's thread calls the methods without `Network.lock`, the lock of the client's network loop.

    The callbacks of finished commits run in `call_back`, on the application's thread. `on_committed` is called with the
    offsets of every successful commit. `unread` has the records that were polled and that the application has not seen
    yet, the next one last.
    """

    def __init__(
        self,
        network: Network,
        coordinator: Coordinator,
        membership: GroupMembership,
        subscription: Subscription,
        config: ClientConfig,
        on_committed: Callable[[Offsets], object],
    ) -> None:
        self._network = network
        self._coordinator = coordinator
        self._membership = membership
        self._subscription = subscription
        self._group_id: str | None = config["group.id"]
        self._api_timeout_s: float = config["default.api.timeout.ms"] / 1000
        self._on_committed = on_committed
        self.unread: Sequence[ConsumerRecord] = ()
        self._interval_ms: int | None = (
            config["auto.commit.interval.ms"] if config["enable.auto.commit"] and self._group_id is not None else None
        )
        self._next_ms = 0
        self._callbacks: list[Callable[[], object]] = []

    def require_group(self) -> None:
        """Raises ConfigError if the consumer has no group.id."""
        if self._group_id is None:
            raise ConfigError("To use the group management or offset commit APIs, you must provide a valid group.id")

    def positions(self) -> Offsets:
        """Returns the offsets to commit: the position of each assigned partition that has one, with its leader epoch.

        The application has not yet seen the records in `unread`, although they were polled. If `unread` has records of
        a partition, the result for this partition is the offset of the first of them, without a leader epoch.
        """
        found = {
            topic_partition: OffsetAndMetadata(state.position, "", state.leader_epoch)
            for topic_partition, state in self._subscription.partitions.items()
            if state.position is not None
        }
        for record in self.unread:
            topic_partition = TopicPartition(record.topic, record.partition)
            if topic_partition in found:
                found[topic_partition] = OffsetAndMetadata(record.offset)
        return found

    def commit(self, offsets: Offsets, timeout_s: float) -> None:
        """Commits the offsets and blocks until the coordinator has responded.

        Raises ApiError for an error that is not retried, and RequestTimedOut after `timeout_s` seconds.
        """
        self.require_group()
        self.call_back()
        if offsets:
            request_until_done(
                self._network,
                self._coordinator,
                lambda node_id, done: self._send(offsets, lambda error: done(None, error)),
                timeout_s,
                "offsets were committed",
            )
        self._on_committed(offsets)

    def commit_async(self, offsets: Offsets, on_done: Callable[[Exception | None], object]) -> None:
        """Sends a commit without blocking, and does not retry it; a later `call_back` calls `on_done(error)`.

        `error` is None after a success. If `offsets` is empty, no request is sent, which counts as a success. If the
        group's coordinator is not known, no request is sent, and `error` is COORDINATOR_NOT_AVAILABLE.
        """
        self.require_group()

        def call_back(error: Exception | None) -> None:
            if error is None:
                self._on_committed(offsets)
            on_done(error)

        def done(error: Exception | None) -> None:
            self._callbacks.append(lambda: call_back(error))

        if not offsets:
            self._callbacks.append(lambda: on_done(None))
            return
        if not self.knows_coordinator():
            done(ApiError(Error.COORDINATOR_NOT_AVAILABLE))
            return
        with self._network.lock:
            self._send(offsets, done)
        self._network.try_step()

    def _send(self, offsets: Offsets, on_done: OnCommitted) -> None:
        """Sends a commit, with `Network.lock` held; calls `on_done` with its error, or with None after a success.

        A consumer that has subscribed to topics and has lost its membership must not commit: the group accepts commits
        of others while it has no members, and they could overwrite those of a later member.
        """
        membership, identity = self._membership, self._membership.identity
        may_commit = membership.COMMITS_BEFORE_JOINING and membership.last_identity.generation < 0
        if self._subscription.is_automatic and identity.generation < 0 and not may_commit:
            on_done(ApiError(Error.UNKNOWN_MEMBER_ID, _NO_MEMBER))
        else:
            commit_offsets(self._network, self._coordinator, identity, offsets, on_done)

    def committed(self, partitions: Sequence[TopicPartition], timeout_s: float) -> Offsets:
        """Returns the committed offsets of the partitions that have one. Blocks.

        Raises ApiError for an error that is not retried, and RequestTimedOut after `timeout_s` seconds.
        """
        self.require_group()
        found: Offsets = request_until_done(
            self._network,
            self._coordinator,
            lambda node_id, done: fetch_offsets(
                self._network, self._coordinator, partitions, done, require_stable=True
            ),
            timeout_s,
            "the committed offsets were found",
        )
        return found

    def knows_coordinator(self) -> bool:
        """Returns whether the coordinator is known; begins to look it up otherwise. Raises ApiError if that fails."""
        with self._network.lock:
            return self._coordinator.node(self._network.clock.monotonic_ms()) is not None

    def await_coordinator(self, timeout_s: float) -> None:
        """Blocks until the coordinator of the group is known, so that `commit_async` can send a commit.

        Raises RequestTimedOut after `timeout_s` seconds, and ApiError if the lookup has failed for good.
        """
        clock = self._network.clock
        if not self._network.wait_until(
            lambda: self._coordinator.node(clock.monotonic_ms()) is not None, timeout_s, poll_ms=POLL_MS
        ):
            raise self._network.timed_out("Timeout expired before the coordinator of the group was found")

    # Auto-commit

    def stop_automatic(self) -> None:
        """Turns auto-commit off: neither `commit_if_due` nor `commit_before_loss` commits any more."""
        self._interval_ms = None

    def commit_if_due(self, monotonic_ms: int) -> None:
        """Commits the positions if auto-commit is on and auto.commit.interval.ms has passed since the last automatic
        commit.

        The first call only begins the interval. Does not block.
        """
        if self._interval_ms is not None and monotonic_ms >= self._next_ms:
            if self._next_ms:
                self.commit_async(self.positions(), log_failure)
            self._next_ms = monotonic_ms + self._interval_ms

    def commit_before_loss(self, timeout_s: float | None = None) -> None:
        """Commits the positions before partitions are given up, if auto-commit is on. Blocks; a failure is logged.

        `timeout_s` limits the commit in seconds; None means `default.api.timeout.ms`.
        """
        if self._interval_ms is None or not self._subscription.partitions:
            return
        try:
            with self._network.uninterrupted():
                self.commit(self.positions(), self._api_timeout_s if timeout_s is None else timeout_s)
        except ApiError as error:
            log_failure(error)

    # Callbacks

    @property
    def has_callbacks(self) -> bool:
        """Returns whether a callback waits for `call_back`."""
        return bool(self._callbacks)

    def call_back(self) -> None:
        """Runs the callbacks of finished commits."""
        while self._callbacks:
            self._callbacks.pop(0)()


def log_failure(error: Exception | None) -> None:
    """Logs the error of an auto-commit; the next auto-commit commits the positions again."""
    if error is not None:
        log.warning("Auto-commit failed: %s", error)
