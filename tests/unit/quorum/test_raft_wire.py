"""The quorum's messages on the wire: what one node sends is what the other node's machine receives."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import request_class, response_class
from kafkapy.protocol.messages.data_records import LeaderChangeMessage
from kafkapy.protocol.messages.fetch import FetchResponse
from kafkapy.quorum import raft_server as server
from kafkapy.quorum.metadata_batch import control_batch
from kafkapy.quorum.raft import messages as raft
from kafkapy.quorum.raft_client import failure_of, outgoing
from kafkapy.quorum.voters import ControllerListener, ReplicaKey, Voter, VoterSet
from kafkapy.server.handlers.api_versions import SOFTWARE
from kafkapy.types import OffsetAndEpoch

ONE, TWO = ReplicaKey(1, bytes(range(16))), ReplicaKey(2, bytes(range(16, 32)))
ENDPOINTS = (ControllerListener("CONTROLLER", "host", 9093), ControllerListener("OTHER", "else", 9094))
SNAPSHOT = OffsetAndEpoch(40, 3)
VOTER = Voter(*TWO, ENDPOINTS, 0, 1)

REQUESTS: list[tuple[raft.Request, Any]] = [
    (raft.VoteRequest("c", ONE, TWO, 7, 6, 50, True), server.vote_request),
    (raft.BeginQuorumEpochRequest("c", ONE, 2, 7, ENDPOINTS), server.begin_request),
    (raft.EndQuorumEpochRequest("c", 2, 7, (ONE, TWO), ENDPOINTS), server.end_request),
    (raft.FetchRequest("c", TWO, 7, 50, 6, 48, 500, 1 << 20), lambda request: server.fetch_request(request, 18)),
    (raft.FetchSnapshotRequest(None, TWO, 7, SNAPSHOT, 100, 1 << 20), server.fetch_snapshot_request),
    (raft.RemoveVoterRequest("c", TWO), server.remove_voter_request),
    (raft.UpdateVoterRequest("c", 7, VOTER), server.update_voter_request),
    (raft.AddVoterRequest("c", 1000, VOTER._replace(max_kraft_version=0), False), server.add_voter_request),
]


def sent(request: raft.Request, version: int | None = None) -> Any:
    """Returns the wire request as the receiver decodes it; the newest version by default."""
    found = outgoing(request)
    wire = request_class(found.api_key)
    version = wire.HIGHEST_VERSION if version is None else version
    return wire.decode(b"".join(map(bytes, found.build(version).encode_chunks(version))), version)


def received(request: raft.Request, message: Any, version: int | None = None) -> Any:
    """Returns the response as the sender reads it."""
    found = outgoing(request)
    wire = response_class(found.api_key)
    version = wire.HIGHEST_VERSION if version is None else version
    content = b"".join(map(bytes, message.encode_chunks(version)))
    return found.read(wire.decode(content, version), "CONTROLLER")


@pytest.mark.parametrize(("request_", "read"), REQUESTS, ids=lambda each: type(each).__name__)
def test_the_receiver_gets_the_request_that_was_sent(request_, read):
    assert read(sent(request_)) == request_


@pytest.mark.parametrize("version", range(12, 19))
def test_a_fetch_in_every_version_with_epochs(version):
    request = raft.FetchRequest("c", TWO, 7, 50, 6, 48, 500, 1 << 20)
    found = server.fetch_request(sent(request, version), version)
    directory = TWO if version >= 17 else ReplicaKey(2)
    watermark = 48 if version >= 18 else raft.UNKNOWN_HIGH_WATERMARK
    assert found == request._replace(replica=directory, high_watermark=watermark)


def test_pre_votes_are_not_sent_to_voters_that_do_not_know_them():
    request = raft.VoteRequest("c", ONE, TWO, 7, 6, 50, True)
    with pytest.raises(ApiError) as refusal:
        outgoing(request).build(1)
    assert failure_of(request, refusal.value) == raft.VoteResponse(Error.UNSUPPORTED_VERSION, -1, -1)
    assert failure_of(request, ApiError(Error.NETWORK_EXCEPTION)) is None
    assert server.vote_request(sent(request._replace(pre_vote=False), 1)).candidate == TWO


def test_the_question_for_the_range_of_kraft_version_names_the_software():
    message = sent(raft.ApiVersionsRequest(), 4)
    names = (message.client_software_name, message.client_software_version)
    assert all(SOFTWARE.fullmatch(name) for name in names)


def test_another_partition_is_refused_for_the_whole_request():
    wire = sent(raft.VoteRequest("c", ONE, TWO, 7, 6, 50, False))
    wire.topics[0].topic_name = "other"
    with pytest.raises(ApiError) as refusal:
        server.vote_request(wire)
    assert refusal.value.error is Error.INVALID_REQUEST


@pytest.mark.parametrize(
    "error", [Error.NONE, Error.FENCED_LEADER_EPOCH, Error.INVALID_REQUEST, Error.INCONSISTENT_CLUSTER_ID]
)
def test_responses_name_the_leader_on_the_listener_that_was_asked(error):
    vote = raft.VoteResponse(error, 2, 7, ENDPOINTS, True)
    begin = raft.BeginQuorumEpochResponse(error, 2, 7, ENDPOINTS)
    end = raft.EndQuorumEpochResponse(error, 2, 7, ENDPOINTS)
    whole = error is Error.INCONSISTENT_CLUSTER_ID
    for request, response, write in (
        (REQUESTS[0][0], vote, server.vote_response),
        (REQUESTS[1][0], begin, server.begin_response),
        (REQUESTS[2][0], end, server.end_response),
    ):
        found = received(request, write(response, 1, "CONTROLLER"))
        assert found.error is error
        assert (found.leader_id, found.epoch) == ((-1, -1) if whole else (2, 7))
        assert found.endpoints == (() if whole else ENDPOINTS[:1])


@pytest.mark.parametrize("error", [Error.INVALID_REQUEST, Error.CLUSTER_AUTHORIZATION_FAILED])
def test_only_another_cluster_is_an_error_of_a_whole_fetch(error):
    fetch = raft.FetchResponse(error, 2, 7, ENDPOINTS)
    message = server.fetch_response(fetch, 18, "CONTROLLER", lambda offset, size: 1 // 0)
    assert (message.error_code, message.responses[0].partitions[0].error_code) == (0, error)
    snapshot = raft.FetchSnapshotResponse(error, 2, 7, ENDPOINTS)
    found = server.fetch_snapshot_response(snapshot, 1, "CONTROLLER", lambda *asked: 1 // 0)
    assert (found.error_code, found.topics[0].partitions[0].error_code) == (0, error)


def test_a_fetch_response_carries_batches_and_their_voters():
    request = REQUESTS[3][0]
    voters = VoterSet([VOTER])
    leader_change = LeaderChangeMessage(leader_id=2)
    log = control_batch(50, 7, 0, [leader_change, *voters.records()]) + control_batch(53, 8, 0, [leader_change])
    asked = []

    def read(offset: int, max_bytes: int) -> bytes:
        asked.append((offset, max_bytes))
        return log + log[:20]  # a batch that is cut off

    response = raft.FetchResponse(Error.NONE, 2, 8, ENDPOINTS, 52, 10, read_from=50, max_bytes=1000)
    found = received(request, server.fetch_response(response, 18, "CONTROLLER", read))
    assert asked == [(50, 1000)]
    assert found.records == log
    assert [batch[:3] for batch in found.batches] == [(50, 52, 7), (53, 53, 8)]
    assert sum(batch.size for batch in found.batches) == len(found.records)
    assert found.changes == (raft.VoterChange(51, kraft_version=1), raft.VoterChange(52, voters=voters))
    assert (found.high_watermark, found.log_start_offset, found.endpoints) == (52, 10, ENDPOINTS[:1])


@pytest.mark.parametrize("field", ["diverging", "snapshot_id"])
def test_a_fetch_response_without_records(field):
    response = raft.FetchResponse(Error.NONE, 2, 8, ENDPOINTS, 52, 10)._replace(**{field: SNAPSHOT})
    message = server.fetch_response(response, 16, "CONTROLLER", lambda offset, size: 1 // 0)
    found = received(REQUESTS[3][0], message, 16)
    assert getattr(found, field) == SNAPSHOT and found.endpoints == () and found.records == b""


def test_a_piece_of_a_snapshot():
    request = REQUESTS[4][0]
    response = raft.FetchSnapshotResponse(Error.NONE, 2, 8, ENDPOINTS, SNAPSHOT, position=5, max_bytes=3)
    message = server.fetch_snapshot_response(response, 1, "CONTROLLER", lambda *asked: (100, repr(asked).encode()))
    found = received(request, message)
    assert found.data == repr((SNAPSHOT, 5, 3)).encode()
    assert (found.size, found.position, found.snapshot_id, found.endpoints) == (100, 5, SNAPSHOT, ENDPOINTS[:1])

    def missing(*asked: Any) -> tuple[int, bytes]:
        raise ApiError(Error.SNAPSHOT_NOT_FOUND)

    found = received(request, server.fetch_snapshot_response(response, 1, "CONTROLLER", missing))
    assert found.error is Error.SNAPSHOT_NOT_FOUND


def test_answers_to_changes_of_voters():
    response = raft.ChangeVoterResponse(Error.DUPLICATE_VOTER, "text", 2, 8, ENDPOINTS)
    assert received(REQUESTS[5][0], server.remove_voter_response(response)).message == "text"
    assert received(REQUESTS[7][0], server.add_voter_response(response)).error is Error.DUPLICATE_VOTER
    found = received(REQUESTS[6][0], server.update_voter_response(response, "OTHER"))
    assert (found.leader_id, found.epoch) == (2, 8)
    assert found.endpoints == (ControllerListener("CONTROLLER", "else", 9094),)


def test_a_response_about_other_partitions_is_invalid():
    empty = FetchResponse()
    assert received(REQUESTS[3][0], empty).error is Error.UNKNOWN_SERVER_ERROR
