"""Share groups (KIP-932) on a log in memory: the commands of consumer_group_harness.py, and heartbeats of share groups.

A stub of the share coordinator initializes the states of partitions.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.coordinator.group.share_membership import ShareHeartbeatCall
from kafkapy.coordinator.group.share_requests import ShareGroups
from kafkapy.coordinator.group.share_settings import ShareGroupSettings
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.coordinator_records import (
    ShareGroupMemberMetadataKey,
    ShareGroupStatePartitionMetadataKey,
)
from kafkapy.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from kafkapy.replica.share.persister import SharePartitionKey
from tests.harness.config import FixedBrokerKeys
from tests.scenarios.fields_harness import FieldsHarness

SHARE_SETTINGS = {"group.share.max.size": 3, "group.share.assignment.interval.ms": 0}


class StubPersister:
    """Initializes a state at once, or when the transcript says so."""

    def __init__(self, hear: Callable[[str], None], name_of: Callable[[bytes], str]) -> None:
        self._hear = hear
        self._name_of = name_of
        self.is_holding = False
        self._waiting: list[tuple[str, Callable[[Error, str | None], None]]] = []

    def initialize(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        start_offset: int,
        respond: Callable[[Error, str | None], None],
    ) -> None:
        name = f"{self._name_of(key.topic_id)}{key.partition}"
        self._hear(f"initialize: {name} epoch={state_epoch} start={start_offset}")
        if self.is_holding:
            self._waiting.append((name, respond))
        else:
            respond(Error.NONE, None)

    def respond(self, error: Error, names: tuple[str, ...]) -> None:
        """Responds to the requests of the partitions `names`, or to all that wait."""
        waiting, self._waiting = self._waiting, []
        for name, respond in waiting:
            if names and name not in names:
                self._waiting.append((name, respond))
            else:
                respond(error, None)


class ShareGroupHarness(FieldsHarness):
    """The harness of share groups."""

    kind = "share"
    record_kinds = range(ShareGroupMemberMetadataKey.API_KEY, ShareGroupStatePartitionMetadataKey.API_KEY + 1)

    def __init__(self) -> None:
        super().__init__(SHARE_SETTINGS)
        self._epochs: dict[tuple[str, str], str] = {}
        self.persister = StubPersister(self._hear, lambda topic_id: self.names[topic_id])

    def _shares(self) -> ShareGroups:
        config = FixedBrokerKeys(self.settings_with_defaults())
        settings = ShareGroupSettings(config, lambda: self.image)
        return ShareGroups(self.coordinator, settings, self.persister, self.clock)  # type: ignore[arg-type]

    def do_delay(self) -> None:
        """Makes the share coordinator wait for the command `respond`."""
        self.persister.is_holding = True

    def do_respond(self, error: str, *names: str) -> None:
        self.persister.respond(Error[error], names)
        self._hear_records()

    def do_share(self, group: str, member: str, epoch: str, **named: str) -> None:
        """Sends a heartbeat: `topics=a,b rack=r client=c`. The epoch `now` is the last one that the member got."""
        topics = named.get("topics")
        if epoch == "now":
            epoch = self._epochs[group, member]
        call = ShareHeartbeatCall(
            group_id=group,
            member_id=member,
            member_epoch=int(epoch),
            rack_id=named.get("rack"),
            client_id=named.get("client", "client"),
            client_host="/host",
            subscribed_topic_names=None if topics is None else [each for each in topics.split(",") if each],
        )

        def respond(response: ShareGroupHeartbeatResponse) -> None:
            self._epochs[group, member] = str(response.member_epoch)
            self._hear(f"{member}: {self.said_fields(response)}")

        def refuse(error: Error, message: str | None) -> None:
            self._hear(f"{member}: {error.name} {message or ''}".rstrip())

        self._shares().heartbeat(call, respond, refuse)
        self._hear_records()

    def do_described(self, group: str) -> None:
        try:
            self._hear(self.said_fields(self._shares().describe(group)))
        except ApiError as error:
            self._hear(f"{error.error.name} {error.message}")
