"""Requests and responses of the metadata quorum, without their wire form.

The driver of the Raft machine (`MetadataQuorum`) translates them to and from the messages of `kafkapy.protocol`. Where
the translation is not obvious, the docstring of the class explains it. `node_id` -1 and `epoch` -1 mean "none".

Every response of the quorum names the leader that the sender knows. The machine returns all endpoints of that leader;
the driver writes the endpoint of the listener on which the request arrived, if there is one. A received response
contains at most one endpoint; the driver passes it on under the name of the listener that it uses for the quorum.

INCONSISTENT_CLUSTER_ID is the error of the whole response; every other error is the error of the partition. The driver
itself refuses requests for other topics or partitions, so that the machine does not receive them.
"""

from __future__ import annotations

from kafkapy.errors import Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.quorum.voters import ControllerListener, ReplicaKey, Voter, VoterSet
from kafkapy.types import OffsetAndEpoch

NO_REPLICA = ReplicaKey(-1)
# The default of HighWatermark in a Fetch request: the follower does not wait for a new high watermark.
UNKNOWN_HIGH_WATERMARK = 2**63 - 1

Endpoints = tuple[ControllerListener, ...]


class Destination(NamedTuple):
    """The receiver of a request. Bootstrap servers have negative node ids from -2 downwards."""

    node_id: int
    host: str
    port: int


class VoteRequest(NamedTuple):
    """Asks a voter for its vote. If `pre_vote` is True, only asks whether the voter would vote for the candidate
    (KIP-996).

    `voter` is the addressee, NO_REPLICA if the request does not name it (version 0).
    """

    cluster_id: str | None
    voter: ReplicaKey
    candidate: ReplicaKey
    epoch: int
    last_epoch: int
    end_offset: int
    pre_vote: bool


class VoteResponse(NamedTuple):
    """The response to a Vote.

    The driver sets the error UNSUPPORTED_VERSION if the voter does not support PreVote (Vote version 2).
    """

    error: Error
    leader_id: int
    epoch: int
    endpoints: Endpoints = ()
    granted: bool = False


class BeginQuorumEpochRequest(NamedTuple):
    """Announces the leader of an epoch to a voter; `voter` is the addressee, NO_REPLICA in version 0."""

    cluster_id: str | None
    voter: ReplicaKey
    leader_id: int
    epoch: int
    endpoints: Endpoints


class BeginQuorumEpochResponse(NamedTuple):
    """The response to a BeginQuorumEpoch."""

    error: Error
    leader_id: int
    epoch: int
    endpoints: Endpoints = ()


class EndQuorumEpochRequest(NamedTuple):
    """Announces that the leader of an epoch resigned. `preferred` lists the candidates for the next leader, the most
    caught up first (version 0: node ids only)."""

    cluster_id: str | None
    leader_id: int
    epoch: int
    preferred: tuple[ReplicaKey, ...]
    endpoints: Endpoints


class EndQuorumEpochResponse(NamedTuple):
    """The response to an EndQuorumEpoch."""

    error: Error
    leader_id: int
    epoch: int
    endpoints: Endpoints = ()


class FetchRequest(NamedTuple):
    """Reads the metadata log from `offset`; `last_epoch` is the epoch of the record before it.

    `epoch` is the sender's epoch. `replica.node_id` is -1 for a client that is no replica. `high_watermark` is the high
    watermark that the sender knows (-1 if it knows none, UNKNOWN_HIGH_WATERMARK before version 18).
    """

    cluster_id: str | None
    replica: ReplicaKey
    epoch: int
    offset: int
    last_epoch: int
    high_watermark: int
    max_wait_ms: int
    max_bytes: int


class FetchedBatch(NamedTuple):
    """The first and the last offset, the epoch and the size in bytes of one batch of the log."""

    base_offset: int
    last_offset: int
    epoch: int
    size: int = 0


class VoterChange(NamedTuple):
    """A KRaftVoters or KRaftVersion control record at an offset of the log; exactly one of `voters` and `kraft_version`
    is not None."""

    offset: int
    voters: VoterSet | None = None
    kraft_version: int | None = None


