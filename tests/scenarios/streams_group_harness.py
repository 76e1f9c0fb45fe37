"""Streams groups (KIP-1071) on a log in memory: the commands of consumer_group_harness.py, and their heartbeats."""

from __future__ import annotations

from kafkapy.coordinator.group.streams.streams_member import TaskAssignment
from kafkapy.coordinator.group.streams.streams_membership import StreamsHeartbeatCall, StreamsHeartbeatResult
from kafkapy.coordinator.group.streams.topology import Subtopology, TopicInfo, Topology
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.coordinator_records import StreamsGroupMetadataKey, StreamsGroupTopologyKey
from tests.scenarios.fields_harness import FieldsHarness

STREAMS_SETTINGS = {
    "group.streams.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.max.size": 3,
}


class StreamsGroupHarness(FieldsHarness):
    """The harness of streams groups. The application has the subtopology `s`, which reads the topics of `source`."""

    kind = "streams"
    record_kinds = range(StreamsGroupMetadataKey.API_KEY, StreamsGroupTopologyKey.API_KEY + 1)

    def __init__(self) -> None:
        super().__init__(STREAMS_SETTINGS)

    def do_streams(self, group: str, member: str, epoch: str, **named: str) -> None:
        """Sends a heartbeat of `member`, whose fields are the words of the command in the transcript.

        The possible words are `source=a,b changelog=c topology=0 process=p endpoint=host:1 tags=k:v active=012
        standby=3 endpoints=1 rebalance=5000 rack=r client=c shutdown=yes`. Each digit of `active` and `standby` is the
        partition of a task of the subtopology `s`.
        """
        joins = epoch == "0"
        endpoint = named.get("endpoint")
        tags = named.get("tags")
        owned = None
        if joins or "active" in named or "standby" in named:
            owned = TaskAssignment(_tasks(named.get("active", "")), _tasks(named.get("standby", "")), {})
        call = StreamsHeartbeatCall(
            group_id=group,
            member_id=member,
            member_epoch=int(epoch),
            endpoint_epoch=int(named.get("endpoints", "0")),
            rack_id=named.get("rack"),
            rebalance_timeout_ms=int(named.get("rebalance", "30000" if joins else "-1")),
            client_id=named.get("client", "client"),
            client_host="/host",
            topology=_topology(named) if "source" in named else None,
            owned=owned,
            process_id=named.get("process", member if joins else None),
            user_endpoint=None if endpoint is None else (endpoint.split(":")[0], int(endpoint.split(":")[1])),
            client_tags=None if tags is None else tuple(tuple(each.split(":")) for each in tags.split(",")),  # type: ignore[misc]
            wants_shutdown="shutdown" in named,
        )

        def respond(result: StreamsHeartbeatResult) -> None:
            missing = f" missing={','.join(sorted(result.missing_topics))}" if result.missing_topics else ""
            self._hear(f"{member}: {self.said_fields(result.response)}{missing}")

        def refuse(error: Error, message: str | None) -> None:
            self._hear(f"{member}: {error.name} {message or ''}".rstrip())

        self.coordinator.streams_group_heartbeat(call, respond, refuse)
        self._hear_records()

    def do_described(self, group: str) -> None:
        try:
            self._hear(self.said_fields(self.coordinator.describe_streams_group(group)))
        except ApiError as error:
            self._hear(f"{error.error.name} {error.message}")


def _topology(named: dict[str, str]) -> Topology:
    changelogs = [each for each in named.get("changelog", "").split(",") if each]
    subtopology = Subtopology(
        subtopology_id="s",
        source_topics=tuple(named["source"].split(",")),
        source_topic_regex=(),
        sink_topics=(),
        repartition_topics=(),
        changelog_topics=tuple(TopicInfo(each, 0, 1, ()) for each in changelogs),
        copartition_groups=(),
    )
    return Topology(int(named.get("topology", "0")), {"s": subtopology})


def _tasks(digits: str) -> dict[str, frozenset[int]]:
    return {"s": frozenset(map(int, digits))} if digits else {}
