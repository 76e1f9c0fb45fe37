"""The settings of the quorum, of its metadata log and of the Raft machine, from the configuration of a node."""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.named_tuple import NamedTuple
from kafkapy.quorum.raft.config import RaftConfig
from kafkapy.quorum.voters import (
    DEFAULT_CONTROLLER_LISTENER,
    ControllerListener,
    Voter,
    VoterSet,
    static_voters,
)
from kafkapy.types import ZERO_UUID


def controller_listeners_of(config: BrokerConfig) -> list[ControllerListener]:
    """Returns the controller listeners of a node with the addresses by which other nodes reach them; empty if the node
    has none."""
    return [
        ControllerListener(listener.name, listener.host or "localhost", listener.port)
        for listener in config.controller_listeners
    ]


class QuorumSettings(NamedTuple):
    """The settings of the metadata log; sizes in bytes, times in milliseconds. A retention of -1 means no limit."""

    log_directory: str
    min_insync_replicas: int = 1
    segment_bytes: int = 1024 * 1024 * 1024
    snapshot_after_bytes: int = 20 * 1024 * 1024
    snapshot_interval_ms: int = 3_600_000
    retention_bytes: int = 100 * 1024 * 1024
    retention_ms: int = 7 * 24 * 3_600_000
    acts_on_refusals: bool = True  # a leader whose listener refuses connections is dead


def settings_from_config(config: BrokerConfig) -> QuorumSettings:
    """Returns the settings of the metadata log of a node."""
    return QuorumSettings(
        log_directory=config.metadata_log_dir,
        min_insync_replicas=config.min_insync_replicas,
        segment_bytes=config.metadata_log_segment_bytes,
        snapshot_after_bytes=config.metadata_log_max_record_bytes_between_snapshots,
        snapshot_interval_ms=config.metadata_log_max_snapshot_interval_ms,
        retention_bytes=config.metadata_max_retention_bytes,
        retention_ms=config.metadata_max_retention_ms,
        acts_on_refusals=config.kafkapy_fence_dead_brokers_enable,
    )


def raft_config(
    config: BrokerConfig, cluster_id: str, directory_id: bytes, listeners: Sequence[ControllerListener]
) -> RaftConfig:
    """Returns the settings of the Raft machine. Raises ConfigError if an element of controller.quorum.bootstrap.servers
    is not `host:port`.

    `directory_id` is the id of the directory with the metadata log. `listeners` are the controller listeners of this
    node, with the addresses by which other nodes reach them; a node that is only a broker has none.
    """
    names = config.controller_listener_names
    listener_name = names[0] if names else DEFAULT_CONTROLLER_LISTENER.name
    static = static_voters(config.static_voters, listener_name)
    bootstrap = tuple(config.bootstrap_controllers or config.static_voters.values())
    is_controller = "controller" in config.process_roles
    if is_controller and not bootstrap:
        # A directory without voters, such as one of an older release, belongs to a cluster of one node.
        static = VoterSet([Voter(config.node_id, ZERO_UUID, tuple(listeners))])
    return RaftConfig(
        cluster_id=cluster_id,
        node_id=config.node_id,
        directory_id=directory_id,
        listener_name=listener_name,
        listeners=tuple(listeners),
        can_be_voter=is_controller,
        static_voters=static,
        bootstrap=bootstrap,
        auto_join=config.controller_quorum_auto_join_enable,
        election_timeout_ms=config.controller_quorum_election_timeout_ms,
        fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
        election_backoff_max_ms=config.controller_quorum_election_backoff_max_ms,
        retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
        request_timeout_ms=config.controller_quorum_request_timeout_ms,
        fetch_max_bytes=config.controller_quorum_fetch_max_bytes,
        fetch_snapshot_max_bytes=config.controller_quorum_fetch_snapshot_max_bytes,
    )
