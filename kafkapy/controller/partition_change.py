"""The change of one partition when its replicas, its ISR or brokers change. Only this module elects leaders.

With eligible leader replicas (KIP-966), a replica that leaves an ISR below min.insync.replicas stays electable, because
it has every committed record. After an unclean stop it is no longer electable, only the last known leader. Without
eligible leader replicas the ISR never becomes empty.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from kafkapy.metadata import features as levels
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.metadata.topics_image import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    PartitionImage,
)
from kafkapy.protocol.messages.metadata_records import PartitionChangeRecord


class Election(Enum):
    """The replicas that may win an election."""

    PREFERRED = "the preferred replica if it is electable, else whoever leads"
    ONLINE = "the current leader while it is electable, else the first electable replica"
    UNCLEAN = "as ONLINE; if none is electable, any live replica, records may be lost"


class Elected(NamedTuple):
    """The elected leader (NO_LEADER if none), and whether it may lack committed records."""

    leader: int
    unclean: bool


class PartitionChange:
    """Computes the PartitionChangeRecord from a partition to its targets. Single use, not thread-safe.

    Set the targets, then call `build`. `is_live(broker)` returns whether a broker may lead.
    """

    def __init__(
        self,
        topic_id: bytes,
        partition_id: int,
        partition: PartitionImage,
        metadata_version: int,
        is_live: Callable[[int], bool],
        *,
        elr_enabled: bool = False,
        min_isr: int = 1,
    ) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.partition_id = partition_id
        self.metadata_version = metadata_version
        self.is_live = is_live
        self.elr_enabled = elr_enabled
        self.min_isr = min_isr
        self.election = Election.ONLINE
        self.unclean_shutdown_replicas: frozenset[int] = frozenset()
        self.target_replicas = partition.replicas
        self.target_isr = partition.isr
        self.target_elr = partition.elr
        self.target_leader_recovery_state = partition.leader_recovery_state
        self.target_directories: tuple[bytes, ...] | None = None

    def build(self) -> MessageAndVersion | None:
        """Returns the record and its version, or None if nothing changes."""
        record = PartitionChangeRecord(partition_id=self.partition_id, topic_id=self.topic_id)
        self._update_elr()
        self._elect(record)
        partition = self.partition
        isr_may_change = bool(self.target_isr) or self.elr_enabled
        if record.isr is None and isr_may_change and self.target_isr != partition.isr:
            record.isr = list(self.target_isr)
        self._bump_epoch_if_needed(record)
        if self.elr_enabled:
            if self.target_elr != partition.elr:
                record.eligible_leader_replicas = list(self.target_elr)
            self._update_last_known_leader(record)
        if record.leader_recovery_state < 0 and self.target_leader_recovery_state != partition.leader_recovery_state:
            record.leader_recovery_state = self.target_leader_recovery_state
        if self.target_directories is not None and self.target_directories != partition.directories:
            record.directories = list(self.target_directories)
        if not _changes_anything(record):
            return None
        self._check(record)
        return record, levels.partition_record_version(self.metadata_version)

    def _check(self, record: PartitionChangeRecord) -> None:
        """Asserts that the leader and all members of the ISR are replicas, because they have all acknowledged
        records."""
        replicas = set(self.target_replicas)
        assert set(self.target_isr) <= replicas, f"ISR {self.target_isr} is not within {self.target_replicas}"
        assert record.leader < 0 or record.leader in replicas, f"leader {record.leader} of {self.target_replicas}"

    def _update_elr(self) -> None:
        """Sets the replicas that stay electable outside of `target_isr`."""
        if not self.elr_enabled:
            return
        if len(self.target_isr) >= min(self.min_isr, len(self.target_replicas)):
            self.target_elr = ()
            return
        candidates = dict.fromkeys((*self.partition.elr, *self.partition.isr))
        excluded = self.unclean_shutdown_replicas.union(self.target_isr)
        self.target_elr = tuple(replica for replica in candidates if replica not in excluded)

    def _elect(self, record: PartitionChangeRecord) -> None:
        elected = self.elect_leader()
        if elected.leader != self.partition.leader:
            record.leader = elected.leader
            if elected.unclean:
                self._lead_alone(elected.leader, record)
                if self.partition.leader_recovery_state != RECOVERING:
                    record.leader_recovery_state = RECOVERING
                return
        if elected.leader != NO_LEADER and elected.leader not in self.target_isr and self.elr_enabled:
            self._lead_alone(elected.leader, record)

    def _lead_alone(self, leader: int, record: PartitionChangeRecord) -> None:
        self.target_isr = (leader,)
        if self.target_isr != self.partition.isr:
            record.isr = [leader]
        self.target_elr = tuple(replica for replica in self.target_elr if replica != leader)
        if self.elr_enabled and min(self.min_isr, len(self.target_replicas)) <= 1:
            self.target_elr = ()

    def elect_leader(self) -> Elected:
        """Elects a leader from the target replicas and the target ISR; NO_LEADER if none is eligible."""
        current = self.partition.leader
        if self.election is Election.PREFERRED and self._is_electable(self.target_replicas[0]):
            return Elected(self.target_replicas[0], False)
        if self._is_electable(current):
            return Elected(current, False)
        for replica in self.target_replicas:
            if self._is_electable(replica):
                return Elected(replica, False)
        last_known = self._last_known_leader()
        if last_known != NO_LEADER:
            return Elected(last_known, True)
        if self.election is Election.UNCLEAN:
            for replica in self.target_replicas:
                if self.is_live(replica):
                    return Elected(replica, True)
        return Elected(NO_LEADER, False)

    def _is_electable(self, replica: int) -> bool:
        in_sync = replica in self.target_isr or (self.elr_enabled and replica in self.target_elr)
        return in_sync and self.is_live(replica)

    def _last_known_leader(self) -> int:
        """Returns the last known leader, if no replica is electable after an unclean stop and that leader is live
        again."""
        if not self.elr_enabled or self.target_elr or self.target_isr or len(self.partition.last_known_elr) != 1:
            return NO_LEADER
        leader = self.partition.last_known_elr[0]
        return leader if self.is_live(leader) else NO_LEADER

    def _bump_epoch_if_needed(self, record: PartitionChangeRecord) -> None:
        """Increments the leader epoch of an unchanged leader if replicas are removed.

        Before metadata version 3.6-IV0 it does so for a shrunk ISR too.
        """
        if record.leader != NO_LEADER_CHANGE:
            return
        partition = self.partition
        replicas_left = not set(partition.replicas) <= set(self.target_replicas)
        shrunk = not set(partition.isr) <= set(self.target_isr) and bool(self.target_isr)
        if replicas_left or (shrunk and levels.requires_leader_epoch_bump_on_isr_shrink(self.metadata_version)):
            record.leader = partition.leader

    def _update_last_known_leader(self, record: PartitionChangeRecord) -> None:
        known = self.partition.last_known_elr
        leader = self.partition.leader
        if record.isr is not None and not record.isr and known != (leader,):
            record.last_known_elr = [leader]
            return
        keeps_leader = leader != NO_LEADER and record.leader != NO_LEADER
        if known and (record.leader >= 0 or keeps_leader):
            record.last_known_elr = []


def _changes_anything(record: PartitionChangeRecord) -> bool:
    return not (
        record.isr is None
        and record.leader == NO_LEADER_CHANGE
        and record.replicas is None
        and record.directories is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
        and record.leader_recovery_state < RECOVERED
    )
