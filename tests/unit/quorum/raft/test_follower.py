"""The follower and the observer: fetches, appends, truncation, downloads of snapshots."""

import pytest

from kafkapy.errors import Error
from kafkapy.quorum.raft.effects import (
    AppendFetched,
    DropSnapshotPart,
    ElectionState,
    Fatal,
    HighWatermark,
    Send,
    StartAtSnapshot,
    Truncate,
    WriteSnapshotChunk,
)
from kafkapy.quorum.raft.messages import (
    FetchedBatch,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    VoterChange,
)
from kafkapy.types import OffsetAndEpoch
from tests.harness.raft_harness import (
    CLUSTER,
    RaftHarness,
    begin,
    key_of,
    listener_of,
    log_of,
    voters_of,
)


def follower(*epochs, node_id=1, **settings):
    """Returns a follower of node 2 in epoch 5, with records of the given epochs, whose first Fetch is in flight."""
    log = log_of(*epochs or ((3, 10),), voters=voters_of(1, 2, 3))
    node = RaftHarness(log, ElectionState(5, 2), node_id=node_id, **settings)
    node.start()
    return node


def test_one_fetch_is_in_flight_and_the_next_follows_the_response():
    node = follower()
    first = FetchRequest(CLUSTER, key_of(1), 5, 10, 3, -1, 500, 1024 * 1024)
    assert node.sent(FetchRequest) == {2: first}
    node.wait(100)
    assert not node.of(Send)
    node.fetched((10, 12, 5), high_watermark=11)
    assert node.of(AppendFetched) == [AppendFetched(b"records", (FetchedBatch(10, 12, 5),), True)]
    assert node.of(HighWatermark) == [HighWatermark(11)]
    assert node.effects.index(node.of(AppendFetched)[0]) < node.effects.index(node.of(Send)[0])
    assert node.sent(FetchRequest) == {2: first._replace(offset=13, last_epoch=5, high_watermark=11)}


def test_a_short_fetch_timeout_shortens_the_wait_of_a_fetch():
    node = follower(fetch_timeout_ms=400)
    assert node.sent(FetchRequest)[2].max_wait_ms == 100


def test_an_observer_that_cannot_become_a_voter_need_not_flush():
    node = follower(node_id=4, can_be_voter=False, listeners=())
    node.fetched((10, 12, 5))
    assert not node.of(AppendFetched)[0].is_durable


def test_the_high_watermark_is_not_above_the_own_end_and_never_falls():
    node = follower()
    node.fetched(high_watermark=99)
    assert node.machine.high_watermark == 10
    node.fetched(high_watermark=4)
    assert node.machine.high_watermark == 10


@pytest.mark.parametrize(
    ("batches", "appended"),
    [
        ([(10, 11, 3), (12, 12, 5)], 2),
        ([(10, 11, 3), (13, 13, 5)], 1),
        ([(10, 11, 6)], 0),
        ([(10, 11, 5), (12, 12, 4)], 1),
        ([(10, 11, 2)], 0),
        ([(9, 11, 5)], 0),
        ([(10, 9, 5)], 0),
    ],
)
def test_only_batches_that_continue_the_log_are_appended(batches, appended):
    node = follower()
    node.fetched(*batches)
    found = node.of(AppendFetched)
    expected = tuple(FetchedBatch(*each) for each in batches[:appended])
    assert [each.batches for each in found] == ([expected] if expected else [])


def test_the_bytes_of_batches_that_do_not_fit_are_cut_off():
    node = follower()
    node.fetched((10, 11, 5, 3), (12, 12, 5, 2), (12, 12, 5, 2))
    assert node.of(AppendFetched)[0].records == b"recor"


def test_responses_without_a_usable_batch_are_not_asked_for_again_at_once():
    node = follower()
    node.fetched((99, 99, 5))
    assert all(each.destination.node_id < 0 for each in node.of(Send))
    node.wait(1999)
    node.wait(1)
    assert node.machine.state_name == "prospective"


# -- divergence


@pytest.mark.parametrize(
    ("diverging", "end"),
    [
        ((2, 5), 5),
        ((2, 3), 3),
        ((3, 7), 5),
        ((4, 12), 10),
        ((4, 7), 7),
        ((0, 0), 0),
        ((1, 0), 0),
    ],
)
def test_a_log_is_truncated_to_the_largest_common_epoch(diverging, end):
    node = follower((2, 5), (4, 5), (5, 2))
    node.fetched(diverging=OffsetAndEpoch(diverging[1], diverging[0]), high_watermark=12)
    assert node.of(Truncate) == [Truncate(end)]
    assert not node.of(HighWatermark)
    request = node.sent(FetchRequest)[2]
    assert (request.offset, request.last_epoch) == (end, node.machine.log.last_epoch)


