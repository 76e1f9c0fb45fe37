"""The requests of share groups to the group coordinator, and the initialization of their partitions' states."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kafkapy.coordinator.group.share_description import described_share_group
from kafkapy.coordinator.group.share_group import ShareGroup
from kafkapy.coordinator.group.share_membership import ShareHeartbeatCall, ShareHeartbeatResult
from kafkapy.coordinator.group.share_settings import ShareGroupSettings
from kafkapy.coordinator.runtime import ErrorResponder
from kafkapy.errors import Error
from kafkapy.protocol.messages.share_group_describe import ShareGroupDescribeResponse
from kafkapy.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from kafkapy.replica.share.persister import UNINITIALIZED_START_OFFSET, Persister, SharePartitionKey
from kafkapy.types import Clock

if TYPE_CHECKING:
    from kafkapy.coordinator.group.group_coordinator import GroupCoordinator

logger = logging.getLogger("kafka.coordinator.group")


class ShareGroups:
    """Serves the heartbeats and descriptions of share groups, and initializes the states of their partitions. Only the
    reactor's thread may use the object.
    """

    def __init__(
        self, coordinator: GroupCoordinator, settings: ShareGroupSettings, persister: Persister, clock: Clock
    ) -> None:
        self.clock = clock
        self.coordinator = coordinator
        self.settings = settings
        self.persister = persister

    def heartbeat(
        self,
        call: ShareHeartbeatCall,
        respond: Callable[[ShareGroupHeartbeatResponse], None],
        refuse: ErrorResponder,
    ) -> None:
        """Handles a heartbeat: calls `respond` with the response, or `refuse(error, message)` if the request is
        refused. The states of new partitions are initialized after the response has been sent."""

        def done(heartbeat: ShareHeartbeatResult) -> None:
            respond(heartbeat.response)
            if heartbeat.to_initialize:
                offsets = {
                    topic_id: dict.fromkeys(partitions, UNINITIALIZED_START_OFFSET)
                    for topic_id, partitions in heartbeat.to_initialize.items()
                }
                self.initialize(call.group_id, heartbeat.state_epoch, offsets, lambda errors: None)

        self.coordinator.execute(call.group_id, lambda shard: shard.shares.share_heartbeat(call), done, refuse)

    def initialize(
        self,
        group_id: str,
        state_epoch: int,
        offsets: Mapping[bytes, Mapping[int, int]],
        on_errors: Callable[[Mapping[tuple[bytes, int], Error]], None],
    ) -> None:
        """Creates the states of partitions, and writes to the group's record which of them exist now.

        `offsets` maps each topic id to the new start offsets by partition id. At the end `on_errors` is called with the
        error of each (topic id, partition id), NONE after success.
        """
        errors: dict[tuple[bytes, int], Error] = {}
        count = sum(map(len, offsets.values()))
        if not count:
            on_errors(errors)

        def initialized(key: SharePartitionKey, error: Error) -> None:
            if error is not Error.NONE:
                logger.warning("The state of share partition %s was not initialized: %s", key, error.name)
            errors[key.topic_id, key.partition] = error
            if len(errors) == count:
                self._record(group_id, errors, lambda: on_errors(errors))

        for topic_id, partitions in offsets.items():
            for number, offset in sorted(partitions.items()):
                key = SharePartitionKey(group_id, topic_id, number)
                self.persister.initialize(
                    key,
                    state_epoch,
                    offset,
                    lambda error, message, key=key: initialized(key, error),  # type: ignore[misc]
                )

    def _record(
        self, group_id: str, errors: Mapping[tuple[bytes, int], Error], on_recorded: Callable[[], None]
    ) -> None:
        """Writes to the group's record which partitions have a state now, and which could not be initialized.

        `errors` maps each (topic id, partition id) to the outcome. `on_recorded` is called when the record is
        committed, and also if it could not be written.
        """
        succeeded: dict[bytes, set[int]] = {}
        failed: dict[bytes, set[int]] = {}
        for (topic_id, number), error in errors.items():
            (failed if error else succeeded).setdefault(topic_id, set()).add(number)

        def refused(error: Error, message: str | None) -> None:
            logger.warning("The initialized partitions of share group %s were not recorded: %s", group_id, error.name)
            on_recorded()

        self.coordinator.execute(
            group_id,
            lambda shard: shard.shares.initialized(group_id, succeeded, failed),
            lambda response: on_recorded(),
            refused,
        )

    def existing(self, group_id: str) -> ShareGroup:
        """Returns the group. Raises ApiError GROUP_ID_NOT_FOUND, NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS."""
        return self.coordinator.shard_of(group_id).shares.existing(group_id)

    def describe(self, group_id: str) -> ShareGroupDescribeResponse.DescribedGroup:
        """Returns the description of the group.

        Raises ApiError GROUP_ID_NOT_FOUND, NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        return described_share_group(self.existing(group_id), self.settings.image().topics.by_id)
