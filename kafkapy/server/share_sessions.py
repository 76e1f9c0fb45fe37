"""The share sessions of this broker: which partitions the members of share groups fetch from it (KIP-932).

epoch 0      opens a session, or replaces the session of the member
epoch 1...   must be the next epoch of the session
epoch -1     closes the session
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.server.fetch_session_cache import INITIAL_EPOCH, next_epoch

# A partition as the requests name it: topic id and number.
PartitionId = tuple[bytes, int]


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


class ShareSession:
    """The session of one member. Only the reactor's thread may use it.

    `epoch` is the epoch of the next request. `partitions` has the partitions of the session in order; the value is True
    until a response has contained the partition. The session ends with the connection that opened it.
    """

    __slots__ = ("connection_id", "epoch", "key", "partitions")

    def __init__(self, key: SessionKey, partitions: Iterable[PartitionId], connection_id: str) -> None:
        self.key = key
        self.connection_id = connection_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions: dict[PartitionId, bool] = dict.fromkeys(partitions, True)

    def update(self, added: Iterable[PartitionId], forgotten: Iterable[PartitionId]) -> None:
        for partition in added:
            self.partitions.setdefault(partition, True)
        self.forget(forgotten)

    def forget(self, partitions: Iterable[PartitionId]) -> None:
        for partition in partitions:
            self.partitions.pop(partition, None)

    def rotated(self, epoch: int) -> list[PartitionId]:
        """Returns the session's partitions, beginning with the one at index `epoch` modulo their number.

        Successive requests therefore fetch first from different partitions.
        """
        partitions = list(self.partitions)
        start = epoch % len(partitions) if partitions else 0
        return partitions[start:] + partitions[:start]


class ShareSessions:
    """The table of all share sessions. Only the reactor's thread may use it."""

    def __init__(self) -> None:
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._by_connection: dict[str, set[SessionKey]] = {}
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        return sum(len(session.partitions) for session in list(self._sessions.values()))

    def get(self, key: SessionKey) -> ShareSession:
        """Returns the session; raises ApiError SHARE_SESSION_NOT_FOUND."""
        session = self._sessions.get(key)
        if session is None:
            raise ApiError(Error.SHARE_SESSION_NOT_FOUND)
        return session

    def is_open(self, session: ShareSession | None) -> bool:
        """Returns whether the session is still in the table.

        A session is removed from the table when its connection is closed, or when another session replaces it.
        """
        return session is not None and self._sessions.get(session.key) is session

    def open(self, key: SessionKey, partitions: Iterable[PartitionId], connection_id: str, limit: int) -> ShareSession:
        """Opens a session, which replaces the previous session of the member. Raises ApiError
        SHARE_SESSION_LIMIT_REACHED if `limit` other sessions are open."""
        self.remove(key)
        if len(self._sessions) >= limit:
            raise ApiError(Error.SHARE_SESSION_LIMIT_REACHED)
        session = self._sessions[key] = ShareSession(key, partitions, connection_id)
        self._by_connection.setdefault(connection_id, set()).add(key)
        return session

    def advance(self, key: SessionKey, epoch: int) -> ShareSession:
        """Returns the session, after setting its epoch to the one that follows `epoch`.

        Raises ApiError SHARE_SESSION_NOT_FOUND, or INVALID_SHARE_SESSION_EPOCH if `epoch` is not the session's epoch.
        """
        session = self.get(key)
        if session.epoch != epoch:
            raise ApiError(Error.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = next_epoch(epoch)
        return session

    def remove(self, key: SessionKey) -> ShareSession | None:
        session = self._sessions.pop(key, None)
        if session is not None:
            keys = self._by_connection[session.connection_id]
            keys.discard(key)
            if not keys:
                del self._by_connection[session.connection_id]
        return session

    def remove_of_connection(self, connection_id: str) -> list[ShareSession]:
        """Removes the sessions that the connection has opened, and returns them."""
        found = [self._sessions[key] for key in self._by_connection.get(connection_id, ())]
        for session in found:
            self.remove(session.key)
        self.evictions += len(found)
        return found

    def remove_all(self) -> None:
        self._sessions.clear()
        self._by_connection.clear()

    def has_group(self, group_id: str) -> bool:
        """Returns whether a member of the group has a session."""
        return any(key.group_id == group_id for key in self._sessions)
