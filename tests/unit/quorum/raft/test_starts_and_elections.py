"""The first state of a start, and elections up to the leader."""

import pytest

from kafkapy.errors import Error
from kafkapy.quorum.raft.effects import (
    AppendControl,
    BecameLeader,
    ElectionState,
    HighWatermark,
    LeaderChange,
    LeaderChanged,
    SaveElection,
    Send,
)
from kafkapy.quorum.raft.messages import FetchRequest, FetchResponse, VoteRequest, VoteResponse
from kafkapy.quorum.voters import ReplicaKey
from tests.harness.raft_harness import (
    CLUSTER,
    RaftHarness,
    key_of,
    listener_of,
    log_of,
    static_voters_of,
    voters_of,
)

THREE = voters_of(1, 2, 3)
GRANTED = VoteResponse(Error.NONE, -1, 0, (), True)


def log():
    return log_of((3, 10), voters=THREE)


@pytest.mark.parametrize(
    ("saved", "state", "epoch", "leader_id"),
    [
        (None, "unattached", 3, -1),
        (ElectionState(2, 2), "unattached", 3, -1),
        (ElectionState(7), "unattached", 7, -1),
        (ElectionState(7, -1, key_of(2)), "unattached", 7, -1),
        (ElectionState(7, 1), "resigned", 7, -1),
        (ElectionState(7, 2), "follower", 7, 2),
        (ElectionState(7, 2, key_of(1)), "follower", 7, 2),
        (ElectionState(7, 9), "unattached", 7, 9),
        (ElectionState(7, -1, key_of(1)), "candidate", 7, -1),
        (ElectionState(7, -1, ReplicaKey(1)), "candidate", 7, -1),
    ],
)
def test_the_first_state_follows_from_quorum_state_and_log(saved, state, epoch, leader_id):
    node = RaftHarness(log(), saved)
    node.start()
    assert (node.machine.state_name, node.machine.epoch, node.machine.leader_id) == (state, epoch, leader_id)


def test_an_observer_starts_unattached_and_asks_a_bootstrap_server_for_the_leader():
    node = RaftHarness(log(), node_id=4)
    node.start()
    assert node.machine.state_name == "unattached"
    assert node.of(Send)[0].destination.node_id == -2
    assert node.sent(FetchRequest)[-2] == FetchRequest(CLUSTER, key_of(4), 3, 10, 3, -1, 500, 1024 * 1024)
    node.wait(100_000)
    assert node.machine.state_name == "unattached"


def test_the_only_voter_leads_at_once():
    node = RaftHarness(log_of((3, 10), voters=voters_of(1)), ElectionState(4, 1))
    assert node.start() == [
        SaveElection(ElectionState(5, 1), True),
        LeaderChanged(1, 5, (listener_of(1),)),
        AppendControl(10, 5, (LeaderChange(1, (key_of(1),), (key_of(1),)), 1, voters_of(1))),
        BecameLeader(5, 10),
        HighWatermark(13),
    ]


def test_the_only_voter_needs_no_timer():
    node = RaftHarness(voters=voters_of(1))
    node.start()
    assert node.machine.next_deadline_ms() == 2**63 - 1


def test_a_static_quorum_writes_no_voters_and_the_form_of_version_0():
    node = RaftHarness(log_of(), static_voters=static_voters_of(1))
    node.start()
    assert node.of(SaveElection)[-1] == SaveElection(ElectionState(1, 1, None, (1,)), False)
    assert node.of(AppendControl)[0].records == (LeaderChange(1, (ReplicaKey(1),), (ReplicaKey(1),)),)


def test_voters_that_the_log_contains_are_not_repeated():
    node = RaftHarness(log_of(voters=voters_of(1)))
    node.start()
    again = RaftHarness(node.machine.log, ElectionState(1, 1))
    again.start()
    assert len(again.of(AppendControl)[0].records) == 1


def test_a_leader_with_other_listeners_corrects_its_entry():
    log = log_of(voters=voters_of(1))
    RaftHarness(log).start()
    moved = RaftHarness(log, ElectionState(1, 1), listeners=(listener_of(7),))
    moved.start()
    _, version, voters = moved.of(AppendControl)[0].records
    assert version == 1
    assert voters.get(1).listeners == (listener_of(7),)


