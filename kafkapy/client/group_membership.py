"""What a consumer's group asks of its membership, whichever protocol that speaks."""

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
    """Owns the member's identity and the exchange with the coordinator.  Touched with the network's seat held.

    Nothing that the application has to hear of happens of itself: `new_assignment` is what came of the last rebalance
    until `poll` takes it, and only `poll` begins to join.
    """

    def __init__(
        self, network: Network, coordinator: Coordinator, subscription: Subscription, config: ClientConfig
    ) -> None:
        self._network = network
        self._coordinator = coordinator
        self._subscription = subscription
        self._config = config
        self.identity = MemberIdentity(instance_id=config["group.instance.id"])
        self.rejoin_wanted = False
        self.is_lost = False  # the partitions were given to others meanwhile
        self.new_assignment: list[TopicPartition] | None = None
        self.fatal: Exception | None = None
        self.last_poll_ms = 0

    @property
    @abstractmethod
    def is_cooperative(self) -> bool:
        """Whether partitions that stay are kept during a rebalance."""

    @property
    @abstractmethod
    def is_member(self) -> bool:
        """Whether the group knows the member, and it does not join anew."""

    @property
    @abstractmethod
    def must_give_up(self) -> bool:
        """Whether the application has to hear that it loses partitions before `begin_join`."""

    @property
    @abstractmethod
    def is_rebalancing(self) -> bool:
        """Whether `poll` has to wait for an assignment, or to take one."""

    @abstractmethod
    def run(self, now_ms: int) -> int:
        """Goes on with what is under way; returns when to look again."""

    @abstractmethod
    def begin_join(self) -> None:
        """Joins the group, or joins it again; the application has been told."""

    @abstractmethod
    def subscription_changed(self) -> None:
        """Other topics than before are subscribed to."""

    @abstractmethod
    def topics_changed(self) -> None:
        """Topics that are subscribed to have come, gone or grown."""

    def take_assignment(self) -> list[TopicPartition]:
        """What was assigned, for `poll` to tell of; `assignment_taken` follows."""
        taken, self.new_assignment = self.new_assignment, None
        assert taken is not None
        return taken

    @abstractmethod
    def assignment_taken(self, *, gave_up: bool) -> None:
        """The application reads what was assigned; `gave_up`: it had partitions before that are not in it."""

    @abstractmethod
    def send_leave(self, reason: str, on_done: Callable[[], None] = lambda: None) -> None:
        """Says goodbye, if there is a coordinator to say it to; `on_done` is called in any case."""

    @abstractmethod
    def forget_membership(self, *, lost: bool, keeps_id: bool = False) -> None:
        """This consumer is no member any more; it may join again."""

    def _coordinator_node(self, now_ms: int) -> int | None:
        """The coordinator's connection; None while it is looked for, or when there is none to be had (`fatal`)."""
        try:
            return self._coordinator.node(now_ms)
        except ApiError as error:
            self.fatal = error
            return None

    def _poll_deadline_ms(self) -> int:
        """Until when the application has to poll again."""
        interval_ms: int = self._config["max.poll.interval.ms"]
        return self.last_poll_ms + interval_ms

    def _is_stuck(self, now_ms: int) -> bool:
        """Whether the application has not polled for too long: then the member has left the group."""
        if now_ms < self._poll_deadline_ms():
            return False
        log.warning("Consumer poll timeout has expired: the member leaves group %s", self._coordinator.key)
        self.send_leave("consumer poll timeout has expired.")
        self.forget_membership(lost=True)
        return True
