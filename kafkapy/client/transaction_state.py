"""The state of a transactional producer as its sender sees it: the phase, and the partitions of the transaction."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from enum import Enum, auto
from typing import Any

from kafkapy._core.client.record_accumulator import PartitionQueue, ProducerBatch, RecordAccumulator
from kafkapy.client.coordinator import TRANSACTION, Coordinator
from kafkapy.client.errors import TransactionError
from kafkapy.client.network import NEVER, Network
from kafkapy.client.producer_id import ProducerIdSource
from kafkapy.client.sequences import ProducerIdentity, sequences_of
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kafkapy.types import TopicPartition

# How often the sender checks again while the coordinator or a response is awaited.
CHECK_INTERVAL_MS = 20
# From this level of transaction.version on, a partition is added to the transaction by the first write to it.
_IMPLICIT_ADD_LEVEL = 2
# The last version of Produce that relies on AddPartitionsToTxn.
_LAST_EXPLICIT_PRODUCE = 11
# Another producer uses the transactional id, or it must not be used: this producer cannot continue.
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
    """The phases of a transactional producer; the first, UNINITIALIZED, ends when `init_transactions` succeeds."""

    UNINITIALIZED = auto()
    READY = auto()
    OPEN = auto()
    ENDING = auto()
    PREPARED = auto()  # another process ends the transaction
    FAILED = auto()  # only `abort_transaction` is possible
    FATAL = auto()


class TransactionState(ProducerIdSource):
    """The phase of a producer's transaction, its partitions, and its first error.

    Called while `Network.lock`, the lock of the client's network loop, is held.

    AddPartitionsToTxn, which every broker supports, adds a partition before anything is written to the partition. With
    transaction.version 2 (KIP-890; `adds_implicitly` is then True) the first write to a partition adds it, without that
    request. The end of every transaction then increases the epoch, so that a late batch cannot become part of the next
    transaction.
    """

    def __init__(self, network: Network, accumulator: RecordAccumulator, transactional_id: str) -> None:
        super().__init__(network, accumulator, is_idempotent=True)
        self.transactional_id = transactional_id
        self.coordinator = Coordinator(network, transactional_id, TRANSACTION)
        self.phase = TransactionPhase.UNINITIALIZED
        self.failure: ApiError | None = None
        self.has_offsets = False
        self.needs_new_epoch = False
        self.adds_implicitly = False
        self.is_adding = False
        self._added: set[TopicPartition] = set()
        self._wanted: set[TopicPartition] = set()
        self._add_not_before_ms = 0

    @property
    def highest_produce_version(self) -> int | None:  # type: ignore[override]
        """The highest version of Produce that the sender may use; None allows every version."""
        return None if self.adds_implicitly else _LAST_EXPLICIT_PRODUCE

    @property
    def is_ending(self) -> bool:
        """Returns whether batches are sent without lingering because the transaction ends."""
        return self.phase is TransactionPhase.ENDING

    @property
    def is_empty(self) -> bool:
        """Returns True if no partition or offset was added at the coordinator, so that there is nothing to commit or
        abort.
        """
        return not self._added and not self.has_offsets

    def begin(self) -> None:
        """Starts a transaction without partitions and offsets."""
        self._update_level()
        self._added.clear()
        self._wanted.clear()
        self.has_offsets = False
        self.phase = TransactionPhase.OPEN

    def require(self, phase: TransactionPhase) -> None:
        """Raises the error with which the transaction has failed, or TransactionError if the present phase is not
        `phase`.
        """
        if self.failure is not None:
            raise self.failure
        if self.phase is not phase:
            raise TransactionError(
                f"TransactionalId {self.transactional_id}: {self.phase.name} where {phase.name} is required"
            )

    def reset(self) -> None:
        """Sets the phase READY, in which a transaction can begin, and forgets the last transaction's error."""
        self.failure = None
        self.needs_new_epoch = False
        self.phase = TransactionPhase.READY

    def take_over_identity(self, identity: ProducerIdentity) -> None:
        """Stores a new id or epoch; the sequences start at 0 again."""
        self.identity = identity
        for topic in self._accumulator.topics.values():
            for queue in topic.queues:
                sequences_of(queue).restart(identity, is_transactional=True)

    # Called by the sender

    def failure_of_batches(self) -> ApiError | None:
        """Returns the error with which all waiting batches fail; None if the transaction has not failed.

        Returns the same error until `reset`, which is called after the transaction was aborted.
        """
        return self.failure

    def run(self, monotonic_ms: int, in_flight: AbstractSet[ProducerBatch]) -> bool:
        """Sends AddPartitionsToTxn for the partitions that wait to be added to the transaction.

        Returns False if no batch may be sent: no transaction is open or ending, or the search for the coordinator has
        failed. `in_flight` has no effect.
        """
        if self.phase not in (TransactionPhase.OPEN, TransactionPhase.ENDING):
            return False
        if self._wanted and not self.is_adding and monotonic_ms >= self._add_not_before_ms:
            try:
                node_id = self.coordinator.node(monotonic_ms)
            except ApiError as error:
                self.on_error(error)
                return False
            if node_id is not None:
                self._add(node_id)
        return True

    def next_ms(self, monotonic_ms: int) -> int:
        """Returns the monotonic time (ms) at which to call `run` again for partitions that could not be added yet.

        Returns NEVER if no partition waits, or the request that adds the partitions is in flight.
        """
        if not self._wanted or self.is_adding:
            return NEVER
        retry_ms = min(self.coordinator.next_attempt_ms(monotonic_ms), monotonic_ms + CHECK_INTERVAL_MS)
        return max(self._add_not_before_ms, retry_ms)

    def may_send_to(self, queue: PartitionQueue) -> bool:
        """Returns whether a partition belongs to the transaction; otherwise the next `run` adds it."""
        topic_partition = TopicPartition(queue.topic, queue.partition)
        if topic_partition in self._added:
            return True
        if self.adds_implicitly:
            self._added.add(topic_partition)
            return True
        self._wanted.add(topic_partition)
        return False

    def on_sequence_given_up(self, batch: ProducerBatch, *, is_refused: bool = False) -> None:
        """Records that a batch with a sequence has failed and is not sent again.

        The brokers may lack its sequence, so the end of the transaction increases the epoch, with which sequences
        restart.
        """
        self.needs_new_epoch = True

    def on_error(self, error: ApiError) -> None:
        """Handles an error that is not retried.

        An error in FATAL, such as PRODUCER_FENCED, makes the producer unusable for good. Any other error fails the
        transaction in progress, if there is one. From then on `send` raises the error.
        """
        self._accumulator.takes_plain_records = False
        if error.error in FATAL:
            self.phase = TransactionPhase.FATAL
        elif self.phase in (TransactionPhase.OPEN, TransactionPhase.ENDING):
            self.phase = TransactionPhase.FAILED
            self.needs_new_epoch = self.needs_new_epoch or error.error is Error.INVALID_PRODUCER_EPOCH
        if self.failure is None:
            self.failure = error

    def _update_level(self) -> None:
        """Reads the cluster's transaction.version, which may have changed since the last transaction."""
        node_id = self.coordinator.node(self._network.clock.monotonic_ms())
        level = None if node_id is None else self._network.feature_level(node_id, "transaction.version")
        if level is not None:
            self.adds_implicitly = level >= _IMPLICIT_ADD_LEVEL

    def _add(self, node_id: int) -> None:
        self.is_adding = True
        requested = sorted(self._wanted)

        def build(version: int) -> AddPartitionsToTxnRequest:
            topics: dict[str, list[int]] = {}
            for topic_partition in requested:
                topics.setdefault(topic_partition.topic, []).append(topic_partition.partition)
            return AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.identity.producer_id,
                v3_and_below_producer_epoch=self.identity.epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=partitions)
                    for name, partitions in topics.items()
                ],
            )

        def on_response(response: AddPartitionsToTxnResponse | None, version: int, error: Exception | None) -> None:
            self.is_adding = False
            code = first_error(response)
            if code is Error.NONE:
                self._added.update(requested)
                self._wanted.difference_update(requested)
            elif code.retriable or code is Error.CONCURRENT_TRANSACTIONS or code is Error.NETWORK_EXCEPTION:
                self.coordinator.on_error(code)
                pause_ms = self._network.retry_backoff.pause_ms(0)
                self._add_not_before_ms = self._network.clock.monotonic_ms() + pause_ms
            else:
                self.on_error(ApiError(Error.PRODUCER_FENCED if code is Error.INVALID_PRODUCER_EPOCH else code))

        self._network.submit(node_id, ApiKey.ADD_PARTITIONS_TO_TXN, build, on_response)


def first_error(response: Any) -> Error:
    """Returns the first error of a transactional response, at the top level or of a partition; NONE if there is none.

    If `response` is None, because none has arrived, returns NETWORK_EXCEPTION.
    """
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
