"""Operations on the metadata quorum: its state, and its voters (KIP-853)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy.client.admin.lookups import AdminLookups
from kafkapy.client.admin.requests import AdminRequest, constant, error_of, top_level_error
from kafkapy.client.cluster import repr_with_text_ids
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.add_raft_voter import AddRaftVoterRequest
from kafkapy.protocol.messages.describe_quorum import DescribeQuorumRequest
from kafkapy.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from kafkapy.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from kafkapy.types import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID

_FETCH_BYTES = 8 * 1024 * 1024


class VoterEndpoint(NamedTuple):
    """An address of a controller, with the name of its listener."""

    listener: str
    host: str
    port: int


class QuorumReplica(NamedTuple):
    """A voter or observer of the quorum; timestamps are in ms since 1970, -1 if unknown."""

    node_id: int
    directory_id: bytes
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int

    def __repr__(self) -> str:
        return repr_with_text_ids(self)


class QuorumDescription(NamedTuple):
    """The state of the metadata quorum.

    `leader` is the node id of the leading controller. `listeners` maps the node id of each voter to a dictionary of
    (host, port) by listener name.
    """

    leader: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    listeners: dict[int, dict[str, tuple[str, int]]]


class MetadataLogPart(NamedTuple):
    """A part of the metadata log: `records` are its batches.

    If the leader refers to a snapshot instead of sending batches, `snapshot` is its id (offset, epoch), otherwise None.
    """

    records: bytes
    log_start_offset: int
    high_watermark: int
    snapshot: tuple[int, int] | None


class QuorumOperations(AdminLookups):
    """Operations on the metadata quorum."""

    def describe_metadata_quorum(self, *, timeout: float | None = None) -> QuorumDescription:
        """Returns the voters and observers of the metadata log. Blocks."""
        partition = DescribeQuorumRequest.PartitionData(partition_index=0)
        request = DescribeQuorumRequest(
            topics=[DescribeQuorumRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])]
        )
        response = self._request(
            self._any_broker,
            ApiKey.DESCRIBE_QUORUM,
            constant(request),
            _partition_error("topics"),
            deadline_ms=self._deadline_ms(timeout),
        )
        result = response.topics[0].partitions[0]
        listeners = {
            node.node_id: {each.name: (each.host, each.port) for each in node.listeners} for node in response.nodes
        }
        return QuorumDescription(
            result.leader_id,
            result.leader_epoch,
            result.high_watermark,
            tuple(map(_quorum_replica, result.current_voters)),
            tuple(map(_quorum_replica, result.observers)),
            listeners,
        )

    def fetch_metadata_log(
        self, offset: int, epoch: int, *, last_epoch: int | None = None, timeout: float | None = None
    ) -> MetadataLogPart:
        """Returns the batches of the metadata log from `offset` on. `epoch` is the leader's present epoch. Blocks.

        `last_epoch` is the epoch of the record before `offset`; None if it is not known. If `offset` is the start of
        the leader's log, and `last_epoch` is not the epoch of the leader's oldest snapshot, the leader refers to a
        snapshot instead of sending batches. The client must be connected to controllers, and needs the permission of a
        broker (CLUSTER_ACTION).
        """
        partition = FetchRequest.FetchPartition(
            partition=0,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=epoch if last_epoch is None else last_epoch,  # the leader's own epoch never diverges
            partition_max_bytes=_FETCH_BYTES,
            high_watermark=-1,  # lower than the leader's: the answer does not wait
        )
        topic = FetchRequest.FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=_FETCH_BYTES, topics=[topic])
        response = self._request(
            self._any_broker,
            ApiKey.FETCH,
            constant(request),
            _partition_error("responses"),
            deadline_ms=self._deadline_ms(timeout),
        )
        result = response.responses[0].partitions[0]
        named = result.snapshot_id
        snapshot = (named.end_offset, named.epoch) if named.end_offset >= 0 else None
        return MetadataLogPart(bytes(result.records or b""), result.log_start_offset, result.high_watermark, snapshot)

    def fetch_metadata_snapshot(
        self, offset: int, snapshot_epoch: int, epoch: int, *, timeout: float | None = None
    ) -> bytes:
        """Returns the content of a snapshot of the metadata log. Blocks.

        The snapshot's id is (`offset`, `snapshot_epoch`); `epoch` is the leader's present epoch. The client must be
        connected to controllers, and needs the permission of a broker (CLUSTER_ACTION).
        """
        deadline_ms = self._deadline_ms(timeout)
        content = b""
        while True:
            partition = FetchSnapshotRequest.PartitionSnapshot(
                partition=0,
                current_leader_epoch=epoch,
                snapshot_id=FetchSnapshotRequest.SnapshotId(end_offset=offset, epoch=snapshot_epoch),
                position=len(content),
            )
            topic = FetchSnapshotRequest.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
            request = FetchSnapshotRequest(max_bytes=_FETCH_BYTES, topics=[topic])
            response = self._request(
                self._any_broker,
                ApiKey.FETCH_SNAPSHOT,
                constant(request),
                _partition_error("topics"),
                deadline_ms=deadline_ms,
            )
            result = response.topics[0].partitions[0]
            part = bytes(result.unaligned_records or b"")
            content += part
            if not part or len(content) >= result.size:
                return content

    def resign_controller(self, successor: int, *, timeout: float | None = None) -> None:
        """Asks the active controller to give up the leadership of the quorum in favour of another voter. Blocks.

        The client must be connected to controllers, and needs the permission of a broker (CLUSTER_ACTION). The caller
        has to look at the quorum afterwards: another voter may win the election, and Apache Kafka's controllers ignore
        the request.
        """
        deadline_ms = self._deadline_ms(timeout)
        quorum = self.describe_metadata_quorum(timeout=timeout)
        directories = {each.node_id: each.directory_id for each in quorum.voters}
        candidate = EndQuorumEpochRequest.ReplicaInfo(
            candidate_id=successor, candidate_directory_id=directories.get(successor, ZERO_UUID)
        )
        partition = EndQuorumEpochRequest.PartitionData(
            partition_index=0,
            leader_id=quorum.leader,
            leader_epoch=quorum.leader_epoch,
            preferred_successors=[successor],
            preferred_candidates=[candidate],
        )
        topic = EndQuorumEpochRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
        request = EndQuorumEpochRequest(cluster_id=None, topics=[topic], leader_endpoints=[])
        self._request(
            self._any_broker,
            ApiKey.END_QUORUM_EPOCH,
            constant(request),
            _partition_error("topics"),
            deadline_ms=deadline_ms,
        )

    def add_raft_voter(
        self,
        voter: int,
        directory_id: bytes,
        endpoints: Iterable[VoterEndpoint],
        *,
        cluster_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Makes a controller that follows the metadata log a voter. Blocks until the change is committed.

        If `cluster_id` is given, and is not the id of the cluster, the request is refused.
        """
        deadline_ms = self._deadline_ms(timeout)
        listeners = [AddRaftVoterRequest.Listener(name=each[0], host=each[1], port=each[2]) for each in endpoints]

        def build(version: int) -> AddRaftVoterRequest:
            return AddRaftVoterRequest(
                cluster_id=cluster_id,
                timeout_ms=self._left_ms(deadline_ms),
                voter_id=voter,
                voter_directory_id=directory_id,
                listeners=listeners,
            )

        self._change_voters(ApiKey.ADD_RAFT_VOTER, build, deadline_ms)

    def remove_raft_voter(
        self, voter: int, directory_id: bytes, *, cluster_id: str | None = None, timeout: float | None = None
    ) -> None:
        """Removes a controller from the voters. Blocks until the change is committed.

        If `cluster_id` is given, and is not the id of the cluster, the request is refused.
        """
        request = RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=voter, voter_directory_id=directory_id)
        self._change_voters(ApiKey.REMOVE_RAFT_VOTER, constant(request), self._deadline_ms(timeout))

    def _change_voters(self, key: ApiKey, build: Callable[[int], Message], deadline_ms: int) -> None:
        """Sends a request that changes the voters, and blocks until it succeeds.

        `build(version)` makes the message. The request is sent only once, as by Apache Kafka's client: raises ApiError
        with any error, also a retriable one, and the caller decides whether to try again.
        """
        request = AdminRequest(self._any_broker, key, build, top_level_error)
        request.is_repeated = False
        self._send_all([request], deadline_ms)
        request.result()


def _partition_error(topics: str) -> Callable[[Any], ApiError | None]:
    """Returns a function that returns the error of a response about the metadata log, or None if the response has none.

    The error is that of the whole response or that of the log's partition. `topics` is the attribute name of the
    response's list of topics.
    """

    def find(response: Any) -> ApiError | None:
        found = getattr(response, topics)
        if response.error_code or not found or not found[0].partitions:
            return error_of(response) or ApiError(Error.UNKNOWN_SERVER_ERROR, "The response lacks the metadata log.")
        return error_of(found[0].partitions[0])

    return find


def _quorum_replica(result: Any) -> QuorumReplica:
    return QuorumReplica(
        result.replica_id,
        result.replica_directory_id,
        result.log_end_offset,
        result.last_fetch_timestamp,
        result.last_caught_up_timestamp,
    )
