"""A transactional producer's side of the exchange with its coordinator (KIP-98, KIP-360)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any

from kafkapy._core.client.record_accumulator import PartitionQueue, RecordAccumulator
from kafkapy.client.configuration import ClientConfig
from kafkapy.client.coordinator import TRANSACTION, Coordinator, GroupMetadata, OffsetAndMetadata
from kafkapy.client.exchange import until_answered
from kafkapy.client.network import NEVER, Network
from kafkapy.client.prepared_transaction import PreparedTransaction
from kafkapy.client.producer_id import ProducerIdSource
from kafkapy.client.sequences import ProducerIdentity, sequences_of
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkapy.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kafkapy.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkapy.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kafkapy.types import TopicPartition

log = logging.getLogger("kafkapy.client")

LOOK_AGAIN_MS = 20
# From this transaction.version on what is sent adds itself to the transaction. The versions of APIs that rely on it
# come after these.
_ADDS_ITSELF_LEVEL = 2
_PRODUCE_BEFORE, _OFFSET_COMMIT_BEFORE, _END_TXN_BEFORE = 11, 4, 4
# Another producer has taken the transactional id over, or it may not be used: this one is of no use any more.
FATAL = frozenset(
    (
        Error.PRODUCER_FENCED,
        Error.INVALID_PRODUCER_ID_MAPPING,
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Error.CLUSTER_AUTHORIZATION_FAILED,
        Error.UNSUPPORTED_VERSION,
        Error.INVALID_TXN_STATE,
        Error.INVALID_TRANSACTION_TIMEOUT,
    )
)


class TransactionPhase(Enum):
    """Where the producer is between `init_transactions` and its next transaction."""

    UNINITIALIZED = auto()
    READY = auto()
    OPEN = auto()
    ENDING = auto()
    PREPARED = auto()  # another process ends it
    FAILED = auto()  # only an abort leads out
    FATAL = auto()


class TransactionError(RuntimeError):
    """A transactional method was called when it could not be."""


class Transactions(ProducerIdSource):
    """Owns the transaction's phase and partitions.  What a task calls has the network's seat; `initialize`, `begin`,
    `send_offsets`, `commit` and `abort` are called by the application's thread without it, and wait.

    Partitions and groups are added by requests of their own before anything goes to them, which every broker
    understands. If the cluster's transaction.version is 2 (KIP-890) what goes to them adds them, and the end of every
    transaction raises the epoch, so that nothing late can get into the next one.
    """

    def __init__(self, network: Network, accumulator: RecordAccumulator, config: ClientConfig) -> None:
        super().__init__(network, accumulator, is_idempotent=True)
        self._config = config
        self._transactional_id: str = config["transactional.id"]
        self._coordinator = Coordinator(network, self._transactional_id, TRANSACTION)
        self.phase = TransactionPhase.UNINITIALIZED
        self._failure: ApiError | None = None
        self._added: set[TopicPartition] = set()
        self._wanted: set[TopicPartition] = set()
        self._is_adding = False
        self._add_not_before_ms = 0
        self._has_offsets = False
        self._needs_new_epoch = False
        self._adds_itself = False

    # The sender's side

    @property
    def is_ending(self) -> bool:
        """Batches do not linger when the transaction ends."""
        return self.phase is TransactionPhase.ENDING

    def run(self, now_ms: int) -> bool:
        """Whether batches may be sent; adds the partitions that wait for it."""
        if self.phase not in (TransactionPhase.OPEN, TransactionPhase.ENDING):
            return False
        if self._wanted and not self._is_adding and now_ms >= self._add_not_before_ms:
            try:
                node_id = self._coordinator.node(now_ms)
            except ApiError as error:
                self.heed(error)
                return False
            if node_id is not None:
                self._add(node_id)
        return True

    @property
    def failure(self) -> ApiError | None:
        return self._failure

    def next_ms(self, now_ms: int) -> int:
        if not self._wanted or self._is_adding:
            return NEVER
        return max(self._add_not_before_ms, min(self._coordinator.next_attempt_ms(now_ms), now_ms + LOOK_AGAIN_MS))

    def may_send_to(self, queue: PartitionQueue) -> bool:
        where = TopicPartition(queue.topic, queue.partition)
        if where in self._added:
            return True
        if self._adds_itself:
            self._added.add(where)
            return True
        self._wanted.add(where)
        return False

    def lose_track(self) -> None:
        """A batch with a sequence was given up: after the abort the epoch is raised."""
        self._needs_new_epoch = True

    def heed(self, error: ApiError) -> None:
        """An error that was not retried ends the transaction, or the producer."""
        if error.error in FATAL:
            self.phase = TransactionPhase.FATAL
        elif self.phase in (TransactionPhase.OPEN, TransactionPhase.ENDING):
            self.phase = TransactionPhase.FAILED
            self._needs_new_epoch = self._needs_new_epoch or error.error is Error.INVALID_PRODUCER_EPOCH
        if self._failure is None:
            self._failure = error

    def _add(self, node_id: int) -> None:
        self._is_adding = True
        asked = sorted(self._wanted)

        def build(version: int) -> AddPartitionsToTxnRequest:
            topics: dict[str, list[int]] = {}
            for where in asked:
                topics.setdefault(where.topic, []).append(where.partition)
            return AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._transactional_id,
                v3_and_below_producer_id=self.identity.producer_id,
                v3_and_below_producer_epoch=self.identity.epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=partitions)
                    for name, partitions in topics.items()
                ],
            )

        def answered(response: AddPartitionsToTxnResponse | None, version: int, error: Exception | None) -> None:
            self._is_adding = False
            code = _first_error(response)
            if code is Error.NONE:
                self._added.update(asked)
                self._wanted.difference_update(asked)
            elif code.retriable or code is Error.CONCURRENT_TRANSACTIONS or code is Error.NETWORK_EXCEPTION:
                self._coordinator.heed(code)
                pause_ms = self._network.retry_backoff.pause_ms(0)
                self._add_not_before_ms = self._network.clock.monotonic_ms() + pause_ms
            else:
                self._give_up(ApiError(Error.PRODUCER_FENCED if code is Error.INVALID_PRODUCER_EPOCH else code))

        self._network.submit(node_id, ApiKey.ADD_PARTITIONS_TO_TXN, build, answered)

    def _give_up(self, error: ApiError) -> None:
        self.heed(error)
        if self.sender is not None:
            self.sender.fail_all(error)

    # The application's side

    def initialize(self, timeout_s: float) -> None:
        """Takes over the transactional id: whoever had it is fenced, and its open transaction aborted."""
        self._require(TransactionPhase.UNINITIALIZED)
        self._take_identity(timeout_s, ProducerIdentity())
        self.phase = TransactionPhase.READY

    def begin(self) -> None:
        self._require(TransactionPhase.READY)
        with self._network.seat:
            self._look_at_version()
            self._added.clear()
            self._wanted.clear()
            self._has_offsets = False
            self.phase = TransactionPhase.OPEN

    def _look_at_version(self) -> None:
        """Between two transactions the cluster may have got another transaction.version."""
        node_id = self._coordinator.node(self._network.clock.monotonic_ms())
        level = None if node_id is None else self._network.feature_level(node_id, "transaction.version")
        if level is not None:
            self._adds_itself = level >= _ADDS_ITSELF_LEVEL
        assert self.sender is not None
        self.sender.highest_version = None if self._adds_itself else _PRODUCE_BEFORE

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata, timeout_s: float
    ) -> None:
        """Commits a group's offsets with the transaction."""
        self._require(TransactionPhase.OPEN)
        if not offsets:
            return

        def add(version: int) -> AddOffsetsToTxnRequest:
            return AddOffsetsToTxnRequest(
                transactional_id=self._transactional_id,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.epoch,
                group_id=group.group_id,
            )

        if not self._adds_itself:
            self._exchange(self._coordinator, ApiKey.ADD_OFFSETS_TO_TXN, add, timeout_s, "the group was added")
        self._has_offsets = True
        self._exchange(
            Coordinator(self._network, group.group_id),
            ApiKey.TXN_OFFSET_COMMIT,
            self._offset_commit(offsets, group),
            timeout_s,
            "the offsets were written",
            highest=None if self._adds_itself else _OFFSET_COMMIT_BEFORE,
        )

    def commit(self, timeout_s: float) -> None:
        """Ends the transaction when all its records are written; raises what one of them failed with."""
        if self.phase is not TransactionPhase.ENDING:  # else a commit took too long and is asked for again
            self._require(TransactionPhase.OPEN)
        self._end(True, timeout_s)

    def prepare(self, timeout_s: float) -> PreparedTransaction | None:
        """Writes all records and leaves the transaction open for another process to end; None if there is nothing in
        it. Raises what a record failed with. The producer is of no more use then but to be closed."""
        self._require(TransactionPhase.OPEN)
        sender = self.sender
        assert sender is not None
        with self._network.seat:
            self.phase = TransactionPhase.ENDING
        if not self._network.wait_until(lambda: sender.is_idle or self._failure is not None, timeout_s):
            raise self._network.timed_out(
                f"Timeout of {timeout_s} s expired before the transaction's records were written"
            )
        if self._failure is not None:
            raise self._failure
        with self._network.seat:
            self.phase = TransactionPhase.PREPARED
        if not self._added and not self._has_offsets:
            return None
        return PreparedTransaction(self._transactional_id, self.identity.producer_id, self.identity.epoch)

    def abort(self, timeout_s: float) -> None:
        """Ends the transaction; records that have not left yet are given up."""
        if self.phase is not TransactionPhase.FAILED:
            self._require(TransactionPhase.OPEN)
        self._drop_waiting()
        self._end(False, timeout_s)

    def _drop_waiting(self) -> None:
        assert self.sender is not None
        with self._network.seat:
            self.sender.fail_all(ApiError(Error.TRANSACTION_ABORTABLE, "The transaction was aborted"))

    def _end(self, committed: bool, timeout_s: float) -> None:
        sender = self.sender
        assert sender is not None
        with self._network.seat:
            if committed or self.phase is TransactionPhase.OPEN:
                self.phase = TransactionPhase.ENDING

        def is_settled() -> bool:
            if committed:
                return sender.is_idle or self._failure is not None
            return not sender.in_flight and not self._is_adding

        if not self._network.wait_until(is_settled, timeout_s):
            raise self._network.timed_out(
                f"Timeout of {timeout_s} s expired before the transaction's records were written"
            )
        if committed and self._failure is not None:
            raise self._failure
        if not committed:
            self._drop_waiting()  # what was on its way and would have been sent again
        if self._added or self._has_offsets:
            ended: EndTxnResponse = self._exchange(
                self._coordinator,
                ApiKey.END_TXN,
                self._end_txn(committed),
                timeout_s,
                "the transaction ended",
                highest=None if self._adds_itself else _END_TXN_BEFORE,
            )
            if ended.producer_id >= 0:  # the epoch is raised
                self._take_over_identity(ProducerIdentity(ended.producer_id, ended.producer_epoch))
                self._needs_new_epoch = False
        if self._needs_new_epoch:
            self._take_identity(timeout_s, self.identity)
        with self._network.seat:
            self._failure = None
            self._needs_new_epoch = False
            self.phase = TransactionPhase.READY

    def _end_txn(self, committed: bool) -> Callable[[int], EndTxnRequest]:
        return lambda version: EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            committed=committed,
        )

    def _offset_commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata
    ) -> Callable[[int], TxnOffsetCommitRequest]:
        def build(version: int) -> TxnOffsetCommitRequest:
            topics: dict[str, list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]] = {}
            for where, committed in offsets.items():
                partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                    partition_index=where.partition,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch if version >= 2 else -1,
                    committed_metadata=committed.metadata,
                )
                topics.setdefault(where.topic, []).append(partition)
            request = TxnOffsetCommitRequest(
                transactional_id=self._transactional_id,
                group_id=group.group_id,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.epoch,
                topics=[
                    TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=name, partitions=partitions)
                    for name, partitions in topics.items()
                ],
            )
            if version >= 3:
                request.generation_id, request.member_id = group.member.generation, group.member.member_id
                request.group_instance_id = group.member.instance_id
            return request

        return build

    def _take_identity(self, timeout_s: float, current: ProducerIdentity) -> None:
        def build(version: int) -> InitProducerIdRequest:
            request = InitProducerIdRequest(
                transactional_id=self._transactional_id,
                transaction_timeout_ms=self._config["transaction.timeout.ms"],
            )
            if version >= 3:
                request.producer_id, request.producer_epoch = current
            return request

        response: InitProducerIdResponse = self._exchange(
            self._coordinator, ApiKey.INIT_PRODUCER_ID, build, timeout_s, "the producer id was given"
        )
        self._take_over_identity(ProducerIdentity(response.producer_id, response.producer_epoch))

    def _take_over_identity(self, identity: ProducerIdentity) -> None:
        """A new epoch begins."""
        with self._network.seat:
            self.identity = identity
            for topic in self._accumulator.topics.values():
                for queue in topic.queues:
                    sequences_of(queue).restart(self.identity, True)

    def _exchange(
        self,
        coordinator: Coordinator,
        key: ApiKey,
        build: Callable[[int], Any],
        timeout_s: float,
        what: str,
        *,
        highest: int | None = None,
    ) -> Any:
        """Asks a coordinator; an error that does not pass is heeded and raised."""

        def ask(node_id: int, answered: Callable[[Any, Exception | None], None]) -> None:
            def done(response: Any, version: int, error: Exception | None) -> None:
                code = _first_error(response)
                if response is None:
                    answered(None, error)
                elif code is Error.INVALID_PRODUCER_EPOCH:
                    answered(None, ApiError(Error.PRODUCER_FENCED))
                else:
                    answered(response, ApiError(code) if code else None)

            self._network.submit(node_id, key, build, done, highest=highest)

        try:
            return until_answered(self._network, coordinator, ask, timeout_s, what)
        except ApiError as error:
            with self._network.seat:
                self.heed(error)
            raise

    @property
    def can_abort(self) -> bool:
        """Whether a transaction is open, or has failed."""
        return self.phase in (TransactionPhase.OPEN, TransactionPhase.FAILED)

    def check_open(self) -> None:
        """TransactionError unless records may be sent."""
        self._require(TransactionPhase.OPEN)

    def _require(self, phase: TransactionPhase) -> None:
        if self._failure is not None:
            raise self._failure
        if self.phase is not phase:
            raise TransactionError(
                f"TransactionalId {self._transactional_id}: {self.phase.name} where {phase.name} is required"
            )


def _first_error(response: Any) -> Error:
    """The first error of an answer, wherever it stands."""
    if response is None:
        return Error.NETWORK_EXCEPTION
    if getattr(response, "error_code", 0):
        return Error.of(response.error_code)
    for topic in getattr(response, "results_by_topic_v3_and_below", None) or getattr(response, "topics", None) or ():
        for partition in getattr(topic, "results_by_partition", None) or getattr(topic, "partitions", None) or ():
            code = getattr(partition, "partition_error_code", 0) or getattr(partition, "error_code", 0)
            if code and code != Error.OPERATION_NOT_ATTEMPTED:
                return Error.of(code)
    return Error.NONE
