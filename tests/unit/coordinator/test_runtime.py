"""Loads in slices, failing loads, changes of leadership, and logs that Apache Kafka wrote."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.coordinator.group.classic.join_call import JoinCall
from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.group.group_config import GroupConfig
from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
from kafkapy.coordinator.group.offset_records import offset_record
from kafkapy.coordinator.group.offset_requests import FetchCall, FetchedOffset
from kafkapy.coordinator.record import EMPTY_RESULT, CoordinatorRecord, CoordinatorResult, StateChange
from kafkapy.coordinator.runtime import ActivePartition, CoordinatorRuntime
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.coordinator_record import encode_coordinator
from kafkapy.protocol.messages.coordinator_records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from kafkapy.types import TopicPartition
from tests.harness.config import FixedBrokerKeys
from tests.memory_coordinator_log import MemoryCoordinatorLog
from tests.mock_clock import MockClock
from tests.scenarios.group_harness import SETTINGS, MockSchedule


class TickingClock(MockClock):
    """A clock that advances by a millisecond whenever it is read, so that each slice has one batch."""

    def monotonic_ms(self) -> int:
        self.advance(1)
        return super().monotonic_ms()


class Harness:
    def __init__(self, log: MemoryCoordinatorLog, clock: MockClock | None = None) -> None:
        self.log = log
        self.clock = clock or MockClock()
        self.schedule = MockSchedule(MockClock())
        self.coordinator = GroupCoordinator(
            GroupConfig.from_broker_config(FixedBrokerKeys(SETTINGS)),
            log=log,
            schedule=self.schedule,
            clock=self.clock,
            new_uuid=lambda: "1",
        )

    def fetch(self, group: str) -> list[FetchedOffset] | Error:
        try:
            return self.coordinator.fetch_offsets(FetchCall(group, None, require_stable=True))
        except ApiError as error:
            return error.error


def batch(base_offset: int, *records: CoordinatorRecord, **attributes: Any) -> bytes:
    builder = RecordBatchBuilder(base_offset, **attributes)
    for record in records:
        builder.append(1000, record.key, record.value)
    return bytes(builder.build())


def commit(group: str, offset: int, partition: int = 0) -> CoordinatorRecord:
    return offset_record(group, "t", partition, CommittedOffset(offset, commit_timestamp_ms=1000))


def marker(base_offset: int, producer_id: int, *, committed: bool) -> bytes:
    control = CoordinatorRecord(b"\x00\x00\x00" + bytes([committed]), b"\x00\x00\x00\x00\x00\x00")
    return batch(
        base_offset, control, is_control=True, is_transactional=True, producer_id=producer_id, producer_epoch=0
    )


def test_load_goes_on_between_slices() -> None:
    log = MemoryCoordinatorLog()
    for number in range(5):
        log.append_raw(batch(number, commit("g", number, number)))
    harness = Harness(log, TickingClock())
    harness.coordinator.elect(0, 0)
    assert harness.fetch("g") is Error.COORDINATOR_LOAD_IN_PROGRESS
    assert harness.coordinator.list_groups([], []).error_code == Error.COORDINATOR_LOAD_IN_PROGRESS
    harness.schedule.advance(0)
    fetched = harness.fetch("g")
    assert isinstance(fetched, list)
    assert [entry.offset for entry in fetched] == [0, 1, 2, 3, 4]


def test_resignation_ends_a_load() -> None:
    log = MemoryCoordinatorLog()
    for number in range(5):
        log.append_raw(batch(number, commit("g", number)))
    harness = Harness(log, TickingClock())
    harness.coordinator.elect(0, 0)
    harness.coordinator.resign(0)
    harness.schedule.advance(0)
    assert harness.fetch("g") is Error.NOT_COORDINATOR


def test_damaged_log_is_not_served() -> None:
    log = MemoryCoordinatorLog()
    log.append_raw(batch(0, CoordinatorRecord(b"\x00\x02\x00\xff", b"")))
    harness = Harness(log)
    harness.coordinator.elect(0, 0)
    assert harness.fetch("g") is Error.NOT_COORDINATOR
    # The next leader epoch loads again.
    log.batches = []
    harness.coordinator.elect(0, 1)
    assert harness.fetch("g") == []


def test_a_log_that_ends_too_early_is_not_served() -> None:
    class ShortLog(MemoryCoordinatorLog):
        def read(self, partition: TopicPartition, offset: int, max_bytes: int) -> bytes:
            return b""

    log = ShortLog()
    log.append_raw(batch(0, commit("g", 1)))
    harness = Harness(log)
    harness.coordinator.elect(0, 0)
    assert harness.fetch("g") is Error.NOT_COORDINATOR


def test_offsets_in_transactions_of_a_log() -> None:
    log = MemoryCoordinatorLog()
    transactional = {"is_transactional": True, "producer_epoch": 0, "base_sequence": 0}
    log.append_raw(batch(0, commit("g", 5, 0), producer_id=1, **transactional))
    log.append_raw(batch(1, commit("g", 6, 1), producer_id=2, **transactional))
    log.append_raw(batch(2, commit("g", 7, 2), producer_id=3, **transactional))
    log.append_raw(marker(3, 1, committed=True))
    log.append_raw(marker(4, 2, committed=False))
    harness = Harness(log)
    harness.coordinator.elect(0, 0)
    wanted = [("t", 0, bytes(16)), ("t", 1, bytes(16)), ("t", 2, bytes(16))]
    fetched = harness.coordinator.fetch_offsets(FetchCall("g", wanted, require_stable=True))
    assert [(entry.offset, entry.leader_epoch, entry.error) for entry in fetched] == [
        (5, -1, Error.NONE),
        (-1, -1, Error.NONE),
        (-1, -1, Error.UNSTABLE_OFFSET_COMMIT),
    ]


@pytest.mark.parametrize("key", [b"\x00\x63\x00\x01g", b"\x7f\xff"])
def test_records_of_the_future_are_left_alone(key: bytes) -> None:
    log = MemoryCoordinatorLog()
    log.append_raw(batch(0, CoordinatorRecord(key, b"?"), commit("g", 1)))
    harness = Harness(log)
    harness.coordinator.elect(0, 0)
    assert [entry.offset for entry in harness.fetch("g")] == [1]  # type: ignore[union-attr]


def consumer_group(group: str) -> list[CoordinatorRecord]:
    """Returns the records of a consumer group with a member, as Apache Kafka leaves them when it is killed."""
    member = ConsumerGroupMemberMetadataValue(client_id="c", client_host="/h", subscribed_topic_names=["t"])
    return [
        CoordinatorRecord(
            encode_coordinator(ConsumerGroupMemberMetadataKey(group_id=group, member_id="m")),
            encode_coordinator(member, 0),
        ),
        CoordinatorRecord(
            encode_coordinator(ConsumerGroupMetadataKey(group_id=group)),
            encode_coordinator(ConsumerGroupMetadataValue(epoch=3), 0),
        ),
        commit(group, 42),
    ]


def test_consumer_groups_of_apache_kafka_are_kept_and_readable() -> None:
    log = MemoryCoordinatorLog()
    log.append_raw(batch(0, *consumer_group("g")))
    harness = Harness(log)
    harness.coordinator.elect(0, 0)
    assert [entry.offset for entry in harness.fetch("g")] == [42]  # type: ignore[union-attr]
    (listed,) = harness.coordinator.list_groups([], []).groups
    assert (listed.group_id, listed.group_type, listed.protocol_type) == ("g", "consumer", "consumer")
    assert harness.coordinator.describe_group("g", 6).error_message == "Group g is not a classic group."


SESSION_MS = 45_000


def test_a_classic_member_takes_a_consumer_group_over_when_its_members_are_gone() -> None:
    log = MemoryCoordinatorLog()
    log.append_raw(batch(0, *consumer_group("g")))
    harness = Harness(log)
    harness.coordinator.elect(0, 0)
    harness.schedule.advance(SESSION_MS)
    before = len(log.records)
    answers: list[Any] = []
    call = JoinCall("g", "", None, "c", "/h", 10000, 10000, "consumer", [("range", b"")], "", 3, answers.append)
    harness.coordinator.join_group(call)
    deleted = [record.key[1] for record in log.records[before:] if record.value is None]
    assert deleted == [6, 4, 3]
    harness.schedule.advance(3000)
    assert answers[0].error_code == Error.NONE
    # A later load finds the classic group, with the offsets of the consumer group.
    again = Harness(log)
    again.coordinator.elect(0, 1)
    assert [entry.offset for entry in again.fetch("g")] == [42]  # type: ignore[union-attr]
    assert [group.group_type for group in again.coordinator.list_groups([], []).groups] == ["classic"]


def test_a_consumer_group_can_be_deleted_when_its_members_are_gone() -> None:
    log = MemoryCoordinatorLog()
    log.append_raw(batch(0, *consumer_group("g")))
    harness = Harness(log)
    harness.coordinator.elect(0, 0)
    answers: list[Any] = []
    harness.coordinator.delete_groups(["g"], answers.append)
    harness.schedule.advance(SESSION_MS)
    harness.coordinator.delete_groups(["g"], answers.append)
    assert answers == [{"g": Error.NON_EMPTY_GROUP}, {"g": Error.NONE}]
    assert harness.fetch("g") == []
    assert harness.coordinator.list_groups([], []).groups == []


class RecordingShard:
    """Records the keys of the records that are replayed."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []

    def replay(self, offset: int, producer_id: int, key: bytes, value: bytes | None) -> None:
        self.keys.append(key)

    def replay_end_of_transaction(self, offset: int, producer_id: int, committed: bool) -> None: ...

    def on_loaded(self) -> None: ...

    def on_unloaded(self) -> None: ...


