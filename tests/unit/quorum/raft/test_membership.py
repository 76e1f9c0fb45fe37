"""Changes of the voter set on the leader, and the requests of followers that want one (KIP-853)."""

import pytest

from kafkapy.errors import Error
from kafkapy.quorum.raft.effects import AppendControl, ElectionState, HighWatermark, KRaftVersionResult, Respond
from kafkapy.quorum.raft.messages import (
    AddVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    ChangeVoterResponse,
    FetchRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChange,
    VoteRequest,
)
from kafkapy.quorum.voters import ReplicaKey
from tests.harness.raft_harness import (
    CLUSTER,
    RaftHarness,
    directory_of,
    key_of,
    listener_of,
    log_of,
    static_voters_of,
    voter_of,
    voters_of,
)

OTHER_DIRECTORY = bytes(range(16))
DONE = ChangeVoterResponse(Error.NONE)


def leader():
    """Returns an established leader of three voters; node 4 has caught up."""
    node = RaftHarness(log_of((3, 10), voters=voters_of(1, 2, 3))).establish()
    node.fetch(4, node.machine.log.end_offset, 4)
    return node


def add(node_id=4, **fields):
    return AddVoterRequest(CLUSTER, 1000, voter_of(node_id))._replace(**fields)


def remove(node_id, directory_id=None):
    return RemoveVoterRequest(CLUSTER, ReplicaKey(node_id, directory_id or directory_of(node_id)))


def update(node_id, **fields):
    return UpdateVoterRequest(CLUSTER, 4, voter_of(node_id)._replace(**fields))


def commit(node, follower_id=2):
    node.fetch(follower_id, node.machine.log.end_offset, node.machine.epoch)


# -- AddRaftVoter


def test_an_added_voter_is_asked_for_its_versions_and_counts_once_it_is_in_the_log():
    node = leader()
    assert node.receive(add()) is None
    assert node.sent(ApiVersionsRequest) == {4: ApiVersionsRequest()}
    end = node.machine.log.end_offset
    node.answer(4, ApiVersionsResponse(Error.NONE, 0, 1))
    assert node.of(AppendControl) == [AppendControl(end, 4, (voters_of(1, 2, 3, 4),))]
    assert node.machine.voters == voters_of(1, 2, 3, 4)
    commit(node, 2)
    assert not node.of(HighWatermark)
    commit(node, 4)
    assert node.of(HighWatermark) == [HighWatermark(end + 1)]
    assert Respond("token", DONE) in node.effects


def test_a_client_that_does_not_wait_for_the_commit_is_answered_at_the_append():
    node = leader()
    node.receive(add(ack_when_committed=False))
    node.answer(4, ApiVersionsResponse(Error.NONE, 0, 1))
    assert node.of(Respond)[0] == Respond("token", DONE)
    assert node.receive(remove(3), "other").error == Error.REQUEST_TIMED_OUT
    commit(node, 2)
    commit(node, 4)
    assert not [each for each in node.of(Respond) if each.token == "token"]


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (add(cluster_id="x"), Error.INCONSISTENT_CLUSTER_ID),
        (add(voter=voter_of(4)._replace(directory_id=bytes(16))), Error.INVALID_REQUEST),
        (add(voter=voter_of(4)._replace(node_id=-1)), Error.INVALID_REQUEST),
        (add(voter=voter_of(4)._replace(listeners=())), Error.INVALID_REQUEST),
        (add(voter=voter_of(4)._replace(listeners=(listener_of(4)._replace(name="X"),))), Error.INVALID_REQUEST),
        (add(3), Error.DUPLICATE_VOTER),
        (add(voter=voter_of(3)._replace(directory_id=OTHER_DIRECTORY)), Error.DUPLICATE_VOTER),
    ],
)
def test_additions_that_are_refused(request_, error):
    assert leader().receive(request_).error == error


