"""Consumer groups (KIP-848) on a log in memory: the commands of group_harness.py, and those of the new protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkapy.config.table import BROKER_ROWS
from kafkapy.config.value import default_value
from kafkapy.coordinator.group.consumer_membership import ConsumerHeartbeatCall
from kafkapy.coordinator.group.consumer_records import MEMBER_STATES
from kafkapy.coordinator.group.consumer_settings import ConsumerGroupSettings
from kafkapy.coordinator.group.embedded_protocol import decode_assignment
from kafkapy.coordinator.group.group_config import GroupConfig
from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
from kafkapy.coordinator.group.regex_resolver import Matches, evaluate_here
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import EMPTY_IMAGE, MetadataImage
from kafkapy.metadata.topics_image import TopicImage, TopicsImage
from kafkapy.protocol.coordinator_record import decode_coordinator_key, decode_coordinator_value, encode_coordinator
from kafkapy.protocol.messages.data_records import ConsumerProtocolSubscription
from tests.harness.config import FixedBrokerKeys
from tests.harness.replica import partition_image
from tests.scenarios.group_harness import GroupHarness

CONSUMER_SETTINGS = {
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.max.size": 3,
    "group.initial.rebalance.delay.ms": 0,
}
RECORD_NAMES = {3: "epoch", 4: "metadata", 5: "member", 6: "target-epoch", 7: "target", 8: "current", 16: "regex"}


class ConsumerGroupHarness(GroupHarness):
    """The harness of consumer groups. Topics are named by one letter; partitions are shown as `a01`: topic a,
    partitions 0 and 1."""

    def __init__(self) -> None:
        self.image: MetadataImage = EMPTY_IMAGE
        self.names: dict[bytes, str] = {}
        self._waiting: list[Callable[[], None]] = []
        self._resolves_later = False
        super().__init__()
        self.settings.update(CONSUMER_SETTINGS)
        self.coordinator = self._new_coordinator()

    def settings_with_defaults(self) -> dict[str, Any]:
        rows = {name: default_value(row) for name, row in BROKER_ROWS.items()}
        return {**rows, **self.settings}

    def _new_coordinator(self) -> GroupCoordinator:
        settings = FixedBrokerKeys(self.settings_with_defaults())
        return GroupCoordinator(
            GroupConfig.from_broker_config(settings),
            log=self.log,
            schedule=self.schedule,
            clock=self.clock,
            new_uuid=self._new_uuid,
            settings=ConsumerGroupSettings(settings, lambda: self.image),
            resolve_regexes=self._resolve,
        )

    def _resolve(self, expressions: list[str], names: list[str], on_matches: Callable[[Matches], None]) -> None:
        if self._resolves_later:
            self._waiting.append(lambda: evaluate_here(expressions, names, on_matches))
        else:
            evaluate_here(expressions, names, on_matches)

    # -- the harness

    def do_policy(self, policy: str) -> None:
        self.settings["group.consumer.migration.policy"] = policy  # type: ignore[assignment]
        self.coordinator = self._new_coordinator()

    def do_topic(self, name: str, partitions: str) -> None:
        topics = dict(self.image.topics.by_name)
        topic_id = name.encode().ljust(16, b"\1")
        topics[name] = TopicImage(name, topic_id, {number: partition_image() for number in range(int(partitions))})
        self._put_topics(topics)

    def do_drop(self, name: str) -> None:
        self._put_topics({other: topic for other, topic in self.image.topics.by_name.items() if other != name})

    def _put_topics(self, topics: dict[str, TopicImage]) -> None:
        by_id = {topic.topic_id: topic for topic in topics.values()}
        self.names.update({topic_id: topic.name for topic_id, topic in by_id.items()})
        self.image = self.image._replace(topics=TopicsImage(topics, by_id), offset=self.image.offset + 1)

    def do_later(self) -> None:
        """Delays the evaluation of expressions until the command `resolve`."""
        self._resolves_later = True

    def do_resolve(self) -> None:
        waiting, self._waiting = self._waiting, []
        for resolve in waiting:
            resolve()
        self._hear_records()

    def do_waiting(self) -> None:
        """Shows how many evaluations of expressions wait for the command `resolve`."""
        self._hear(f"evaluations that wait: {len(self._waiting)}")

    # -- requests

    def do_beat(self, group: str, member: str, epoch: str, **named: str) -> None:
        """Sends a heartbeat: `topics=a,b owned=a01 regex=... instance=... assignor=... rebalance=...`"""
        topics = named.get("topics")
        names = None if topics is None else [topic for topic in topics.split(",") if topic]
        owned = None if "owned" not in named else self._partitions(named["owned"])
        if epoch == "0":
            owned = {}
        call = ConsumerHeartbeatCall(
            group_id=group,
            member_id=member,
            member_epoch=int(epoch),
            instance_id=named.get("instance"),
            rack_id=named.get("rack"),
            rebalance_timeout_ms=int(named.get("rebalance", "30000" if epoch == "0" else "-1")),
            client_id="client",
            client_host="/host",
            subscribed_topic_names=names,
            subscribed_topic_regex=named.get("regex"),
            server_assignor=named.get("assignor"),
            owned=owned,
        )

        def refuse(error: Error, message: str | None) -> None:
            self._hear(f"{member}: {error.name} {message or ''}".rstrip())

        self.coordinator.consumer_group_heartbeat(call, lambda answer: self._hear_beat(member, answer), refuse)
        self._hear_records()

    def do_subscribe(self, group: str, who: str, topics: str, **named: str) -> None:
        """Sends a classic member's JoinGroup with a subscription to these topics."""
        owned = [
            ConsumerProtocolSubscription.TopicPartition(topic=self.names[topic_id], partitions=sorted(partitions))
            for topic_id, partitions in self._partitions(named.pop("owned", "")).items()
        ]
        said = ConsumerProtocolSubscription(topics=topics.split(","), owned_partitions=owned)
        self._metadata = encode_coordinator(said, 3)
        self.do_join(group, who, **named)

    def _protocols(self, text: str) -> list[tuple[str, bytes]]:
        metadata = getattr(self, "_metadata", None)
        return super()._protocols(text) if metadata is None else [(text.partition(",")[0], metadata)]

    def _shown_metadata(self, metadata: bytes) -> str:
        return "..."

    def _shown_assignment(self, assignment: bytes) -> str:
        found = decode_assignment(assignment, self.image.topics)
        return "+".join(f"{self.names[each]}{''.join(map(str, sorted(numbers)))}" for each, numbers in found.items())

    def do_describe(self, group: str) -> None:
        try:
            described = self.coordinator.describe_consumer_group(group)
        except ApiError as error:
            self._hear(f"described: {error.error.name} {error.message}")
            super().do_describe(group)
            return
        self._hear(
            f"described: {described.group_state} epoch={described.group_epoch} "
            f"assignment-epoch={described.assignment_epoch} assignor={described.assignor_name}"
        )
        for member in described.members:
            self._hear(
                f"  {member.member_id} epoch={member.member_epoch} has={self._said_partitions(member.assignment)} "
                f"target={self._said_partitions(member.target_assignment)} type={member.member_type}"
            )

    # -- effects

    def _hear_beat(self, member: str, answer: Any) -> None:
        assignment = "" if answer.assignment is None else f" assignment={self._said_partitions(answer.assignment)}"
        self._hear(f"{member}: epoch={answer.member_epoch}{assignment}")

    def _hear_records(self) -> None:
        records = self.log.records[self._shown :]
        self._shown = len(self.log.records)
        self.heard += [f"record: {self._said(record.key, record.value)}" for record in records]

    def _said(self, key_bytes: bytes, value_bytes: bytes | None) -> str:
        key: Any = decode_coordinator_key(key_bytes)
        kind = type(key).API_KEY
        if kind not in RECORD_NAMES:
            return super()._said(key_bytes, value_bytes)
        who = getattr(key, "member_id", getattr(key, "regular_expression", ""))
        name = " ".join(word for word in (key.group_id, RECORD_NAMES[kind], who) if word)
        if value_bytes is None:
            return f"{name} deleted"
        value: Any = decode_coordinator_value(kind, value_bytes)
        if kind == 3:
            return f"{name} {value.epoch}"
        if kind == 5:
            classic = " classic" if value.classic_member_metadata is not None else ""
            said = f"topics={','.join(value.subscribed_topic_names)} regex={value.subscribed_topic_regex}"
            return f"{name} {said} instance={value.instance_id}{classic}"
        if kind == 6:
            return f"{name} {value.assignment_epoch}"
        if kind == 7:
            return f"{name} {self._said_entries(value.topic_partitions)}"
        if kind == 16:
            return f"{name} {','.join(value.topics)}"
        said = f"{name} epoch={value.member_epoch} previous={value.previous_member_epoch}"
        state = MEMBER_STATES[value.state].name
        revoking = self._said_entries(value.partitions_pending_revocation)
        return f"{said} {state} assigned={self._said_entries(value.assigned_partitions)} revoking={revoking}"

    def _said_partitions(self, assignment: Any) -> str:
        return self._said_entries(assignment.topic_partitions)

    def _said_entries(self, entries: list[Any]) -> str:
        shown = [f"{self.names[entry.topic_id]}{''.join(map(str, sorted(entry.partitions)))}" for entry in entries]
        return "+".join(sorted(shown)) or "-"

    def _partitions(self, text: str) -> dict[bytes, frozenset[int]]:
        """Parses partitions such as `a01+b2`: topic a, partitions 0 and 1, and topic b, partition 2."""
        ids = {name: topic_id for topic_id, name in self.names.items()}
        return {ids[part[0]]: frozenset(map(int, part[1:])) for part in text.split("+") if part and part != "-"}
