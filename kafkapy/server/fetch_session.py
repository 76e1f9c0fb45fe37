"""Incremental fetch sessions (KIP-227): after the first fetch, requests and responses hold only what has changed.

A fetch request opens a *context*. The context has the partitions to read, and selects the results that the response
contains:

    session id, epoch     context      partitions to read             in the response
    any, -1 (final)       sessionless  those of the request           all; the named session is closed
    any, 0 (initial)      full         those of the request           all, with a new session if there is room
    id, expected epoch    incremental  the session's, with changes    those that changed
    id, other epoch       refused      none                           none, with the error
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from kafkapy._core.broker_state.fetch_session_state import SessionPartitions
from kafkapy.errors import Error
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.replica.fetch import FetchPartition, FetchResult
from kafkapy.server.fetch_session_cache import (
    INITIAL_EPOCH,
    CachedPartition,
    FetchSession,
    FetchSessionCache,
    PartitionKey,
    next_epoch,
)
from kafkapy.server.large_fetches import ClientOfFetch
from kafkapy.types import ZERO_UUID, Clock

INVALID_SESSION_ID = 0
FINAL_EPOCH = -1

TopicName = Callable[[bytes], str | None]
Results = list[tuple[FetchPartition, FetchResult]]


class FetchContext:
    """The context of a fetch without a session. It has the partitions to read, and selects the results for the
    response."""

    __slots__ = ("partitions",)

    def __init__(self, partitions: Iterable[FetchPartition]) -> None:
        self.partitions = partitions

    def answer(self, results: Results) -> tuple[Error, int, Results]:
        """Returns the error of the whole response, the session id, and the results that the response contains."""
        return Error.NONE, INVALID_SESSION_ID, results

    def throttled_answer(self) -> tuple[Error, int]:
        """Returns the error and the session id of a response that has no partitions because a quota is exceeded."""
        return Error.NONE, INVALID_SESSION_ID


class RefusedFetchContext(FetchContext):
    """The context of a request whose session does not exist or has another epoch."""

    __slots__ = ("error",)

    def __init__(self, error: Error) -> None:
        super().__init__(())
        self.error = error

    def answer(self, results: Results) -> tuple[Error, int, Results]:
        return self.error, INVALID_SESSION_ID, []

    def throttled_answer(self) -> tuple[Error, int]:
        return self.error, INVALID_SESSION_ID


class FullFetchContext(FetchContext):
    """The context of a Fetch request that asks for a new session. The session is created when the response is built."""

    __slots__ = ("_cache", "_client", "_is_privileged", "_keyed", "_monotonic_ms", "_uses_topic_ids")

    def __init__(
        self,
        keyed: dict[PartitionKey, CachedPartition],
        cache: FetchSessionCache,
        monotonic_ms: int,
        *,
        is_privileged: bool,
        uses_topic_ids: bool,
        client: ClientOfFetch | None,
    ) -> None:
        super().__init__(keyed.values())
        self._client = client
        self._keyed = keyed
        self._cache = cache
        self._monotonic_ms = monotonic_ms
        self._is_privileged = is_privileged
        self._uses_topic_ids = uses_topic_ids

    def answer(self, results: Results) -> tuple[Error, int, Results]:
        for partition, result in results:
            assert isinstance(partition, CachedPartition)
            partition.remember(result)
        session = self._cache.maybe_create(
            self._monotonic_ms,
            self._keyed,
            is_privileged=self._is_privileged,
            uses_topic_ids=self._uses_topic_ids,
            client=None if self._client is None else self._client(),
        )
        return Error.NONE, INVALID_SESSION_ID if session is None else session.session_id, results


class IncrementalFetchContext(FetchContext):
    """The context of a request in an existing session. Its response contains only partitions with records, an error or
    new offsets."""

    __slots__ = ("_expected_epoch", "_session")

    def __init__(self, session: FetchSession) -> None:
        super().__init__(session.partitions.values())
        self._session = session
        self._expected_epoch = session.epoch

    def answer(self, results: Results) -> tuple[Error, int, Results]:
        session = self._session
        if session.epoch != self._expected_epoch:  # another connection used the session while this fetch waited
            return Error.INVALID_FETCH_SESSION_EPOCH, session.session_id, []
        changed: Results = []
        for partition, result in results:
            assert isinstance(partition, CachedPartition)
            if partition.remember(result):
                changed.append((partition, result))
                if len(result.records):
                    session.partitions.to_end(partition)
        return Error.NONE, session.session_id, changed

    def throttled_answer(self) -> tuple[Error, int]:
        session = self._session
        is_current = session.epoch == self._expected_epoch
        return Error.NONE if is_current else Error.INVALID_FETCH_SESSION_EPOCH, session.session_id


class FetchSessions:
    """The fetch sessions of a broker. Opens the context of each fetch request. Only the reactor's thread may use it."""

    def __init__(self, clock: Clock, max_slots: int, random_id: Callable[[], int] | None = None) -> None:
        self._clock = clock
        self.cache = FetchSessionCache(max_slots, random_id or (lambda: random.randrange(1, 1 << 31)))

    def open(
        self,
        request: FetchRequest,
        version: int,
        topic_name: TopicName,
        *,
        is_follower: bool,
        client: ClientOfFetch | None = None,
    ) -> FetchContext:
        """Returns the context of `request`.

        A session of a follower (`is_follower`) is evicted later than one of a consumer. `topic_name(topic_id)` returns
        the name of a topic, or None if this broker does not know the id; it is used from version 13 on. `client`
        returns the client of the request; it is called if the request opens a session, which stores the result.
        """
        session_id: int = request.session_id
        epoch: int = request.session_epoch
        uses_topic_ids = version >= FetchRequest.FIRST_VERSION_WITH_TOPIC_ID
        if epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
            return self._incremental(request, uses_topic_ids, topic_name)
        if session_id != INVALID_SESSION_ID:
            self.cache.remove(session_id)
        keyed: dict[PartitionKey, CachedPartition] = {}
        _update(keyed, request, uses_topic_ids, topic_name)
        if epoch == FINAL_EPOCH:
            return FetchContext(keyed.values())
        return FullFetchContext(
            keyed,
            self.cache,
            self._clock.monotonic_ms(),
            is_privileged=is_follower,
            uses_topic_ids=uses_topic_ids,
            client=client,
        )

    def _incremental(self, request: FetchRequest, uses_topic_ids: bool, topic_name: TopicName) -> FetchContext:
        session = self.cache.get(request.session_id)
        if session is None:
            return RefusedFetchContext(Error.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return RefusedFetchContext(Error.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return RefusedFetchContext(Error.FETCH_SESSION_TOPIC_ID_ERROR)
        partitions = session.partitions
        if request.topics and _update(partitions, request, uses_topic_ids, topic_name):
            session.has_unknown_topics = True
        for forgotten in request.forgotten_topics_data:
            topic = forgotten.topic_id if uses_topic_ids else forgotten.topic
            for partition in forgotten.partitions:
                partitions.pop((topic, partition))
        if not len(partitions):
            self.cache.remove(session.session_id)
            return FetchContext(())
        if session.has_unknown_topics:
            session.resolve_topics(topic_name)
        self.cache.touch(session, self._clock.monotonic_ms())
        session.epoch = next_epoch(session.epoch)
        return IncrementalFetchContext(session)


def _update(
    partitions: dict[PartitionKey, CachedPartition] | SessionPartitions,
    request: FetchRequest,
    uses_topic_ids: bool,
    topic_name: TopicName,
) -> bool:
    """Adds the partitions of the request to `partitions`. If a partition is in `partitions` already, updates the
    client's position and limits in this partition.

    Topics are identified by their ids if `uses_topic_ids` is True, otherwise by their names. Returns True if a
    partition was added whose topic id is unknown to this broker.
    """
    has_unknown_topics = False
    for topic in request.topics:
        topic_id = topic.topic_id if uses_topic_ids else ZERO_UUID
        topic_key = topic_id if uses_topic_ids else topic.topic
        for asked in topic.partitions:
            key = (topic_key, asked.partition)
            known = partitions.get(key)
            if known is None:
                name = topic_name(topic_id) if uses_topic_ids else topic.topic
                has_unknown_topics |= name is None
                partitions[key] = CachedPartition(name, topic_id, asked)
            else:
                known.follow(asked)
    return has_unknown_topics
