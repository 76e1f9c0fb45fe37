"""The parts of a broker that serve share groups, constructed when the first of them is needed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kafkapy._core.reactor.reactor import Connection
from kafkapy.coordinator.group.share_offsets import ShareOffsets
from kafkapy.coordinator.group.share_requests import ShareGroups
from kafkapy.coordinator.group.share_settings import ShareGroupSettings
from kafkapy.coordinator.share.share_coordinator import ShareCoordinator
from kafkapy.errors import Error
from kafkapy.replica.partition import Partition
from kafkapy.replica.share.in_flight import AckBatch, AckType
from kafkapy.replica.share.persister import SharePartitionKey
from kafkapy.replica.share.share_partitions import SharePartitions
from kafkapy.server.share_persister import ClusterPersister
from kafkapy.server.share_sessions import SessionKey, ShareSession, ShareSessions


class ShareServices:
    """The objects with which a broker serves share groups: groups, offsets, coordinator, partitions and sessions.

    Only the reactor's thread may use it.
    """

    def __init__(
        self,
        groups: ShareGroups,
        offsets: ShareOffsets,
        coordinator: ShareCoordinator,
        persister: ClusterPersister,
        partitions: SharePartitions,
    ) -> None:
        self.groups = groups
        self.offsets = offsets
        self.coordinator = coordinator
        self.persister = persister
        self.partitions = partitions
        self.sessions = ShareSessions()
        self.acknowledged = [0] * len(AckType)  # records by the type of their acknowledgement, for the metrics page

    @property
    def settings(self) -> ShareGroupSettings:
        return self.groups.settings

    def count_acknowledgements(self, batches: Iterable[AckBatch]) -> None:
        """Adds the number of records that a member acknowledged to the counts by acknowledgement type.

        Acknowledgements that are refused later are counted too.
        """
        for first, last, types in batches:
            if len(types) == 1:
                self.acknowledged[types[0]] += last - first + 1
            else:
                for each in types:
                    self.acknowledged[each] += 1

    def on_leadership(self, led: list[Partition], followed: list[Partition]) -> None:
        """Notifies the coordinator and the share partitions of the partitions that this broker now leads or follows."""
        self.coordinator.on_leadership(led, followed)
        self.partitions.on_leadership(led, followed)

    def forget_topics(self, topic_ids: Collection[bytes]) -> None:
        """Deletes the share partitions of deleted topics, and the states that the coordinator has stored for them."""
        self.partitions.forget_topics(topic_ids)
        self.coordinator.forget_topics(topic_ids)

    def features_changed(self) -> None:
        """Removes all sessions and share partitions if share groups are no longer served."""
        if not self.settings.is_enabled:
            self.sessions.remove_all()
            self.partitions.forget_all()

    def shutdown(self) -> None:
        self.coordinator.shutdown()

    def end_session(self, key: SessionKey) -> None:
        """Closes the session of a member. The records that the member has acquired become available again."""
        session = self.sessions.remove(key)
        if session is not None:
            self._release(session)

    def connection_closed(self, connection: Connection) -> None:
        """Closes the sessions that a client has opened on the connection."""
        for session in self.sessions.remove_of_connection(connection.id):
            self._release(session)

    def _release(self, session: ShareSession) -> None:
        """Makes the records of the member available again; removes the group's share partitions after its last
        session."""
        group_id, member_id = session.key
        for topic_id, number in session.partitions:
            share_partition = self.partitions.get(SharePartitionKey(group_id, topic_id, number))
            if share_partition is not None and share_partition.is_active:
                share_partition.release(member_id, _released)
        if not self.sessions.has_group(group_id):
            self.partitions.forget_group(group_id)


def _released(error: Error, message: str | None) -> None:
    """Ignores the result of a release of records.

    If the release could not be stored, the records become available when the member's acquisition locks expire.
    """
