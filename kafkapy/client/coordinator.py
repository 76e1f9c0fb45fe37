"""A group's coordinator as a consumer sees it: where it is, offsets committed there and asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kafkapy.client.cluster import Node
from kafkapy.client.network import Network
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkapy.types import TopicPartition

log = logging.getLogger("kafkapy.client")

GROUP, TRANSACTION = 0, 1
# Connections to coordinators are kept apart from those that fetch, by ids above every broker's.
COORDINATOR_IDS = {GROUP: 1 << 32, TRANSACTION: 2 << 32}
# Errors after which the coordinator is looked for anew.
COORDINATOR_MOVED = frozenset(
    (
        Error.NOT_COORDINATOR,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NETWORK_EXCEPTION,
        Error.REQUEST_TIMED_OUT,
    )
)


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the next record to be read, with a word of the application's and the leader's epoch."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


def with_metadata(
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets as an application names them: mere numbers are without metadata."""
    return {
        TopicPartition(*where): OffsetAndMetadata(each) if isinstance(each, int) else each
        for where, each in offsets.items()
    }


class MemberIdentity(NamedTuple):
    """Who a group knows a consumer as; generation -1 and no id: one that is not a member."""

    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class GroupMetadata(NamedTuple):
    """A group and one of its members; a transaction commits offsets in its name."""

    group_id: str
    member: MemberIdentity = MemberIdentity()


class Coordinator:
    """Owns the whereabouts of one group's or transaction's coordinator.  Touched with the network's seat held."""

    def __init__(self, network: Network, key: str, key_type: int = GROUP) -> None:
        self._network = network
        self.key = key
        self._key_type = key_type
        self._node_id: int | None = None
        self._is_asking = False
        self._not_before_ms = 0
        self._attempts = 0
        self.fatal: ApiError | None = None

    def node(self, now_ms: int) -> int | None:
        """The connection to the coordinator; None while it is looked for. Raises what makes looking useless."""
        if self.fatal is not None:
            raise self.fatal
        if self._node_id is None:
            self._find(now_ms)
        return self._node_id

    def next_attempt_ms(self, now_ms: int) -> int:
        """When looking goes on of its own accord."""
        return 1 << 62 if self._is_asking else max(self._not_before_ms, now_ms + 1)

    def forget(self) -> None:
        """It is not there any more: it is looked for when it is needed again."""
        self._node_id = None

    def heed(self, error: Error) -> None:
        """Told of an error of one of its answers."""
        if error in COORDINATOR_MOVED:
            self.forget()

    def _find(self, now_ms: int) -> None:
        asked = self._network.least_loaded()
        if self._is_asking or now_ms < self._not_before_ms or asked is None:
            return
        self._is_asking = True

        def build(version: int) -> FindCoordinatorRequest:
            if version >= 4:
                return FindCoordinatorRequest(key_type=self._key_type, coordinator_keys=[self.key])
            return FindCoordinatorRequest(key=self.key, key_type=self._key_type if version >= 1 else 0)

        self._network.submit(asked, ApiKey.FIND_COORDINATOR, build, self._found)

    def _found(self, response: FindCoordinatorResponse | None, version: int, error: Exception | None) -> None:
        self._is_asking = False
        told: Any = response
        if response is not None and version >= 4:
            told = response.coordinators[0] if response.coordinators else None
        if told is not None and not told.error_code:
            self._node_id = COORDINATOR_IDS[self._key_type] + int(told.node_id)
            self._network.coordinators[self._node_id] = Node(self._node_id, told.host, told.port)
            self._attempts = 0
            return
        code = Error.NETWORK_EXCEPTION if told is None else Error.of(told.error_code)
        if not code.retriable:
            self.fatal = ApiError(code, told.error_message if told is not None else None)
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
    """Commits once; the seat is held. ApiError of the first partition that failed."""

    def build(version: int) -> OffsetCommitRequest:
        topics: dict[str, list[OffsetCommitRequest.OffsetCommitRequestPartition]] = {}
        for where, committed in offsets.items():
            partition = OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=where.partition,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch if version >= 6 else -1,
                committed_metadata=committed.metadata,
            )
            topics.setdefault(where.topic, []).append(partition)
        named = [OffsetCommitRequest.OffsetCommitRequestTopic(name=name, partitions=p) for name, p in topics.items()]
        return OffsetCommitRequest(
            group_id=coordinator.key,
            generation_id_or_member_epoch=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.instance_id if version >= 7 else None,
            topics=named,
        )

    def answered(response: OffsetCommitResponse | None, version: int, error: Exception | None) -> None:
        if response is None:
            coordinator.forget()
            on_done(error)
            return
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    code = Error.of(partition.error_code)
                    coordinator.heed(code)
                    on_done(ApiError(code, f"Commit of {topic.name}-{partition.partition_index}: {code.message}"))
                    return
        on_done(None)

    node_id = _coordinator_now(network, coordinator, on_done)
    if node_id is not None:
        network.submit(node_id, ApiKey.OFFSET_COMMIT, build, answered)


def fetch_offsets(
    network: Network,
    coordinator: Coordinator,
    partitions: Sequence[TopicPartition],
    on_done: OnFetched,
    *,
    require_stable: bool,
) -> None:
    """Asks once for the committed offsets of these partitions; those without one are not in the answer."""

    def build(version: int) -> OffsetFetchRequest:
        topics: dict[str, list[int]] = {}
        for where in partitions:
            topics.setdefault(where.topic, []).append(where.partition)
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

    def answered(response: OffsetFetchResponse | None, version: int, error: Exception | None) -> None:
        if response is None:
            coordinator.forget()
            on_done({}, error)
            return
        group: Any = response.groups[0] if version >= 8 and response.groups else response
        codes = [group.error_code] + [each.error_code for topic in group.topics for each in topic.partitions]
        code = next((Error.of(each) for each in codes if each), Error.NONE)
        if code:
            coordinator.heed(code)
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
        network.submit(node_id, ApiKey.OFFSET_FETCH, build, answered)


def _coordinator_now(network: Network, coordinator: Coordinator, refuse: OnCommitted) -> int | None:
    try:
        node_id = coordinator.node(network.clock.monotonic_ms())
    except ApiError as error:
        refuse(error)
        return None
    if node_id is None:
        refuse(ApiError(Error.COORDINATOR_NOT_AVAILABLE))
    return node_id
