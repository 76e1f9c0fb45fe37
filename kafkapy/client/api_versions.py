"""Which version of each API the client speaks, and the choice that suits a broker.  Pure."""

from __future__ import annotations

from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import API_TABLE, ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsResponse

# What the code of the client is written for; an API that is not here, in all versions that are stable.
SPOKEN: dict[ApiKey, tuple[int, int]] = {
    ApiKey.PRODUCE: (3, 13),
    ApiKey.FETCH: (4, 17),
    ApiKey.LIST_OFFSETS: (1, 11),
    ApiKey.METADATA: (0, 13),
    ApiKey.OFFSET_COMMIT: (2, 9),
    ApiKey.OFFSET_FETCH: (1, 9),
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.SYNC_GROUP: (0, 5),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (3, 4),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 3),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 3),
    ApiKey.END_TXN: (0, 5),
    ApiKey.TXN_OFFSET_COMMIT: (0, 5),
}
Versions = dict[int, tuple[int, int]]


def served_versions(response: ApiVersionsResponse) -> Versions:
    """What a broker says that it serves, by API key."""
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}


def finalized_features(response: ApiVersionsResponse) -> dict[str, int]:
    """The features that the cluster has agreed on, by name, with their level."""
    return {each.name: each.max_version_level for each in response.finalized_features or ()}


def choose_version(key: ApiKey, served: Versions, highest: int | None = None) -> int:
    """The newest version that both speak, at most `highest`; ApiError UNSUPPORTED_VERSION if there is none."""
    api = API_TABLE[key]
    low, high = SPOKEN.get(key, (api.lowest, api.highest - api.latest_version_unstable))
    if highest is not None:
        high = min(high, highest)
    theirs = served.get(key)
    if theirs is None:
        raise ApiError(Error.UNSUPPORTED_VERSION, f"The broker does not support {api.name}")
    version = min(high, theirs[1])
    if version < max(low, theirs[0]):
        raise ApiError(
            Error.UNSUPPORTED_VERSION,
            f"The broker serves {api.name} in versions {theirs[0]} to {theirs[1]}, the client speaks {low} to {high}",
        )
    return version