@pytest.mark.parametrize(("node_id", "wait_ms"), [(1, 0), (2, 100), (3, 200)])
def test_the_voters_of_a_new_cluster_take_turns_without_an_election_timeout(node_id, wait_ms):
    node = RaftHarness(log_of(voters=THREE), node_id=node_id)
    node.start()
    if wait_ms:
        node.wait(wait_ms - 1)
        assert node.machine.state_name == "unattached"
        node.wait(1)
    assert node.machine.state_name == "prospective"
    assert all(request.pre_vote for request in node.sent(VoteRequest).values())


def test_a_voter_that_has_seen_an_election_waits_for_the_election_timeout():
    node = RaftHarness(log_of(voters=THREE), ElectionState(1, -1, key_of(2)))
    node.start()
    node.wait(999)
    assert node.machine.state_name == "unattached"
    node.wait(1)
    assert node.machine.state_name == "prospective"


def test_an_election_asks_for_prevotes_then_for_votes():
    node = RaftHarness(log())
    node.start()
    node.wait(999)
    assert node.machine.state_name == "unattached"
    node.wait(1)
    assert node.machine.state_name == "prospective"
    assert not node.of(SaveElection)
    assert node.sent(VoteRequest) == {
        2: VoteRequest(CLUSTER, key_of(2), key_of(1), 3, 3, 10, True),
        3: VoteRequest(CLUSTER, key_of(3), key_of(1), 3, 3, 10, True),
    }
    node.answer(3, GRANTED._replace(epoch=3))
    assert node.machine.state_name == "candidate"
    assert node.effects[0] == SaveElection(ElectionState(4, -1, key_of(1)), True)
    assert node.sent(VoteRequest)[2] == VoteRequest(CLUSTER, key_of(2), key_of(1), 4, 3, 10, False)
    node.answer(2, GRANTED._replace(epoch=4))
    assert node.of(AppendControl)[0].records[0] == LeaderChange(
        1, (key_of(1), key_of(2), key_of(3)), (key_of(1), key_of(2))
    )
    assert node.of(BecameLeader) == [BecameLeader(4, 10)]


def test_a_voter_that_does_not_know_prevotes_is_asked_for_its_vote_at_once():
    node = RaftHarness(log())
    node.start()
    node.wait(1000)
    node.answer(2, VoteResponse(Error.UNSUPPORTED_VERSION, -1, -1))
    assert node.machine.state_name == "candidate"


def test_a_prospective_node_that_is_refused_follows_its_leader_again():
    node = RaftHarness(log()).follow(2, 5)
    node.wait(2000)
    assert node.machine.state_name == "prospective"
    for voter in (2, 3):
        node.answer(voter, VoteResponse(Error.NONE, 2, 5))
    assert (node.machine.state_name, node.machine.epoch, node.machine.leader_id) == ("follower", 5, 2)


def test_a_prospective_node_without_leader_becomes_unattached_in_the_same_epoch():
    node = RaftHarness(log(), ElectionState(7, -1, key_of(3)))
    node.start()
    node.wait(1000)
    for voter in (2, 3):
        node.answer(voter, VoteResponse(Error.NONE, -1, 7))
    assert (node.machine.state_name, node.machine.epoch) == ("unattached", 7)
    assert not node.of(SaveElection)


def test_without_any_answer_prevotes_are_repeated_in_the_same_epoch():
    node = RaftHarness(log())
    node.start()
    for _ in range(20):
        node.wait(1000)
    assert (node.machine.state_name, node.machine.epoch) == ("prospective", 3)


def test_a_candidate_that_lost_waits_out_its_timeout():
    node = RaftHarness(log(), ElectionState(7, -1, key_of(1)))
    node.start()
    for voter in (2, 3):
        node.answer(voter, VoteResponse(Error.NONE, -1, 7))
    node.wait(999)
    assert (node.machine.state_name, node.of(Send)) == ("candidate", [])
    node.wait(1)
    assert (node.machine.state_name, node.machine.epoch) == ("prospective", 7)


