"""The effects that the Raft machine returns. Its driver, `MetadataQuorum`, carries them out in the returned order.

An effect that writes (SaveElection, Truncate, AppendFetched, AppendControl, WriteSnapshotChunk, StartAtSnapshot) is
carried out completely, and durably where the class says so, before the next effect. If the write fails, the driver
stops the node, because the state of the machine already assumes that the write has succeeded.
"""

from __future__ import annotations

from typing import Any

from kafkapy.errors import Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.quorum.raft.messages import Destination, Endpoints, FetchedBatch, Request, Response
from kafkapy.quorum.voters import ReplicaKey, VoterSet
from kafkapy.types import OffsetAndEpoch


class ElectionState(NamedTuple):
    """The content of quorum-state. `leader_id` -1 and `voted` None stand for "none"; `voters` are the ids of the static
    voters, which only the form of data_version 0 contains."""

    epoch: int
    leader_id: int = -1
    voted: ReplicaKey | None = None
    voters: tuple[int, ...] = ()


class SaveElection(NamedTuple):
    """Replaces the file quorum-state; the new content is durable before the driver (`MetadataQuorum`) carries out the
    next effect. `is_dynamic` selects data_version 1, which stores the directory id of the voted replica too.
    """

    state: ElectionState
    is_dynamic: bool


class Truncate(NamedTuple):
    """Removes the batches of the log from `offset` on, and later entries of the epoch cache."""

    offset: int


class AppendFetched(NamedTuple):
    """Appends batches that the leader sent, unchanged; durable if `is_durable`. `records` consists of the bytes of
    `batches`."""

    records: bytes
    batches: tuple[FetchedBatch, ...]
    is_durable: bool


class LeaderChange(NamedTuple):
    """The content of a LeaderChange control record."""

    leader_id: int
    voters: tuple[ReplicaKey, ...]
    granting_voters: tuple[ReplicaKey, ...]


class AppendControl(NamedTuple):
    """Appends one control batch at the end of the log (`base_offset`). Its records are LeaderChange, KRaftVersion (an
    int) and KRaftVoters (a VoterSet), in the order of `records`. The driver calls `RaftMachine.appended` once the batch
    is durable."""

    base_offset: int
    epoch: int
    records: tuple[LeaderChange | int | VoterSet, ...]


class WriteSnapshotChunk(NamedTuple):
    """Writes a piece of a snapshot at `position` (in bytes) of the file into which the snapshot is downloaded; position
    0 begins the file.
    """

    snapshot_id: OffsetAndEpoch
    position: int
    data: bytes


class DropSnapshotPart(NamedTuple):
    """Removes the incomplete file of a snapshot whose download was given up."""

    snapshot_id: OffsetAndEpoch


class StartAtSnapshot(NamedTuple):
    """Makes the downloaded file a complete snapshot, and replaces the whole log with an empty log that begins at the
    snapshot's end offset; durable. The driver then calls `started_at_snapshot`; the machine does not fetch before that.
    """

    snapshot_id: OffsetAndEpoch


class Send(NamedTuple):
    """Sends a request. The driver then calls `RaftMachine.response` exactly once, with None if the request failed."""

    destination: Destination
    request: Request


class Respond(NamedTuple):
    """Sends the response to a request. `token` is the value that the caller passed to `receive` with the request."""

    token: Any
    response: Response


class HighWatermark(NamedTuple):
    """The records before `offset` are committed."""

    offset: int


class LeaderChanged(NamedTuple):
    """The leader, which may be this node, or the epoch has changed. `leader_id` is -1 while no leader is known."""

    leader_id: int
    epoch: int
    endpoints: Endpoints


class BecameLeader(NamedTuple):
    """This node leads `epoch`, whose first batch is at `start_offset`. The driver may append from now on. The node
    becomes active controller once it has replayed up to `start_offset`."""

    epoch: int
    start_offset: int


class LostLeadership(NamedTuple):
    """This node no longer leads `epoch`. The driver appends nothing more in that epoch."""

    epoch: int


class KRaftVersionResult(NamedTuple):
    """The result of `upgrade_kraft_version`: Error.NONE once the change is committed, or the error and message of the
    refusal."""

    token: Any
    error: Error
    message: str | None


class Stopped(NamedTuple):
    """The shutdown of this node is complete, for one of these reasons: another node leads, this node is no voter, this
    node is the only voter, or the timeout of `shutdown` has passed.
    """


class Fatal(NamedTuple):
    """The node must stop: continuing could lose committed records."""

    text: str


Effect = (
    SaveElection
    | Truncate
    | AppendFetched
    | AppendControl
    | WriteSnapshotChunk
    | DropSnapshotPart
    | StartAtSnapshot
    | Send
    | Respond
    | HighWatermark
    | LeaderChanged
    | BecameLeader
    | LostLeadership
    | KRaftVersionResult
    | Stopped
    | Fatal
)
