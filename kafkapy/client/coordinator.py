"""The coordinator of a group or transactional id: finding it, committing offsets and fetching committed ones."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafkapy.client.cluster import Node
from kafkapy.client.network import Network
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkapy.types import TopicPartition

log = logging.getLogger("kafkapy.client")

GROUP, TRANSACTION = 0, 1
# Connections to coordinators are kept apart from those that fetch, by ids above every broker's.
COORDINATOR_IDS = {GROUP: 1 << 32, TRANSACTION: 2 << 32}
# Errors after which the coordinator is looked up again.
COORDINATOR_MOVED = frozenset(
    (
        Error.NOT_COORDINATOR,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NETWORK_EXCEPTION,
        Error.REQUEST_TIMED_OUT,
    )
)


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the offset of the next record to read.

    `metadata` is text of the application; `leader_epoch` is the leader epoch of the last record that was read, -1 if
    unknown.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


def with_metadata(
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Converts the values that are plain offsets to OffsetAndMetadata, without metadata and a leader epoch."""
    return {
        TopicPartition(*topic_partition): OffsetAndMetadata(each) if isinstance(each, int) else each
        for topic_partition, each in offsets.items()
    }


class MemberIdentity(NamedTuple):
    """The generation (or member epoch) and ids of a consumer in its group.

    The default values are those of a consumer that is not a member.
    """

    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class GroupMetadata(NamedTuple):
    """A group and one of its members, on whose behalf a transaction commits offsets."""

    group_id: str
    member: MemberIdentity = MemberIdentity()


class Coordinator:
    """The coordinator of one group or transactional id, which is looked up when it is needed, and remembered.

    Called while `Network.lock`, the lock of the client's network loop, is held. `fatal` is the error with which a
    lookup was refused, and which `node` has not raised yet; None if there is none.
    """

    def __init__(self, network: Network, key: str, key_type: int = GROUP) -> None:
        self._network = network
        self.key = key
        self._key_type = key_type
        self._node_id: int | None = None
        self._has_request = False
        self._not_before_ms = 0
        self._attempts = 0
        self.fatal: ApiError | None = None

    def node(self, monotonic_ms: int) -> int | None:
        """Returns the node id under which requests are sent to the coordinator; None while it is looked up.

        It is the broker id plus a constant (COORDINATOR_IDS), because coordinators have connections of their own.
        Raises ApiError if a lookup was refused, for example because the client has no rights on the group. The error is
        raised once: the next call looks the coordinator up again, as Apache Kafka's clients do.
        """
        if self.fatal is not None:
            fatal, self.fatal = self.fatal, None
            raise fatal
        if self._node_id is None:
            self._find(monotonic_ms)
        return self._node_id

    def next_attempt_ms(self, monotonic_ms: int) -> int:
        """Returns the monotonic time (ms) at which the lookup may be retried.

        While a lookup is in flight, this is a time that is never reached, because its response comes first.
        """
        return 1 << 62 if self._has_request else max(self._not_before_ms, monotonic_ms + 1)

    def forget(self) -> None:
        """Forgets the coordinator; the next call of `node` looks it up again."""
        self._node_id = None

    def on_error(self, error: Error) -> None:
        """Forgets the coordinator if an error of a response says that it has moved."""
        if error in COORDINATOR_MOVED:
            self.forget()

    def _find(self, monotonic_ms: int) -> None:
        node_id = self._network.least_loaded()
        if self._has_request or monotonic_ms < self._not_before_ms or node_id is None:
            return
        self._has_request = True

        def build(version: int) -> FindCoordinatorRequest:
            if version >= 4:
                return FindCoordinatorRequest(key_type=self._key_type, coordinator_keys=[self.key])
            return FindCoordinatorRequest(key=self.key, key_type=self._key_type if version >= 1 else 0)

        self._network.submit(node_id, ApiKey.FIND_COORDINATOR, build, self._found)

    def _found(self, response: FindCoordinatorResponse | None, version: int, error: Exception | None) -> None:
        self._has_request = False
        found: Any = response
        if response is not None and version >= 4:
            found = response.coordinators[0] if response.coordinators else None
        if found is not None and not found.error_code:
            self._node_id = COORDINATOR_IDS[self._key_type] + int(found.node_id)
            self._network.coordinators[self._node_id] = Node(self._node_id, found.host, found.port)
            self._attempts = 0
            return
        code = Error.NETWORK_EXCEPTION if found is None else Error.of(found.error_code)
        if not code.retriable:
            self.fatal = ApiError(code, found.error_message if found is not None else None)
        self._not_before_ms = self._network.clock.monotonic_ms() + self._network.retry_backoff.pause_ms(self._attempts)
        self._attempts += 1
        log.debug("Coordinator of %s: %s", self.key, error or code.name)


