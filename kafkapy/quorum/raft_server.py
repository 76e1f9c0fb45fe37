"""Translates the requests that other nodes send to the quorum from Kafka's protocol into messages of the Raft machine,
and the machine's responses back.

A request may name no partition except `__cluster_metadata`-0. For any other partition the whole request gets the error
INVALID_REQUEST, as in Apache Kafka. A response names the endpoint of the leader on the listener on which the request
has arrived, if this endpoint is known and the API version has the field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kafkapy.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from kafkapy.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kafkapy.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kafkapy.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from kafkapy.protocol.messages.vote import VoteRequest, VoteResponse
from kafkapy.quorum.raft import messages as raft
from kafkapy.quorum.voters import ControllerListener, ReplicaKey, Voter
from kafkapy.types import METADATA_PARTITION, METADATA_TOPIC, METADATA_TOPIC_ID, OffsetAndEpoch

FIRST_FETCH_WITH_TOPIC_ID = FetchRequest.FIRST_VERSION_WITH_TOPIC_ID
FIRST_FETCH_WITH_ENDPOINTS = 17  # the version with directory ids, although version 16 has the field
FIRST_WITH_ENDPOINTS = 1  # of Vote, BeginQuorumEpoch, EndQuorumEpoch and FetchSnapshot


# -- requests


def vote_request(request: VoteRequest) -> raft.VoteRequest:
    """Returns a Vote request as a message of the Raft machine.

    Raises ApiError(INVALID_REQUEST) if the request names a partition other than `__cluster_metadata`-0.
    """
    asked = _only_partition(request.topics, "topic_name", "partition_index")
    return raft.VoteRequest(
        request.cluster_id,
        ReplicaKey(request.voter_id, asked.voter_directory_id),
        ReplicaKey(asked.replica_id, asked.replica_directory_id),
        asked.replica_epoch,
        asked.last_offset_epoch,
        asked.last_offset,
        asked.pre_vote,
    )


def begin_request(request: BeginQuorumEpochRequest) -> raft.BeginQuorumEpochRequest:
    asked = _only_partition(request.topics, "topic_name", "partition_index")
    return raft.BeginQuorumEpochRequest(
        request.cluster_id,
        ReplicaKey(request.voter_id, asked.voter_directory_id),
        asked.leader_id,
        asked.leader_epoch,
        _listeners(request.leader_endpoints),
    )


def end_request(request: EndQuorumEpochRequest) -> raft.EndQuorumEpochRequest:
    asked = _only_partition(request.topics, "topic_name", "partition_index")
    preferred = [ReplicaKey(each.candidate_id, each.candidate_directory_id) for each in asked.preferred_candidates]
    return raft.EndQuorumEpochRequest(
        request.cluster_id,
        asked.leader_id,
        asked.leader_epoch,
        tuple(preferred or map(ReplicaKey, asked.preferred_successors)),
        _listeners(request.leader_endpoints),
    )


def fetch_request(request: FetchRequest, version: int) -> raft.FetchRequest:
    name = "topic_id" if version >= FIRST_FETCH_WITH_TOPIC_ID else "topic"
    asked = _only_partition(request.topics, name, "partition")
    has_state = version >= FetchRequest.FIRST_VERSION_WITH_REPLICA_STATE
    replica_id = request.replica_state.replica_id if has_state else request.replica_id
    return raft.FetchRequest(
        request.cluster_id,
        ReplicaKey(replica_id, asked.replica_directory_id),
        asked.current_leader_epoch,
        asked.fetch_offset,
        asked.last_fetched_epoch,
        asked.high_watermark,
        request.max_wait_ms,
        request.max_bytes,
    )


def fetch_snapshot_request(request: FetchSnapshotRequest) -> raft.FetchSnapshotRequest:
    asked = _only_partition(request.topics, "name", "partition")
    return raft.FetchSnapshotRequest(
        request.cluster_id,
        ReplicaKey(request.replica_id, asked.replica_directory_id),
        asked.current_leader_epoch,
        OffsetAndEpoch(asked.snapshot_id.end_offset, asked.snapshot_id.epoch),
        asked.position,
        request.max_bytes,
    )


def add_voter_request(request: AddRaftVoterRequest) -> raft.AddVoterRequest:
    voter = Voter(request.voter_id, request.voter_directory_id, _listeners(request.listeners))
    return raft.AddVoterRequest(request.cluster_id, request.timeout_ms, voter, request.ack_when_committed)


def remove_voter_request(request: RemoveRaftVoterRequest) -> raft.RemoveVoterRequest:
    return raft.RemoveVoterRequest(request.cluster_id, ReplicaKey(request.voter_id, request.voter_directory_id))


def update_voter_request(request: UpdateRaftVoterRequest) -> raft.UpdateVoterRequest:
    supported = request.kraft_version_feature
    voter = Voter(
        request.voter_id,
        request.voter_directory_id,
        _listeners(request.listeners),
        supported.min_supported_version,
        supported.max_supported_version,
    )
    return raft.UpdateVoterRequest(request.cluster_id, request.current_leader_epoch, voter)


# -- responses


def vote_response(response: raft.VoteResponse, version: int, listener: str) -> VoteResponse:
    found: VoteResponse = _election_response(VoteResponse, response, version, listener, vote_granted=response.granted)
    return found


def begin_response(response: raft.BeginQuorumEpochResponse, version: int, listener: str) -> BeginQuorumEpochResponse:
    found: BeginQuorumEpochResponse = _election_response(BeginQuorumEpochResponse, response, version, listener)
    return found


def end_response(response: raft.EndQuorumEpochResponse, version: int, listener: str) -> EndQuorumEpochResponse:
    found: EndQuorumEpochResponse = _election_response(EndQuorumEpochResponse, response, version, listener)
    return found


def _election_response(wire: Any, response: Any, version: int, listener: str, **fields: Any) -> Any:
    """Returns the protocol message for a response of the state machine to Vote, BeginQuorumEpoch or EndQuorumEpoch.

    `wire` is the class of the message, `version` the version of the request, and `listener` the listener on which the
    request arrived. `fields` has the fields of the message's partition that exist in this API only, such as
    `vote_granted`.
    """
    if _is_error_of_the_request(response):
        return wire(error_code=response.error)
    partition = wire.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=response.error,
        leader_id=response.leader_id,
        leader_epoch=response.epoch,
        **fields,
    )
    return wire(
        topics=[wire.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        node_endpoints=_nodes(response, listener, wire.NodeEndpoint) if version >= FIRST_WITH_ENDPOINTS else [],
    )


def fetch_response(
    response: raft.FetchResponse, version: int, listener: str, read: Callable[[int, int], bytes]
) -> FetchResponse:
    """Returns the wire form of a Fetch response, with batches that `read(offset, max_bytes)` returns from the log."""
    if _is_error_of_the_request(response):
        return FetchResponse(error_code=response.error)
    records = b"" if response.read_from < 0 else read(response.read_from, response.max_bytes)
    partition = FetchResponse.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=response.error,
        high_watermark=response.high_watermark,
        log_start_offset=response.log_start_offset,
        aborted_transactions=None,
        records=records,
        current_leader=FetchResponse.LeaderIdAndEpoch(leader_id=response.leader_id, leader_epoch=response.epoch),
    )
    if response.diverging is not None:
        end_offset, epoch = response.diverging
        partition.diverging_epoch = FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    if response.snapshot_id is not None:
        end_offset, epoch = response.snapshot_id
        partition.snapshot_id = FetchResponse.SnapshotId(end_offset=end_offset, epoch=epoch)
    topic = FetchResponse.FetchableTopicResponse(
        topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
    )
    has_endpoints = version >= FIRST_FETCH_WITH_ENDPOINTS
    return FetchResponse(
        responses=[topic],
        node_endpoints=_nodes(response, listener, FetchResponse.NodeEndpoint) if has_endpoints else [],
    )


def fetch_snapshot_response(
    response: raft.FetchSnapshotResponse,
    version: int,
    listener: str,
    read: Callable[[OffsetAndEpoch, int, int], tuple[int, bytes]],
) -> FetchSnapshotResponse:
    """Returns the wire form of a FetchSnapshot response. `read(snapshot id, position, max_bytes)` returns the size of
    the snapshot file and the bytes from `position` on, or raises ApiError."""
    if _is_error_of_the_request(response):
        return FetchSnapshotResponse(error_code=response.error)
    partition = FetchSnapshotResponse.PartitionSnapshot(
        index=METADATA_PARTITION,
        error_code=response.error,
        unaligned_records=b"",
        current_leader=FetchSnapshotResponse.LeaderIdAndEpoch(
            leader_id=response.leader_id, leader_epoch=response.epoch
        ),
    )
    if response.error is Error.NONE:
        assert response.snapshot_id is not None, "a response without a snapshot"
        try:
            size, content = read(response.snapshot_id, response.position, response.max_bytes)
        except ApiError as error:
            partition.error_code = error.error
        else:
            end_offset, epoch = response.snapshot_id
            partition.snapshot_id = FetchSnapshotResponse.SnapshotId(end_offset=end_offset, epoch=epoch)
            partition.size, partition.position, partition.unaligned_records = size, response.position, content
    topic = FetchSnapshotResponse.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
    nodes = _nodes(response, listener, FetchSnapshotResponse.NodeEndpoint) if version >= FIRST_WITH_ENDPOINTS else []
    return FetchSnapshotResponse(topics=[topic], node_endpoints=nodes)


def add_voter_response(response: raft.ChangeVoterResponse) -> AddRaftVoterResponse:
    return AddRaftVoterResponse(error_code=response.error, error_message=response.message)


def remove_voter_response(response: raft.ChangeVoterResponse) -> RemoveRaftVoterResponse:
    return RemoveRaftVoterResponse(error_code=response.error, error_message=response.message)


def update_voter_response(response: raft.ChangeVoterResponse, listener: str) -> UpdateRaftVoterResponse:
    leader = UpdateRaftVoterResponse.CurrentLeader(leader_id=response.leader_id, leader_epoch=response.epoch)
    for endpoint in response.endpoints:
        if endpoint.name == listener:
            leader.host, leader.port = endpoint.host, endpoint.port
    return UpdateRaftVoterResponse(error_code=response.error, current_leader=leader)


def _is_error_of_the_request(response: Any) -> bool:
    """Returns True if the error in a response of the Raft machine belongs to the whole request
    (INCONSISTENT_CLUSTER_ID). Returns False if the error belongs to the partition.
    """
    return response.error is Error.INCONSISTENT_CLUSTER_ID


def _only_partition(topics: list[Any], name_field: str, index_field: str) -> Any:
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        partition = topics[0].partitions[0]
        is_metadata = getattr(topics[0], name_field) in (METADATA_TOPIC, METADATA_TOPIC_ID)
        if is_metadata and getattr(partition, index_field) == METADATA_PARTITION:
            return partition
    raise ApiError(Error.INVALID_REQUEST)


def _listeners(endpoints: list[Any]) -> tuple[ControllerListener, ...]:
    return tuple(ControllerListener(each.name, each.host, each.port) for each in endpoints)


def _nodes(response: Any, listener: str, wire: Any) -> list[Any]:
    return [
        wire(node_id=response.leader_id, host=endpoint.host, port=endpoint.port)
        for endpoint in response.endpoints
        if endpoint.name == listener
    ]
