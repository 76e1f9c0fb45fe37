"""The names of the metadata versions, such as `4.0-IV3`, and the feature levels of a new cluster with each version."""

from __future__ import annotations

from kafkapy.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    OLDEST_METADATA_VERSION,
    TRANSACTION_VERSION,
)

# fmt: off
_NAMES = (
    "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0",
    "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2",
    "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0",
)
# fmt: on
# metadata.version -> its name.
METADATA_VERSION_NAMES = dict(zip(range(OLDEST_METADATA_VERSION, LATEST_METADATA_VERSION + 1), _NAMES, strict=True))
# Feature -> (its level when a cluster begins, metadata.version from which it has this level; 0 before), in Kafka's
# order.
_FIRST_LEVELS = {
    KRAFT_VERSION: (1, 21),
    TRANSACTION_VERSION: (2, 24),
    "group.version": (1, 22),
    ELIGIBLE_LEADER_REPLICAS_VERSION: (1, 26),
    "share.version": (1, 28),
    "streams.version": (1, 29),
}
# (feature, level) -> the features that it needs.
DEPENDENCIES = {(ELIGIBLE_LEADER_REPLICAS_VERSION, 1): {METADATA_VERSION: 23}}


def metadata_version_named(name: str) -> int:
    """Returns the level of a version such as `4.0-IV3`, or of the newest version of a release such as `4.0`.

    Raises ValueError, with the valid names, for another name.
    """
    for level in reversed(METADATA_VERSION_NAMES):
        if METADATA_VERSION_NAMES[level] == name or METADATA_VERSION_NAMES[level].partition("-")[0] == name:
            return level
    known = ", ".join(METADATA_VERSION_NAMES.values())
    raise ValueError(f"Unknown metadata.version '{name}'. Supported metadata.version are: {known}")


def first_levels(metadata_version: int) -> dict[str, int]:
    """Returns the levels of all features except metadata.version, by name, in a new cluster.

    `metadata_version` is the level of metadata.version in this cluster.
    """
    return {name: level if metadata_version >= since else 0 for name, (level, since) in _FIRST_LEVELS.items()}
