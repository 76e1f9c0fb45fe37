"""Vote, BeginQuorumEpoch and EndQuorumEpoch: the checks in Kafka's order, and who grants which vote."""

import pytest

from kafkapy.errors import Error
from kafkapy.quorum.raft.effects import ElectionState, Fatal, LeaderChanged, LostLeadership, Respond, SaveElection
from kafkapy.quorum.raft.messages import EndQuorumEpochRequest, VoteRequest, VoteResponse
from kafkapy.quorum.voters import ReplicaKey
from tests.harness.raft_harness import (
    CLUSTER,
    RaftHarness,
    begin,
    directory_of,
    key_of,
    listener_of,
    log_of,
    vote,
    voters_of,
)

OTHER_DIRECTORY = bytes(range(16))


def log():
    return log_of((3, 10), voters=voters_of(1, 2, 3))


def unattached(voted=None, leader_id=-1):
    node = RaftHarness(log(), ElectionState(7, leader_id, voted))
    node.start()
    return node


def prospective(voted=None):
    node = unattached(voted)
    node.wait(1000)
    assert node.machine.state_name == "prospective"
    return node


def candidate():
    return unattached(key_of(1))


def resigned():
    return unattached(leader_id=1)


def follower(has_fetched=True):
    node = RaftHarness(log(), ElectionState(7, 2))
    node.start()
    if has_fetched:
        node.fetched()
    return node


def leader():
    node = RaftHarness(log(), ElectionState(6))
    return node.become_leader()


STATES = {
    "unattached": unattached,
    "prospective": prospective,
    "candidate": candidate,
    "resigned": resigned,
    "follower": follower,
    "follower that has not fetched": lambda: follower(False),
    "leader": leader,
}


@pytest.mark.parametrize(
    ("state", "is_granted"),
    [
        ("unattached", True),
        ("prospective", True),
        ("candidate", True),
        ("resigned", True),
        ("follower", False),
        ("follower that has not fetched", True),
        ("leader", False),
    ],
)
def test_a_prevote_is_granted_to_a_log_that_is_up_to_date(state, is_granted):
    node = STATES[state]()
    end = node.machine.log.end
    for last_epoch, end_offset, is_up_to_date in [
        (end.epoch, end.offset, True),
        (end.epoch, end.offset - 1, False),
        (end.epoch - 1, end.offset + 9, False),
    ]:
        request = vote(3, 7, last_epoch, end_offset, pre_vote=True)
        response = node.receive(request)
        assert (response.error, response.granted) == (Error.NONE, is_granted and is_up_to_date)
        assert not node.of(SaveElection)


@pytest.mark.parametrize(("state", "is_granted"), [("unattached", True), ("prospective", True), ("candidate", False)])
def test_a_vote_is_durable_before_the_response(state, is_granted):
    node = STATES[state]()
    assert node.receive(vote(3, 7, 3, 10)).granted is is_granted
    if is_granted:
        assert [type(each) for each in node.effects[:2]] == [SaveElection, Respond]
        assert node.of(SaveElection) == [SaveElection(ElectionState(7, -1, key_of(3)), True)]
        assert node.receive(vote(3, 7, 3, 10)).granted
        assert not node.of(SaveElection)
        assert not node.receive(vote(2, 7, 3, 10)).granted


@pytest.mark.parametrize("state", ["resigned", "follower", "follower that has not fetched", "leader"])
def test_no_vote_is_granted_in_an_epoch_with_a_known_leader(state):
    assert not STATES[state]().receive(vote(3, 7, 3, 20)).granted


def test_no_vote_is_granted_if_the_leader_is_known_by_its_id_only():
    assert not unattached(leader_id=9).receive(vote(3, 7, 3, 10)).granted


@pytest.mark.parametrize(
    ("voted", "is_granted"),
    [
        (key_of(3), True),
        (ReplicaKey(3), True),
        (ReplicaKey(3, OTHER_DIRECTORY), False),
        (key_of(2), False),
    ],
)
@pytest.mark.parametrize("state", [unattached, prospective])
def test_a_vote_is_repeated_for_the_same_candidate_and_directory(state, voted, is_granted):
    assert state(voted).receive(vote(3, 7, 0, 0)).granted is is_granted


def test_an_observer_grants_votes_because_its_voter_set_may_be_old():
    node = RaftHarness(log(), node_id=4)
    node.start()
    request = vote(3, 5, 3, 10)._replace(voter=key_of(4))
    assert node.receive(request).granted


def test_a_candidate_with_this_nodes_own_id_is_refused():
    assert not unattached().receive(vote(1, 7, 3, 10)._replace(candidate=ReplicaKey(1, OTHER_DIRECTORY))).granted


