"""The leader: high watermark, Fetch and FetchSnapshot of the replicas, check-quorum, resignation."""

import pytest

from kafkapy.errors import Error
from kafkapy.quorum.raft.effects import (
    HighWatermark,
    LeaderChanged,
    LostLeadership,
    Respond,
    Send,
    Stopped,
)
from kafkapy.quorum.raft.messages import (
    UNKNOWN_HIGH_WATERMARK,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchSnapshotRequest,
    ReplicaState,
    VoteResponse,
)
from kafkapy.quorum.voters import ReplicaKey
from kafkapy.types import OffsetAndEpoch
from tests.harness.raft_harness import (
    CLUSTER,
    RaftHarness,
    key_of,
    listener_of,
    log_of,
    static_voters_of,
    vote,
    voters_of,
)


def leader(*epochs, voters=(1, 2, 3), **settings):
    """Returns a leader of the epoch after the last one, of a log with records of the given epochs."""
    return RaftHarness(log_of(*epochs or ((3, 10),), voters=voters_of(*voters)), **settings).become_leader()


# -- the high watermark


def test_the_high_watermark_needs_a_majority_and_a_record_of_the_epoch():
    node = leader()
    end = node.machine.log.end_offset
    node.fetch(2, 10, 3)
    assert not node.of(HighWatermark)
    node.fetch(3, end, 4)
    assert node.of(HighWatermark) == [HighWatermark(end)]


def test_the_high_watermark_never_falls_with_a_replica_that_lost_records():
    node = leader()
    end = node.machine.log.end_offset
    node.fetch(2, end, 4)
    node.fetch(2, 0, 0)
    node.append(5)
    node.fetch(3, end, 4)
    assert node.machine.high_watermark == end
    node.fetch(2, end + 5, 4)
    assert node.machine.high_watermark == end + 5


def test_of_four_voters_three_are_a_majority():
    node = RaftHarness(log_of(voters=voters_of(1, 2, 3, 4)))
    node.start()
    node.wait(1000)
    for _ in range(2):
        for voter in (2, 3):
            node.answer(voter, VoteResponse(Error.NONE, -1, node.machine.epoch, (), True))
    end = node.machine.log.end_offset
    node.fetch(2, end, 1)
    assert node.machine.high_watermark == -1
    node.fetch(3, end, 1)
    assert node.machine.high_watermark == end


def test_a_replica_with_a_voters_id_and_another_directory_is_an_observer():
    node = leader()
    end = node.machine.log.end_offset
    node.fetch(2, end, 4, replica=ReplicaKey(2, bytes(range(16))))
    assert node.machine.high_watermark == -1


@pytest.mark.parametrize("replica", [ReplicaKey(-1), key_of(1), ReplicaKey(1, bytes(range(16)))])
def test_a_client_and_a_second_node_with_the_leaders_id_are_served_and_not_counted(replica):
    node = leader()
    assert node.fetch(0, 0, 0, replica=replica).read_from == 0
    assert node.machine.describe(0).observers == ()


def test_a_controller_of_a_static_quorum_counts_with_any_directory():
    node = RaftHarness(log_of(), static_voters=static_voters_of(1, 2, 3)).become_leader()
    node.fetch(2, 1, 1)
    assert node.machine.high_watermark == 1


# -- Fetch


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"cluster_id": "x", "epoch": 0}, Error.INCONSISTENT_CLUSTER_ID),
        ({"cluster_id": None}, Error.NONE),
        ({"max_wait_ms": -1}, Error.INVALID_REQUEST),
        ({"offset": -1}, Error.INVALID_REQUEST),
        ({"last_epoch": -1}, Error.INVALID_REQUEST),
        ({"epoch": -1}, Error.INVALID_REQUEST),
        ({"last_epoch": 5}, Error.INVALID_REQUEST),
        ({"epoch": 3}, Error.FENCED_LEADER_EPOCH),
        ({"epoch": 5}, Error.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_fetch_checks(fields, error):
    assert leader().fetch(2, 0, 0, **fields).error == error


def test_a_follower_names_its_leader_to_a_replica_that_asks_the_wrong_node():
    node = RaftHarness(log_of((3, 10), voters=voters_of(1, 2, 3))).follow(2, 5)
    response = node.fetch(3, 0, 0)
    assert (response.error, response.leader_id, response.epoch) == (Error.NOT_LEADER_OR_FOLLOWER, 2, 5)
    assert response.endpoints == (listener_of(2),)


HISTORY = ((2, 5), (4, 5), (7, 5))


@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (0, 0, None),
        (5, 2, None),
        (3, 2, None),
        (6, 2, (5, 2)),
        (7, 3, (5, 2)),
        (8, 4, None),
        (12, 6, (10, 4)),
        (12, 7, None),
        (99, 8, (18, 8)),
        (3, 1, (0, 1)),
        (99, 2, (5, 2)),
    ],
)
def test_a_log_that_diverged_is_told_the_end_of_the_largest_common_epoch(offset, last_epoch, diverging):
    node = leader(*HISTORY)
    response = node.fetch(2, offset, last_epoch)
    assert response.diverging == (None if diverging is None else OffsetAndEpoch(*diverging))
    assert response.snapshot_id is None
    assert response.read_from == (offset if diverging is None else -1)


