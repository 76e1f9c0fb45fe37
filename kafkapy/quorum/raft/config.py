"""The settings of the Raft machine."""

from __future__ import annotations

from kafkapy.named_tuple import NamedTuple
from kafkapy.quorum.raft.messages import Endpoints
from kafkapy.quorum.voters import KRAFT_VERSION_DYNAMIC, ReplicaKey, Voter, VoterSet


class RaftConfig(NamedTuple):
    """The settings of one node of the quorum; times in milliseconds, sizes in bytes.

    listeners          this node's controller listeners; empty on a broker. The first is the default one
    listener_name      the listener that the nodes of the quorum use among themselves: the first of
                       controller.listener.names, also on a broker
    can_be_voter       True on a controller
    static_voters      the voters of controller.quorum.voters, used while the log contains no voters
    bootstrap          hosts and ports of controller.quorum.bootstrap.servers or, if it is empty, of the static voters
    """

    cluster_id: str
    node_id: int
    directory_id: bytes
    listener_name: str
    listeners: Endpoints = ()
    can_be_voter: bool = True
    static_voters: VoterSet = VoterSet()
    bootstrap: tuple[tuple[str, int], ...] = ()
    auto_join: bool = False
    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    retry_backoff_ms: int = 20
    request_timeout_ms: int = 2000
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 1024 * 1024
    fetch_snapshot_max_bytes: int = 1024 * 1024
    min_kraft_version: int = 0
    max_kraft_version: int = KRAFT_VERSION_DYNAMIC

    @property
    def key(self) -> ReplicaKey:
        """The key of this node's replica of the metadata log."""
        return ReplicaKey(self.node_id, self.directory_id)

    @property
    def as_voter(self) -> Voter:
        """The entry that the voter set should have for this node, with its current listeners and range of
        kraft.version."""
        return Voter(self.node_id, self.directory_id, self.listeners, self.min_kraft_version, self.max_kraft_version)