@pytest.mark.parametrize("state", sorted(set(STATES)))
def test_a_higher_epoch_is_entered_before_the_vote_is_judged(state):
    node = STATES[state]()
    epoch = node.machine.epoch
    response = node.receive(vote(3, 9, 3, 9, pre_vote=True))
    assert (response.error, response.epoch, response.leader_id, response.granted) == (Error.NONE, 9, -1, False)
    assert node.machine.state_name == "unattached"
    if state == "leader":
        assert node.of(LostLeadership) == [LostLeadership(epoch)]


GOOD = vote(3, 9, 3, 10)
NOT_US = ReplicaKey(1, OTHER_DIRECTORY)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (GOOD._replace(cluster_id="x", end_offset=-1), Error.INCONSISTENT_CLUSTER_ID),
        (GOOD._replace(cluster_id=None), Error.NONE),
        (GOOD._replace(end_offset=-1, epoch=1), Error.INVALID_REQUEST),
        (GOOD._replace(last_epoch=-1), Error.INVALID_REQUEST),
        (GOOD._replace(epoch=-1, last_epoch=-1), Error.INVALID_REQUEST),
        (GOOD._replace(last_epoch=9), Error.INVALID_REQUEST),
        (GOOD._replace(last_epoch=9, pre_vote=True), Error.NONE),
        (GOOD._replace(last_epoch=10, pre_vote=True), Error.INVALID_REQUEST),
        (GOOD._replace(epoch=6, candidate=ReplicaKey(-1)), Error.FENCED_LEADER_EPOCH),
        (GOOD._replace(candidate=ReplicaKey(-1), voter=NOT_US), Error.INVALID_REQUEST),
        (GOOD._replace(voter=NOT_US), Error.INVALID_VOTER_KEY),
        (GOOD._replace(voter=ReplicaKey(2, directory_of(1))), Error.INVALID_VOTER_KEY),
        (GOOD._replace(voter=ReplicaKey(1)), Error.NONE),
        (GOOD._replace(voter=ReplicaKey(-1)), Error.NONE),
    ],
)
def test_vote_checks(request_, error):
    assert unattached().receive(request_).error == error


def test_a_vote_for_another_voter_still_raises_the_epoch():
    node = unattached()
    assert node.receive(GOOD._replace(voter=NOT_US)).epoch == 9


def test_a_vote_resets_the_election_timeout():
    node = unattached()
    node.wait(900)
    assert node.receive(vote(3, 7, 3, 10)).granted
    node.wait(999)
    assert node.machine.state_name == "unattached"
    node.wait(1)
    assert node.machine.state_name == "prospective"


def test_a_higher_epoch_does_not_reset_the_election_timeout():
    node = unattached()
    node.wait(900)
    node.receive(vote(3, 9, 0, 0))
    node.wait(100)
    assert node.machine.state_name == "prospective"


# -- BeginQuorumEpoch and EndQuorumEpoch


def end(leader_id, epoch, *preferred):
    return EndQuorumEpochRequest(CLUSTER, leader_id, epoch, preferred, (listener_of(leader_id),))


@pytest.mark.parametrize(
    ("request_", "error", "leader_id"),
    [
        (begin(2, 7)._replace(cluster_id="x"), Error.INCONSISTENT_CLUSTER_ID, -1),
        (begin(2, 6), Error.FENCED_LEADER_EPOCH, -1),
        (begin(2, 7)._replace(leader_id=-1), Error.INVALID_REQUEST, -1),
        (begin(2, 7), Error.NONE, 2),
        (begin(2, 9), Error.NONE, 2),
        (begin(2, 9)._replace(endpoints=()), Error.NONE, 2),
        (begin(2, 9)._replace(voter=NOT_US), Error.INVALID_VOTER_KEY, 2),
        (begin(1, 9), Error.INVALID_REQUEST, -1),
        (end(2, 6), Error.FENCED_LEADER_EPOCH, -1),
        (end(2, 9), Error.NONE, 2),
    ],
)
def test_the_sender_is_followed_before_the_voter_key_is_checked(request_, error, leader_id):
    node = unattached()
    assert node.receive(request_).error == error
    assert node.machine.leader_id == leader_id
    assert node.machine.state_name == ("follower" if leader_id == 2 else "unattached")


def test_a_leader_without_known_address_is_remembered_by_its_id():
    node = unattached()
    assert node.receive(begin(9, 9)._replace(endpoints=())).error == Error.NONE
    assert (node.machine.state_name, node.machine.leader_id) == ("unattached", 9)
    node.receive(begin(9, 9))
    assert node.machine.state_name == "follower"


