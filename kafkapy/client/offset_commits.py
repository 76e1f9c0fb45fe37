"""The commits of one consumer: those asked for, those of their own accord, and what is committed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kafkapy.client.coordinator import Coordinator, OffsetAndMetadata, commit_offsets, fetch_offsets
from kafkapy.client.exchange import until_answered
from kafkapy.client.group_membership import GroupMembership
from kafkapy.client.network import Network
from kafkapy.client.subscription import Subscription
from kafkapy.errors import ApiError, ConfigError, Error
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.client.configuration import ClientConfig

log = logging.getLogger("kafkapy.client")

Offsets = dict[TopicPartition, OffsetAndMetadata]


class OffsetCommits:
    """Owns auto-commit, and the callbacks of commits until the application's thread comes by.  Called by that thread
    without the network's seat. `on_committed` hears of everything that was committed."""

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
        self._interval_ms: int | None = (
            config["auto.commit.interval.ms"] if config["enable.auto.commit"] and self._group_id is not None else None
        )
        self._next_ms = 0
        self._done: list[Callable[[], object]] = []

    def require_group(self) -> None:
        """ConfigError unless there is a group."""
        if self._group_id is None:
            raise ConfigError("To use the group management or offset commit APIs, you must provide a valid group.id")

    def positions(self) -> Offsets:
        """Where the application is in every partition that it has a position of."""
        return {
            where: OffsetAndMetadata(state.position, "", state.leader_epoch)
            for where, state in self._subscription.partitions.items()
            if state.position is not None
        }

    def commit(self, offsets: Offsets, timeout_s: float) -> None:
        """Commits and waits; ApiError, TimeoutError."""
        self.require_group()
        self.call_back()
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
        self._on_committed(offsets)

    def commit_async(self, offsets: Offsets, on_done: Callable[[Exception | None], object]) -> None:
        """Commits and calls back from a later poll."""
        self.require_group()

        def tell(error: Exception | None) -> None:
            if error is None:
                self._on_committed(offsets)
            on_done(error)

        def done(error: Exception | None) -> None:
            self._done.append(lambda: tell(error))

        if not offsets:
            return
        if not self._knows_coordinator():
            done(ApiError(Error.COORDINATOR_NOT_AVAILABLE))
            return
        with self._network.seat:
            commit_offsets(self._network, self._coordinator, self._membership.identity, offsets, done)
        self._network.try_drive()

    def committed(self, partitions: Sequence[TopicPartition], timeout_s: float) -> Offsets:
        """What is committed of these partitions."""
        self.require_group()
        found: Offsets = until_answered(
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

    # Of their own accord

    def commit_if_due(self, now_ms: int) -> None:
        """Auto-commit, by the time."""
        if self._interval_ms is not None and now_ms >= self._next_ms:
            if self._next_ms:
                self.commit_async(self.positions(), log_failure)
            self._next_ms = now_ms + self._interval_ms

    def commit_before_loss(self, timeout_s: float | None = None) -> None:
        """What auto-commit owes before partitions go."""
        if self._interval_ms is None or not self._subscription.partitions:
            return
        try:
            with self._network.undisturbed():
                self.commit(self.positions(), self._api_timeout_s if timeout_s is None else timeout_s)
        except (ApiError, TimeoutError) as error:
            log_failure(error)

    # Callbacks

    @property
    def has_callbacks(self) -> bool:
        return bool(self._done)

    def call_back(self) -> None:
        """Calls whoever waits to hear of a commit."""
        while self._done:
            self._done.pop(0)()


def log_failure(error: Exception | None) -> None:
    """What becomes of an auto-commit that failed: the next one makes up for it."""
    if error is not None:
        log.warning("Auto-commit failed: %s", error)