@pytest.mark.parametrize(
    ("offset", "last_epoch", "expected"),
    [
        (0, 0, "snapshot"),
        (9, 4, "snapshot"),
        (10, 2, "snapshot"),
        (12, 3, "snapshot"),
        (10, 4, "read"),
        (12, 4, (10, 4)),
        (12, 7, "read"),
        (12, 5, (10, 4)),
    ],
)
def test_before_the_log_start_the_latest_snapshot_is_named(offset, last_epoch, expected):
    log = log_of(*HISTORY, voters=voters_of(1, 2, 3))
    log.clean(10, [OffsetAndEpoch(10, 4), OffsetAndEpoch(13, 7)])
    node = RaftHarness(log).become_leader()
    response = node.fetch(2, offset, last_epoch)
    if expected == "snapshot":
        assert response.snapshot_id == OffsetAndEpoch(13, 7)
    elif expected == "read":
        assert response.read_from == offset
    else:
        assert response.diverging == OffsetAndEpoch(*expected)
    assert response.log_start_offset == 10


def test_the_formatted_snapshot_is_named_to_nobody():
    log = log_of((3, 10), voters=voters_of(1, 2, 3))
    log.snapshots = [OffsetAndEpoch(0, 0)]
    node = RaftHarness(log).become_leader()
    assert node.fetch(2, 0, 0).read_from == 0
    request = FetchSnapshotRequest(CLUSTER, key_of(2), 4, OffsetAndEpoch(0, 0), 0, 100)
    assert node.receive(request).error == Error.SNAPSHOT_NOT_FOUND


def test_a_fetch_at_the_end_waits_for_records():
    node = leader()
    end = node.machine.log.end_offset
    assert node.fetch(2, end, 4, high_watermark=end) is None
    assert node.fetch(4, end, 4, high_watermark=end) is None
    node.append(2)
    found = {each.token: each.response.read_from for each in node.of(Respond)}
    assert found == {("fetch", 2): end, ("fetch", 4): end}
    assert node.fetch(2, end, 4).read_from == end


def test_a_held_fetch_ends_with_a_higher_high_watermark():
    node = leader()
    end = node.machine.log.end_offset
    held = node.fetch(4, end, 4)
    assert held is None
    old = node.fetch(5, end, 4, high_watermark=UNKNOWN_HIGH_WATERMARK)
    assert old is None
    node.fetch(2, end, 4)
    found = {each.token: each.response for each in node.of(Respond)}
    assert sorted(found) == [("fetch", 2), ("fetch", 4)]
    assert found["fetch", 4].high_watermark == end
    assert found["fetch", 4].read_from == -1


def test_a_fetch_that_knows_less_than_the_high_watermark_does_not_wait():
    node = leader()
    end = node.machine.log.end_offset
    node.fetch(2, end, 4)
    assert node.fetch(4, end, 4, high_watermark=end - 1).high_watermark == end
    assert node.fetch(4, end, 4, high_watermark=end) is None


def test_a_held_fetch_ends_empty_at_its_deadline():
    node = leader()
    end = node.machine.log.end_offset
    node.fetch(2, end, 4, high_watermark=end)
    node.wait(499)
    assert not node.of(Respond)
    node.wait(1)
    assert [(each.response.error, each.response.read_from) for each in node.of(Respond)] == [(Error.NONE, -1)]
    assert node.fetch(2, end, 4, high_watermark=end, max_wait_ms=0).error == Error.NONE


def test_held_fetches_are_refused_when_leadership_is_lost():
    node = leader()
    end = node.machine.log.end_offset
    node.fetch(2, end, 4, high_watermark=end)
    node.receive(vote(3, 9, 0, 0))
    found = {each.token: each.response.error for each in node.of(Respond)}
    assert found["fetch", 2] == Error.NOT_LEADER_OR_FOLLOWER


