"""A share consumer's membership in its group (KIP-932): the coordinator assigns partitions, which members share."""

from __future__ import annotations

import logging
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy.client.consumer_membership import ConsumerMembership
from kafkapy.client.coordinator import MemberIdentity
from kafkapy.errors import ApiError
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

log = logging.getLogger("kafkapy.client")

_NO_SHARE_GROUPS = (
    "The cluster does not support the share group protocol. To use share groups, the cluster must have the share group "
    "protocol enabled."
)


class ShareMembership(ConsumerMembership):
    """A share consumer's membership: heartbeats as in the consumer protocol, without owned partitions.

    An assignment is applied when it arrives, because nothing has to be revoked first. A member that the coordinator has
    removed joins again at once if the last poll is not older than `max.poll.interval.ms`; otherwise the next poll makes
    it join again.
    """

    _API = ApiKey.SHARE_GROUP_HEARTBEAT

    @property
    def member_id(self) -> str:
        """The id that the consumer uses in its group and in its share sessions until it is closed."""
        return self._member_id

    def run(self, monotonic_ms: int) -> int:
        if self.is_lost and monotonic_ms < self._poll_deadline_ms():
            self.begin_join()
        due = super().run(monotonic_ms)
        if self.is_lost:
            self._subscription.replace(())
        elif self.new_assignment is not None:
            self._subscription.replace(self.take_assignment())
            self.assignment_applied(has_revoked=False)
        return due

    def begin_join(self) -> None:
        super().begin_join()
        self.is_lost = False

    def _fields(self) -> dict[str, Any]:
        return {
            "rack_id": self._config["client.rack"] or None,
            "subscribed_topic_names": sorted(self._subscription.topics),
        }

    def _request(self, version: int, identity: MemberIdentity, changes: dict[str, Any]) -> Message:
        return ShareGroupHeartbeatRequest(
            group_id=self._coordinator.key, member_id=identity.member_id, member_epoch=identity.generation, **changes
        )

    def _too_old(self, failure: ApiError) -> ApiError:
        return ApiError(failure.error, _NO_SHARE_GROUPS)
