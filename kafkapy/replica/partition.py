"""One partition on this broker: its role, its in-sync replicas, its high watermark, and the way to its log.

The high watermark of a leader is the smallest log end offset among itself and the replicas that are in the ISR or about
to enter it. It is tried whenever one of those may have grown: on becoming leader, on an append, on a follower's fetch,
when a replica leaves the ISR, when the ISR is confirmed.
"""

from __future__ import annotations

from bisect import bisect_right

from kafkapy._core.broker_state.partition_state import PartitionState
from kafkapy._core.bytes.record_batch import BatchSummary
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.internal_topics import INTERNAL_TOPICS
from kafkapy.metadata.topics_image import NO_LEADER, RECOVERED, PartitionImage
from kafkapy.replica.fetch import FetchIsolation, FetchParams, FetchPartition, FetchResult
from kafkapy.replica.isr_state import IsrState
from kafkapy.replica.remote_replica import RemoteReplica
from kafkapy.replica.replica_context import ReplicaContext
from kafkapy.storage.log import Log
from kafkapy.storage.log_results import AppendInfo, FetchData
from kafkapy.storage.transaction_index import AbortedTransaction
from kafkapy.types import OffsetAndEpoch, TopicPartition

NO_EPOCH = -1
ALL_REPLICAS = -1


