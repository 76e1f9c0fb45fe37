"""The supported feature levels, and the version of each metadata record by `metadata.version`.

The finalized `metadata.version` determines the version in which a record is written, so that an older release of Kafka
can open a log directory that kafkapy has used. The levels of `metadata.version` are Kafka's: from 7, which is 3.3-IV3
and the oldest level that Kafka 4.x accepts, to 30, which is 4.3-IV0.
"""

from __future__ import annotations

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
TRANSACTION_VERSION = "transaction.version"
SHARE_VERSION = "share.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"

OLDEST_METADATA_VERSION = 7
LATEST_METADATA_VERSION = 30

# Name -> (lowest, highest level) as registered by brokers and controllers. Apache Kafka's controllers refuse a broker
# that does not announce all features that are in use.
SUPPORTED_FEATURES: dict[str, tuple[int, int]] = {
    "group.version": (0, 1),
    KRAFT_VERSION: (0, 1),
    METADATA_VERSION: (OLDEST_METADATA_VERSION, LATEST_METADATA_VERSION),
    SHARE_VERSION: (0, 1),
    "streams.version": (0, 1),
    TRANSACTION_VERSION: (0, 2),
    ELIGIBLE_LEADER_REPLICAS_VERSION: (0, 1),
}

# The features of a directory formatted by kafkapy, in the order in which Kafka writes them.
BOOTSTRAP_FEATURES: tuple[tuple[str, int], ...] = (
    (METADATA_VERSION, LATEST_METADATA_VERSION),
    (ELIGIBLE_LEADER_REPLICAS_VERSION, 1),
    ("group.version", 1),
    (SHARE_VERSION, 1),
    ("streams.version", 1),
    (TRANSACTION_VERSION, 2),
)


def check_feature_level(name: str, level: int) -> None:
    """Raises ValueError if this program does not support the level `level` of the feature `name`."""
    if name not in SUPPORTED_FEATURES:
        if level > 0:
            raise ValueError(f"feature {name} is finalized at level {level}, which this broker does not know")
        return
    lowest, highest = SUPPORTED_FEATURES[name]
    if level > highest or (name == METADATA_VERSION and level < lowest):
        raise ValueError(f"{name} is finalized at level {level}; this broker supports {lowest} to {highest}")


def supports_transactions(metadata_version: int) -> bool:
    return metadata_version >= 13


def supports_scram(metadata_version: int) -> bool:
    return metadata_version >= 11


def supports_delegation_tokens(metadata_version: int) -> bool:
    return metadata_version >= 14


def supports_controller_registration(metadata_version: int) -> bool:
    return metadata_version >= 15


def supports_directory_assignment(metadata_version: int) -> bool:
    return metadata_version >= 17


def supports_elr(metadata_version: int) -> bool:
    """Returns True if partition records can contain eligible leader replicas (KIP-966) in this metadata.version.

    They are used only if the feature eligible.leader.replicas.version is finalized, too.
    """
    return metadata_version >= 23


def supports_cordoned_directories(metadata_version: int) -> bool:
    return metadata_version >= 30


def register_broker_record_version(metadata_version: int) -> int:
    if metadata_version >= 30:
        return 4
    if metadata_version >= 17:
        return 3
    return 2 if metadata_version >= 8 else 1


def partition_record_version(metadata_version: int) -> int:
    """Returns the version in which PartitionRecord and PartitionChangeRecord are written in this metadata.version."""
    if metadata_version >= 23:
        return 2
    return 1 if metadata_version >= 17 else 0


def fetch_request_version(metadata_version: int) -> int:
    """Returns the version of the Fetch requests that a follower sends to another broker in this metadata.version."""
    for level, version in ((27, 18), (21, 17), (19, 16), (10, 15), (9, 14)):
        if metadata_version >= level:
            return version
    return 13


def list_offsets_request_version(metadata_version: int) -> int:
    """Returns the version of the ListOffsets requests that a follower sends to another broker in this
    metadata.version."""
    for level, version in ((29, 11), (25, 10), (21, 9), (9, 8)):
        if metadata_version >= level:
            return version
    return 7


def requires_leader_epoch_bump_on_isr_shrink(metadata_version: int) -> bool:
    """Returns True if the leader epoch must be increased when the ISR shrinks.

    This is necessary before 3.6-IV0, because followers would not notice the change otherwise.
    """
    return metadata_version < 12


# The versions that introduced metadata which an older version cannot hold.
_METADATA_CHANGES = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})


def loses_metadata(current: int, target: int) -> bool:
    """Returns True if a downgrade of metadata.version from `current` to `target` could delete metadata.

    This is the case if a version above `target`, up to `current`, introduced metadata that records of `target` cannot
    contain.
    """
    return not _METADATA_CHANGES.isdisjoint(range(target + 1, current + 1))