OnCommitted = Callable[[Exception | None], None]
OnFetched = Callable[[dict[TopicPartition, OffsetAndMetadata], Exception | None], None]


def commit_offsets(
    network: Network,
    coordinator: Coordinator,
    identity: MemberIdentity,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    on_done: OnCommitted,
) -> None:
    """Sends one OffsetCommit; called while `Network.lock` is held.

    `on_done` is called once: with None after a success, otherwise with the error of the request or the first error of a
    partition.
    """

    def build(version: int) -> OffsetCommitRequest:
        topics: dict[str, list[OffsetCommitRequest.OffsetCommitRequestPartition]] = {}
        for topic_partition, committed in offsets.items():
            partition = OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=topic_partition.partition,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch if version >= 6 else -1,
                committed_metadata=committed.metadata,
            )
            topics.setdefault(topic_partition.topic, []).append(partition)
        named = [OffsetCommitRequest.OffsetCommitRequestTopic(name=name, partitions=p) for name, p in topics.items()]
        return OffsetCommitRequest(
            group_id=coordinator.key,
            generation_id_or_member_epoch=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.instance_id if version >= 7 else None,
            topics=named,
        )

    def on_response(response: OffsetCommitResponse | None, version: int, error: Exception | None) -> None:
        if response is None:
            coordinator.forget()
            on_done(error)
            return
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    code = Error.of(partition.error_code)
                    coordinator.on_error(code)
                    on_done(ApiError(code, f"Commit of {topic.name}-{partition.partition_index}: {code.message}"))
                    return
        on_done(None)

    node_id = _coordinator_now(network, coordinator, on_done)
    if node_id is not None:
        network.submit(node_id, ApiKey.OFFSET_COMMIT, build, on_response)


def fetch_offsets(
    network: Network,
    coordinator: Coordinator,
    partitions: Sequence[TopicPartition],
    on_done: OnFetched,
    *,
    require_stable: bool,
) -> None:
    """Sends one OffsetFetch; called while `Network.lock` is held.

    `on_done(offsets, error)` is called once: `offsets` has the partitions with a committed offset, and `error` is None
    after a success. With `require_stable` the error is UNSTABLE_OFFSET_COMMIT while a transaction is committing offsets
    of these partitions.
    """

    def build(version: int) -> OffsetFetchRequest:
        topics: dict[str, list[int]] = {}
        for topic_partition in partitions:
            topics.setdefault(topic_partition.topic, []).append(topic_partition.partition)
        stable = require_stable and version >= 7
        if version >= 8:
            named = [
                OffsetFetchRequest.OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                for name, indexes in topics.items()
            ]
            group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=coordinator.key, topics=named)
            return OffsetFetchRequest(groups=[group], require_stable=stable)
        old = [
            OffsetFetchRequest.OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
            for name, indexes in topics.items()
        ]
        return OffsetFetchRequest(group_id=coordinator.key, topics=old, require_stable=stable)

    def on_response(response: OffsetFetchResponse | None, version: int, error: Exception | None) -> None:
        if response is None:
            coordinator.forget()
            on_done({}, error)
            return
        group: Any = response.groups[0] if version >= 8 and response.groups else response
        codes = [group.error_code] + [each.error_code for topic in group.topics for each in topic.partitions]
        code = next((Error.of(each) for each in codes if each), Error.NONE)
        if code:
            coordinator.on_error(code)
            on_done({}, ApiError(code))
            return
        found = {
            TopicPartition(topic.name, each.partition_index): OffsetAndMetadata(
                each.committed_offset, each.metadata or "", each.committed_leader_epoch
            )
            for topic in group.topics
            for each in topic.partitions
            if each.committed_offset >= 0
        }
        on_done(found, None)

    node_id = _coordinator_now(network, coordinator, lambda error: on_done({}, error))
    if node_id is not None:
        network.submit(node_id, ApiKey.OFFSET_FETCH, build, on_response)


def _coordinator_now(network: Network, coordinator: Coordinator, on_unavailable: OnCommitted) -> int | None:
    try:
        node_id = coordinator.node(network.clock.monotonic_ms())
    except ApiError as error:
        on_unavailable(error)
        return None
    if node_id is None:
        on_unavailable(ApiError(Error.COORDINATOR_NOT_AVAILABLE))
    return node_id