# -- FetchSnapshot


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, Error.NONE),
        ({"cluster_id": "x"}, Error.INCONSISTENT_CLUSTER_ID),
        ({"epoch": 3}, Error.FENCED_LEADER_EPOCH),
        ({"epoch": 9}, Error.UNKNOWN_LEADER_EPOCH),
        ({"snapshot_id": OffsetAndEpoch(6, 3)}, Error.SNAPSHOT_NOT_FOUND),
        ({"position": -1}, Error.POSITION_OUT_OF_RANGE),
    ],
)
def test_fetch_snapshot_checks(fields, error):
    node = leader()
    node.machine.snapshot_taken(OffsetAndEpoch(5, 3))
    request = FetchSnapshotRequest(CLUSTER, key_of(2), 4, OffsetAndEpoch(5, 3), 7, 100)._replace(**fields)
    response = node.receive(request)
    assert (response.error, response.leader_id) == (error, -1 if "cluster_id" in fields else 1)
    if error == Error.NONE:
        assert (response.snapshot_id, response.position, response.max_bytes) == (OffsetAndEpoch(5, 3), 7, 100)


# -- BeginQuorumEpoch, check-quorum and resignation


def test_the_leader_announces_itself_at_once_and_to_those_that_do_not_fetch():
    node = leader()
    assert sorted(node.sent(BeginQuorumEpochRequest)) == [2, 3]
    announced = node.sent(BeginQuorumEpochRequest)[3]
    assert announced == BeginQuorumEpochRequest(CLUSTER, key_of(3), 1, 4, (listener_of(1),))
    node.answer(2, None)
    node.answer(3, None)
    node.wait(999)
    node.fetch(2, 13, 4)
    assert not node.of(Send)
    node.wait(1)
    assert sorted(node.sent(BeginQuorumEpochRequest)) == [3]


def test_check_quorum_is_restarted_by_a_majority_and_otherwise_ends_leadership():
    node = leader()
    node.wait(2900)
    node.fetch(3, 10, 3)
    node.wait(2999)
    assert node.machine.is_leader
    node.wait(1)
    assert node.machine.state_name == "resigned"
    assert node.of(LostLeadership) == [LostLeadership(4)]
    assert node.of(LeaderChanged) == [LeaderChanged(-1, 4, ())]


def test_a_snapshot_download_counts_for_check_quorum_and_an_observer_does_not():
    node = leader()
    node.machine.snapshot_taken(OffsetAndEpoch(5, 3))
    node.wait(2900)
    node.receive(FetchSnapshotRequest(CLUSTER, key_of(2), 4, OffsetAndEpoch(5, 3), 0, 100))
    node.wait(2900)
    node.fetch(4, 10, 3)
    node.wait(100)
    assert node.machine.state_name == "resigned"


def end_of(*preferred, leader_id=1, epoch=4):
    return EndQuorumEpochRequest(CLUSTER, leader_id, epoch, tuple(map(key_of, preferred)), ())


@pytest.mark.parametrize(("wanted", "order"), [((2,), (2, 3)), ((), (3, 2))])
def test_a_leader_resigns_on_request_in_favour_of_a_voter(wanted, order):
    """The voters that the request does not name follow, the most caught up first."""
    node = leader()
    node.fetch(3, node.machine.log.end_offset, 4)
    node.fetch(2, 10, 3)
    assert node.receive(end_of(*wanted)).error == Error.NONE
    assert node.machine.state_name == "resigned"
    node.answer(2, None)
    node.answer(3, None)
    node.wait(50)
    expected = EndQuorumEpochRequest(CLUSTER, 1, 4, tuple(map(key_of, order)), (listener_of(1),))
    assert node.sent(EndQuorumEpochRequest) == {2: expected, 3: expected}


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (end_of(2, epoch=3), Error.FENCED_LEADER_EPOCH),
        (end_of(2, leader_id=2), Error.INVALID_REQUEST),
        (end_of(4), Error.INCONSISTENT_VOTER_SET),
        (end_of(1), Error.INCONSISTENT_VOTER_SET),
    ],
)
def test_a_leader_does_not_resign_for_another_epoch_leader_or_replica(request_, error):
    node = leader()
    assert node.receive(request_).error == error
    assert node.machine.is_leader


def test_the_only_voter_does_not_resign():
    node = leader(voters=(1,))
    assert node.receive(end_of(epoch=node.machine.epoch)).error == Error.INCONSISTENT_VOTER_SET