def test_a_second_leader_of_the_epoch_is_refused_but_stops_nobody():
    node = follower()
    assert node.receive(begin(3, 7)).error == Error.INVALID_REQUEST
    assert not node.of(Fatal)
    assert node.machine.leader_id == 2


def test_further_endpoints_of_the_leader_are_taken_over():
    node = follower()
    more = (listener_of(2), listener_of(2)._replace(name="OTHER"))
    node.receive(begin(2, 7)._replace(endpoints=more))
    assert node.of(LeaderChanged) == [LeaderChanged(2, 7, more)]


@pytest.mark.parametrize(
    ("preferred", "wait_ms"),
    [
        ([1, 3], 0),
        ([3, 1], 500),
        ([3, 4, 1], 500),
        ([3, 4, 5, 1], 500),
        ([3, 1, 4, 5], 125),
        ([3], 1000),
        ([], 1000),
    ],
)
def test_the_rank_among_the_candidates_determines_the_wait(preferred, wait_ms):
    node = follower()
    node.receive(end(2, 7, *map(key_of, preferred)))
    if wait_ms:
        node.wait(wait_ms - 1)
        assert node.machine.state_name == "follower"
        node.wait(1)
    assert node.machine.state_name == "prospective"


def test_a_candidate_of_another_directory_is_not_this_node():
    node = follower()
    node.receive(end(2, 7, NOT_US))
    assert node.machine.state_name == "follower"
    node.receive(end(2, 7, ReplicaKey(1)))
    assert node.machine.state_name == "prospective"


# -- a leader that refuses connections


def test_a_voter_whose_leader_refuses_connections_asks_and_grants_at_once():
    node = follower()
    assert not node.receive(vote(3, 7, 3, 10, pre_vote=True)).granted
    node.done(node.machine.leader_refused(2, node.now_ms))
    assert node.machine.state_name == "prospective"
    node.answer(2, None)
    node.answer(3, VoteResponse(Error.NONE, 2, 7))
    node.wait(20)
    node.answer(2, VoteResponse(Error.NONE, 2, 7))  # the leader's process runs after all
    node.wait(30)
    node.answer(3, VoteResponse(Error.NONE, 2, 7))
    assert node.machine.state_name == "follower"
    assert node.receive(vote(3, 7, 3, 10, pre_vote=True)).granted
    node.done(node.machine.leader_refused(2, node.now_ms))
    assert node.machine.state_name == "follower"
    node.fetched()
    assert not node.receive(vote(3, 7, 3, 10, pre_vote=True)).granted


def test_a_voter_that_has_not_noticed_the_end_of_the_leader_is_asked_again():
    node = follower()
    node.done(node.machine.leader_refused(2, node.now_ms))
    asked_at = []
    for _ in range(500):
        if 3 in node.sent(VoteRequest):
            asked_at.append(node.now_ms)
            node.answer(3, VoteResponse(Error.NONE, 2, 7))
        assert node.machine.state_name == "prospective"
        node.wait(1)
    assert asked_at == [0, 50, 100, 200, 400]
    node.wait(300)
    node.answer(3, VoteResponse(Error.NONE, 2, 7, (), True))
    assert node.machine.state_name == "candidate"


def test_a_voter_that_grants_a_pre_vote_does_not_ask_for_pre_votes_at_the_same_time():
    node = RaftHarness(log_of((3, 10), voters=voters_of(1, 2, 3)), ElectionState(7, 1), node_id=3)
    node.start()
    node.done(node.machine.leader_refused(1, 0))
    node.wait(90)
    assert node.receive(vote(2, 7, 3, 10, pre_vote=True)._replace(voter=key_of(3))).granted
    node.wait(99)
    assert node.machine.state_name == "follower"
    node.wait(1)
    assert node.machine.state_name == "prospective"


def test_voters_take_turns_after_a_refusal():
    node = RaftHarness(log_of(voters=voters_of(1, 2, 3, 4)), ElectionState(7, 4), node_id=3)
    node.start()
    node.done(node.machine.leader_refused(4, 0))
    node.wait(199)
    assert node.machine.state_name == "follower"
    node.wait(1)
    assert node.sent(VoteRequest)[1].pre_vote


def test_a_refusal_of_a_former_leader_or_at_an_observer_changes_nothing():
    node = follower()
    node.done(node.machine.leader_refused(3, node.now_ms))
    assert node.machine.state_name == "follower"
    observer = RaftHarness(log(), ElectionState(7, 2), node_id=4)
    observer.start()
    observer.done(observer.machine.leader_refused(2, 0))
    assert observer.machine.state_name == "observer"
