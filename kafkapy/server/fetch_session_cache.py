"""The fetch sessions of a broker, limited in number, and the eviction of sessions (KIP-227).

If there is no room for a new session, a session that was not used for two minutes is evicted. If all sessions are in
use, the new session may replace a session whose last use was more than two minutes after its creation; the new session
of a follower may also replace any consumer's session. The least valuable of these sessions is evicted, if the new
session is more valuable. A follower's session is more valuable than a consumer's, and a session with more partitions is
more valuable than one with fewer.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkapy._core.broker_state.fetch_session_state import FetchSessionState, FetchSessionTable, SessionPartitions
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.replica.fetch import FetchPartition, FetchResult
from kafkapy.server.large_fetches import FetchClient

INITIAL_EPOCH = 0
EVICTION_MS = 120_000
_MAX_EPOCH = (1 << 31) - 1

# The topic's id (its name, before fetch version 13) and the partition's number.
PartitionKey = tuple[bytes | str, int]


def next_epoch(epoch: int) -> int:
    """Returns the epoch after `epoch`. The epoch after the largest one is 1, because 0 opens a session."""
    return 1 if epoch == _MAX_EPOCH else epoch + 1


class CachedPartition(FetchPartition):
    """A partition of a session. The fields `sent_*` have the values that the client received last."""

    __slots__ = ()

    def __init__(self, topic: str | None, topic_id: bytes, asked: FetchRequest.FetchPartition) -> None:
        super().__init__(topic, asked.partition, asked.fetch_offset, asked.partition_max_bytes, topic_id=topic_id)
        self.follow(asked)

    def follow(self, asked: FetchRequest.FetchPartition) -> None:
        """Updates the client's position and limits in this partition from `asked`, the client's newest request."""
        self.move(
            asked.fetch_offset,
            asked.partition_max_bytes,
            asked.current_leader_epoch,
            asked.last_fetched_epoch,
            asked.log_start_offset,
        )

    def remember(self, result: FetchResult) -> bool:
        """Records that `result` is about to be sent; returns whether it contains anything new for the client."""
        is_changed = (
            len(result.records) > 0
            or result.high_watermark != self.sent_high_watermark
            or result.log_start_offset != self.sent_log_start_offset
            or result.preferred_read_replica >= 0
            or result.error != 0
            or result.diverging_epoch is not None
        )
        # After an error the partition is sent again as soon as the error has ended.
        self.sent_high_watermark = -1 if result.error else result.high_watermark
        self.sent_log_start_offset = result.log_start_offset
        return is_changed


class FetchSession(FetchSessionState):
    """One client's session, with its partitions in the order in which they are read. Only the reactor's thread may use
    it.

    A partition that returned records moves to the end, so that no partition is starved. `epoch` is the epoch of the
    next request. `client` is the client that has opened the session, None if it is not known.
    """

    __slots__ = ("client",)

    def __init__(
        self,
        session_id: int,
        partitions: dict[PartitionKey, CachedPartition],
        monotonic_ms: int,
        *,
        is_privileged: bool,
        uses_topic_ids: bool,
        client: FetchClient | None = None,
    ) -> None:
        super().__init__(session_id, SessionPartitions(partitions))
        self.client = client
        self.creation_ms = monotonic_ms
        self.last_used_ms = monotonic_ms
        self.is_privileged = is_privileged
        self.uses_topic_ids = uses_topic_ids
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.has_unknown_topics = any(partition.topic is None for partition in partitions.values())

    @property
    def worth(self) -> tuple[bool, int, int]:
        """The value of the session, as a sort key: (is privileged, number of partitions, session id).

        A session of less value is evicted first. The sessions of followers are privileged.
        """
        return self.is_privileged, len(self.partitions), self.session_id

    def resolve_topics(self, topic_name: Callable[[bytes], str | None]) -> None:
        """Looks up the names of the topics whose ids were not known to this broker before."""
        self.has_unknown_topics = False
        for partition in self.partitions.values():
            if partition.topic is None:
                name = topic_name(partition.topic_id)
                if name is None:
                    self.has_unknown_topics = True
                else:
                    partition.resolve(name)


class FetchSessionCache(FetchSessionTable):
    """The table of all sessions, at most `max_slots`. Only the reactor's thread may use it."""

    def __init__(self, max_slots: int, random_id: Callable[[], int]) -> None:
        self.max_slots = max_slots
        self.evictions = 0
        self._random_id = random_id

    @property
    def partition_count(self) -> int:
        return sum(len(session.partitions) for session in self.sessions())

    def maybe_create(
        self,
        monotonic_ms: int,
        partitions: dict[PartitionKey, CachedPartition],
        *,
        is_privileged: bool,
        uses_topic_ids: bool,
        client: FetchClient | None = None,
    ) -> FetchSession | None:
        """Creates a session and returns it, or returns None if there is no room and no session can be evicted.

        `is_privileged` is True for the session of a follower. `client` is the client that opens the session.
        """
        if len(self) >= self.max_slots and not self._try_evict(is_privileged, len(partitions), monotonic_ms):
            return None
        session_id = self._random_id()
        while self.get(session_id) is not None:
            session_id = self._random_id()
        session = FetchSession(
            session_id,
            partitions,
            monotonic_ms,
            is_privileged=is_privileged,
            uses_topic_ids=uses_topic_ids,
            client=client,
        )
        self.add(session)
        return session

    def _try_evict(self, is_privileged: bool, size: int, monotonic_ms: int) -> bool:
        sessions: list[FetchSession] = self.sessions()
        if not sessions:
            return False
        victim = sessions[0]
        if monotonic_ms - victim.last_used_ms <= EVICTION_MS:
            # No session is unused. A session that was in use for EVICTION_MS may be evicted; a follower's new session
            # may also evict a consumer's session that was in use for a shorter time.
            evictable = [
                session
                for session in sessions
                if session.last_used_ms - session.creation_ms > EVICTION_MS
                or (is_privileged and not session.is_privileged)
            ]
            if not evictable:
                return False
            victim = min(evictable, key=lambda session: session.worth)
            if (is_privileged, size, 0) < victim.worth:
                return False
        self.remove(victim.session_id)
        self.evictions += 1
        return True