def test_a_resigned_leader_tells_the_voters_in_the_order_of_their_logs():
    node = leader()
    node.fetch(3, node.machine.log.end_offset, 4)
    node.fetch(2, 10, 3)
    node.answer(2, None)
    node.wait(50)
    node.done(node.machine.shutdown(5000, node.now_ms))
    expected = EndQuorumEpochRequest(CLUSTER, 1, 4, (key_of(3), key_of(2)), (listener_of(1),))
    assert node.sent(EndQuorumEpochRequest) == {2: expected, 3: expected}
    node.answer(2, EndQuorumEpochResponse(Error.NONE, 1, 4))
    node.answer(3, None)
    node.wait(20)
    assert list(node.sent(EndQuorumEpochRequest)) == [3]
    node.answer(3, EndQuorumEpochResponse(Error.NONE, 1, 4))
    node.wait(100)
    assert not node.of(Send)


def test_a_node_that_shuts_down_waits_without_ticks():
    node = leader()
    node.done(node.machine.shutdown(5000, node.now_ms))
    node.answer(2, EndQuorumEpochResponse(Error.NONE, 1, 4))
    node.answer(3, EndQuorumEpochResponse(Error.NONE, 1, 4))
    ends_ms = node.now_ms + 5000
    node.wait(3000)  # The election timeout has passed.
    assert node.machine.next_deadline_ms() == ends_ms


def test_a_leader_that_shuts_down_stops_once_another_leads():
    node = leader()
    node.done(node.machine.shutdown(5000, node.now_ms))
    assert node.machine.state_name == "resigned"
    node.wait(3000)
    assert (node.machine.state_name, node.machine.epoch) == ("resigned", 4)
    assert node.fetch(2, 0, 0).error == Error.NOT_LEADER_OR_FOLLOWER
    node.receive(BeginQuorumEpochRequest(CLUSTER, key_of(1), 2, 5, (listener_of(2),)))
    assert node.of(Stopped)


@pytest.mark.parametrize("voters", [(1,), (1, 2, 3)])
def test_a_shutdown_ends_at_once_for_the_only_voter_and_at_its_limit_for_others(voters):
    node = leader(voters=voters)
    node.done(node.machine.shutdown(5000, node.now_ms))
    assert bool(node.of(Stopped)) is (len(voters) == 1)
    if len(voters) > 1:
        node.wait(4999)
        assert not node.of(Stopped)
        node.wait(1)
        assert node.of(Stopped)


def test_a_follower_stops_at_once():
    node = RaftHarness(log_of((3, 10), voters=voters_of(1, 2, 3))).follow()
    node.done(node.machine.shutdown(5000, node.now_ms))
    assert node.of(Stopped)


# -- DescribeQuorum


def test_describe_lists_voters_and_the_observers_of_the_last_five_minutes():
    node = leader()
    assert RaftHarness(voters=voters_of(1, 2, 3)).machine.describe(0) is None
    node.now_ms = 10_000
    end = node.machine.log.end_offset
    node.fetch(2, end, 4)
    node.fetch(4, 10, 3)
    found = node.machine.describe(20_000)
    assert (found.leader_id, found.epoch, found.high_watermark, found.nodes) == (1, 4, end, tuple(voters_of(1, 2, 3)))
    assert found.voters == (
        ReplicaState(key_of(1), end, 20_000, 20_000),
        ReplicaState(key_of(2), end, 10_000, 10_000),
        ReplicaState(key_of(3), -1, -1, -1),
    )
    assert found.observers == (ReplicaState(key_of(4), 10, 10_000, -1),)
    assert node.machine.describe(310_001).observers == ()


def test_a_follower_has_caught_up_when_it_reached_the_leaders_end_of_its_former_fetch():
    node = leader()
    end = node.machine.log.end_offset
    node.now_ms = 5000
    node.fetch(2, 10, 3)
    node.append(5)
    node.now_ms = 6000
    node.fetch(2, end, 4)
    assert node.machine.describe(6000).voters[1].last_caught_up_ms == 5000


def test_records_of_a_former_leadership_stop_the_node():
    node = leader()
    node.receive(vote(3, 9, 0, 0))
    node.done(node.machine.appended(99, 4, node.now_ms))
    assert "does not lead" in node.effects[-1].text


def test_the_epoch_of_a_leader_begins_with_its_first_batch():
    node = leader((3, 10))
    assert node.machine.log.epochs == [(3, 0), (4, 10)]
    node.append(3)
    assert node.machine.log.epochs == [(3, 0), (4, 10)]
    assert node.machine.log.end_offset == 16