class FetchResponse(NamedTuple):
    """The response to a Fetch: an error, a diverging epoch with its end offset, a snapshot id, or records.

    In a response to be sent, the machine sets `read_from` and `max_bytes`: the driver reads whole batches from the
    offset `read_from` on, at least one, up to the end of the log. `read_from` -1 means that the response contains no
    records. In a received response the driver sets `records`, `batches` and `changes`: the batches before the first one
    that is corrupt or incomplete.
    """

    error: Error
    leader_id: int
    epoch: int
    endpoints: Endpoints = ()
    high_watermark: int = -1
    log_start_offset: int = -1
    diverging: OffsetAndEpoch | None = None
    snapshot_id: OffsetAndEpoch | None = None
    read_from: int = -1
    max_bytes: int = 0
    records: bytes = b""
    batches: tuple[FetchedBatch, ...] = ()
    changes: tuple[VoterChange, ...] = ()


class FetchSnapshotRequest(NamedTuple):
    """Reads at most `max_bytes` of a snapshot file from `position` (in bytes) on."""

    cluster_id: str | None
    replica: ReplicaKey
    epoch: int
    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int


class FetchSnapshotResponse(NamedTuple):
    """The response to a FetchSnapshot: an error, or a piece of the file and the size of the whole file in bytes.

    The machine of a leader leaves `size` and `data` to the driver, which reads at most `max_bytes` from `position`. If
    the file is missing the driver responds with SNAPSHOT_NOT_FOUND, and with POSITION_OUT_OF_RANGE if the position is
    not in the file.
    """

    error: Error
    leader_id: int
    epoch: int
    endpoints: Endpoints = ()
    snapshot_id: OffsetAndEpoch | None = None
    size: int = 0
    position: int = 0
    max_bytes: int = 0
    data: bytes = b""


class AddVoterRequest(NamedTuple):
    """Adds a voter (AddRaftVoter). The kraft.version range of `voter` is not used: the leader asks the voter for it.
    If `ack_when_committed` is False, the leader responds as soon as it has appended the new voter set.
    """

    cluster_id: str | None
    timeout_ms: int
    voter: Voter
    ack_when_committed: bool = True


class RemoveVoterRequest(NamedTuple):
    """Removes a voter (RemoveRaftVoter)."""

    cluster_id: str | None
    voter: ReplicaKey


class UpdateVoterRequest(NamedTuple):
    """Corrects the listeners and the kraft.version range of a voter (UpdateRaftVoter)."""

    cluster_id: str | None
    epoch: int
    voter: Voter


class ChangeVoterResponse(NamedTuple):
    """The response to AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter; only the response to UpdateRaftVoter names the
    leader.

    `message` is the text of the error as Apache Kafka writes it, or None if the default text of `error` is sufficient.
    """

    error: Error
    message: str | None = None
    leader_id: int = -1
    epoch: int = -1
    endpoints: Endpoints = ()


class ApiVersionsRequest(NamedTuple):
    """Asks a node that is to become a voter for the kraft.version levels that it supports (ApiVersions version 4)."""


class ApiVersionsResponse(NamedTuple):
    """The range of kraft.version that a node supports; 0 to 0 if its response does not contain the feature."""

    error: Error
    min_kraft_version: int = 0
    max_kraft_version: int = 0


Request = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | AddVoterRequest
    | RemoveVoterRequest
    | UpdateVoterRequest
    | ApiVersionsRequest
)

Response = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
    | ChangeVoterResponse
    | ApiVersionsResponse
)


class ReplicaState(NamedTuple):
    """A voter or observer as DescribeQuorum lists it; times are monotonic milliseconds, -1 if unknown."""

    key: ReplicaKey
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


class QuorumDescription(NamedTuple):
    """The data of the response to DescribeQuorum, which only the leader has."""

    leader_id: int
    epoch: int
    high_watermark: int
    voters: tuple[ReplicaState, ...]
    observers: tuple[ReplicaState, ...]
    nodes: tuple[Voter, ...]