def test_divergence_below_the_high_watermark_stops_the_node():
    node = follower()
    node.fetched(high_watermark=8)
    node.fetched(diverging=OffsetAndEpoch(7, 3))
    assert isinstance(node.effects[-1], Fatal)
    assert not node.of(Truncate)


def test_voter_sets_count_once_they_are_in_the_log_and_are_truncated_with_it():
    node = follower()
    four = voters_of(1, 2, 3, 4)
    node.fetched((10, 10, 5), (11, 11, 5), changes=(VoterChange(11, four), VoterChange(99, voters_of(9))))
    assert node.machine.voters == four
    assert node.machine.voters_at(11) == (voters_of(1, 2, 3), 1)
    assert node.machine.voters_at(12) == (four, 1)
    node.fetched(diverging=OffsetAndEpoch(11, 5))
    assert node.machine.voters == voters_of(1, 2, 3)


def test_a_response_to_a_request_from_another_offset_is_ignored():
    node = follower()
    sent = node.of(Send)[0]
    stale = sent.request._replace(offset=9)
    assert node.done(node.machine.response(sent.destination, stale, None, 0)) == []
    assert node.fetched((10, 10, 5))


# -- timers


def test_a_voter_asks_for_prevotes_after_the_fetch_timeout_and_an_observer_asks_the_bootstrap_servers():
    voter, observer = follower(), follower(node_id=4)
    for node in (voter, observer):
        node.wait(1999)
        assert not node.of(Send)
    voter.wait(1)
    assert voter.machine.state_name == "prospective"
    observer.wait(1)
    assert observer.machine.state_name == "observer"
    assert list(observer.sent(FetchRequest)) == [-2]


def test_every_successful_response_restarts_the_fetch_timeout():
    node = follower()
    for _ in range(5):
        node.wait(1900)
        node.fetched()
    assert node.machine.state_name == "follower"
    node.wait(2000)
    assert node.machine.state_name == "prospective"


def test_while_the_leader_fails_a_bootstrap_server_is_asked():
    node = follower()
    node.answer(2, None)
    assert list(node.sent(FetchRequest)) == [-2]
    node.answer(-2, FetchResponse(Error.NOT_LEADER_OR_FOLLOWER, -1, 5))
    assert list(node.sent(FetchRequest)) == [-3]
    node.answer(-3, FetchResponse(Error.NOT_LEADER_OR_FOLLOWER, -1, 5))
    assert not node.of(Send)
    node.wait(20)
    assert list(node.sent(FetchRequest)) == [2]


@pytest.mark.parametrize(
    ("error", "epoch", "leader_id", "state"),
    [
        (Error.FENCED_LEADER_EPOCH, 6, 3, ("follower", 6, 3)),
        (Error.FENCED_LEADER_EPOCH, 6, -1, ("unattached", 6, -1)),
        (Error.UNKNOWN_LEADER_EPOCH, 4, -1, ("follower", 5, 2)),
        (Error.NOT_LEADER_OR_FOLLOWER, 5, 2, ("follower", 5, 2)),
        (Error.BROKER_NOT_AVAILABLE, 5, 2, ("follower", 5, 2)),
        (Error.NONE, 4, 9, ("follower", 5, 2)),
        (Error.UNKNOWN_SERVER_ERROR, 5, 2, ("follower", 5, 2)),
    ],
)
def test_errors_of_the_leader(error, epoch, leader_id, state):
    node = follower()
    node.answer(2, FetchResponse(error, leader_id, epoch))
    assert (node.machine.state_name, node.machine.epoch, node.machine.leader_id) == state
    assert not node.of(AppendFetched)


# -- snapshots

SNAPSHOT = OffsetAndEpoch(50, 4)


def piece(position, data, size=7, **fields):
    return FetchSnapshotResponse(Error.NONE, 2, 5, (), SNAPSHOT, size, position, 0, data)._replace(**fields)


def downloading():
    node = follower()
    node.fetched(snapshot_id=SNAPSHOT)
    return node


