"""The group handlers on a real coordinator with a real log, which this broker leads."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kafkapy.coordinator.group.group_config import GroupConfig
from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
from kafkapy.metadata.cluster_image import BrokerRegistration, Endpoint
from kafkapy.metadata.internal_topics import GROUP_METADATA_TOPIC
from kafkapy.protocol.messages.join_group import JoinGroupRequest
from kafkapy.protocol.messages.sync_group import SyncGroupRequest
from kafkapy.server.coordinator_log import ReplicatedCoordinatorLog
from kafkapy.server.handlers.groups import handle_join_group, handle_sync_group
from tests.harness.handler import HandlerHarness
from tests.harness.replica import NODE_ID, partition_image

PARTITIONS = 4


class GroupHandlerHarness(HandlerHarness):
    """Owns the topic `t` with two partitions; `submitted` collects the operations for the controller."""

    def __init__(self, root: Path, *, with_offsets_topic: bool = True) -> None:
        super().__init__(
            root,
            overrides={"offsets.topic.num.partitions": str(PARTITIONS), "group.initial.rebalance.delay.ms": "0"},
        )
        endpoint = Endpoint("PLAINTEXT", "here", 9092, 0)
        here = BrokerRegistration(
            NODE_ID, 1, bytes(16), {"PLAINTEXT": endpoint}, {}, None, False, False, (), None, False
        )
        self.metadata.image = self.metadata.image._replace(brokers={NODE_ID: here})
        self.coordinator = GroupCoordinator(
            GroupConfig.from_broker_config(self.config),
            log=ReplicatedCoordinatorLog(self.manager, 5000),
            schedule=self.scheduler.schedule,
            clock=self.clock,
        )
        self.submitted: list[Any] = []
        self.services.group_coordinator = self.coordinator
        self.services.controller = SimpleNamespace(submit=self._submit)
        self.put_topic("t", [partition_image(), partition_image()])
        if with_offsets_topic:
            self.put_offsets_topic()

    def put_offsets_topic(self) -> None:
        self.put_topic(GROUP_METADATA_TOPIC, [partition_image() for _ in range(PARTITIONS)])
        self.notify_coordinator()

    def notify_coordinator(self) -> None:
        """Reports the changes of leadership since the last call to the group coordinator."""
        for led, followed in self.leadership:
            self.coordinator.on_leadership(led, followed)
        self.leadership.clear()

    def _submit(self, operation: Any) -> Any:
        self.submitted.append(operation)
        return SimpleNamespace(add_done_callback=lambda callback: None)

    def join(self, group: str, version: int = 9, **fields: Any) -> Any:
        """Sends a JoinGroup and returns its response; the initial rebalance delay is 0."""
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"meta")
        request = JoinGroupRequest(
            group_id=group, session_timeout_ms=10000, protocol_type="consumer", protocols=[protocol], **fields
        )
        answer = self.send(handle_join_group, request, version)
        self.scheduler.advance(0)
        return answer.response

    def member_of(self, group: str) -> str:
        """Returns the id of the only member of a stable group."""
        member_id: str = self.join(group, 3).member_id
        assignment = SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=b"mine")
        request = SyncGroupRequest(group_id=group, generation_id=1, member_id=member_id, assignments=[assignment])
        assert self.send(handle_sync_group, request, 0).response.error_code == 0
        return member_id
