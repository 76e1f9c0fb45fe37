"""Translates the requests of the Raft machine to other nodes into Kafka's protocol, and the responses back.

Every request names one partition, `__cluster_metadata`-0. A response that does not name exactly this partition is
treated as invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import singledispatch
from typing import Any

from kafkapy import __version__
from kafkapy._core.bytes.message import Message
from kafkapy._core.bytes.record_batch import RecordBatch, scan_batches
from kafkapy.client.connection import SOFTWARE_NAME
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.features import KRAFT_VERSION
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages import add_raft_voter as add_wire
from kafkapy.protocol.messages import begin_quorum_epoch as begin_wire
from kafkapy.protocol.messages import end_quorum_epoch as end_wire
from kafkapy.protocol.messages import fetch as fetch_wire
from kafkapy.protocol.messages import fetch_snapshot as snapshot_wire
from kafkapy.protocol.messages import remove_raft_voter as remove_wire
from kafkapy.protocol.messages import update_raft_voter as update_wire
from kafkapy.protocol.messages import vote as vote_wire
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest as WireApiVersionsRequest
from kafkapy.quorum.raft import messages as raft
from kafkapy.quorum.voter_changes import voter_changes
from kafkapy.quorum.voters import ControllerListener
from kafkapy.types import METADATA_PARTITION, METADATA_TOPIC, METADATA_TOPIC_ID, OffsetAndEpoch

UNKNOWN_LOG_START = -1


class Outgoing(NamedTuple):
    """The wire form of a request: its API, the function that builds the message for an API version, and the function
    that translates the response."""

    api_key: ApiKey
    build: Callable[[int], Message]
    read: Callable[[Any, str], raft.Response]  # (wire response, name of the listener that was asked)


@singledispatch
def outgoing(request: raft.Request) -> Outgoing:
    """Returns the wire form of a request. Its `build` raises ApiError if the API version has no field for a part of the
    request."""
    raise TypeError(f"{type(request).__name__} is not a request of the quorum")


@outgoing.register
def _vote(request: raft.VoteRequest) -> Outgoing:
    def build(version: int) -> Message:
        if request.pre_vote and version < vote_wire.VoteRequest.FIRST_VERSION_WITH_PRE_VOTE:
            raise ApiError(Error.UNSUPPORTED_VERSION, "The voter does not support PreVote.")
        partition = vote_wire.VoteRequest.PartitionData(
            partition_index=METADATA_PARTITION,
            replica_epoch=request.epoch,
            replica_id=request.candidate.node_id,
            replica_directory_id=request.candidate.directory_id,
            voter_directory_id=request.voter.directory_id,
            last_offset_epoch=request.last_epoch,
            last_offset=request.end_offset,
            pre_vote=request.pre_vote,
        )
        topic = vote_wire.VoteRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
        return vote_wire.VoteRequest(cluster_id=request.cluster_id, voter_id=request.voter.node_id, topics=[topic])

    def read(response: vote_wire.VoteResponse, listener: str) -> raft.VoteResponse:
        leader = _leader_fields(response, listener)
        return raft.VoteResponse(*leader, leader[0] is Error.NONE and response.topics[0].partitions[0].vote_granted)

    return Outgoing(ApiKey.VOTE, build, read)


@outgoing.register
def _begin(request: raft.BeginQuorumEpochRequest) -> Outgoing:
    wire = begin_wire.BeginQuorumEpochRequest

    def build(version: int) -> Message:
        partition = wire.PartitionData(voter_directory_id=request.voter.directory_id)
        message: Message = _about_leader(wire, partition, request, voter_id=request.voter.node_id)
        return message

    return Outgoing(
        ApiKey.BEGIN_QUORUM_EPOCH,
        build,
        lambda response, listener: raft.BeginQuorumEpochResponse(*_leader_fields(response, listener)),
    )


@outgoing.register
def _end(request: raft.EndQuorumEpochRequest) -> Outgoing:
    wire = end_wire.EndQuorumEpochRequest

    def build(version: int) -> Message:
        partition = wire.PartitionData(
            preferred_successors=[key.node_id for key in request.preferred],
            preferred_candidates=[
                wire.ReplicaInfo(candidate_id=key.node_id, candidate_directory_id=key.directory_id)
                for key in request.preferred
            ],
        )
        message: Message = _about_leader(wire, partition, request)
        return message

    return Outgoing(
        ApiKey.END_QUORUM_EPOCH,
        build,
        lambda response, listener: raft.EndQuorumEpochResponse(*_leader_fields(response, listener)),
    )


def _about_leader(
    wire: Any, partition: Any, request: raft.BeginQuorumEpochRequest | raft.EndQuorumEpochRequest, **fields: Any
) -> Any:
    """Returns the wire form of a BeginQuorumEpoch or EndQuorumEpoch request, in which a leader names itself.

    `wire` is the class of the wire request. `partition` is an object for the request's only partition; this function
    sets its index, leader and epoch. `fields` are further fields of the wire request.
    """
    partition.partition_index = METADATA_PARTITION
    partition.leader_id, partition.leader_epoch = request.leader_id, request.epoch
    return wire(
        cluster_id=request.cluster_id,
        topics=[wire.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[
            wire.LeaderEndpoint(name=name, host=host, port=port) for name, host, port in request.endpoints
        ],
        **fields,
    )


@outgoing.register
def _fetch(request: raft.FetchRequest) -> Outgoing:
    wire = fetch_wire.FetchRequest

    def build(version: int) -> Message:
        partition = wire.FetchPartition(
            partition=METADATA_PARTITION,
            current_leader_epoch=request.epoch,
            fetch_offset=request.offset,
            last_fetched_epoch=request.last_epoch,
            log_start_offset=UNKNOWN_LOG_START,
            partition_max_bytes=request.max_bytes,
            replica_directory_id=request.replica.directory_id,
            high_watermark=request.high_watermark,
        )
        topic = wire.FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
        message = wire(
            cluster_id=request.cluster_id, max_wait_ms=request.max_wait_ms, max_bytes=request.max_bytes, topics=[topic]
        )
        if version >= wire.FIRST_VERSION_WITH_REPLICA_STATE:
            message.replica_state = wire.ReplicaState(replica_id=request.replica.node_id)
        else:
            message.replica_id = request.replica.node_id
        return message

    return Outgoing(ApiKey.FETCH, build, _read_fetch)


def _read_fetch(response: fetch_wire.FetchResponse, listener: str) -> raft.FetchResponse:
    if response.error_code:
        return raft.FetchResponse(Error.of(response.error_code), -1, -1)
    found = _only_partition(response.responses, "topic")
    if found is None:
        return raft.FetchResponse(Error.UNKNOWN_SERVER_ERROR, -1, -1)
    leader = found.current_leader
    diverging, snapshot = found.diverging_epoch, found.snapshot_id
    content, batches, changes = _valid_batches(bytes(found.records or b""))
    return raft.FetchResponse(
        Error.of(found.error_code),
        leader.leader_id,
        leader.leader_epoch,
        _endpoints(response.node_endpoints, leader.leader_id, listener),
        found.high_watermark,
        found.log_start_offset,
        OffsetAndEpoch(diverging.end_offset, diverging.epoch) if diverging.epoch >= 0 else None,
        OffsetAndEpoch(snapshot.end_offset, snapshot.epoch) if snapshot.epoch >= 0 else None,
        records=content,
        batches=batches,
        changes=changes,
    )


def _valid_batches(content: bytes) -> tuple[bytes, tuple[raft.FetchedBatch, ...], tuple[raft.VoterChange, ...]]:
    """Returns the bytes of the batches before the first invalid one, the description of each of these batches, and the
    changes of voters in them."""
    summaries, valid = scan_batches(content)
    batches, changes = [], []
    for summary in summaries:
        epoch = summary.partition_leader_epoch
        batches.append(raft.FetchedBatch(summary.base_offset, summary.last_offset, epoch, summary.size))
        if summary.is_control:
            changes += voter_changes(RecordBatch(content, summary.position))
    return content[:valid], tuple(batches), tuple(changes)


@outgoing.register
def _fetch_snapshot(request: raft.FetchSnapshotRequest) -> Outgoing:
    wire = snapshot_wire.FetchSnapshotRequest

    def build(version: int) -> Message:
        partition = wire.PartitionSnapshot(
            partition=METADATA_PARTITION,
            current_leader_epoch=request.epoch,
            snapshot_id=wire.SnapshotId(end_offset=request.snapshot_id.offset, epoch=request.snapshot_id.epoch),
            position=request.position,
            replica_directory_id=request.replica.directory_id,
        )
        topic = wire.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
        return wire(
            cluster_id=request.cluster_id,
            replica_id=request.replica.node_id,
            max_bytes=request.max_bytes,
            topics=[topic],
        )

    def read(response: snapshot_wire.FetchSnapshotResponse, listener: str) -> raft.FetchSnapshotResponse:
        if response.error_code:
            return raft.FetchSnapshotResponse(Error.of(response.error_code), -1, -1)
        found = _only_partition(response.topics, "name")
        if found is None:
            return raft.FetchSnapshotResponse(Error.UNKNOWN_SERVER_ERROR, -1, -1)
        leader = found.current_leader
        return raft.FetchSnapshotResponse(
            Error.of(found.error_code),
            leader.leader_id,
            leader.leader_epoch,
            _endpoints(response.node_endpoints, leader.leader_id, listener),
            OffsetAndEpoch(found.snapshot_id.end_offset, found.snapshot_id.epoch),
            found.size,
            found.position,
            data=bytes(found.unaligned_records or b""),
        )

    return Outgoing(ApiKey.FETCH_SNAPSHOT, build, read)


@outgoing.register
def _add_voter(request: raft.AddVoterRequest) -> Outgoing:
    wire = add_wire.AddRaftVoterRequest
    voter = request.voter

    def build(version: int) -> Message:
        message = wire(
            cluster_id=request.cluster_id,
            timeout_ms=request.timeout_ms,
            voter_id=voter.node_id,
            voter_directory_id=voter.directory_id,
            listeners=[wire.Listener(name=name, host=host, port=port) for name, host, port in voter.listeners],
        )
        if version >= wire.FIRST_VERSION_WITH_ACK_WHEN_COMMITTED:
            message.ack_when_committed = request.ack_when_committed
        return message

    return Outgoing(ApiKey.ADD_RAFT_VOTER, build, _read_change)


@outgoing.register
def _remove_voter(request: raft.RemoveVoterRequest) -> Outgoing:
    message = remove_wire.RemoveRaftVoterRequest(
        cluster_id=request.cluster_id, voter_id=request.voter.node_id, voter_directory_id=request.voter.directory_id
    )
    return Outgoing(ApiKey.REMOVE_RAFT_VOTER, lambda version: message, _read_change)


def _read_change(response: Any, listener: str) -> raft.ChangeVoterResponse:
    return raft.ChangeVoterResponse(Error.of(response.error_code), response.error_message)


@outgoing.register
def _update_voter(request: raft.UpdateVoterRequest) -> Outgoing:
    wire = update_wire.UpdateRaftVoterRequest
    voter = request.voter
    message = wire(
        cluster_id=request.cluster_id,
        current_leader_epoch=request.epoch,
        voter_id=voter.node_id,
        voter_directory_id=voter.directory_id,
        listeners=[wire.Listener(name=name, host=host, port=port) for name, host, port in voter.listeners],
        kraft_version_feature=wire.KRaftVersionFeature(
            min_supported_version=voter.min_kraft_version, max_supported_version=voter.max_kraft_version
        ),
    )

    def read(response: update_wire.UpdateRaftVoterResponse, listener: str) -> raft.ChangeVoterResponse:
        leader = response.current_leader
        known = leader.leader_id >= 0 and leader.host
        return raft.ChangeVoterResponse(
            Error.of(response.error_code),
            leader_id=leader.leader_id,
            epoch=leader.leader_epoch,
            endpoints=(ControllerListener(listener, leader.host, leader.port),) if known else (),
        )

    return Outgoing(ApiKey.UPDATE_RAFT_VOTER, lambda version: message, read)


@outgoing.register
def _api_versions(request: raft.ApiVersionsRequest) -> Outgoing:
    def read(response: Any, listener: str) -> raft.ApiVersionsResponse:
        ranges = {each.name: (each.min_version, each.max_version) for each in response.supported_features}
        return raft.ApiVersionsResponse(Error.of(response.error_code), *ranges.get(KRAFT_VERSION, (0, 0)))

    # A receiver refuses a request without the name and version of the software (KIP-511).
    message = WireApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)
    return Outgoing(ApiKey.API_VERSIONS, lambda version: message, read)


def failure_of(request: raft.Request, error: Exception) -> raft.Response | None:
    """Returns the response that the machine gets for a request that could not be sent: UNSUPPORTED_VERSION if the voter
    does not support PreVote, otherwise None."""
    if isinstance(request, raft.VoteRequest) and isinstance(error, ApiError):
        return raft.VoteResponse(error.error, -1, -1) if error.error is Error.UNSUPPORTED_VERSION else None
    return None


def _leader_fields(response: Any, listener: str) -> tuple[Error, int, int, raft.Endpoints]:
    """Returns error, leader id, epoch and endpoints of a response to Vote, BeginQuorumEpoch or EndQuorumEpoch.

    `listener` is the name of the listener to which the request was sent; the endpoints get this name.
    """
    if response.error_code:
        return Error.of(response.error_code), -1, -1, ()
    found = _only_partition(response.topics, "topic_name")
    if found is None:
        return Error.UNKNOWN_SERVER_ERROR, -1, -1, ()
    endpoints = _endpoints(response.node_endpoints, found.leader_id, listener)
    return Error.of(found.error_code), found.leader_id, found.leader_epoch, endpoints


def _only_partition(topics: list[Any], name_field: str) -> Any:
    """Returns the metadata partition if it is the only partition in a response, otherwise None.

    `name_field` is the attribute of a topic that has the topic's name.
    """
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    is_named = getattr(topics[0], name_field) == METADATA_TOPIC
    return topics[0].partitions[0] if is_named or getattr(topics[0], "topic_id", b"") == METADATA_TOPIC_ID else None


def _endpoints(nodes: Iterable[Any], leader_id: int, listener: str) -> raft.Endpoints:
    """Returns the endpoint of the leader among the `nodes` of a response; empty if the leader is not among them.

    `listener` is the name of the listener to which the request was sent; the endpoint gets this name.
    """
    return tuple(ControllerListener(listener, node.host, node.port) for node in nodes if node.node_id == leader_id)
