"""The change of one partition when its replicas, its ISR or brokers change. Only this module elects leaders.

If an ISR has fewer members than min.insync.replicas, a replica that leaves it still has every committed record. With
eligible leader replicas (KIP-966), such a replica can be elected while the ISR is empty. If the replica's broker has
stopped uncleanly, the replica can be elected only if it was the last known leader. Without eligible leader replicas the
ISR never becomes empty.

A reassignment (KIP-455) completes in the first change of the partition that finds the new replicas in sync.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from kafkapy.metadata import features as levels
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.metadata.topics_image import (
    DIRECTORY_UNASSIGNED,
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    PartitionImage,
)
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.metadata_records import PartitionChangeRecord


class Election(Enum):
    """The kinds of elections: a kind determines which replicas can be elected."""

    PREFERRED = "the preferred replica if it is electable, otherwise as ONLINE; never unclean by configuration"
    ONLINE = "the current leader while it is electable, otherwise the first electable replica"
    UNCLEAN = "as ONLINE; if none is electable, any live replica, records may be lost"


class Elected(NamedTuple):
    """The result of an election.

    `leader` is NO_LEADER if no replica could be elected; `unclean` is True if the leader may lack committed records.
    """

    leader: int
    unclean: bool


def _unassigned(replica: int) -> bytes:
    return DIRECTORY_UNASSIGNED


class PartitionChange:
    """The change of a partition from its current state to a target state.

    An object is used for one change; not thread-safe. The caller sets the `target_*` attributes, and then calls
    `build`. `is_acceptable(replica)` returns whether a replica may lead, which requires a live broker and an online log
    directory. `min_isr` is the effective min.insync.replicas, at most the number of replicas.
    `default_directory(broker)` returns the directory id of a new replica.
    """

    def __init__(
        self,
        topic_id: bytes,
        partition_id: int,
        partition: PartitionImage,
        metadata_version: int,
        is_acceptable: Callable[[int], bool],
        *,
        elr_enabled: bool = False,
        min_isr: int = 1,
        default_directory: Callable[[int], bytes] = _unassigned,
    ) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.partition_id = partition_id
        self.metadata_version = metadata_version
        self.is_acceptable = is_acceptable
        self.elr_enabled = elr_enabled
        self.min_isr = min_isr
        self.default_directory = default_directory
        self.election = Election.ONLINE
        self.unclean_shutdown_replicas: frozenset[int] = frozenset()
        self.target_replicas = partition.replicas
        self.target_isr = partition.isr
        self.target_elr = partition.elr
        self.target_removing = partition.removing_replicas
        self.target_adding = partition.adding_replicas
        self.target_leader_recovery_state = partition.leader_recovery_state
        # Broker id -> directory id, for replicas whose directory changes.
        self.target_directories: dict[int, bytes] = {}

    def build(self) -> MessageAndVersion | None:
        """Returns the PartitionChangeRecord and its version, or None if nothing changes."""
        partition = self.partition
        record = PartitionChangeRecord(partition_id=self.partition_id, topic_id=self.topic_id)
        self._complete_reassignment()
        self._update_target_elr()
        self._elect(record)
        if record.leader == NO_LEADER_CHANGE and self._removes_replicas():
            record.leader = partition.leader  # A replica that is removed has to notice it: increase the leader epoch.
        self._set_elr(record)
        if record.isr is None and (self.target_isr or self.elr_enabled) and self.target_isr != partition.isr:
            record.isr = list(self.target_isr)
        self._raise_epoch_after_shrink(record)
        self._update_last_known_leader(record)
        if self.target_removing != partition.removing_replicas:
            record.removing_replicas = list(self.target_removing)
        if self.target_adding != partition.adding_replicas:
            record.adding_replicas = list(self.target_adding)
        self._set_assignment(record)
        if record.leader_recovery_state < 0 and self.target_leader_recovery_state != partition.leader_recovery_state:
            record.leader_recovery_state = self.target_leader_recovery_state
        if not _changes_anything(record):
            return None
        self._check(record)
        return record, levels.partition_record_version(self.metadata_version)

    def _check(self, record: PartitionChangeRecord) -> None:
        """Asserts that the leader and all members of the ISR are replicas of the partition."""
        replicas = set(self.target_replicas)
        isr = self.target_isr if record.isr is None else record.isr
        assert set(isr) <= replicas, f"ISR {isr} is not within {self.target_replicas}"
        assert record.leader < 0 or record.leader in replicas, f"leader {record.leader} of {self.target_replicas}"

    def _complete_reassignment(self) -> None:
        """Completes the reassignment, if one is in progress and its new replicas can replace the removed ones.

        The new replicas are those of the assignment without the replicas to be removed. All replicas to be added must
        be in the ISR, and at least one of the new replicas. If fewer replicas are added than removed, all new replicas
        must be in the ISR. If one of these conditions is not met, nothing changes.
        """
        if not self.target_removing and not self.target_adding:
            return
        isr = _without(self.target_isr, self.target_removing)
        replicas = _without(self.target_replicas, self.target_removing)
        if self.target_removing and not (isr and replicas):
            return
        if not set(self.target_adding) <= set(isr):
            return
        if len(self.target_adding) < len(self.target_removing) and not set(replicas) <= set(isr):
            return
        self.target_isr, self.target_replicas = isr, replicas
        self.target_removing = self.target_adding = ()

    def _update_target_elr(self) -> None:
        """Sets `target_elr`: the replicas outside of `target_isr` that can still be elected, in ascending order as in
        Kafka.

        The result is empty if `target_isr` has at least `min_isr` members. A replica that a reassignment removes is not
        included, although Kafka 4.3 includes it. This replica deletes its log; if a later reassignment added it again,
        it could be elected without having the records.
        """
        if not self.elr_enabled:
            return
        if len(self.target_isr) >= self.min_isr:
            self.target_elr = ()
            return
        candidates = {*self.target_elr, *self.partition.isr}.intersection(self.target_replicas)
        candidates.difference_update(self.target_isr, self.unclean_shutdown_replicas)
        self.target_elr = tuple(sorted(candidates))

    def _elect(self, record: PartitionChangeRecord) -> None:
        elected = self.elect_leader()
        if elected.leader == self.partition.leader:
            return
        if elected.leader in self.target_elr:
            self.target_isr = (elected.leader,)
            self.target_elr = _without(self.target_elr, self.target_isr)
        record.leader = elected.leader
        if elected.unclean:
            record.isr = [elected.leader]
            if self.partition.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING

    def elect_leader(self) -> Elected:
        """Elects a leader from the target replicas and the target ISR.

        The leader is NO_LEADER if no replica is eligible.
        """
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
                if self.is_acceptable(replica):
                    return Elected(replica, True)
        return Elected(NO_LEADER, False)

    def _is_electable(self, replica: int) -> bool:
        is_complete = replica in self.target_isr if self.target_isr else replica in self.target_elr
        return is_complete and self.is_acceptable(replica)

    def _last_known_leader(self) -> int:
        """Returns the last known leader of the partition if it may be elected, otherwise NO_LEADER.

        It may be elected if it is acceptable as leader, and the ISR and the eligible leader replicas (KIP-966) are
        empty. They are empty after all their brokers have stopped uncleanly.
        """
        if not self.elr_enabled or self.target_elr or self.target_isr or len(self.partition.last_known_elr) != 1:
            return NO_LEADER
        leader = self.partition.last_known_elr[0]
        return leader if leader in self.target_replicas and self.is_acceptable(leader) else NO_LEADER

    def _removes_replicas(self) -> bool:
        before = self.partition.replicas
        return self.target_replicas is not before and not set(before) <= set(self.target_replicas)

    def _set_elr(self, record: PartitionChangeRecord) -> None:
        is_unclean = record.isr is not None
        if is_unclean or not self.elr_enabled:
            self.target_elr = ()
        if self.target_elr != self.partition.elr:
            record.eligible_leader_replicas = list(self.target_elr)

    def _raise_epoch_after_shrink(self, record: PartitionChangeRecord) -> None:
        """Increases the leader epoch of `record`, with the same leader, if the ISR loses a member.

        Only an old metadata.version requires this; for a newer one nothing changes.
        """
        if record.leader != NO_LEADER_CHANGE or record.isr is None:
            return
        if not levels.requires_leader_epoch_bump_on_isr_shrink(self.metadata_version):
            return
        if not set(self.partition.isr) <= set(record.isr):
            record.leader = self.partition.leader

    def _update_last_known_leader(self, record: PartitionChangeRecord) -> None:
        """Stores the last known leader in `record` if the partition loses its leader.

        Removes the last known leader if the partition gets a leader.
        """
        if not self.elr_enabled:
            return
        known = self.partition.last_known_elr
        if record.leader == NO_LEADER and not known and self.partition.leader != NO_LEADER:
            record.last_known_elr = [self.partition.leader]
        elif record.leader >= 0 and known:
            record.last_known_elr = []

    def _set_assignment(self, record: PartitionChangeRecord) -> None:
        partition = self.partition
        if self.target_replicas is partition.replicas and not self.target_directories:
            return  # Neither replicas nor directories change, which is the case for most partitions of a broker.
        if self.target_replicas != partition.replicas:
            record.replicas = list(self.target_replicas)
        if levels.supports_directory_assignment(self.metadata_version):
            known = dict(zip(partition.replicas, partition.directories, strict=True)) | self.target_directories
            directories = tuple(
                known[replica] if replica in known else self.default_directory(replica)
                for replica in self.target_replicas
            )
            if directories != partition.directories:
                record.directories = list(directories)


def _without(replicas: Iterable[int], excluded: Iterable[int]) -> tuple[int, ...]:
    removed = set(excluded)
    return tuple(replica for replica in replicas if replica not in removed)


def _changes_anything(record: PartitionChangeRecord) -> bool:
    return not (
        record.isr is None
        and record.leader == NO_LEADER_CHANGE
        and record.replicas is None
        and record.directories is None
        and record.removing_replicas is None
        and record.adding_replicas is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
        and record.leader_recovery_state < RECOVERED
    )