def test_a_snapshot_is_fetched_in_pieces_and_replaces_the_log():
    node = downloading()
    request = FetchSnapshotRequest(CLUSTER, key_of(1), 5, SNAPSHOT, 0, 1024 * 1024)
    assert node.sent(FetchSnapshotRequest) == {2: request}
    node.answer(2, piece(0, b"abcd"))
    assert node.of(WriteSnapshotChunk) == [WriteSnapshotChunk(SNAPSHOT, 0, b"abcd")]
    assert node.sent(FetchSnapshotRequest) == {2: request._replace(position=4)}
    node.answer(2, piece(4, b"efg"))
    assert node.effects == [WriteSnapshotChunk(SNAPSHOT, 4, b"efg"), StartAtSnapshot(SNAPSHOT)]
    node.done(node.machine.started_at_snapshot(SNAPSHOT, voters_of(2, 3), 1, node.now_ms))
    assert node.of(HighWatermark) == [HighWatermark(50)]
    assert node.machine.voters == voters_of(2, 3)
    assert node.machine.voters_at(50) == (voters_of(2, 3), 1)
    request = node.sent(FetchRequest)[2]
    assert (request.offset, request.last_epoch, request.high_watermark) == (50, 4, 50)


@pytest.mark.parametrize(
    "response",
    [
        piece(0, b"", error=Error.SNAPSHOT_NOT_FOUND),
        piece(0, b"", error=Error.POSITION_OUT_OF_RANGE),
        piece(0, b"abcd", snapshot_id=OffsetAndEpoch(51, 4)),
        piece(1, b"abcd"),
    ],
)
def test_a_download_that_the_leader_cannot_continue_is_dropped(response):
    node = downloading()
    node.answer(2, response)
    assert node.of(DropSnapshotPart) == [DropSnapshotPart(SNAPSHOT)]
    assert node.sent(FetchRequest)[2].offset == 10


@pytest.mark.parametrize("response", [piece(0, b""), piece(0, b"", error=Error.UNKNOWN_SERVER_ERROR)])
def test_after_a_piece_that_did_not_come_the_leader_is_left_alone_for_a_while(response):
    node = downloading()
    node.answer(2, response)
    assert not node.of(WriteSnapshotChunk) and not node.of(DropSnapshotPart)
    assert not node.sent(FetchSnapshotRequest)
    assert [node_id for node_id in node.sent(FetchRequest) if node_id >= 0] == []  # a bootstrap server is asked


def test_an_error_of_the_whole_request_ends_a_download_and_backs_off():
    node = downloading()
    node.answer(2, FetchSnapshotResponse(Error.UNKNOWN_SERVER_ERROR, -1, -1))
    assert node.of(DropSnapshotPart) == [DropSnapshotPart(SNAPSHOT)]
    assert not node.sent(FetchSnapshotRequest)
    assert [node_id for node_id in node.sent(FetchRequest) if node_id >= 0] == []  # A bootstrap server is asked.


def test_a_new_leader_ends_a_download():
    node = downloading()
    node.receive(begin(3, 6))
    assert node.of(DropSnapshotPart) == [DropSnapshotPart(SNAPSHOT)]
    assert list(node.sent(FetchRequest)) == [3]


def test_a_download_restarts_the_fetch_timeout():
    node = downloading()
    for position in range(5):
        node.wait(1900)
        node.answer(2, piece(position, b"a"))
    assert node.machine.state_name == "follower"


def test_an_observer_goes_on_with_its_download_after_a_lost_piece():
    log = log_of((3, 10), voters=voters_of(1, 2, 3))
    node = RaftHarness(log, ElectionState(5, 2), node_id=4)
    node.start()
    node.fetched(snapshot_id=SNAPSHOT)
    node.wait(2000)
    assert list(node.sent(FetchRequest)) == [-2]
    node.answer(-2, FetchResponse(Error.NONE, 2, 5, (listener_of(2),), snapshot_id=SNAPSHOT))
    node.wait(20)
    node.answer(-2, None)
    assert list(node.sent(FetchSnapshotRequest)) == [2]


@pytest.mark.parametrize("snapshot_id", [OffsetAndEpoch(-1, 4), OffsetAndEpoch(50, -1)])
def test_an_impossible_snapshot_id_is_not_fetched(snapshot_id):
    node = follower()
    node.fetched(snapshot_id=snapshot_id)
    assert not node.sent(FetchSnapshotRequest)
