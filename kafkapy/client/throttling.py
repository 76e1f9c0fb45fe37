"""The delays that brokers demand of a client that has exceeded a quota (KIP-124, KIP-219).

A broker sends the response at once, with the time that the client has to wait before its next request to that broker.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.client.cluster import Node
from kafkapy.protocol.api import ApiKey

# The first versions with which the client has to wait; a broker has sent the response to an older version late.
WAITS_FROM = {
    ApiKey.PRODUCE: 6,
    ApiKey.FETCH: 8,
    ApiKey.LIST_OFFSETS: 3,
    ApiKey.METADATA: 6,
    ApiKey.OFFSET_COMMIT: 4,
    ApiKey.OFFSET_FETCH: 4,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.JOIN_GROUP: 3,
    ApiKey.HEARTBEAT: 2,
    ApiKey.LEAVE_GROUP: 2,
    ApiKey.SYNC_GROUP: 2,
    ApiKey.DESCRIBE_GROUPS: 2,
    ApiKey.LIST_GROUPS: 2,
    ApiKey.CREATE_TOPICS: 3,
    ApiKey.DELETE_TOPICS: 2,
    ApiKey.API_VERSIONS: 2,
    ApiKey.DESCRIBE_CONFIGS: 2,
    ApiKey.INIT_PRODUCER_ID: 1,
    ApiKey.ADD_PARTITIONS_TO_TXN: 1,
    ApiKey.ADD_OFFSETS_TO_TXN: 1,
    ApiKey.END_TXN: 1,
    ApiKey.TXN_OFFSET_COMMIT: 1,
    ApiKey.DESCRIBE_ACLS: 1,
    ApiKey.CREATE_ACLS: 1,
    ApiKey.DELETE_ACLS: 1,
    ApiKey.CREATE_DELEGATION_TOKEN: 1,
    ApiKey.RENEW_DELEGATION_TOKEN: 1,
    ApiKey.EXPIRE_DELEGATION_TOKEN: 1,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: 1,
    ApiKey.DELETE_RECORDS: 1,
    ApiKey.ALTER_CONFIGS: 1,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 1,
    ApiKey.DESCRIBE_LOG_DIRS: 1,
    ApiKey.CREATE_PARTITIONS: 1,
    ApiKey.DELETE_GROUPS: 1,
}


class ThrottleTimes:
    """The throttle times of the responses to one kind of request. Times are in milliseconds."""

    __slots__ = ("count", "max_ms", "total_ms")

    def __init__(self) -> None:
        self.count = 0  # responses, most of which have a throttle time of 0
        self.total_ms = 0
        self.max_ms = 0

    def add(self, throttle_ms: int) -> None:
        self.count += 1
        self.total_ms += throttle_ms
        self.max_ms = max(self.max_ms, throttle_ms)

    @property
    def average_ms(self) -> float:
        """The average over all responses, including those without a delay; 0 before the first response."""
        return self.total_ms / self.count if self.count else 0.0


class ClientThrottling:
    """The throttle times of a client's connections, by API. Any thread may read them; they are changed only while
    `Network.lock`, the lock of the client's network loop, is held.
    """

    def __init__(self) -> None:
        self.times = {ApiKey.PRODUCE: ThrottleTimes(), ApiKey.FETCH: ThrottleTimes()}
        # Called with the broker and the throttle time (ms) of each response to such a request.
        self.on_delay: Callable[[Node, int], object] | None = None

    def note(self, node: Node, key: ApiKey, version: int, throttle_ms: int) -> int:
        """Counts the throttle time of a broker's response to a request of API `key`.

        Returns the ms that the client has to wait before its next request: 0 if `version` is so old that the broker has
        waited itself before it responded.
        """
        times = self.times.get(key)
        if times is not None:
            times.add(throttle_ms)
            if self.on_delay is not None:
                self.on_delay(node, throttle_ms)
        return throttle_ms if version >= WAITS_FROM.get(key, 0) else 0