@pytest.mark.parametrize(
    ("node_id", "response", "error"),
    [
        (4, None, Error.REQUEST_TIMED_OUT),
        (4, ApiVersionsResponse(Error.UNSUPPORTED_VERSION), Error.REQUEST_TIMED_OUT),
        (4, ApiVersionsResponse(Error.NONE, 0, 0), Error.INVALID_REQUEST),
        (4, ApiVersionsResponse(Error.NONE, 2, 3), Error.INVALID_REQUEST),
        (5, ApiVersionsResponse(Error.NONE, 0, 1), Error.REQUEST_TIMED_OUT),
    ],
)
def test_a_new_voter_that_is_not_ready_is_refused(node_id, response, error):
    node = leader()
    node.receive(add(node_id))
    node.answer(node_id, response)
    assert [each.response.error for each in node.of(Respond)] == [error]
    assert not node.of(AppendControl)
    assert node.receive(remove(3)) is None


def test_a_replica_that_has_not_fetched_for_an_hour_has_not_caught_up():
    node = leader()
    for _ in range(3601):
        node.wait(1000)
        commit(node)
    node.receive(add())
    node.answer(4, ApiVersionsResponse(Error.NONE, 0, 1))
    assert node.of(Respond)[0].response.error == Error.REQUEST_TIMED_OUT


def test_a_change_that_is_not_committed_in_time_is_answered_but_still_pends():
    node = leader()
    node.receive(remove(3))
    node.wait(2000)
    assert [each.response.error for each in node.of(Respond)] == [Error.REQUEST_TIMED_OUT]
    response = node.receive(remove(2))
    assert response.error == Error.REQUEST_TIMED_OUT
    assert "commit the latest voter change" in response.message
    commit(node)
    assert node.machine.high_watermark == node.machine.log.end_offset
    assert node.receive(remove(2)).error == Error.NONE


# -- all changes


@pytest.mark.parametrize("request_", [add(), remove(3), update(3)])
def test_a_change_waits_for_the_one_in_progress(request_):
    node = leader()
    assert node.receive(remove(2), "first") is None
    assert node.receive(request_).error == Error.REQUEST_TIMED_OUT


@pytest.mark.parametrize("request_", [add(), remove(3), update(3)])
def test_a_change_waits_for_the_high_watermark_of_the_epoch(request_):
    node = RaftHarness(log_of((3, 10), voters=voters_of(1, 2, 3))).become_leader()
    assert node.receive(request_).error == Error.REQUEST_TIMED_OUT


@pytest.mark.parametrize("request_", [add(), remove(3)])
def test_a_static_quorum_cannot_change(request_):
    node = RaftHarness(log_of((3, 10)), static_voters=static_voters_of(1, 2, 3)).establish()
    response = node.receive(request_)
    assert response.error == Error.UNSUPPORTED_VERSION
    assert "kraft.version feature is 0" in response.message


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (add(), Error.NOT_LEADER_OR_FOLLOWER),
        (remove(3), Error.NOT_LEADER_OR_FOLLOWER),
        (update(3)._replace(epoch=4), Error.FENCED_LEADER_EPOCH),
        (update(3)._replace(epoch=6), Error.UNKNOWN_LEADER_EPOCH),
        (update(3)._replace(epoch=5), Error.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_only_the_leader_changes_voters(request_, error):
    node = RaftHarness(log_of((3, 10), voters=voters_of(1, 2, 3))).follow(2, 5)
    assert node.receive(request_).error == error


def test_a_change_in_progress_is_answered_when_leadership_is_lost():
    node = leader()
    node.receive(remove(3))
    node.receive(VoteRequest(CLUSTER, key_of(1), key_of(2), 9, 0, 0, False), "vote")
    assert Respond("token", ChangeVoterResponse(Error.NOT_LEADER_OR_FOLLOWER)) in node.effects


# -- RemoveRaftVoter


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (remove(4), Error.VOTER_NOT_FOUND),
        (remove(3, OTHER_DIRECTORY), Error.VOTER_NOT_FOUND),
        (remove(-1, OTHER_DIRECTORY), Error.INVALID_REQUEST),
        (remove(3)._replace(voter=ReplicaKey(3)), Error.INVALID_REQUEST),
        (remove(3)._replace(cluster_id="x"), Error.INCONSISTENT_CLUSTER_ID),
    ],
)
def test_removals_that_are_refused(request_, error):
    assert leader().receive(request_).error == error


