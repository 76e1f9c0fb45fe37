"""The fetch sessions of a broker: a bounded number of them, and which one makes room for a new one (KIP-227).

A session that nobody used for two minutes goes first. Otherwise a session older than two minutes goes if the new one is
worth more: followers' sessions more than consumers', many partitions more than few. A follower's session may also
displace a consumer's younger than that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable

from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.replica.fetch import FetchPartition, FetchResult

INITIAL_EPOCH = 0
EVICTION_MS = 120_000
_MAX_EPOCH = (1 << 31) - 1

# The topic's id (its name, before fetch version 13) and the partition's number.
PartitionKey = tuple[bytes | str, int]
# Less valuable sorts first: (privileged, number of partitions, session id).
EvictionKey = tuple[bool, int, int]


def next_epoch(epoch: int) -> int:
    """The epoch that the next incremental request must name; after the largest comes 1, 0 opens sessions."""
    return 1 if epoch == _MAX_EPOCH else epoch + 1


class CachedPartition(FetchPartition):
    """A partition of a session, with what the client was last told about it."""

    __slots__ = ("sent_high_watermark", "sent_log_start_offset")

    def __init__(self, topic: str | None, topic_id: bytes, asked: FetchRequest.FetchPartition) -> None:
        super().__init__(topic, asked.partition, asked.fetch_offset, asked.partition_max_bytes, topic_id=topic_id)
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1
        self.follow(asked)

    def follow(self, asked: FetchRequest.FetchPartition) -> None:
        """Takes over where the client has come."""
        self.fetch_offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch
        self.log_start_offset = asked.log_start_offset

    def remember(self, result: FetchResult) -> bool:
        """Notes that `result` is about to be sent; False if it holds nothing that the client does not know."""
        is_news = (
            len(result.records) > 0
            or result.high_watermark != self.sent_high_watermark
            or result.log_start_offset != self.sent_log_start_offset
            or result.preferred_read_replica >= 0
            or result.error != 0
            or result.diverging_epoch is not None
        )
        # After an error the partition is sent again as soon as the error is gone.
        self.sent_high_watermark = -1 if result.error else result.high_watermark
        self.sent_log_start_offset = result.log_start_offset
        return is_news


class FetchSession:
    """One client's partitions, in the order in which they are read. Owner thread only.

    The order is fair: a partition that gave records goes to the end. `epoch` is the one expected next.
    """

    __slots__ = (
        "creation_ms",
        "epoch",
        "eviction_key",
        "has_unknown_topics",
        "is_privileged",
        "last_used_ms",
        "partitions",
        "session_id",
        "uses_topic_ids",
    )

    def __init__(
        self,
        session_id: int,
        partitions: dict[PartitionKey, CachedPartition],
        now_ms: int,
        *,
        is_privileged: bool,
        uses_topic_ids: bool,
    ) -> None:
        self.session_id = session_id
        self.partitions = partitions
        self.creation_ms = now_ms
        self.last_used_ms = now_ms
        self.is_privileged = is_privileged
        self.uses_topic_ids = uses_topic_ids
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.eviction_key: EvictionKey = (is_privileged, len(partitions), session_id)
        self.has_unknown_topics = any(partition.topic is None for partition in partitions.values())

    def resolve_topics(self, topic_name: Callable[[bytes], str | None]) -> None:
        """Asks again for the names of topics that were not known before."""
        self.has_unknown_topics = False
        for partition in self.partitions.values():
            if partition.topic is None:
                name = topic_name(partition.topic_id)
                if name is None:
                    self.has_unknown_topics = True
                else:
                    partition.resolve(name)

    def move_to_end(self, partition: CachedPartition) -> None:
        key: PartitionKey = (
            partition.topic_id if self.uses_topic_ids else partition.topic_partition.topic,
            partition.partition,
        )
        if self.partitions.pop(key, None) is not None:
            self.partitions[key] = partition


class FetchSessionCache:
    """Owns all sessions, never more than `max_slots`. Owner thread only.

    Invariants: `_by_use` holds each session once, least recently used first; the two lists of eviction keys are
    sorted, and a key is in `_evictable_by_all` only if its session is older than `EVICTION_MS` when it was last used.
    """

    def __init__(self, max_slots: int, random_id: Callable[[], int]) -> None:
        self.max_slots = max_slots
        self.evictions = 0
        self._random_id = random_id
        self._by_use: OrderedDict[int, FetchSession] = OrderedDict()
        self._evictable_by_privileged: list[EvictionKey] = []
        self._evictable_by_all: list[EvictionKey] = []

    def __len__(self) -> int:
        return len(self._by_use)

    @property
    def partition_count(self) -> int:
        return sum(len(session.partitions) for session in self._by_use.values())

    def get(self, session_id: int) -> FetchSession | None:
        return self._by_use.get(session_id)

    def maybe_create(
        self,
        now_ms: int,
        partitions: dict[PartitionKey, CachedPartition],
        *,
        is_privileged: bool,
        uses_topic_ids: bool,
    ) -> FetchSession | None:
        """A new session, or None if there is no room and nothing that has to make room for it."""
        if len(self._by_use) >= self.max_slots and not self._try_evict(is_privileged, len(partitions), now_ms):
            return None
        session_id = self._random_id()
        while session_id in self._by_use:
            session_id = self._random_id()
        session = FetchSession(
            session_id, partitions, now_ms, is_privileged=is_privileged, uses_topic_ids=uses_topic_ids
        )
        self._by_use[session_id] = session
        self._make_evictable(session, now_ms)
        return session

    def touch(self, session: FetchSession, now_ms: int) -> None:
        """The session was used now; its worth follows its size."""
        session.last_used_ms = now_ms
        self._by_use.move_to_end(session.session_id)
        if session.eviction_key[1] != len(session.partitions):
            self._make_unevictable(session)
            session.eviction_key = (session.is_privileged, len(session.partitions), session.session_id)
        self._make_evictable(session, now_ms)

    def remove(self, session_id: int) -> None:
        session = self._by_use.pop(session_id, None)
        if session is not None:
            self._make_unevictable(session)

    def _try_evict(self, is_privileged: bool, size: int, now_ms: int) -> bool:
        if not self._by_use:
            return False
        oldest = next(iter(self._by_use.values()))
        if now_ms - oldest.last_used_ms > EVICTION_MS:
            victim = oldest.session_id
        else:
            evictable = self._evictable_by_privileged if is_privileged else self._evictable_by_all
            if not evictable or (is_privileged, size, 0) < evictable[0]:
                return False
            victim = evictable[0][2]
        self.remove(victim)
        self.evictions += 1
        return True

    def _make_evictable(self, session: FetchSession, now_ms: int) -> None:
        is_old = now_ms - session.creation_ms > EVICTION_MS
        if is_old or not session.is_privileged:
            _insert(self._evictable_by_privileged, session.eviction_key)
        if is_old:
            _insert(self._evictable_by_all, session.eviction_key)

    def _make_unevictable(self, session: FetchSession) -> None:
        _discard(self._evictable_by_privileged, session.eviction_key)
        _discard(self._evictable_by_all, session.eviction_key)


def _insert(keys: list[EvictionKey], key: EvictionKey) -> None:
    index = bisect_left(keys, key)
    if index == len(keys) or keys[index] != key:
        keys.insert(index, key)


def _discard(keys: list[EvictionKey], key: EvictionKey) -> None:
    index = bisect_left(keys, key)
    if index < len(keys) and keys[index] == key:
        del keys[index]
