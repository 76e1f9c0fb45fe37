"""Formats log directories as `kafka-storage format` does.

meta.properties is written last in each directory: a directory that has it is formatted.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence

from kafkapy.errors import ConfigError
from kafkapy.metadata.features import BOOTSTRAP_FEATURES
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.protocol.messages.metadata_records import FeatureLevelRecord, UserScramCredentialRecord
from kafkapy.quorum.activation import BOOTSTRAP_FILE
from kafkapy.quorum.metadata_log import DIRECTORY_NAME
from kafkapy.quorum.snapshot import snapshot_bytes, write_snapshot
from kafkapy.quorum.voters import DEFAULT_CONTROLLER_LISTENER, ControllerListener, VoterSet, single_voter
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.meta_properties import FILE_NAME, MetaProperties, read_meta_properties, write_meta_properties
from kafkapy.types import RESERVED_UUIDS, Clock, OffsetAndEpoch, random_uuid, uuid_to_string

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
) -> dict[str, MetaProperties]:
    """Formats every log directory that is not formatted, for a cluster whose only node is this one.

    Returns the meta.properties of each directory. If `cluster_id` is None, a new cluster gets a random id.
    `controller_listener` is the address of this node in the voter set; None means the default.

    Raises ConfigError if a formatted directory belongs to another node or cluster, or if the directory for the metadata
    log is not formatted but another directory is; also MalformedMetaProperties and OSError.
    """
    every = dict.fromkeys([metadata_directory, *log_directories])
    found = {directory: read_meta_properties(directory) for directory in every}
    known = check_identity(found, node_id, cluster_id)
    if known is not None and found[metadata_directory] is None:
        raise ConfigError(
            f"{metadata_directory} is configured for the metadata log and has no meta.properties, but other "
            f"directories are of cluster {known}: were log.dirs or metadata.log.dir changed?"
        )
    voters = single_voter(node_id, random_uuid(), controller_listener or DEFAULT_CONTROLLER_LISTENER)
    return format_node(every, metadata_directory, node_id, filesystem, clock, cluster_id=cluster_id, voters=voters)


def format_node(
    directories: Collection[str],
    metadata_directory: str,
    node_id: int,
    filesystem: Filesystem,
    clock: Clock,
    *,
    voters: VoterSet | None,
    cluster_id: str | None = None,
    features: Sequence[tuple[str, int]] = BOOTSTRAP_FEATURES,
    credentials: Sequence[UserScramCredentialRecord] = (),
) -> dict[str, MetaProperties]:
    """Formats every directory that is not formatted. Formatted directories determine the cluster id, and are not
    changed, except that a directory without a directory id gets one. Returns the meta.properties of each directory.

    `voters` are the first voters of a dynamic quorum. If they contain this node, the directory with the metadata log
    gets the directory id that they have for this node. `voters` is None if the configuration contains the voters, or if
    the node joins a quorum that exists already.

    `features` are pairs of a name and a level, metadata.version first. The first start of the node finalizes them, and
    stores the SCRAM `credentials`.

    `metadata_directory` is the element of `directories` that has the metadata log. If `cluster_id` is given, every
    formatted directory must have this id. If `cluster_id` is None and no directory is formatted, the cluster gets a
    random id.

    Raises ConfigError if a formatted directory belongs to another node or cluster, MalformedMetaProperties if a file
    meta.properties cannot be parsed, and OSError.
    """
    # The order matters, because a crash may occur between two steps.
    for directory in directories:
        filesystem.make_directory(directory)
    found = {directory: read_meta_properties(directory) for directory in directories}
    cluster_id = check_identity(found, node_id, cluster_id) or cluster_id or uuid_to_string(random_uuid())
    formatted: dict[str, MetaProperties] = {}
    for directory, properties in found.items():
        if properties is None:
            first_voters = voters if directory == metadata_directory else None
            voter = None if first_voters is None else first_voters.get(node_id)
            properties = MetaProperties(cluster_id, node_id, random_uuid() if voter is None else voter.directory_id)
            # A killed start may not have synced the directory.
            filesystem.sync_directory(os.path.dirname(directory) or ".")
            _write_bootstrap(directory, features, credentials, filesystem, clock)
            if first_voters is not None:
                _write_voters(directory, first_voters, filesystem, clock)
            write_meta_properties(filesystem, directory, properties)
        elif properties.directory_id is None:
            properties = MetaProperties(properties.cluster_id, node_id, random_uuid())
            write_meta_properties(filesystem, directory, properties)
        formatted[directory] = properties
    return formatted


def check_formatted(directories: Iterable[str]) -> None:
    """Raises ConfigError, with Kafka's message, unless at least one of the directories is formatted.

    A node of a cluster is formatted by `kafka-storage format` before its first start, because only its administrator
    knows the cluster's id and the voters.
    """
    first = ""
    for directory in directories:
        if read_meta_properties(directory) is not None:
            return
        first = first or directory
    raise ConfigError(
        f"No `meta.properties` found in {first} (have you run `kafka-storage.sh` to format the directory?)"
    )


def check_identity(found: dict[str, MetaProperties | None], node_id: int, cluster_id: str | None = None) -> str | None:
    """Returns the cluster id of the formatted directories, or None if no directory is formatted.

    `found` has the meta.properties of each directory, None for a directory that is not formatted. `cluster_id` is the
    expected id; if it is None, any id is accepted, but all directories must have the same one. Raises ConfigError if a
    directory belongs to another node or cluster or to a ZooKeeper cluster, if two directories have the same directory
    id, or if a directory id is reserved.
    """
    directories: dict[bytes, str] = {}
    known: str | None = None
    for directory, properties in found.items():
        if properties is None:
            continue
        path = os.path.join(directory, FILE_NAME)
        if properties.version == 0:
            raise ConfigError(
                f"{directory}: meta.properties version 0 is of a cluster with ZooKeeper; it has to be migrated to "
                "KRaft by Apache Kafka 3.9 before it can be opened"
            )
        expected = cluster_id if cluster_id is not None else known
        if expected is not None and properties.cluster_id != expected:
            raise ConfigError(f"Invalid cluster.id in: {path}. Expected {expected}, but read {properties.cluster_id}")
        if properties.node_id != node_id:
            raise ConfigError(
                f"Stored node id {properties.node_id} doesn't match previous node id {node_id} in {path}. If you moved "
                "your data, make sure your configured node id matches. If you intend to create a new node, you should "
                "remove all data in your data directories."
            )
        if properties.directory_id is not None:
            shown, other = uuid_to_string(properties.directory_id), directories.get(properties.directory_id)
            if properties.directory_id in RESERVED_UUIDS:
                raise ConfigError(f"Invalid reserved directory ID {shown} found in {directory}")
            if other is not None:
                raise ConfigError(
                    f"Duplicate directory ID {shown} found. It was the ID of {other}, but also of {directory}"
                )
            directories[properties.directory_id] = directory
        known = properties.cluster_id
    return known


def _write_bootstrap(
    directory: str,
    features: Sequence[tuple[str, int]],
    credentials: Sequence[UserScramCredentialRecord],
    filesystem: Filesystem,
    clock: Clock,
) -> None:
    """Writes the file bootstrap.checkpoint with `features` and `credentials`. The first start of the node copies its
    records into the metadata log. The file is durable on return.
    """
    records: list[MessageAndVersion] = [
        (FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in features
    ]
    records += [(credential, 0) for credential in credentials]
    content = snapshot_bytes(0, clock.wall_ms(), 0, [], records)
    filesystem.write_atomically(os.path.join(directory, BOOTSTRAP_FILE), content)


def _write_voters(directory: str, voters: VoterSet, filesystem: Filesystem, clock: Clock) -> None:
    """Writes a metadata snapshot with end offset 0 and epoch 0 that contains the voters; durable on return."""
    log_directory = os.path.join(directory, DIRECTORY_NAME)
    filesystem.make_directory(log_directory)
    wall_ms = clock.wall_ms()
    write_snapshot(
        filesystem, log_directory, FORMATTED_SNAPSHOT, snapshot_bytes(0, wall_ms, wall_ms, voters.records(), [])
    )