def runtime_of(log: MemoryCoordinatorLog, schedule: Any) -> CoordinatorRuntime[RecordingShard]:
    return CoordinatorRuntime(
        "topic",
        log=log,
        make_shard=lambda context: RecordingShard(),
        schedule=schedule,
        clock=MockClock(),
        load_buffer_bytes=1 << 20,
    )


def test_only_changes_of_leadership_in_its_own_topic_concern_a_runtime() -> None:
    elections: list[None] = []
    runtime = CoordinatorRuntime(
        "topic",
        log=MemoryCoordinatorLog(),
        make_shard=lambda context: RecordingShard(),
        schedule=SameMoment(),
        clock=MockClock(),
        load_buffer_bytes=1 << 20,
        on_elected=lambda: elections.append(None),
    )
    ours: Any = SimpleNamespace(topic_partition=TopicPartition("topic", 3), leader_epoch=1)
    other: Any = SimpleNamespace(topic_partition=TopicPartition("other", 4), leader_epoch=1)
    runtime.on_leadership([ours, other], [])
    assert (runtime.is_coordinator_of(3), runtime.is_coordinator_of(4), len(elections)) == (True, False, 1)
    runtime.on_leadership([], [ours, other])
    assert not runtime.is_coordinator_of(3)


@pytest.mark.parametrize("state_change", StateChange)
def test_records_are_replayed_unless_the_operation_changes_the_state_itself(state_change: StateChange) -> None:
    runtime = runtime_of(MemoryCoordinatorLog(), SameMoment())
    runtime.elect(0, 0)
    committed: list[Error] = []
    result = CoordinatorResult([CoordinatorRecord(b"k", b"v")], "done", committed.append, state_change)
    responses: list[str] = []
    runtime.execute(0, lambda shard: result, responses.append, lambda error, message: None)
    assert (committed, responses) == ([Error.NONE], ["done"])
    assert runtime.shard(0).keys == ([b"k"] if state_change is StateChange.REPLAY else [])


