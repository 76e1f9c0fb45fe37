"""The versions of each API that the client supports, and the choice of one that a broker supports. This module has no
state and does no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import API_TABLE, ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsResponse

# The lowest and highest version that the client supports. For other APIs it supports all stable versions.
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
    ApiKey.SHARE_GROUP_HEARTBEAT: (1, 1),
    ApiKey.SHARE_FETCH: (1, 2),
    ApiKey.SHARE_ACKNOWLEDGE: (1, 2),
}
Versions = dict[int, tuple[int, int]]


def served_versions(response: ApiVersionsResponse) -> Versions:
    """Returns the lowest and highest version that a broker serves, by API key."""
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}


def finalized_features(response: ApiVersionsResponse) -> dict[str, int]:
    """Returns the finalized level of each feature of the cluster, by name."""
    return {each.name: each.max_version_level for each in response.finalized_features or ()}


def choose_version(
    key: ApiKey, served: Versions, highest: int | None = None, spoken: Mapping[ApiKey, tuple[int, int]] = SPOKEN
) -> int:
    """Returns the newest version of an API that client and broker support and that is at most `highest`.

    `served` and `spoken` have the lowest and highest version of each API that the broker and this client support. A
    `highest` below all of the client's versions selects exactly this version, for callers that need a field that later
    versions lack. Raises ApiError with UNSUPPORTED_VERSION if there is no such version.
    """
    api = API_TABLE[key]
    low, high = spoken.get(key, (api.lowest, api.highest - api.latest_version_unstable))
    if highest is not None:
        high = min(high, highest)
        low = min(low, highest)
    served_range = served.get(key)
    if served_range is None:
        raise ApiError(Error.UNSUPPORTED_VERSION, f"The broker does not support {api.name}")
    version = min(high, served_range[1])
    if version < max(low, served_range[0]):
        raise ApiError(
            Error.UNSUPPORTED_VERSION,
            f"The broker serves {api.name} in versions {served_range[0]} to {served_range[1]}, "
            f"the client supports {low} to {high}",
        )
    return version
