"""A group coordinator on a log in memory, driven by the commands of a transcript; its responses become lines."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.coordinator.group.classic.join_call import JoinCall
from kafkapy.coordinator.group.group_config import GroupConfig
from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
from kafkapy.coordinator.group.offset_requests import CommitCall, FetchCall, OffsetToCommit
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.internal_topics import GROUP_METADATA_TOPIC
from kafkapy.protocol.coordinator_record import (
    decode_coordinator_key,
    decode_coordinator_value,
    encode_coordinator,
)
from kafkapy.protocol.messages import coordinator_records
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest
from kafkapy.protocol.messages.sync_group import SyncGroupRequest
from kafkapy.storage.control_record import ABORT, COMMIT, KEY, VALUE
from kafkapy.types import ZERO_UUID, TopicPartition
from tests.harness.config import FixedBrokerKeys
from tests.memory_coordinator_log import MemoryCoordinatorLog
from tests.mock_clock import MockClock

SETTINGS = {
    "offsets.topic.num.partitions": 1,
    "offsets.load.buffer.size": 1 << 20,
    "group.max.size": 4,
    "group.min.session.timeout.ms": 6000,
    "group.max.session.timeout.ms": 1800000,
    "group.initial.rebalance.delay.ms": 3000,
    "offset.metadata.max.bytes": 8,
    "offsets.retention.minutes": 10,
    "offsets.retention.check.interval.ms": 600000,
}
# Id and epoch of the transactional producer.
PRODUCER = (1, 0)


class MockSchedule:
    """Timers that fire when the mock clock is moved past them, in the order of their deadlines."""

    def __init__(self, clock: MockClock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, MockTimer]] = []
        self._count = 0

    def __call__(self, delay_ms: int, callback: Callable[[], None]) -> MockTimer:
        timer = MockTimer(callback)
        self._count += 1
        heapq.heappush(self._heap, (self._clock.monotonic_ms() + delay_ms, self._count, timer))
        return timer

    def advance(self, elapsed_ms: int) -> None:
        end = self._clock.monotonic_ms() + elapsed_ms
        while self._heap and self._heap[0][0] <= end:
            deadline, _, timer = heapq.heappop(self._heap)
            self._clock.advance(max(deadline - self._clock.monotonic_ms(), 0))
            if not timer.is_cancelled:
                timer.callback()
        self._clock.advance(end - self._clock.monotonic_ms())


class MockTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class GroupHarness:
    """Runs one command at a time; `heard` collects its effects."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.schedule = MockSchedule(self.clock)
        self.partition = TopicPartition(GROUP_METADATA_TOPIC, 0)
        self.log = MemoryCoordinatorLog()
        self.heard: list[str] = []
        self.settings = dict(SETTINGS)
        self._uuids = 0
        self._shown = 0
        self.coordinator = self._new_coordinator()

    def run(self, command: str) -> list[str]:
        """Runs the command and returns the lines that it caused."""
        self.heard = []
        name, *words = command.split()
        positional = [word for word in words if "=" not in word]
        named = dict(word.split("=", 1) for word in words if "=" in word)
        getattr(self, f"do_{name}")(*positional, **named)
        return self.heard

    # -- the harness

    def do_set(self, **settings: str) -> None:
        for key, value in settings.items():
            self.settings[key] = int(value)
        self.coordinator = self._new_coordinator()

    def do_elect(self, epoch: str = "0") -> None:
        self.coordinator.elect(0, int(epoch))
        self.schedule.advance(0)

    def do_resign(self) -> None:
        self.coordinator.resign(0)
        self._hear_records()

    def do_restart(self) -> None:
        """Kills the broker and starts it again with its log."""
        self.schedule = MockSchedule(self.clock)
        self.coordinator = self._new_coordinator()
        self.coordinator.elect(0, 1)
        self.schedule.advance(0)

    def do_found(self, key_class: str, group: str) -> None:
        """Appends the first record of a group, as if another broker had written it. `key_class` is the class of the
        record's key."""
        builder = RecordBatchBuilder(self.log.log_end_offset(self.partition))
        key = getattr(coordinator_records, key_class)(group_id=group)
        value = getattr(coordinator_records, key_class.replace("Key", "Value"))(epoch=1)
        builder.append(0, encode_coordinator(key), encode_coordinator(value, 0))
        self.log.append_raw(bytes(builder.build()))
        self._shown = len(self.log.records)

    def do_advance(self, milliseconds: str) -> None:
        self.schedule.advance(int(milliseconds))
        self._hear_records()

    def do_hold(self) -> None:
        """Stops the followers: appended records are not committed."""
        self.log.is_holding = True

    def do_release(self) -> None:
        self.log.release()
        self._hear_records()

    def do_fail(self, error: str) -> None:
        """Makes the next append fail with the error of this name."""
        self.log.next_failure = Error[error]

    # -- requests

    def do_join(self, group: str, who: str, **named: str) -> None:
        self.coordinator.join_group(
            JoinCall(
                group_id=group,
                member_id=named.get("member", ""),
                group_instance_id=named.get("instance"),
                client_id=who,
                client_host="/127.0.0.1",
                session_timeout_ms=int(named.get("session", "10000")),
                rebalance_timeout_ms=int(named.get("rebalance", "20000")),
                protocol_type=named.get("type", "consumer"),
                protocols=self._protocols(named.get("protocols", "range")),
                reason="a transcript",
                api_version=int(named.get("v", "9")),
                respond=lambda response: self._hear_join(who, response),
            )
        )
        self._hear_records()

    def _protocols(self, text: str) -> list[tuple[str, bytes]]:
        """Parses `name:metadata,name`."""
        parts = [part.partition(":")[::2] for part in text.split(",") if part]
        return [(name, metadata.encode()) for name, metadata in parts]

    def do_sync(self, group: str, member: str, generation: str, **named: str) -> None:
        given = [part.partition(":")[::2] for part in named.get("assign", "").split(",") if part]
        request = SyncGroupRequest(
            group_id=group,
            generation_id=int(generation),
            member_id=member,
            group_instance_id=named.get("instance"),
            protocol_type=named.get("type"),
            protocol_name=named.get("protocol"),
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=name, assignment=assignment.encode())
                for name, assignment in given
            ],
        )
        self.coordinator.sync_group(request, lambda response: self._hear_sync(member, response))
        self._hear_records()

    def do_heartbeat(self, group: str, member: str, generation: str, **named: str) -> None:
        request = HeartbeatRequest(
            group_id=group, generation_id=int(generation), member_id=member, group_instance_id=named.get("instance")
        )
        self.coordinator.heartbeat(request, lambda response: self._hear(f"{member}: {Error(response.error_code).name}"))
        self._hear_records()

    def do_leave(self, group: str, *members: str) -> None:
        """Removes members, named by id, or as `@instance` for a static member."""
        leaving = [
            LeaveGroupRequest.MemberIdentity(
                member_id="" if member.startswith("@") else member,
                group_instance_id=member[1:] if member.startswith("@") else None,
            )
            for member in members
        ]

        def respond(response: Any) -> None:
            errors = [Error(answer.error_code).name for answer in response.members]
            self._hear(f"left: {' '.join(errors) or Error(response.error_code).name}")

        self.coordinator.leave_group(group, leaving, respond)
        self._hear_records()

    def do_commit(self, group: str, topic: str, partition: str, offset: str, **named: str) -> None:
        call = self._commit_call(group, topic, partition, offset, named)
        self.coordinator.commit_offsets(
            call, lambda errors: self._hear(f"committed: {' '.join(error.name for error in errors)}")
        )
        self._hear_records()

    def do_commit_transactional(self, group: str, topic: str, partition: str, offset: str, **named: str) -> None:
        """Commits an offset in the open transaction of producer 1."""
        self.coordinator.commit_transactional_offsets(
            self._commit_call(group, topic, partition, offset, named),
            PRODUCER,
            lambda errors: self._hear(f"pending: {' '.join(error.name for error in errors)}"),
        )
        self._hear_records()

    def do_end_transaction(self, outcome: str) -> None:
        """Writes the marker of producer 1: `commit` or `abort`."""
        is_commit = outcome == "commit"
        producer_id, producer_epoch = PRODUCER
        builder = RecordBatchBuilder(
            self.log.log_end_offset(self.partition),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_transactional=True,
            is_control=True,
        )
        builder.append(0, KEY.pack(0, COMMIT if is_commit else ABORT), VALUE.pack(0, 0))
        self.coordinator.end_transaction(
            0,
            bytes(builder.build()),
            producer_id,
            committed=is_commit,
            on_done=lambda error: self._hear(f"ended: {error.name}"),
        )

    def _commit_call(self, group: str, topic: str, partition: str, offset: str, named: dict[str, str]) -> CommitCall:
        return CommitCall(
            group,
            named.get("member", ""),
            named.get("instance"),
            int(named.get("generation", "-1")),
            int(named.get("retention", "-1")),
            int(named.get("v", "9")) >= 9,
            [OffsetToCommit(topic, ZERO_UUID, int(partition), int(offset), -1, named.get("metadata", ""))],
        )

    def do_fetch(self, group: str, *wanted: str, stable: str = "") -> None:
        """Fetches the offsets of `topic-partition` words, or all offsets."""
        parsed = [(name.rpartition("-")[0], int(name.rpartition("-")[2]), ZERO_UUID) for name in wanted]
        try:
            fetched = self.coordinator.fetch_offsets(FetchCall(group, parsed or None, bool(stable)))
        except ApiError as error:
            self._hear(f"fetched: {error.error.name}")
            return
        shown = [
            f"{entry.topic}-{entry.partition}@{entry.offset if entry.error is Error.NONE else entry.error.name}"
            for entry in fetched
        ]
        self._hear(f"fetched: {' '.join(shown) or 'nothing'}")

    def do_delete(self, *groups: str) -> None:
        def respond(errors: Any) -> None:
            self._hear(f"deleted: {' '.join(f'{group}={error.name}' for group, error in errors.items())}")

        self.coordinator.delete_groups(groups, respond)
        self._hear_records()

    def do_delete_offset(self, group: str, topic: str, partition: str) -> None:
        self.coordinator.delete_offsets(
            group,
            [(topic, int(partition))],
            lambda errors: self._hear(f"deleted: {' '.join(error.name for error in errors.values())}"),
            lambda error, _: self._hear(f"deleted: {error.name}"),
        )
        self._hear_records()

    def do_forget(self, *topics: str) -> None:
        self.coordinator.forget_topics(topics, [])
        self._hear_records()

    def do_describe(self, group: str) -> None:
        described = self.coordinator.describe_group(group, 6)
        if described.error_code:
            self._hear(f"described: {Error(described.error_code).name} {described.error_message or ''}".rstrip())
            return
        members = [
            f"{member.member_id}={self._shown_assignment(member.member_assignment)}" for member in described.members
        ]
        words = [described.group_state, described.protocol_data or "-", *members]
        self._hear(f"described: {' '.join(words)}")

    def do_list(self, states: str = "", types: str = "") -> None:
        response = self.coordinator.list_groups([s for s in states.split(",") if s], [t for t in types.split(",") if t])
        shown = [f"{group.group_id}({group.group_state},{group.group_type})" for group in response.groups]
        self._hear(f"listed: {' '.join(shown) or Error(response.error_code).name}")

    # -- effects

    def _new_coordinator(self) -> GroupCoordinator:
        return GroupCoordinator(
            GroupConfig.from_broker_config(FixedBrokerKeys(self.settings)),
            log=self.log,
            schedule=self.schedule,
            clock=self.clock,
            new_uuid=self._new_uuid,
        )

    def _new_uuid(self) -> str:
        self._uuids += 1
        return str(self._uuids)

    def _hear(self, line: str) -> None:
        self._hear_records()
        self.heard.append(line)

    def _hear_join(self, who: str, response: Any) -> None:
        error = Error(response.error_code)
        if error is not Error.NONE:
            member = f" member={response.member_id}" if error is Error.MEMBER_ID_REQUIRED else ""
            self._hear(f"{who}: {error.name}{member}")
            return
        words = [
            f"joined member={response.member_id} generation={response.generation_id}",
            f"protocol={response.protocol_name} leader={response.leader}",
        ]
        if response.members:
            shown = ",".join(f"{other.member_id}:{self._shown_metadata(other.metadata)}" for other in response.members)
            words.append(f"members={shown}")
        if response.skip_assignment:
            words.append("skip-assignment")
        self._hear(f"{who}: {' '.join(words)}")

    def _shown_metadata(self, metadata: bytes) -> str:
        return bytes(metadata).decode()

    def _hear_sync(self, member: str, response: Any) -> None:
        error = Error(response.error_code)
        assignment = self._shown_assignment(bytes(response.assignment))
        said = error.name if error is not Error.NONE else f"synced assignment={assignment}"
        self._hear(f"{member}: {said}")

    def _shown_assignment(self, assignment: bytes) -> str:
        return assignment.decode()

    def _hear_records(self) -> None:
        records = self.log.records[self._shown :]
        self._shown = len(self.log.records)
        for record in records:
            self.heard.append(f"record: {self._said(record.key, record.value)}")

    def _said(self, key_bytes: bytes, value_bytes: bytes | None) -> str:
        key: Any = decode_coordinator_key(key_bytes)
        kind = type(key).API_KEY
        if kind > 2:
            name = f"{key.group_id} ({type(key).__name__})"
        else:
            name = key.group if kind == 2 else f"{key.group} {key.topic}-{key.partition}"
        if value_bytes is None:
            return f"{name} deleted"
        value: Any = decode_coordinator_value(type(key).API_KEY, value_bytes)
        if kind == 1:
            return f"{name} offset={value.offset}"
        members = [f"{member.member_id}={self._shown_assignment(bytes(member.assignment))}" for member in value.members]
        return " ".join([f"{name} generation={value.generation} leader={value.leader}", *members])