def test_a_candidate_follows_the_winner_and_keeps_its_own_vote():
    node = RaftHarness(log(), ElectionState(7, -1, key_of(1)))
    node.start()
    node.answer(2, VoteResponse(Error.NONE, 3, 7, (listener_of(3),)))
    assert node.of(SaveElection) == [SaveElection(ElectionState(7, 3, key_of(1)), True)]


def test_a_response_with_a_higher_epoch_ends_a_candidacy():
    node = RaftHarness(log(), ElectionState(7, -1, key_of(1)))
    node.start()
    node.answer(2, VoteResponse(Error.FENCED_LEADER_EPOCH, -1, 9))
    assert (node.machine.state_name, node.machine.epoch) == ("unattached", 9)


def test_late_and_doubled_responses_change_nothing():
    node = RaftHarness(log())
    node.start()
    node.wait(1000)
    sent = {each.destination.node_id: each for each in node.of(Send)}
    refused = VoteResponse(Error.NONE, -1, 3)
    for _ in range(3):
        node.done(node.machine.response(sent[2].destination, sent[2].request, refused, node.now_ms))
    assert node.machine.state_name == "prospective"
    node.wait(2500)
    granted = GRANTED._replace(epoch=3)
    assert node.done(node.machine.response(sent[3].destination, sent[3].request, granted, node.now_ms)) == []


def test_a_voter_that_does_not_answer_is_asked_again_after_the_request_timeout_and_the_backoff():
    node = RaftHarness(log(), ElectionState(7, -1, key_of(1)), election_timeout_ms=10_000)
    node.start()
    node.answer(2, None)
    assert node.of(Send) == []
    node.wait(20)
    assert list(node.sent(VoteRequest)) == [2]
    node.wait(1980)
    assert node.of(Send) == []
    node.wait(20)
    assert list(node.sent(VoteRequest)) == [3]


def test_an_unattached_voter_learns_the_leader_from_a_bootstrap_server():
    node = RaftHarness(log())
    node.start()
    node.answer(-2, FetchResponse(Error.FENCED_LEADER_EPOCH, 3, 6, (listener_of(3),)))
    assert (node.machine.state_name, node.machine.epoch, node.machine.leader_id) == ("follower", 6, 3)
    assert list(node.sent(FetchRequest)) == [3]


def test_a_bootstrap_server_that_leads_sends_records_in_the_same_response():
    node = RaftHarness(log(), node_id=4)
    node.start()
    node.answer(-2, FetchResponse(Error.NONE, 3, 3, (listener_of(3),), 10, 0))
    assert (node.machine.state_name, node.machine.high_watermark) == ("observer", 10)


def test_a_node_that_lost_its_quorum_state_does_not_vote_in_an_epoch_that_it_led():
    node = RaftHarness(log())
    node.start()
    node.answer(-2, FetchResponse(Error.FENCED_LEADER_EPOCH, 1, 6, (listener_of(1),)))
    assert (node.machine.state_name, node.machine.epoch) == ("resigned", 6)
    assert node.of(SaveElection)[0].state.leader_id == 1


@pytest.mark.parametrize("error", [Error.INVALID_REQUEST, Error.CLUSTER_AUTHORIZATION_FAILED])
def test_errors_that_no_retry_can_cure_stop_the_node(error):
    node = RaftHarness(log(), ElectionState(7, -1, key_of(1)))
    node.start()
    node.answer(2, VoteResponse(error, -1, 7))
    assert type(node.effects[-1]).__name__ == "Fatal"
    assert node.wait(10_000) == []


def test_two_leaders_of_one_epoch_stop_the_node():
    node = RaftHarness(log()).follow(2, 5)
    node.wait(2000)
    node.answer(3, VoteResponse(Error.NONE, 3, 5, (listener_of(3),)))
    assert "whose leader is node 2" in node.effects[-1].text


def test_a_node_stays_out_of_a_cluster_with_another_id():
    node = RaftHarness(log())
    node.start()
    node.answer(-2, FetchResponse(Error.INCONSISTENT_CLUSTER_ID, -1, -1))
    assert node.machine.state_name == "unattached"
