"""Formats log directories like `format --standalone`: a dynamic quorum with this node as its only voter.

meta.properties is written last in each directory: a directory that has it is formatted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from kafkapy.errors import ConfigError
from kafkapy.metadata.features import BOOTSTRAP_FEATURES
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.protocol.messages.metadata_records import FeatureLevelRecord, UserScramCredentialRecord
from kafkapy.quorum.embedded_quorum import BOOTSTRAP_FILE
from kafkapy.quorum.metadata_log import DIRECTORY_NAME
from kafkapy.quorum.snapshot import snapshot_bytes, write_snapshot
from kafkapy.quorum.voters import DEFAULT_CONTROLLER_LISTENER, ControllerListener, VoterSet, single_voter
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from kafkapy.types import Clock, OffsetAndEpoch, random_uuid, uuid_to_string

FORMATTED_SNAPSHOT = OffsetAndEpoch(0, 0)


def format_directories(
    log_directories: Sequence[str],
    metadata_directory: str,
    node_id: int,
    filesystem: Filesystem,
    clock: Clock,
    *,
    cluster_id: str | None = None,
    controller_listener: ControllerListener | None = None,
    features: Sequence[tuple[str, int]] = BOOTSTRAP_FEATURES,
    credentials: Sequence[UserScramCredentialRecord] = (),
    voter_directory_id: bytes | None = None,
    is_dynamic: bool = True,
) -> dict[str, MetaProperties]:
    """Formats every directory that is not formatted. Formatted directories keep their identity, and determine the
    cluster id.

    `features` are finalized by a first start, metadata.version first; `credentials` are stored with them. A quorum that
    is not dynamic has its voter in the configuration. `voter_directory_id` is the id of the directory with the metadata
    log; None makes a new one.

    `metadata_directory`, one of `log_directories` or another one, has the metadata log. A given cluster id must be that
    of the directories. Raises ConfigError, MalformedMetaProperties, OSError.
    """
    # The order matters, because a crash may occur between two steps.
    every = dict.fromkeys([metadata_directory, *log_directories])
    for directory in every:
        filesystem.make_directory(directory)
    found = {directory: read_meta_properties(directory) for directory in every}
    known = check_identity(found, node_id, cluster_id)
    if known is not None and found[metadata_directory] is None:
        raise ConfigError(
            f"{metadata_directory} is configured for the metadata log and has no meta.properties, but other "
            f"directories are of cluster {known}: were log.dirs or metadata.log.dir changed?"
        )
    cluster_id = known or cluster_id or uuid_to_string(random_uuid())
    formatted: dict[str, MetaProperties] = {}
    for directory, properties in found.items():
        if properties is None:
            directory_id = (voter_directory_id if directory == metadata_directory else None) or random_uuid()
            properties = MetaProperties(cluster_id, node_id, directory_id)
            # A killed start may not have synced the directory.
            filesystem.sync_directory(os.path.dirname(directory) or ".")
            _write_bootstrap(directory, features, credentials, filesystem, clock)
            if directory == metadata_directory and is_dynamic:
                voters = single_voter(node_id, directory_id, controller_listener or DEFAULT_CONTROLLER_LISTENER)
                _write_voters(directory, voters, filesystem, clock)
            write_meta_properties(filesystem, directory, properties)
        elif properties.directory_id is None:
            properties = MetaProperties(properties.cluster_id, node_id, random_uuid())
            write_meta_properties(filesystem, directory, properties)
        formatted[directory] = properties
    return formatted


def check_identity(found: dict[str, MetaProperties | None], node_id: int, cluster_id: str | None = None) -> str | None:
    """Returns the cluster id of the formatted directories, None if none is formatted. Raises ConfigError if they
    belong to another node or cluster, or are of the ZooKeeper era."""
    first: str | None = None
    for directory, properties in found.items():
        if properties is None:
            continue
        if properties.version == 0:
            raise ConfigError(
                f"{directory}: meta.properties version 0 is of a cluster with ZooKeeper; it has to be migrated to "
                "KRaft by Apache Kafka 3.9 before it can be opened"
            )
        if properties.node_id != node_id:
            raise ConfigError(
                f"{directory}: meta.properties has node.id={properties.node_id}, the configuration node.id={node_id}"
            )
        if first is not None and properties.cluster_id != first:
            raise ConfigError(f"{directory}: meta.properties has cluster.id={properties.cluster_id}, {first} elsewhere")
        if cluster_id is not None and properties.cluster_id != cluster_id:
            raise ConfigError(f"{directory}: meta.properties has cluster.id={properties.cluster_id}, not {cluster_id}")
        first = properties.cluster_id
    return first


def _write_bootstrap(
    directory: str,
    features: Sequence[tuple[str, int]],
    credentials: Sequence[UserScramCredentialRecord],
    filesystem: Filesystem,
    clock: Clock,
) -> None:
    """Writes bootstrap.checkpoint, which a first start copies into the metadata log; durable on return."""
    records: list[MessageAndVersion] = [
        (FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in features
    ]
    records += [(credential, 0) for credential in credentials]
    content = snapshot_bytes(0, clock.wall_ms(), 0, [], records)
    filesystem.write_atomically(os.path.join(directory, BOOTSTRAP_FILE), content)


def _write_voters(directory: str, voters: VoterSet, filesystem: Filesystem, clock: Clock) -> None:
    """Writes the snapshot 0-0 that names the voter; durable on return."""
    log_directory = os.path.join(directory, DIRECTORY_NAME)
    filesystem.make_directory(log_directory)
    wall_ms = clock.wall_ms()
    write_snapshot(
        filesystem, log_directory, FORMATTED_SNAPSHOT, snapshot_bytes(0, wall_ms, wall_ms, voters.records(), [])
    )
