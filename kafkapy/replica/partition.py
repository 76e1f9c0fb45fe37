"""One partition on this broker: its role, its in-sync replicas, its high watermark, and access to its log.

The high watermark of a leader is the smallest log end offset of the leader and of the replicas that are in the ISR or
about to enter it (`PartitionState.raise_high_watermark`). It is computed whenever one of these offsets may have grown:
on becoming leader, on an append, on a follower's fetch, when a replica leaves the ISR, and when the ISR is confirmed.
The data gate, the compiled code that serves usual requests, computes it too: after its own appends, and after the
fetches of followers that it serves.

A change of the ISR is proposed to the controller (`_propose_isr`) and takes effect with its result (`_on_isr_result`).
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterable

from kafkapy._core.broker_state.partition_state import PartitionState
from kafkapy._core.broker_state.quota_sensor import QuotaSensor
from kafkapy._core.bytes.record_batch import BatchSummary
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.internal_topics import INTERNAL_TOPICS
from kafkapy.metadata.topics_image import NO_LEADER, RECOVERED, PartitionImage
from kafkapy.replica.alter_partition import AlterPartitionResult, IsrChange
from kafkapy.replica.fetch import FetchIsolation, FetchParams, FetchPartition, FetchResult
from kafkapy.replica.isr_state import IsrState
from kafkapy.replica.remote_replica import RemoteReplica
from kafkapy.replica.replica_context import NO_BROKER_EPOCH, ReplicaContext
from kafkapy.storage.log import Log
from kafkapy.storage.log_results import AppendInfo, FetchData
from kafkapy.storage.transaction_index import AbortedTransaction
from kafkapy.types import OffsetAndEpoch, TopicPartition

logger = logging.getLogger("kafka.cluster.Partition")

NO_EPOCH = -1
ALL_REPLICAS = -1
RETRY_MS = 500
# The controller's state does not permit the change: this broker's state is outdated, and newer metadata will arrive.
_WAIT_FOR_METADATA = frozenset(
    {
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.FENCED_LEADER_EPOCH,
        Error.INVALID_UPDATE_VERSION,
        Error.INVALID_REQUEST,
        Error.NEW_LEADER_ELECTED,
    }
)
# The controller refuses the proposal itself: the ISR that was confirmed last applies again.
_GIVE_UP = frozenset({Error.OPERATION_NOT_ATTEMPTED, Error.INELIGIBLE_REPLICA})


class Partition(PartitionState):
    """Owns the leader and follower state of one replica; its log belongs to the log manager.

    Used only by the thread that owns it. Invariants: as leader log_start_offset <= high_watermark <= log_end_offset;
    epochs do not decrease; a leader never proposes an ISR without itself; `remote_replicas` is empty unless this
    broker leads; the ISR sizes in the base class agree with `isr_state`.
    """

    __slots__ = (
        "_context",
        "_image",
        "follower_throttle",
        "isr_state",
        "leader_id",
        "leader_recovery_state",
        "partition_epoch",
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
        self.replica_lag_max_ms = context.replica_lag_max_ms
        self.is_for_clients = topic_partition.topic not in INTERNAL_TOPICS
        self.leader_recovery_state = RECOVERED
        self.follower_throttle: QuotaSensor | None = None  # while this broker follows; see replication_throttles
        self._image: PartitionImage | None = None  # the image that was applied last
        self.replicas: tuple[int, ...] = ()
        self.isr_state = IsrState.committed(frozenset())

    # -- role ----------------------------------------------------------------------------------------------------

    def make_leader(self, image: PartitionImage, monotonic_ms: int) -> bool:
        """Makes this broker the leader according to `image`. Returns True if it did not lead before.

        Ignores an image with an older partition epoch, and an image that is equal to the one applied last. A different
        image with the current partition epoch is applied: the controller's response to a proposed ISR increases the
        partition epoch before the image with this change arrives. The same change may complete a reassignment, and only
        the image contains the new replicas.
        """
        if self._is_already_applied(image):
            return False
        is_new_leader = not self.is_leader
        is_new_epoch = image.leader_epoch > self.leader_epoch
        log = self.log
        if is_new_epoch or is_new_leader:
            self.leader_epoch_start_offset = log.log_end_offset
            # Before the first append, so that the end of an older epoch is known from now on.
            log.assign_epoch_start_offset(image.leader_epoch, log.log_end_offset)
        context = self._context
        followers = [replica for replica in image.replicas if replica != context.node_id]
        known = self.remote_replicas
        self.set_remote_replicas(
            {replica: known.get(replica) or RemoteReplica(replica, context.peer(replica)) for replica in followers}
        )
        if is_new_epoch or is_new_leader:
            for replica in self.remote_replicas.values():
                replica.reset(
                    monotonic_ms,
                    self.leader_epoch_start_offset,
                    is_new_leader=is_new_leader,
                    is_in_sync=replica.broker_id in image.isr,
                )
        self.is_leader = True
        keeps_proposal = self._agrees_with_proposal(image)
        self._set_isr_state(self.isr_state if keeps_proposal else IsrState.committed(frozenset(image.isr)))
        self._take_over(image)
        # The next proposal reports an election of an unclean leader as recovered, as in Kafka.
        self.leader_recovery_state = RECOVERED
        self.maybe_increment_high_watermark(monotonic_ms)
        self.is_gated = True
        # Even if the high watermark did not rise: fetches that wait compare the role and the leader epoch, too.
        self._complete_waiting(known.keys() - self.remote_replicas.keys())
        return is_new_leader

    def make_follower(self, image: PartitionImage) -> bool:
        """Makes this broker a follower, of a leader or of none. Returns True if the leader or its epoch changed.

        Ignores images with an older partition epoch.
        """
        if self._is_already_applied(image):
            return False
        has_changed = self.is_leader or image.leader_epoch != self.leader_epoch or image.leader != self.leader_id
        self.is_leader = False
        self.is_gated = True  # for the fetches of consumers
        former_followers = self.remote_replicas
        self.set_remote_replicas({})
        self._take_over(image)
        self._set_isr_state(IsrState.committed(frozenset()))
        self._complete_waiting(former_followers)
        return has_changed

    def _set_isr_state(self, state: IsrState) -> None:
        self.isr_state = state
        self.set_isr(len(state.isr), state.maximal_isr, state.is_in_flight)

    def _complete_waiting(self, former_followers: Iterable[int] = ()) -> None:
        """Tries to complete the requests that wait for this partition, in the purgatories and in the gate.

        The gate is the compiled code that serves usual requests. `former_followers` are the ids of brokers that fetched
        from this broker before; their fetches that wait are tried too.
        """
        delayed_operations = self._context.delayed_operations
        delayed_operations.complete_held(former_followers)
        delayed_operations.complete_and_mark(self, self.topic_partition)
        gate = self._context.gate
        if gate is not None:
            gate.complete_awaited(self)

    def _is_already_applied(self, image: PartitionImage) -> bool:
        """Returns True if `image` has an older partition epoch, or is equal to the image that was applied last."""
        return image.partition_epoch < self.partition_epoch or image == self._image

    def _agrees_with_proposal(self, image: PartitionImage) -> bool:
        """Returns whether the proposed ISR is still undecided after `image`.

        It is undecided if `image` has the epochs and the ISR from which the proposal was made. Until the controller
        responds, the high watermark has to wait for the replicas that the controller may add to the ISR.
        """
        state = self.isr_state
        return (
            self.is_leader
            and state.is_in_flight
            and (image.partition_epoch, image.leader_epoch) == (self.partition_epoch, self.leader_epoch)
            and frozenset(image.isr) == state.isr
            and state.proposed_isr.issubset(image.replicas)
        )

    def _take_over(self, image: PartitionImage) -> None:
        assert image.leader_epoch >= self.leader_epoch, "a newer partition epoch has an older leader epoch"
        self._image = image
        self.leader_id = image.leader
        self.leader_epoch = image.leader_epoch
        self.partition_epoch = image.partition_epoch
        self.leader_recovery_state = image.leader_recovery_state
        self.replicas = image.replicas

    def check_access(self, current_leader_epoch: int, *, only_leader: bool) -> None:
        """Raises ApiError unless a request may use this partition.

        `current_leader_epoch`, the epoch in the request, must be that of this partition, or -1, which is not compared.
        If `only_leader`, this broker must lead the partition.
        """
        if current_leader_epoch not in (NO_EPOCH, self.leader_epoch):
            if current_leader_epoch < self.leader_epoch:
                raise ApiError(Error.FENCED_LEADER_EPOCH)
            raise ApiError(Error.UNKNOWN_LEADER_EPOCH)
        if only_leader and not self.is_leader:
            raise ApiError(Error.NOT_LEADER_OR_FOLLOWER)

    # -- append --------------------------------------------------------------------------------------------------

    def append_records_to_leader(
        self,
        records: memoryview | bytearray,
        required_acks: int,
        *,
        from_client: bool,
        checked: list[BatchSummary] | ApiError | None = None,
    ) -> AppendInfo:
        """Appends records and increases the high watermark if possible.

        If `required_acks` is -1, the append is refused while the ISR is smaller than min.insync.replicas. `checked` is
        the result of `Log.check_records` for these records, or the error that it raised; it is None if
        `Log.check_records` was not called. Raises ApiError if the records are refused, or StorageError; after an error,
        none of the records is visible.
        """
        if not self.is_leader:
            raise ApiError(Error.NOT_LEADER_OR_FOLLOWER)
        if required_acks == ALL_REPLICAS and len(self.isr_state.isr) < self.effective_min_isr:
            raise ApiError(
                Error.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR : {len(self.isr_state.isr)} is insufficient to satisfy the min.isr "
                f"requirement of {self.effective_min_isr} for partition {self.topic_partition}",
            )
        info = self.log.append_as_leader(records, self.leader_epoch, from_client=from_client, checked=checked)
        assert info.last_offset < self.log.log_end_offset, "the append is not in the log"
        self.counters.count_append(info.record_count, len(records))
        self.maybe_increment_high_watermark(self._context.clock.monotonic_ms() if self.remote_replicas else 0)
        return info

    def check_enough_replicas_reach_offset(self, required_offset: int) -> tuple[bool, Error]:
        """Returns whether a produce request that ends before `required_offset` is complete, and the error to respond
        with.

        (False, Error.NONE) means that the request has to wait. The error is NOT_LEADER_OR_FOLLOWER if this broker does
        not lead, and NOT_ENOUGH_REPLICAS_AFTER_APPEND if the ISR has become too small.
        """
        if not self.is_leader:
            return False, Error.NOT_LEADER_OR_FOLLOWER
        if self.log.high_watermark < required_offset:
            return False, Error.NONE
        if len(self.isr_state.maximal_isr) < self.effective_min_isr:
            return True, Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return True, Error.NONE

    # -- high watermark and ISR ----------------------------------------------------------------------------------

    def maybe_increment_high_watermark(self, monotonic_ms: int) -> bool:
        """Increases the high watermark if possible, and returns whether it rose.

        If it did, completes the produce requests for it that wait in compiled code (the gate).
        """
        if not self.raise_high_watermark(monotonic_ms):
            return False
        log = self.log
        assert log.log_start_offset <= log.high_watermark <= log.log_end_offset, "the high watermark is outside the log"
        gate = self._context.gate
        if gate is not None:
            gate.complete_awaited(self)
        return True

    def maybe_shrink_isr(self, monotonic_ms: int) -> None:
        """Proposes an ISR without the followers that fell behind. The high watermark may rise when the controller
        confirms it."""
        state = self.isr_state
        if not self.is_leader or state.is_in_flight:
            return
        end_offset = self.log.log_end_offset
        lag_max_ms = self._context.replica_lag_max_ms
        out_of_sync = frozenset(
            replica.broker_id
            for replica in self.remote_replicas.values()
            if replica.broker_id in state.isr and not replica.is_caught_up(end_offset, monotonic_ms, lag_max_ms)
        )
        if out_of_sync:
            self._propose_isr(state.shrinking(out_of_sync))

    def _maybe_expand_isr(self, replica: RemoteReplica) -> None:
        if self.may_expand_isr(replica):
            self._propose_isr(self.isr_state.expanding(replica.broker_id))

    def _propose_isr(self, proposal: IsrState) -> None:
        """Proposes an ISR to the controller. Until the result arrives, the high watermark waits for the replicas in
        both the old and the proposed ISR."""
        assert self._context.node_id in proposal.proposed_isr, "a leader cannot leave the ISR by itself"
        self._set_isr_state(proposal)
        new_isr = tuple(replica for replica in self.replicas if replica in proposal.proposed_isr)
        change = IsrChange(
            self.topic_partition,
            self.topic_id,
            self.leader_epoch,
            self.partition_epoch,
            self.leader_recovery_state,
            new_isr,
            tuple(self._broker_epoch(replica) for replica in new_isr),
        )
        logger.info("%s: proposes the ISR %s; it is %s", self.topic_partition, list(new_isr), sorted(proposal.isr))
        self._context.alter_partition.submit(change, lambda result: self._on_isr_result(proposal, result))

    def _broker_epoch(self, replica_id: int) -> int:
        """Returns the broker epoch in the replica's last fetch, or -1 if it is unknown or the replica is this
        broker."""
        replica: RemoteReplica | None = self.remote_replicas.get(replica_id)
        if replica is None or replica.broker_epoch < 0:
            return NO_BROKER_EPOCH
        return replica.broker_epoch

    def _on_isr_result(self, proposal: IsrState, result: AlterPartitionResult) -> None:
        if self.isr_state is not proposal or not self.is_leader:
            return  # newer metadata arrived first and decided
        context = self._context
        if result.error is Error.NONE:
            if result.leader_epoch != self.leader_epoch or result.partition_epoch < self.partition_epoch:
                return  # the result belongs to an older leader or partition epoch
            before = self.isr_state.isr
            self._set_isr_state(IsrState.committed(frozenset(result.isr)))
            context.isr_shrinks += not before <= self.isr_state.isr
            context.isr_expands += not self.isr_state.isr <= before
            self.partition_epoch = result.partition_epoch
            if self.maybe_increment_high_watermark(context.clock.monotonic_ms()):
                self._complete_waiting()
            else:
                context.delayed_operations.complete_watching(self.topic_partition)
                if context.gate is not None:
                    context.gate.complete_awaited(self)
        elif result.error in _GIVE_UP:
            logger.info("%s: ISR change refused: %s", self.topic_partition, result.error.name)
            self._set_isr_state(proposal.last_committed())
        elif result.error not in _WAIT_FOR_METADATA:
            # Whether the controller applied the change is unknown, so that it has to be proposed again.
            logger.warning("%s: ISR change failed: %s; trying again", self.topic_partition, result.error.name)
            context.schedule(RETRY_MS, lambda: self._retry_isr(proposal))

    def _retry_isr(self, proposal: IsrState) -> None:
        if self.isr_state is proposal and self.is_leader:
            self._propose_isr(proposal)

    def low_watermark(self) -> int:
        """Returns the smallest log start offset among the live replicas of a partition that this broker leads."""
        low: int = self.log.log_start_offset
        for replica in self.remote_replicas.values():
            if self._context.is_alive(replica.broker_id):
                low = min(low, replica.log_start_offset)
        return low

    # -- read ----------------------------------------------------------------------------------------------------

    def end_offset(self, isolation: FetchIsolation) -> int:
        """Returns the exclusive limit up to which a fetch of this isolation may read."""
        if isolation is FetchIsolation.HIGH_WATERMARK:
            return self.log.high_watermark
        if isolation is FetchIsolation.LAST_STABLE_OFFSET:
            return self.log.last_stable_offset
        return self.log.log_end_offset

    def fetch_records(
        self, params: FetchParams, asked: FetchPartition, max_bytes: int, *, min_one_message: bool, update_state: bool
    ) -> tuple[FetchResult, FetchData | None]:
        """Reads at most `max_bytes` of records for a consumer or a follower. Returns the result for the response, and
        the data that were read.

        If the fetcher's log diverges from this log (KIP-595), reads nothing, and returns None instead of the data.

        `min_one_message` permits a first batch that is larger than `max_bytes`. If `update_state` is set, records the
        position of the follower. Raises ApiError if the read is refused, and StorageError if the log cannot be read.
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
        # The log end offset is read before the records: a later append must not keep a follower from being in sync.
        log_end_offset = log.log_end_offset
        data = log.read(
            asked.fetch_offset,
            max_bytes,
            max_offset=self.end_offset(params.isolation),
            min_one_message=min_one_message,
        )
        records = data.records
        if params.is_from_follower:
            if update_state:
                self._update_follower(replica, asked, log_end_offset, params.replica_epoch)
            if self._is_throttled(replica):
                records = b""
        aborted = None
        if params.isolation is FetchIsolation.LAST_STABLE_OFFSET:
            aborted = self._aborted_transactions(asked.fetch_offset, data)
        result = FetchResult(
            Error.NONE, log.high_watermark, log.last_stable_offset, log.log_start_offset, records, aborted
        )
        return result, data

    def is_follower_throttled(self, replica_id: int) -> bool:
        """Returns whether the follower gets no records now, because replication is throttled (KIP-73)."""
        replica = self.remote_replicas.get(replica_id)
        return replica is not None and self._is_throttled(replica)

    def _is_throttled(self, replica: RemoteReplica) -> bool:
        return self.leader_throttle is not None and self.is_withheld(replica, self._context.clock.monotonic_ms())

    def refer_to(self, preferred_read_replica: int, asked: FetchPartition) -> FetchResult:
        """Returns the result, without records, for a consumer that should read from the follower
        `preferred_read_replica`. Raises ApiError if the leader epoch of the request is not current."""
        self.check_access(asked.current_leader_epoch, only_leader=False)
        log = self.log
        return FetchResult(
            Error.NONE,
            log.high_watermark,
            log.last_stable_offset,
            log.log_start_offset,
            preferred_read_replica=preferred_read_replica,
        )

    def _aborted_transactions(self, fetch_offset: int, data: FetchData) -> list[AbortedTransaction]:
        """Returns the aborted transactions that overlap the records in `data`, which were read from `fetch_offset` on.

        All of these records are in one segment.
        """
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
        replica: RemoteReplica | None = self.remote_replicas.get(replica_id)
        if replica is None:
            # The follower may know a newer assignment than this broker; the error makes it try again.
            raise ApiError(
                Error.NOT_LEADER_OR_FOLLOWER if asked.current_leader_epoch == NO_EPOCH else Error.UNKNOWN_LEADER_EPOCH
            )
        return replica

    def _diverging_epoch(self, asked: FetchPartition) -> OffsetAndEpoch | None:
        """Returns None if the fetcher's log agrees with this log up to the fetch offset. If the logs diverge, returns
        the largest epoch of this log that is at most the last fetched epoch, with the offset at which it ends here.

        Raises ApiError OFFSET_OUT_OF_RANGE if the fetch offset is below the log start offset, or the last fetched epoch
        is unknown.
        """
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
        """Records the positions that a follower's fetch reports, and increases the high watermark or expands the ISR if
        they permit it. `leader_end_offset` is the end of this log at the time of the read. Raises ApiError
        NOT_LEADER_OR_FOLLOWER if `broker_epoch`, that of the fetch, is older than the follower's registration.
        """
        if replica.is_outdated(broker_epoch):
            raise ApiError(Error.NOT_LEADER_OR_FOLLOWER)
        monotonic_ms = self._context.clock.monotonic_ms()
        delayed_operations = self._context.delayed_operations
        # The low watermark needs a scan of the replicas, which is done only if a request waits for it.
        old_low_watermark = self.low_watermark() if delayed_operations.delete_records.delayed_count else 0
        replica.record_fetch(asked.fetch_offset, asked.log_start_offset, leader_end_offset, monotonic_ms, broker_epoch)
        self._maybe_expand_isr(replica)
        has_risen = self.maybe_increment_high_watermark(monotonic_ms)
        if has_risen or (delayed_operations.delete_records.delayed_count and self.low_watermark() > old_low_watermark):
            delayed_operations.complete_all(self, self.topic_partition)

    def last_offset_for_leader_epoch(
        self, current_leader_epoch: int, leader_epoch: int, *, only_leader: bool
    ) -> OffsetAndEpoch:
        """Returns the largest epoch <= `leader_epoch` of the log with its end offset; see `Log.end_offset_for_epoch`.

        Raises ApiError if `current_leader_epoch` is neither -1 nor the partition's epoch, or if `only_leader` and this
        broker does not lead the partition.
        """
        self.check_access(current_leader_epoch, only_leader=only_leader)
        return self.log.end_offset_for_epoch(leader_epoch)

    # -- delete --------------------------------------------------------------------------------------------------

    def delete_records_on_leader(self, offset: int) -> int:
        """Moves the log start offset to `offset` (-1: the high watermark) and returns it. Raises ApiError if the offset
        is out of range, this broker does not lead, or the topic's cleanup.policy does not contain "delete"."""
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


FindPartition = Callable[[TopicPartition], Partition | Error]
