"""A member of a classic group, and its coordinator: finding it, joining, leading, heartbeats, losing and leaving."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import pytest

from kafkapy.client import TopicPartition
from kafkapy.client.assignors import STICKY, Assignor
from kafkapy.client.consumer_group import LONGEST_LEAVING_S
from kafkapy.client.consumer_protocol import decode_assignment, decode_subscription
from kafkapy.client.coordinator import MemberIdentity
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchResponse
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorResponse
from kafkapy.protocol.messages.heartbeat import HeartbeatResponse
from kafkapy.protocol.messages.join_group import JoinGroupResponse
from kafkapy.protocol.messages.leave_group import LeaveGroupResponse
from kafkapy.protocol.messages.list_offsets import ListOffsetsResponse
from kafkapy.protocol.messages.offset_commit import OffsetCommitResponse
from kafkapy.protocol.messages.offset_fetch import OffsetFetchResponse
from kafkapy.protocol.messages.sync_group import SyncGroupResponse
from tests.harness.client import MemoryBrokers

MEMBER_ID = "member-1"


class Coordinator(MemoryBrokers):
    """The coordinator of a group whose only member is the leader; it returns the `refusals` of an API first."""

    def __init__(self):
        super().__init__()
        self.add_topic("t", [(1, 0)] * 2)
        self.generation = 0
        self.refusals: dict[ApiKey, list[Error]] = {}
        self.answers |= {
            ApiKey.JOIN_GROUP: self._join,
            ApiKey.SYNC_GROUP: self._sync,
            ApiKey.HEARTBEAT: lambda request, version: HeartbeatResponse(error_code=self._refusal(ApiKey.HEARTBEAT)),
            ApiKey.LEAVE_GROUP: lambda request, version: LeaveGroupResponse(),
            ApiKey.OFFSET_FETCH: lambda request, version: OffsetFetchResponse(
                groups=[OffsetFetchResponse.OffsetFetchResponseGroup(group_id="g")]
            ),
            ApiKey.LIST_OFFSETS: lambda request, version: ListOffsetsResponse(topics=[]),
            ApiKey.FETCH: self._fetch,
            ApiKey.OFFSET_COMMIT: lambda request, version: OffsetCommitResponse(topics=[]),
        }

    def _refusal(self, key):
        waiting = self.refusals.get(key)
        return int(waiting.pop(0)) if waiting else 0

    def _fetch(self, request, version):
        self.clock.advance(50)
        return FetchResponse(responses=[])

    def _join(self, request, version):
        code = self._refusal(ApiKey.JOIN_GROUP)
        if code:
            return JoinGroupResponse(error_code=code, member_id=MEMBER_ID, protocol_name="")
        self.generation += 1
        member = JoinGroupResponse.JoinGroupResponseMember(
            member_id=MEMBER_ID, metadata=bytes(request.protocols[0].metadata)
        )
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=request.protocols[0].name,
            leader=MEMBER_ID,
            member_id=MEMBER_ID,
            members=[member],
        )

    def _sync(self, request, version):
        code = self._refusal(ApiKey.SYNC_GROUP)
        if code:
            return SyncGroupResponse(error_code=code, protocol_type="consumer", protocol_name="range", assignment=b"")
        (given,) = request.assignments
        return SyncGroupResponse(
            protocol_type="consumer", protocol_name=request.protocol_name, assignment=bytes(given.assignment)
        )


@pytest.fixture
def coordinator():
    harness = Coordinator()
    yield harness
    harness.close()


def consumer_of(coordinator, **settings):
    return coordinator.consumer(group_id="g", enable_auto_commit=False, **settings)


def assigned(consumer, times=50):
    for _ in range(times):
        consumer.poll(0.2)
        if consumer.assignment():
            return
    raise AssertionError("no assignment")


def polled(consumer, times=100):
    for _ in range(times):
        consumer.poll(0.2)


def test_the_leader_assigns_and_heartbeats_keep_the_member(coordinator):
    coordinator.refusals[ApiKey.JOIN_GROUP] = [Error.MEMBER_ID_REQUIRED]
    with consumer_of(coordinator, heartbeat_interval_ms=1000) as consumer:
        consumer.subscribe(["t"])
        assigned(consumer)
        assert consumer.assignment() == {TopicPartition("t", 0), TopicPartition("t", 1)}
        assert [each.member_id for each in coordinator.of(ApiKey.JOIN_GROUP)] == ["", MEMBER_ID]
        (sync,) = coordinator.of(ApiKey.SYNC_GROUP)
        assert len(decode_assignment(bytes(sync.assignments[0].assignment))) == 2
        for _ in range(20):
            consumer.poll(0.2)
        at = [each.at_ms for each in coordinator.asked if each.key == ApiKey.HEARTBEAT]
        assert len(at) >= 3 and all(late - early >= 1000 for early, late in pairwise(at))
    assert [each.members[0].member_id for each in coordinator.of(ApiKey.LEAVE_GROUP)] == [MEMBER_ID]


@pytest.mark.parametrize(
    ("code", "member_id"),
    [
        (Error.REBALANCE_IN_PROGRESS, MEMBER_ID),
        (Error.ILLEGAL_GENERATION, MEMBER_ID),
        (Error.UNKNOWN_MEMBER_ID, ""),
    ],
)
def test_a_heartbeat_that_is_refused_leads_to_another_join(coordinator, code, member_id):
    coordinator.refusals[ApiKey.HEARTBEAT] = [code]
    with consumer_of(coordinator, heartbeat_interval_ms=500) as consumer:
        consumer.subscribe(["t"])
        assigned(consumer)
        for _ in range(20):
            consumer.poll(0.2)
        assert coordinator.generation == 2
        joined = coordinator.of(ApiKey.JOIN_GROUP)[1]
        assert joined.member_id == member_id
        assert joined.reason == ("group is already rebalancing" if code is Error.REBALANCE_IN_PROGRESS else "")
        assert len(consumer.assignment()) == 2


@pytest.mark.parametrize("code", [Error.REBALANCE_IN_PROGRESS, Error.UNKNOWN_MEMBER_ID])
def test_the_eager_sticky_assignor_reports_the_partitions_of_before(coordinator, code):
    coordinator.refusals[ApiKey.HEARTBEAT] = [code]
    with consumer_of(coordinator, heartbeat_interval_ms=500, partition_assignment_strategy="sticky") as consumer:
        consumer.subscribe(["t"])
        assigned(consumer)
        for _ in range(20):
            consumer.poll(0.2)
        first, second = (
            decode_subscription(STICKY, bytes(each.protocols[0].metadata), None)
            for each in coordinator.of(ApiKey.JOIN_GROUP)
        )
    assert (first.owned, first.generation) == ((), -1)
    assert (second.owned, second.generation) == ((TopicPartition("t", 0), TopicPartition("t", 1)), 1)


def test_the_metrics_of_a_member_describe_its_rebalances(coordinator):
    with consumer_of(coordinator) as consumer:
        consumer.subscribe(["t"])
        assigned(consumer)
        found = {
            name.name: value
            for name, value in consumer.metrics().items()
            if name.group == "consumer-coordinator-metrics"
        }
    assert (found["assigned-partitions"], found["rebalance-total"]) == (2, 1)
    assert (found["join-total"], found["sync-total"]) == (1, 1)
    assert found["rebalance-latency-avg"] == found["rebalance-latency-max"] == found["rebalance-latency-total"]


def test_a_sync_that_is_refused_is_begun_again_with_a_join(coordinator):
    coordinator.refusals[ApiKey.SYNC_GROUP] = [Error.REBALANCE_IN_PROGRESS, Error.COORDINATOR_LOAD_IN_PROGRESS]
    with consumer_of(coordinator) as consumer:
        consumer.subscribe(["t"])
        assigned(consumer)
    assert coordinator.generation == 3


def test_what_cannot_be_repaired_is_raised(coordinator):
    coordinator.refusals[ApiKey.JOIN_GROUP] = [Error.INCONSISTENT_GROUP_PROTOCOL]
    with consumer_of(coordinator) as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(ApiError, match="INCONSISTENT_GROUP_PROTOCOL"):
            assigned(consumer)


def test_a_coordinator_that_has_moved_is_looked_for_again(coordinator):
    coordinator.refusals[ApiKey.JOIN_GROUP] = [Error.NOT_COORDINATOR]
    find = coordinator.answers[ApiKey.FIND_COORDINATOR]
    refusals = [Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_NOT_AVAILABLE]

    def sometimes(request, version):
        if not refusals:
            return find(request, version)
        told = FindCoordinatorResponse.Coordinator(key="g", error_code=int(refusals.pop()))
        return FindCoordinatorResponse(coordinators=[told])

    coordinator.answers[ApiKey.FIND_COORDINATOR] = sometimes
    with consumer_of(coordinator) as consumer:
        consumer.subscribe(["t"])
        assigned(consumer)
    assert len(coordinator.of(ApiKey.FIND_COORDINATOR)) == 4


def refuse_lookups(coordinator):
    """Refuses FindCoordinator; returns the function that permits it again."""
    told = FindCoordinatorResponse.Coordinator(key="g", error_code=int(Error.GROUP_AUTHORIZATION_FAILED))
    find = coordinator.answers[ApiKey.FIND_COORDINATOR]
    coordinator.answers[ApiKey.FIND_COORDINATOR] = lambda request, version: FindCoordinatorResponse(coordinators=[told])
    return lambda: coordinator.answers.update({ApiKey.FIND_COORDINATOR: find})


def test_a_group_that_may_not_be_looked_for_is_told_until_the_right_is_granted(coordinator):
    permit = refuse_lookups(coordinator)
    with consumer_of(coordinator) as consumer:
        consumer.subscribe(["t"])
        for _ in range(2):
            with pytest.raises(ApiError, match="GROUP_AUTHORIZATION_FAILED"):
                assigned(consumer)
        permit()
        with suppress(ApiError):  # of the lookup that was refused last
            assigned(consumer)
        assigned(consumer)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_caller_that_waits_gets_the_error_of_the_lookup_although_no_poll_has_raised_it(coordinator, protocol):
    refuse_lookups(coordinator)
    with consumer_of(coordinator, group_protocol=protocol) as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(ApiError, match="GROUP_AUTHORIZATION_FAILED"):
            polled(consumer)
        for _ in range(2):
            with pytest.raises(ApiError, match="GROUP_AUTHORIZATION_FAILED"):
                consumer.committed([TopicPartition("t", 0)], 20)
        assert len(coordinator.of(ApiKey.FIND_COORDINATOR)) < 10


def test_a_member_sends_heartbeats_while_it_has_an_error_to_raise(coordinator):
    group = OffsetFetchResponse.OffsetFetchResponseGroup(group_id="g", error_code=int(Error.GROUP_AUTHORIZATION_FAILED))
    coordinator.answers[ApiKey.OFFSET_FETCH] = lambda request, version: OffsetFetchResponse(groups=[group])
    with consumer_of(coordinator, heartbeat_interval_ms=1000) as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(ApiError, match="GROUP_AUTHORIZATION_FAILED"):
            polled(consumer)
        consumer._network.wait_until(lambda: False, 10)  # the application is busy
        assert len(coordinator.of(ApiKey.HEARTBEAT)) > 5


@pytest.mark.parametrize("call", ["poll", "position"])
def test_an_assigned_consumer_is_told_that_it_has_no_rights_on_its_group(coordinator, call):
    refuse_lookups(coordinator)
    with consumer_of(coordinator) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        for _ in range(2):
            with pytest.raises(ApiError, match="GROUP_AUTHORIZATION_FAILED"):
                consumer.poll(10) if call == "poll" else consumer.position(TopicPartition("t", 0), 10)


@pytest.mark.parametrize("key", [ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT])
def test_a_member_goes_on_when_it_is_granted_the_right_to_read(coordinator, key):
    coordinator.refusals[key] = [Error.GROUP_AUTHORIZATION_FAILED]
    with consumer_of(coordinator) as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(ApiError, match="GROUP_AUTHORIZATION_FAILED"):
            polled(consumer)
        assigned(consumer)


def test_a_static_member_leaves_in_silence(coordinator):
    with consumer_of(coordinator, group_instance_id="i") as consumer:
        consumer.subscribe(["t"])
        assigned(consumer)
    assert coordinator.of(ApiKey.JOIN_GROUP)[0].group_instance_id == "i"
    assert not coordinator.of(ApiKey.LEAVE_GROUP)


@pytest.mark.parametrize("auto_commit", [True, False])
def test_a_cooperative_member_that_closes_within_a_rebalance_commits_what_it_has_read(coordinator, auto_commit):
    revoked = []

    class Listener:
        def on_partitions_revoked(self, partitions):
            revoked.extend(partitions)

    consumer = coordinator.consumer(
        group_id="g", enable_auto_commit=auto_commit, partition_assignment_strategy="cooperative-sticky"
    )
    with consumer:
        consumer.subscribe(["t"], Listener())
        assigned(consumer)
        consumer.seek(TopicPartition("t", 0), 5)
        coordinator.refusals[ApiKey.JOIN_GROUP] = [Error.REBALANCE_IN_PROGRESS] * 1000
        coordinator.refusals[ApiKey.HEARTBEAT] = [Error.REBALANCE_IN_PROGRESS]
        joins = len(coordinator.of(ApiKey.JOIN_GROUP))
        for _ in range(100):
            consumer.poll(0.2)
            if len(coordinator.of(ApiKey.JOIN_GROUP)) > joins:
                break
        assert consumer.assignment()
    assert revoked == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert len(coordinator.of(ApiKey.OFFSET_COMMIT)) == 2 * auto_commit  # before it joins again, and when it closes


def test_closing_within_a_rebalance_does_not_wait_for_the_other_members(coordinator):
    """The coordinator reads the commit after it has answered JoinGroup, for which it awaits the other members."""
    consumer = coordinator.consumer(group_id="g", partition_assignment_strategy="cooperative-sticky")
    consumer.subscribe(["t"])
    assigned(consumer)
    consumer.seek(TopicPartition("t", 0), 5)
    coordinator.answers[ApiKey.JOIN_GROUP] = lambda request, version: None
    coordinator.refusals[ApiKey.HEARTBEAT] = [Error.REBALANCE_IN_PROGRESS]
    joins = len(coordinator.of(ApiKey.JOIN_GROUP))
    for _ in range(100):
        consumer.poll(0.2)
        if len(coordinator.of(ApiKey.JOIN_GROUP)) > joins:
            break
    coordinator.answers[ApiKey.OFFSET_COMMIT] = coordinator.answers[ApiKey.LEAVE_GROUP] = lambda request, version: None
    began_ms = coordinator.clock.monotonic_ms()
    consumer.close(60)
    assert coordinator.clock.monotonic_ms() - began_ms <= 2 * 1000 * LONGEST_LEAVING_S + 1000


def test_committed_offsets_that_are_not_stable_are_fetched_again_after_the_backoff(coordinator):
    answer = coordinator.answers[ApiKey.OFFSET_FETCH]
    began = []

    def respond(request, version):
        began.append(coordinator.clock.monotonic_ms())
        if began[-1] - began[0] > 5000:
            return answer(request, version)
        group = OffsetFetchResponse.OffsetFetchResponseGroup(group_id="g", error_code=Error.UNSTABLE_OFFSET_COMMIT)
        coordinator.clock.advance(1)
        return OffsetFetchResponse(groups=[group])

    coordinator.answers[ApiKey.OFFSET_FETCH] = respond
    with consumer_of(coordinator, retry_backoff_ms=500) as consumer:
        consumer.subscribe(["t"])
        assigned(consumer)
        for _ in range(100):
            consumer.poll(0.2)
        assert 5 <= len(began) <= 20
        assert began[-1] - began[0] > 5000


@pytest.mark.parametrize("result", [ValueError("cannot assign"), None], ids=["an error", "no assignment"])
def test_the_error_of_an_assignor_is_raised_by_one_poll_and_the_next_one_joins_again(coordinator, caplog, result):
    outcomes = [result, result]

    def assign(members, counts, racks):
        if not outcomes:
            return {member: [TopicPartition("t", 0)] for member in members}
        outcome = outcomes.pop()
        if outcome is not None:
            raise outcome
        return outcome

    with consumer_of(coordinator, partition_assignment_strategy=[Assignor("failing", assign)]) as consumer:
        consumer.subscribe(["t"])
        for _ in range(2):
            with pytest.raises((ValueError, AttributeError), match=r"cannot assign|items"):
                assigned(consumer)
        assigned(consumer)
        assert consumer.assignment() == {TopicPartition("t", 0)}
        assert len(coordinator.of(ApiKey.JOIN_GROUP)) >= 3
    assert "network loop failed" not in caplog.text


def test_a_listener_that_raises_an_error_does_not_keep_the_member_from_joining_again(coordinator):
    class Listener:
        def on_partitions_revoked(self, partitions):
            raise ValueError("cannot revoke")

    with consumer_of(coordinator) as consumer:
        consumer.subscribe(["t"], Listener())
        assigned(consumer)
        coordinator.refusals[ApiKey.HEARTBEAT] = [Error.REBALANCE_IN_PROGRESS]
        with pytest.raises(ValueError, match="cannot revoke"):
            polled(consumer)
        assert not consumer.assignment()
        assigned(consumer)
        assert len(coordinator.of(ApiKey.JOIN_GROUP)) == 2
        consumer.subscribe(["t"])


def test_who_has_lost_the_membership_cannot_commit(coordinator):
    """A group without members accepts commits of those who are no members, so that offsets could go back."""
    errors = []
    with consumer_of(coordinator) as consumer:
        consumer.subscribe(["t"])
        assigned(consumer)
        coordinator.refusals[ApiKey.HEARTBEAT] = [Error.UNKNOWN_MEMBER_ID]
        for _ in range(5):
            coordinator.clock.advance(1000)
            consumer.partitions_for("t")
        assert consumer.assignment()
        with pytest.raises(ApiError) as caught:
            consumer.commit({TopicPartition("t", 0): 5})
        assert caught.value.error is Error.UNKNOWN_MEMBER_ID
        consumer.commit_async({TopicPartition("t", 0): 5}, lambda offsets, error: errors.append(error.error))
        consumer.poll(0)
        assert errors == [Error.UNKNOWN_MEMBER_ID]
        assert not coordinator.of(ApiKey.OFFSET_COMMIT)
        assigned(consumer)
        consumer.commit({TopicPartition("t", 0): 5})
        assert [each.generation_id_or_member_epoch for each in coordinator.of(ApiKey.OFFSET_COMMIT)] == [2]


def test_who_has_lost_the_membership_is_still_named_in_transactions(coordinator):
    """The coordinator then refuses the offsets. It accepts those of a client that names no member."""
    with consumer_of(coordinator) as consumer:
        assert consumer.group_metadata().member == MemberIdentity()
        consumer.subscribe(["t"])
        assigned(consumer)
        assert consumer.group_metadata().member == MemberIdentity(1, MEMBER_ID)
        coordinator.refusals[ApiKey.HEARTBEAT] = [Error.UNKNOWN_MEMBER_ID]
        for _ in range(5):
            coordinator.clock.advance(1000)
            consumer.partitions_for("t")
        assert consumer.group_metadata().member == MemberIdentity(1, MEMBER_ID)
        consumer.poll(0)
        assert not consumer.assignment()
        assigned(consumer)
        assert consumer.group_metadata().member == MemberIdentity(2, MEMBER_ID)
        consumer.unsubscribe()
        assert consumer.group_metadata().member == MemberIdentity()