class Partition(PartitionState):
    """Owns the leader and follower state of one replica; its log belongs to the log manager. Owner thread only.

    Invariants: as leader log_start_offset <= high_watermark <= log_end_offset; epochs only grow;
    `remote_replicas` is empty unless this broker leads.
    """

    __slots__ = (
        "_context",
        "isr_state",
        "leader_epoch_start_offset",
        "leader_id",
        "leader_recovery_state",
        "min_insync_replicas",
        "partition_epoch",
        "remote_replicas",
        "replicas",
        "topic_id",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, topic_id: bytes, log: Log, context: ReplicaContext) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self._context = context
        self.is_leader = False
        self.leader_id = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.leader_epoch_start_offset = 0
        self.leader_recovery_state = RECOVERED
        self.replicas: tuple[int, ...] = ()
        self.remote_replicas: dict[int, RemoteReplica] = {}
        self.isr_state = IsrState.committed(frozenset())
        self.min_insync_replicas = 1

    # -- role ----------------------------------------------------------------------------------------------------

    def make_leader(self, image: PartitionImage, now_ms: int) -> bool:
        """Leads from now on, as `image` says. True if it did not lead before. Old news changes nothing."""
        if image.partition_epoch <= self.partition_epoch:
            return False
        is_new_leader = not self.is_leader
        is_new_epoch = image.leader_epoch > self.leader_epoch
        log = self.log
        if is_new_epoch or is_new_leader:
            self.leader_epoch_start_offset = log.log_end_offset
            # Before the first append: whoever asks where an older epoch ended must find this one behind it.
            log.assign_epoch_start_offset(image.leader_epoch, log.log_end_offset)
        followers = [replica for replica in image.replicas if replica != self._context.node_id]
        known = self.remote_replicas
        self.remote_replicas = {replica: known.get(replica) or RemoteReplica(replica) for replica in followers}
        if is_new_epoch or is_new_leader:
            for replica in self.remote_replicas.values():
                replica.reset(
                    now_ms,
                    self.leader_epoch_start_offset,
                    is_new_leader=is_new_leader,
                    is_in_sync=replica.broker_id in image.isr,
                )
        self.is_leader = True
        self._take_over(image)
        self.isr_state = IsrState.committed(frozenset(image.isr))
        self.maybe_increment_high_watermark(now_ms)
        self.is_gated = self._may_be_gated()
        # Also when it did not rise: the size of the ISR alone can settle a produce.
        self._context.delayed_operations.complete_all(self.topic_partition)
        return is_new_leader

    def make_follower(self, image: PartitionImage) -> bool:
        """Follows, or waits for a leader, from now on. True if the leader or its epoch changed. As make_leader."""
        if image.partition_epoch <= self.partition_epoch:
            return False
        has_changed = self.is_leader or image.leader_epoch != self.leader_epoch or image.leader != self.leader_id
        self.is_leader = self.is_gated = False
        self.remote_replicas = {}
        self._take_over(image)
        self.isr_state = IsrState.committed(frozenset())
        self._context.delayed_operations.complete_all(self.topic_partition)
        return has_changed

    def _may_be_gated(self) -> bool:
        """Whether the data gate may serve it as leader: no other replica to wait for, and nothing reserved."""
        return (
            not self.remote_replicas
            and self._context.node_id in self.isr_state.isr
            and self.topic_partition.topic not in INTERNAL_TOPICS
        )

    def _take_over(self, image: PartitionImage) -> None:
        self.leader_id = image.leader
        self.leader_epoch = image.leader_epoch
        self.partition_epoch = image.partition_epoch
        self.leader_recovery_state = image.leader_recovery_state
        self.replicas = image.replicas

    def check_access(self, current_leader_epoch: int, *, only_leader: bool) -> None:
        """ApiError if the caller's epoch (-1: none given) is not ours, or if only a leader will do and we follow."""
        if current_leader_epoch not in (NO_EPOCH, self.leader_epoch):
            if current_leader_epoch < self.leader_epoch:
                raise ApiError(Error.FENCED_LEADER_EPOCH)
            raise ApiError(Error.UNKNOWN_LEADER_EPOCH)
        if only_leader and not self.is_leader:
            raise ApiError(Error.NOT_LEADER_OR_FOLLOWER)

    # -- append --------------------------------------------------------------------------------------------------

    @property
    def effective_min_isr(self) -> int:
        """`min.insync.replicas`, but never more than there are replicas."""
        return min(self.min_insync_replicas, len(self.remote_replicas) + 1)

    @property
    def is_under_min_isr(self) -> bool:
        return self.is_leader and len(self.isr_state.isr) < self.effective_min_isr

    def append_records_to_leader(
        self,
        records: memoryview | bytearray,
        required_acks: int,
        *,
        from_client: bool,
        checked: list[BatchSummary] | ApiError | None = None,
    ) -> AppendInfo:
        """Appends and tries to raise the high watermark. ApiError, StorageError; nothing is written then."""
        if not self.is_leader:
            raise ApiError(Error.NOT_LEADER_OR_FOLLOWER)
        if required_acks == ALL_REPLICAS and len(self.isr_state.isr) < self.effective_min_isr:
            raise ApiError(
                Error.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR : {len(self.isr_state.isr)} is insufficient to satisfy the min.isr "
                f"requirement of {self.effective_min_isr} for partition {self.topic_partition}",
            )
        info = self.log.append_as_leader(records, self.leader_epoch, from_client=from_client, checked=checked)
        self.counters.count_append(info.record_count, len(records))
        self.maybe_increment_high_watermark(self._context.clock.monotonic_ms() if self.remote_replicas else 0)
        return info

    def check_enough_replicas_reach_offset(self, required_offset: int) -> tuple[bool, Error]:
        """Whether a produce that ends before `required_offset` is settled, and with which error."""
        if not self.is_leader:
            return False, Error.NOT_LEADER_OR_FOLLOWER
        if self.log.high_watermark < required_offset:
            return False, Error.NONE
        if len(self.isr_state.maximal_isr) < self.effective_min_isr:
            return True, Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return True, Error.NONE

    # -- high watermark and ISR ----------------------------------------------------------------------------------

    def maybe_increment_high_watermark(self, now_ms: int) -> bool:
        """True if it rose. It stands still while the ISR is smaller than `min.insync.replicas`."""
        log = self.log
        candidate = log.log_end_offset
        if self.remote_replicas:
            if self.is_under_min_isr:
                return False
            maximal_isr = self.isr_state.maximal_isr
            lag_max_ms = self._context.replica_lag_max_ms
            leader_end_offset = candidate
            for replica in self.remote_replicas.values():
                if replica.log_end_offset < candidate and (
                    replica.broker_id in maximal_isr
                    or (
                        # It is about to enter the ISR, where it must not lie below the high watermark.
                        replica.is_caught_up(leader_end_offset, now_ms, lag_max_ms)
                        and self._context.is_isr_eligible(replica.broker_id)
                    )
                ):
                    candidate = replica.log_end_offset
        if candidate <= log.high_watermark:
            return False
        log.high_watermark = candidate
        return True

    def maybe_shrink_isr(self, now_ms: int) -> None:
        """Proposes an ISR without the followers that fell behind; the high watermark moves when it is confirmed."""
        state = self.isr_state
        if not self.is_leader or state.is_in_flight:
            return
        end_offset = self.log.log_end_offset
        lag_max_ms = self._context.replica_lag_max_ms
        out_of_sync = frozenset(
            replica.broker_id
            for replica in self.remote_replicas.values()
            if replica.broker_id in state.isr and not replica.is_caught_up(end_offset, now_ms, lag_max_ms)
        )
        if out_of_sync:
            self._context.propose_isr(self, state.shrinking(out_of_sync))

    def _maybe_expand_isr(self, replica: RemoteReplica) -> None:
        state = self.isr_state
        if (
            not state.is_in_flight
            and replica.broker_id not in state.maximal_isr
            and replica.log_end_offset >= self.log.high_watermark
            and replica.log_end_offset >= self.leader_epoch_start_offset
            and self._context.is_isr_eligible(replica.broker_id)
        ):
            self._context.propose_isr(self, state.expanding(replica.broker_id))

    def low_watermark(self) -> int:
        """The smallest log start offset among the live replicas of a partition that is led here."""
        return min(
            [
                self.log.log_start_offset,
                *(
                    replica.log_start_offset
                    for replica in self.remote_replicas.values()
                    if self._context.is_alive(replica.broker_id)
                ),
            ]
        )

    # -- read ----------------------------------------------------------------------------------------------------

    def end_offset(self, isolation: FetchIsolation) -> int:
        """Exclusive limit of what a fetch of this isolation may read."""
        if isolation is FetchIsolation.HIGH_WATERMARK:
            return self.log.high_watermark
        if isolation is FetchIsolation.LAST_STABLE_OFFSET:
            return self.log.last_stable_offset
        return self.log.log_end_offset

    def fetch_records(
        self, params: FetchParams, asked: FetchPartition, max_bytes: int, *, min_one_message: bool, update_state: bool
    ) -> tuple[FetchResult, FetchData | None]:
        """Reads for a consumer or a follower; a follower's position is recorded (`update_state`).

        The data is None when the answer is a diverging epoch (KIP-595). ApiError.
        """
        self.check_access(asked.current_leader_epoch, only_leader=params.only_leader)
        log = self.log
        if params.is_from_follower:
            replica = self._follower(params.replica_id, asked)
        if asked.last_fetched_epoch != NO_EPOCH:
            diverging = self._diverging_epoch(asked)
            if diverging is not None:
                result = FetchResult(
                    Error.NONE, log.high_watermark, log.last_stable_offset, log.log_start_offset, b"", None, diverging
                )
                return result, None
        # Before the read: an append that follows must not keep a follower from coming into sync.
        log_end_offset = log.log_end_offset
        data = log.read(
            asked.fetch_offset,
            max_bytes,
            max_offset=self.end_offset(params.isolation),
            min_one_message=min_one_message,
        )
        if params.is_from_follower and update_state:
            self._update_follower(replica, asked, log_end_offset, params.replica_epoch)
        aborted = None
        if params.isolation is FetchIsolation.LAST_STABLE_OFFSET:
            aborted = self._aborted_transactions(asked.fetch_offset, data)
        result = FetchResult(
            Error.NONE, log.high_watermark, log.last_stable_offset, log.log_start_offset, data.records, aborted
        )
        return result, data

    def _aborted_transactions(self, fetch_offset: int, data: FetchData) -> list[AbortedTransaction]:
        """Those with records in what was read, which ends with the segment at the latest."""
        if not len(data.records):
            return []
        log = self.log
        base_offsets = log.segments.base_offsets
        following = bisect_right(base_offsets, data.offset_metadata.segment_base_offset)
        end_offset = log.last_stable_offset
        if following < len(base_offsets):
            end_offset = min(end_offset, base_offsets[following])
        return log.collect_aborted_transactions(fetch_offset, end_offset)

    def _follower(self, replica_id: int, asked: FetchPartition) -> RemoteReplica:
        replica = self.remote_replicas.get(replica_id)
        if replica is None:
            # The follower may know of a newer assignment than we do: it tries again.
            raise ApiError(
                Error.NOT_LEADER_OR_FOLLOWER if asked.current_leader_epoch == NO_EPOCH else Error.UNKNOWN_LEADER_EPOCH
            )
        return replica

    def _diverging_epoch(self, asked: FetchPartition) -> OffsetAndEpoch | None:
        """Where the fetcher's log parts from ours: the end of the largest common epoch; None if it does not."""
        end = self.log.end_offset_for_epoch(asked.last_fetched_epoch)
        if end.offset == -1 or end.epoch == -1:
            raise ApiError(
                Error.OFFSET_OUT_OF_RANGE,
                f"Could not determine the end offset of the last fetched epoch {asked.last_fetched_epoch}",
            )
        if asked.fetch_offset < self.log.log_start_offset:
            raise ApiError(Error.OFFSET_OUT_OF_RANGE)
        if end.epoch < asked.last_fetched_epoch or end.offset < asked.fetch_offset:
            return end
        return None

    def _update_follower(
        self, replica: RemoteReplica, asked: FetchPartition, leader_end_offset: int, broker_epoch: int
    ) -> None:
        now_ms = self._context.clock.monotonic_ms()
        delayed_operations = self._context.delayed_operations
        # The low watermark takes a scan of the replicas: only if somebody waits for it.
        old_low_watermark = self.low_watermark() if delayed_operations.delete_records.delayed_count else 0
        replica.record_fetch(asked.fetch_offset, asked.log_start_offset, leader_end_offset, now_ms, broker_epoch)
        self._maybe_expand_isr(replica)
        has_risen = self.maybe_increment_high_watermark(now_ms)
        if has_risen or (delayed_operations.delete_records.delayed_count and self.low_watermark() > old_low_watermark):
            delayed_operations.complete_all(self.topic_partition)

    def last_offset_for_leader_epoch(
        self, current_leader_epoch: int, leader_epoch: int, *, only_leader: bool
    ) -> OffsetAndEpoch:
        """The largest epoch <= `leader_epoch` in the log and its end offset, (-1, -1) if there is none. ApiError."""
        self.check_access(current_leader_epoch, only_leader=only_leader)
        return self.log.end_offset_for_epoch(leader_epoch)

    # -- delete --------------------------------------------------------------------------------------------------

    def delete_records_on_leader(self, offset: int) -> int:
        """Moves the log start offset to `offset` (-1: the high watermark), which it returns. ApiError."""
        if not self.is_leader:
            raise ApiError(Error.NOT_LEADER_OR_FOLLOWER)
        if not self.log.config.retention.delete:
            raise ApiError(
                Error.POLICY_VIOLATION,
                f"Records of partition {self.topic_partition} can not be deleted due to the configured policy",
            )
        target = self.log.high_watermark if offset == -1 else offset
        if not 0 <= target <= self.log.high_watermark:
            raise ApiError(
                Error.OFFSET_OUT_OF_RANGE,
                f"The offset {target} for partition {self.topic_partition} is not valid",
            )
        self.log.maybe_increment_log_start_offset(target)
        return target