def test_the_last_voter_stays():
    node = RaftHarness(voters=voters_of(1)).become_leader()
    assert node.receive(remove(1)).error == Error.VOTER_NOT_FOUND


def test_a_removed_leader_does_not_count_itself_and_resigns_at_the_commit():
    node = leader()
    assert node.receive(remove(1)) is None
    assert not node.of(HighWatermark)
    commit(node, 2)
    assert node.machine.is_leader
    commit(node, 3)
    assert Respond("token", DONE) in node.effects
    assert node.machine.state_name == "resigned"
    node.wait(1000)
    assert (node.machine.state_name, node.machine.epoch) == ("unattached", 5)
    node.wait(100_000)
    assert node.machine.state_name == "unattached"


def test_a_voter_whose_removal_may_not_be_committed_still_stands_for_election():
    log = log_of((3, 10), voters=voters_of(1, 2))
    log.append((), (VoterChange(9, voters_of(2)),))
    node = RaftHarness(log, ElectionState(3, 1))
    node.start()
    node.wait(1000)
    assert (node.machine.state_name, list(node.sent(VoteRequest))) == ("prospective", [2])


# -- UpdateRaftVoter


def test_an_update_is_appended_and_answered_at_once():
    node = leader()
    moved = voter_of(3)._replace(listeners=(listener_of(7),))
    response = node.receive(UpdateVoterRequest(CLUSTER, 4, moved))
    assert (response.error, response.leader_id, response.epoch) == (Error.NONE, 1, 4)
    assert node.machine.voters.get(3) == moved
    assert node.receive(update(2)).error == Error.REQUEST_TIMED_OUT
    commit(node)
    assert node.receive(update(2)).error == Error.NONE


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (update(3)._replace(cluster_id="x", epoch=1), Error.INCONSISTENT_CLUSTER_ID),
        (update(3, directory_id=bytes(16)), Error.INVALID_REQUEST),
        (update(3, listeners=()), Error.INVALID_REQUEST),
        (update(3, min_kraft_version=1, max_kraft_version=0), Error.INVALID_REQUEST),
        (update(3, min_kraft_version=-1), Error.INVALID_REQUEST),
        (update(3, min_kraft_version=2, max_kraft_version=3), Error.INVALID_REQUEST),
        (update(3, max_kraft_version=0), Error.INVALID_REQUEST),
        (update(3, directory_id=OTHER_DIRECTORY), Error.VOTER_NOT_FOUND),
        (update(4), Error.VOTER_NOT_FOUND),
    ],
)
def test_updates_that_are_refused(request_, error):
    assert leader().receive(request_).error == error


# -- kraft.version


def static_leader():
    return RaftHarness(log_of((3, 10)), static_voters=static_voters_of(1, 2, 3)).establish()


def upgrade(node, level=1):
    node.done(node.machine.upgrade_kraft_version(level, "upgrade", node.now_ms))
    return [each.error for each in node.of(KRaftVersionResult)]


def test_kraft_version_1_needs_the_directory_ids_and_ranges_of_all_voters():
    node = static_leader()
    assert upgrade(node) == [Error.INVALID_UPDATE_VERSION]
    assert node.machine.upgrade_refusal() == (
        "Invalid upgrade of kraft.version to 1 because not all of the voters support it"
    )
    assert node.receive(update(2)).error == Error.NONE
    assert node.receive(update(3, max_kraft_version=0)).error == Error.NONE
    assert upgrade(node) == [Error.INVALID_UPDATE_VERSION]
    assert node.receive(update(3)).error == Error.NONE
    assert node.machine.upgrade_refusal() is None
    assert node.machine.kraft_version == 0
    end = node.machine.log.end_offset
    assert upgrade(node) == []
    assert node.of(AppendControl) == [AppendControl(end, 4, (1, voters_of(1, 2, 3)))]
    commit(node)
    assert node.of(KRaftVersionResult) == [KRaftVersionResult("upgrade", Error.NONE, None)]
    assert (node.machine.kraft_version, node.machine.voters) == (1, voters_of(1, 2, 3))
    assert upgrade(node) == [Error.NONE]
    assert upgrade(node, 0) == [Error.INVALID_UPDATE_VERSION]
    assert upgrade(node, 2) == [Error.INVALID_UPDATE_VERSION]


