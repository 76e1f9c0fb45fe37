"""The interface of a consumer's membership in its group, common to the classic and the consumer protocol."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkapy.client.coordinator import Coordinator, MemberIdentity
from kafkapy.client.network import Network
from kafkapy.client.subscription import Subscription
from kafkapy.errors import ApiError

if TYPE_CHECKING:
    from kafkapy.client.configuration import ClientConfig
    from kafkapy.types import TopicPartition

log = logging.getLogger("kafkapy.client")


class GroupMembership(ABC):
    """The interface of a consumer's membership in its group. Called while `Network.lock`, the lock of the client's
    network loop, is held.

    It owns the member's identity and the requests to the coordinator. The application sees a rebalance only within
    `poll`: `poll` starts to join, and `new_assignment` keeps the result of the last rebalance until `poll` applies it.
    `fatal` is an error that the membership cannot recover from. `failure` is an error that `poll` raises once, such as
    missing rights; the membership goes on with the next `poll`. `last_identity` is the identity with which the consumer
    was a member last; it stays if the membership is lost, so that commits with it are refused.
    """

    # Whether the rebalance listener is notified of an assignment that changes nothing, as by Java's consumer.
    REPORTS_NO_CHANGE = True
    # Whether a consumer may commit before it has been a member. The coordinator accepts it if the group has no members.
    COMMITS_BEFORE_JOINING = False

    def __init__(
        self, network: Network, coordinator: Coordinator, subscription: Subscription, config: ClientConfig
    ) -> None:
        self._network = network
        self._coordinator = coordinator
        self._subscription = subscription
        self._config = config
        self.identity = self.last_identity = MemberIdentity(instance_id=config["group.instance.id"])
        self.rejoin_wanted = False
        self.is_lost = False  # the group has assigned the partitions to other members
        self.new_assignment: list[TopicPartition] | None = None
        self.fatal: Exception | None = None
        self.failure: Exception | None = None
        self.last_poll_ms = 0

    @property
    @abstractmethod
    def is_cooperative(self) -> bool:
        """Returns whether the member keeps reading its partitions during a rebalance."""

    @property
    @abstractmethod
    def is_member(self) -> bool:
        """Returns whether the consumer is a member of the group at present; False while it is joining."""

    @property
    @abstractmethod
    def must_revoke(self) -> bool:
        """Returns whether the caller must revoke partitions and notify the application before it calls `begin_join`."""

    @property
    @abstractmethod
    def is_rebalancing(self) -> bool:
        """Returns whether `poll` has to wait for an assignment or to apply one."""

    @abstractmethod
    def run(self, monotonic_ms: int) -> int:
        """Sends the requests that are due; returns the monotonic time (ms) at which to run again."""

    @abstractmethod
    def begin_join(self) -> None:
        """Starts to join the group, for the first time or again, after the caller has revoked the partitions."""

    @abstractmethod
    def subscription_changed(self) -> None:
        """Is called after the application has subscribed to other topics."""

    @abstractmethod
    def topics_changed(self) -> None:
        """Is called when subscribed topics were created, deleted or have got more partitions."""

    def take_assignment(self) -> list[TopicPartition]:
        """Returns the new assignment for `poll` to apply; a call of `assignment_applied` must follow."""
        taken, self.new_assignment = self.new_assignment, None
        assert taken is not None
        return taken

    @abstractmethod
    def assignment_applied(self, *, has_revoked: bool) -> None:
        """Is called after `poll` has applied an assignment; `has_revoked` says whether partitions were revoked."""

    @abstractmethod
    def send_leave(self, reason: str, on_done: Callable[[], None] = lambda: None) -> None:
        """Sends the request to leave if a coordinator is known; `on_done` is called in any case, possibly at once."""

    @abstractmethod
    def forget_membership(self, *, lost: bool, keeps_id: bool = False) -> None:
        """Ends the membership; the consumer may join again.

        `lost` says that other members may have its partitions already. If `keeps_id` is True, and the protocol allows
        it, the consumer joins again with the same member id.
        """

    def coordinator_node(self, monotonic_ms: int) -> int | None:
        """Returns the coordinator's node id, or None while the coordinator is being looked up.

        If a lookup was refused, returns None and sets `failure`. A later call looks the coordinator up again, once
        `poll` has raised the failure; the error of a lookup that another caller has begun is left to that caller.
        """
        if self.failure is not None and self._coordinator.fatal is not None:
            return None
        try:
            return self._coordinator.node(monotonic_ms)
        except ApiError as error:
            self.failure = error
            return None

    def _poll_deadline_ms(self) -> int:
        """Returns the monotonic time (ms) until which the application must poll again."""
        interval_ms: int = self._config["max.poll.interval.ms"]
        return self.last_poll_ms + interval_ms

    def _leave_if_poll_is_late(self, monotonic_ms: int) -> bool:
        """Leaves the group if the application has not polled for max.poll.interval.ms; returns whether it has left."""
        if monotonic_ms < self._poll_deadline_ms():
            return False
        log.warning("Consumer poll timeout has expired: the member leaves group %s", self._coordinator.key)
        self.send_leave("consumer poll timeout has expired.")
        self.forget_membership(lost=True)
        return True