def test_an_operation_without_records_is_committed_at_once() -> None:
    runtime = runtime_of(MemoryCoordinatorLog(), SameMoment())
    runtime.elect(0, 0)
    events: list[Any] = []
    result: CoordinatorResult[str] = CoordinatorResult([], "done", events.append)
    runtime.execute(0, lambda shard: result, events.append, lambda error, message: None)
    assert events == [Error.NONE, "done"]


def test_an_append_that_is_committed_after_the_resignation_is_refused() -> None:
    log = MemoryCoordinatorLog()
    runtime = runtime_of(log, SameMoment())
    runtime.elect(0, 0)
    committed: list[Error] = []
    result = CoordinatorResult([CoordinatorRecord(b"k", b"v")], "done", committed.append)
    responses: list[str] = []
    errors: list[Error] = []
    log.is_holding = True
    runtime.execute(0, lambda shard: result, responses.append, lambda error, message: errors.append(error))
    runtime.resign(0)
    log.release()
    assert (committed, responses, errors) == ([Error.NOT_COORDINATOR], [], [Error.NOT_COORDINATOR])


@pytest.mark.parametrize(
    "result",
    [
        CoordinatorResult([CoordinatorRecord(b"k", b"v")], state_change=StateChange.ON_COMMIT),
        CoordinatorResult([CoordinatorRecord(b"k", b"v")], state_change=StateChange.ALREADY_APPLIED, producer=(1, 0)),
    ],
    ids=["on commit without on_committed", "in a transaction without replay"],
)
def test_inconsistent_results_are_refused_before_the_append(result: CoordinatorResult[None]) -> None:
    log = MemoryCoordinatorLog()
    runtime = runtime_of(log, SameMoment())
    runtime.elect(0, 0)
    with pytest.raises(AssertionError):
        runtime.execute_unanswered(0, lambda shard: result)
    assert log.records == []