def test_an_update_of_an_unknown_voter_in_memory_is_refused():
    assert static_leader().receive(update(4)).error == Error.VOTER_NOT_FOUND


def test_a_follower_does_not_upgrade():
    node = RaftHarness(log_of((3, 10)), static_voters=static_voters_of(1, 2, 3)).follow()
    assert upgrade(node) == [Error.NOT_LEADER_OR_FOLLOWER]
    assert node.machine.upgrade_refusal() is not None


# -- followers that correct their entry, or join


def fetching(log, **settings):
    """Returns a follower of node 2 in epoch 5. It has run for as long as the fetch timeout, and has just fetched."""
    node = RaftHarness(log, ElectionState(5, 2), **settings)
    node.start()
    node.wait(1500)
    node.fetched()
    assert not node.sent(UpdateVoterRequest)
    node.wait(500)
    node.fetched()
    return node


def test_a_follower_whose_entry_is_correct_sends_nothing():
    node = fetching(log_of((3, 10), voters=voters_of(1, 2, 3)))
    assert list(node.sent(FetchRequest)) == [2]


def test_a_follower_corrects_its_entry_every_fetch_timeout_until_it_is_in_the_log():
    log = log_of((3, 10), voters=voters_of(1, 2, 3))
    node = fetching(log, listeners=(listener_of(7),))
    own = voter_of(1)._replace(listeners=(listener_of(7),))
    assert node.sent(UpdateVoterRequest) == {2: UpdateVoterRequest(CLUSTER, 5, own)}
    node.answer(2, ChangeVoterResponse(Error.REQUEST_TIMED_OUT, None, 2, 5))
    node.wait(1990)
    node.fetched()
    node.wait(10)
    node.fetched()
    assert list(node.sent(UpdateVoterRequest)) == [2]
    node.answer(2, ChangeVoterResponse(Error.NONE, None, 2, 5))
    assert list(node.sent(FetchRequest)) == [2]


def test_a_correction_that_is_due_waits_for_the_fetch_in_flight_without_ticks():
    log = log_of((3, 10), voters=voters_of(1, 2, 3))
    node = RaftHarness(log, ElectionState(5, 2), listeners=(listener_of(7),))
    node.start()
    node.wait(1900)
    node.fetched()
    node.wait(200)
    assert not node.sent(UpdateVoterRequest)
    assert node.machine.next_deadline_ms() == 1900 + 2000


def test_a_follower_of_a_static_quorum_reports_itself_once_to_each_leader():
    node = fetching(log_of((3, 10)), static_voters=static_voters_of(1, 2, 3))
    assert list(node.sent(UpdateVoterRequest)) == [2]
    node.answer(2, ChangeVoterResponse(Error.UNSUPPORTED_VERSION, None, 2, 5))
    for _ in range(5):
        node.wait(1000)
        node.fetched()
        assert not node.sent(UpdateVoterRequest)


def test_an_observer_joins_if_it_is_configured_to():
    log = log_of((3, 10), voters=voters_of(1, 2, 3))
    node = fetching(log, node_id=4, auto_join=True)
    assert node.sent(AddVoterRequest) == {2: AddVoterRequest(CLUSTER, 2000, voter_of(4), False)}
    node.answer(2, DONE)
    assert list(node.sent(FetchRequest)) == [2]
    assert list(fetching(log, node_id=4).sent(FetchRequest)) == [2]
    assert list(fetching(log, node_id=4, auto_join=True, can_be_voter=False, listeners=()).sent(FetchRequest)) == [2]


def test_a_node_with_a_new_directory_removes_its_former_one_first():
    former = voters_of(1, 2, 3).with_voter(voter_of(4)._replace(directory_id=OTHER_DIRECTORY))
    node = fetching(log_of((3, 10), voters=former), node_id=4, auto_join=True)
    assert node.sent(RemoveVoterRequest) == {2: RemoveVoterRequest(CLUSTER, ReplicaKey(4, OTHER_DIRECTORY))}
