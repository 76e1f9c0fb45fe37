"""The transactional methods of a producer: requests to the transaction coordinator (KIP-98, KIP-360, KIP-890)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafkapy.client.configuration import ClientConfig
from kafkapy.client.coordinator import Coordinator, GroupMetadata, OffsetAndMetadata
from kafkapy.client.coordinator_request import request_until_done
from kafkapy.client.errors import RequestTimedOut, TransactionAborted, TransactionError
from kafkapy.client.network import Network
from kafkapy.client.prepared_transaction import PreparedTransaction
from kafkapy.client.sender import Sender
from kafkapy.client.sequences import ProducerIdentity
from kafkapy.client.transaction_state import TransactionPhase, TransactionState, first_error
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkapy.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkapy.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kafkapy.types import TopicPartition

# The last versions that do not rely on transaction.version 2.
_LAST_EXPLICIT_OFFSET_COMMIT, _LAST_END_TXN_WITHOUT_EPOCH = 4, 4


__all__ = ["TransactionError", "Transactions"]


class Transactions:
    """Begins and ends the transactions of one producer.

    Called by the application's thread, which must not hold `Network.lock`, the lock of the client's network loop.
    Methods with `timeout_s` block until the coordinator has responded, and raise RequestTimedOut after `timeout_s`
    seconds. Methods raise ApiError if the transaction or the producer has failed, and TransactionError in the wrong
    phase.
    """

    def __init__(self, network: Network, state: TransactionState, sender: Sender, config: ClientConfig) -> None:
        self._network = network
        self._state = state
        self._sender = sender
        self._config = config
        self._group: Coordinator | None = None  # of the group whose offsets were sent last

    @property
    def can_abort(self) -> bool:
        """Returns whether a transaction is open or has failed."""
        return self._state.phase in (TransactionPhase.OPEN, TransactionPhase.FAILED)

    @property
    def failure(self) -> ApiError | None:
        """The error with which the transaction, or the whole producer, has failed; None if it has not."""
        return self._state.failure

    def check_open(self) -> None:
        """Raises the error that the transaction failed with, or TransactionError if no transaction is open."""
        self._state.require(TransactionPhase.OPEN)

    def initialize(self, timeout_s: float) -> None:
        """Takes over the transactional id. This fences the producer that used it before, and aborts its open
        transaction.
        """
        self._state.require(TransactionPhase.UNINITIALIZED)
        self._request_identity(timeout_s, ProducerIdentity())
        self._state.phase = TransactionPhase.READY

    def begin(self) -> None:
        """Begins a transaction. Only changes the producer's state, and sends no request."""
        self._state.require(TransactionPhase.READY)
        with self._network.lock:
            self._state.begin()

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata, timeout_s: float
    ) -> None:
        """Commits a group's offsets as part of the transaction; does nothing if there are none."""
        state = self._state
        state.require(TransactionPhase.OPEN)
        if not offsets:
            return

        def add(version: int) -> AddOffsetsToTxnRequest:
            return AddOffsetsToTxnRequest(
                transactional_id=state.transactional_id,
                producer_id=state.identity.producer_id,
                producer_epoch=state.identity.epoch,
                group_id=group.group_id,
            )

        if not state.adds_implicitly:
            self._request(state.coordinator, ApiKey.ADD_OFFSETS_TO_TXN, add, timeout_s, "the group was added")
        state.has_offsets = True
        self._request(
            self._coordinator_of(group.group_id),
            ApiKey.TXN_OFFSET_COMMIT,
            self._offset_commit(offsets, group),
            timeout_s,
            "the offsets were written",
            highest=None if state.adds_implicitly else _LAST_EXPLICIT_OFFSET_COMMIT,
        )

    def commit(self, timeout_s: float) -> None:
        """Waits until all records are written and commits the transaction; raises the error that a record has failed
        with.
        """
        # In phase ENDING an earlier commit has timed out and is repeated.
        if self._state.phase is not TransactionPhase.ENDING:
            self._state.require(TransactionPhase.OPEN)
        self._end(True, timeout_s)

    def prepare(self, timeout_s: float) -> PreparedTransaction | None:
        """Writes all records and leaves the transaction open for another process to end.

        Returns None if the transaction is empty. Raises the error that a record has failed with. Afterwards the
        producer can only be closed.
        """
        state = self._state
        state.require(TransactionPhase.OPEN)
        with self._network.lock:
            state.phase = TransactionPhase.ENDING
        self._wait_for_records(lambda: self._sender.is_idle or state.failure is not None, timeout_s)
        if state.failure is not None:
            raise state.failure
        with self._network.lock:
            state.phase = TransactionPhase.PREPARED
        if state.is_empty:
            return None
        return PreparedTransaction(state.transactional_id, state.identity.producer_id, state.identity.epoch)

    def abort(self, timeout_s: float) -> None:
        """Aborts the transaction; records that have not been sent yet fail with TransactionAborted."""
        if self._state.phase is not TransactionPhase.FAILED:
            self._state.require(TransactionPhase.OPEN)
        self._fail_unsent()
        self._end(False, timeout_s)

    def _coordinator_of(self, group_id: str) -> Coordinator:
        """Returns the coordinator of a group; makes a new Coordinator, which looks up the broker, if it is needed.

        This is the case at the first call, for another group than before, and after a lookup that has failed for good.
        """
        if self._group is None or self._group.key != group_id or self._group.fatal is not None:
            self._group = Coordinator(self._network, group_id)
        return self._group

    def _fail_unsent(self) -> None:
        with self._network.lock:
            self._sender.fail_all(TransactionAborted())

    def _wait_for_records(self, is_settled: Callable[[], bool], timeout_s: float) -> None:
        if not self._network.wait_until(is_settled, timeout_s):
            raise self._network.timed_out(
                f"Timeout of {timeout_s} s expired before the transaction's records were written"
            )

    def _end(self, committed: bool, timeout_s: float) -> None:
        state = self._state
        with self._network.lock:
            if committed or state.phase is TransactionPhase.OPEN:
                state.phase = TransactionPhase.ENDING

        def is_settled() -> bool:
            if committed:
                return self._sender.is_idle or state.failure is not None
            return not self._sender.in_flight and not state.is_adding

        self._wait_for_records(is_settled, timeout_s)
        if committed and state.failure is not None:
            raise state.failure
        if not committed:
            self._fail_unsent()  # batches that were in flight and would be retried
        if not state.is_empty:
            ended: EndTxnResponse = self._request(
                state.coordinator,
                ApiKey.END_TXN,
                self._end_txn(committed),
                timeout_s,
                "the transaction ended",
                highest=None if state.adds_implicitly else _LAST_END_TXN_WITHOUT_EPOCH,
            )
            if ended.producer_id >= 0:  # the coordinator has increased the epoch
                self._take_over_identity(ProducerIdentity(ended.producer_id, ended.producer_epoch))
                state.needs_new_epoch = False
        if state.needs_new_epoch:
            self._request_identity(timeout_s, state.identity)
        with self._network.lock:
            state.reset()

    def _end_txn(self, committed: bool) -> Callable[[int], EndTxnRequest]:
        identity = self._state.identity
        return lambda version: EndTxnRequest(
            transactional_id=self._state.transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            committed=committed,
        )

    def _offset_commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata
    ) -> Callable[[int], TxnOffsetCommitRequest]:
        def build(version: int) -> TxnOffsetCommitRequest:
            topics: dict[str, list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]] = {}
            for topic_partition, committed in offsets.items():
                partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                    partition_index=topic_partition.partition,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch if version >= 2 else -1,
                    committed_metadata=committed.metadata,
                )
                topics.setdefault(topic_partition.topic, []).append(partition)
            request = TxnOffsetCommitRequest(
                transactional_id=self._state.transactional_id,
                group_id=group.group_id,
                producer_id=self._state.identity.producer_id,
                producer_epoch=self._state.identity.epoch,
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

    def _request_identity(self, timeout_s: float, current: ProducerIdentity) -> None:
        def build(version: int) -> InitProducerIdRequest:
            request = InitProducerIdRequest(
                transactional_id=self._state.transactional_id,
                transaction_timeout_ms=self._config["transaction.timeout.ms"],
            )
            if version >= 3:
                request.producer_id, request.producer_epoch = current
            return request

        response: InitProducerIdResponse = self._request(
            self._state.coordinator, ApiKey.INIT_PRODUCER_ID, build, timeout_s, "the producer id was assigned"
        )
        self._take_over_identity(ProducerIdentity(response.producer_id, response.producer_epoch))

    def _take_over_identity(self, identity: ProducerIdentity) -> None:
        with self._network.lock:
            self._state.take_over_identity(identity)

    def _request(
        self,
        coordinator: Coordinator,
        key: ApiKey,
        build: Callable[[int], Any],
        timeout_s: float,
        goal: str,
        *,
        highest: int | None = None,
    ) -> Any:
        """Sends the request `build(version)`, in version `highest` at most, and returns the coordinator's response.

        The request is repeated after retriable errors. Raises an error that is not retried, which also fails the
        transaction; or RequestTimedOut after `timeout_s` seconds, with `goal` in its message, after which the caller
        may repeat the request.
        """

        def send(node_id: int, on_result: Callable[[Any, Exception | None], None]) -> None:
            def on_response(response: Any, version: int, error: Exception | None) -> None:
                code = first_error(response)
                if response is None:
                    on_result(None, error)
                elif code is Error.INVALID_PRODUCER_EPOCH:
                    on_result(None, ApiError(Error.PRODUCER_FENCED))
                else:
                    on_result(response, ApiError(code) if code else None)

            self._network.submit(node_id, key, build, on_response, highest=highest)

        try:
            return request_until_done(self._network, coordinator, send, timeout_s, goal)
        except RequestTimedOut:
            raise  # the transaction has not failed: the application may try again
        except ApiError as error:
            with self._network.lock:
                self._state.on_error(error)
            raise