class ExpiredEntry:
    """A timer that expired before it was cancelled, so that its callback still runs."""

    def cancel(self) -> None:
        pass


class SameMoment:
    """Runs all callbacks that are due, even if one of them cancels another, as one turn of the reactor does."""

    def __init__(self) -> None:
        self.due: list[Any] = []

    def __call__(self, delay_ms: int, callback: Any) -> ExpiredEntry:
        self.due.append(callback)
        return ExpiredEntry()


def test_a_timer_cancelled_or_replaced_in_the_moment_it_expires_does_nothing() -> None:
    schedule, ran = SameMoment(), []
    partition = ActivePartition(runtime_of(MemoryCoordinatorLog(), schedule), TopicPartition("topic", 0), 0)

    def note(name: str, *cancelled: str) -> Any:
        def operation() -> CoordinatorResult[None]:
            ran.append(name)
            for each in cancelled:
                partition.cancel(each)
            return EMPTY_RESULT

        return operation

    partition.schedule("replaced", 10, note("never"))
    partition.schedule("replaced", 10, note("once"))
    partition.schedule("first", 10, note("first", "second"))
    partition.schedule("second", 10, note("never"))
    for callback in schedule.due:
        callback()
    assert ran == ["once", "first"]


class LimitedLog(MemoryCoordinatorLog):
    """A log that refuses batches which are larger than max.message.bytes, as a replica's log does."""

    def append(self, partition, batch, on_committed):
        if len(batch) > 1048588:
            self.next_failure = Error.MESSAGE_TOO_LARGE
        super().append(partition, batch, on_committed)


def _log_of_many_offsets() -> LimitedLog:
    log = LimitedLog()
    for first in range(0, 20000, 1000):
        builder = RecordBatchBuilder(first)
        for number in range(first, first + 1000):
            record = offset_record(f"group-{number % 10}", "topic-" + 30 * "t", number, CommittedOffset(1))
            builder.append(0, record.key, record.value)
        log.append_raw(bytes(builder.build()))
    return log


def test_many_offsets_expire_at_once() -> None:
    """Their tombstones do not fit into one batch."""
    log = _log_of_many_offsets()
    harness = Harness(log)
    harness.coordinator.elect(0, 0)
    harness.schedule.advance(0)
    harness.clock.advance(3600000)
    harness.schedule.advance(600000)
    assert not list(harness.coordinator.all_offsets())
    assert not list(harness.coordinator.all_groups())


def test_many_offsets_of_a_deleted_topic_are_deleted() -> None:
    log = _log_of_many_offsets()
    harness = Harness(log)
    harness.coordinator.elect(0, 0)
    harness.schedule.advance(0)
    harness.coordinator.forget_topics(["topic-" + 30 * "t"], [])
    assert not list(harness.coordinator.all_offsets())
