"""A producer's id and epoch: InitProducerId, and a new epoch after a batch was given up."""

from __future__ import annotations

import logging
from collections.abc import Set as AbstractSet

from kafkapy._core.client.record_accumulator import PartitionQueue, ProducerBatch, RecordAccumulator
from kafkapy.client.network import NEVER, Network
from kafkapy.client.sequences import NO_IDENTITY, ProducerIdentity, sequences_of
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

log = logging.getLogger("kafkapy.client")


class ProducerIdSource:
    """The producer id and epoch of a producer without transactions.

    The sender calls the methods while it holds `Network.lock`, the lock of the client's network loop.
    `highest_produce_version` limits the version of Produce requests; None is no limit.

    If a batch with a sequence number was given up, the leader of its partition may lack this number. The epoch is then
    increased, and the sequence numbers of the partition start at 0 again, as the leader expects of a new epoch
    (KIP-360). The unfinished batches of other partitions keep their epoch.
    """

    highest_produce_version: int | None = None
    """The highest version of Produce that the sender may use; None: any."""

    def __init__(self, network: Network, accumulator: RecordAccumulator, *, is_idempotent: bool) -> None:
        self._network = network
        self._accumulator = accumulator
        self.is_idempotent = is_idempotent
        self.identity: ProducerIdentity = NO_IDENTITY
        self._failure: ApiError | None = None
        self._has_request = False
        self._not_before_ms = 0
        self._attempts = 0
        self._doubtful: dict[PartitionQueue, None] = {}  # a batch was given up or the leader has refused a sequence

    @property
    def is_ending(self) -> bool:
        """Returns False, because this producer has no transaction. At the end of a transaction batches do
        not linger."""
        return False

    def failure_of_batches(self) -> ApiError | None:
        """Returns the error with which all waiting batches fail, and forgets it; None if there is no such error.

        It is the error of an InitProducerId request that is not retriable.
        """
        failure, self._failure = self._failure, None
        return failure

    def next_ms(self, monotonic_ms: int) -> int:
        """Returns the monotonic time (ms) at which to call `run` again after it has returned False."""
        if self._has_request or self.identity.is_valid:
            return NEVER
        return max(self._not_before_ms, monotonic_ms + 1)

    def run(self, monotonic_ms: int, in_flight: AbstractSet[ProducerBatch]) -> bool:
        """Increases the epoch or requests a producer id if it is necessary; then returns whether batches may be sent
        now.

        Without idempotence the result is always True.

        `in_flight` has the batches without a response; the sequences of their partitions cannot change.
        """
        if not self.is_idempotent:
            return True
        if self._doubtful:
            self._restart_broken({batch.queue for batch in in_flight})
        if not self.identity.is_valid:
            self._request_id(monotonic_ms)
        return self.identity.is_valid

    def may_send_to(self, queue: PartitionQueue) -> bool:
        """Returns True: a producer without transactions may write to every partition."""
        return True

    def on_sequence_given_up(self, batch: ProducerBatch, *, is_refused: bool = False) -> None:
        """Records that a batch with a sequence has failed; the epoch is increased if the broker lacks the sequence.

        `is_refused` says that the broker has certainly not written the batch.
        """
        sequences_of(batch.queue).give_up(batch, is_refused=is_refused)
        self._doubtful[batch.queue] = None

    def on_broken_sequence(self, queue: PartitionQueue) -> None:
        """Records that the leader has refused the sequence of a partition's first unfinished batch.

        A later `run` starts the partition's sequences again at 0, with a new epoch.
        """
        sequences_of(queue).is_broken = True
        self._doubtful[queue] = None

    def on_error(self, error: ApiError) -> None:
        """Is called with every error that is not retried. Does nothing, because this producer has no transaction that
        could fail.
        """

    def _restart_broken(self, busy: AbstractSet[PartitionQueue]) -> None:
        """Starts the sequences again at 0 for each partition whose leader refuses a sequence or may lack one.

        Leaves out the partitions in `busy`, which have batches in flight. Increases the epoch first, if one of the
        partitions has used the current epoch already.
        """
        broken: list[PartitionQueue] = []
        for queue in list(self._doubtful):
            sequences = sequences_of(queue)
            sequences.resolve()
            if not sequences.is_broken and not sequences.is_unresolved:
                del self._doubtful[queue]
            elif sequences.is_broken and queue not in busy:
                broken.append(queue)
        if any(sequences_of(queue).identity == self.identity for queue in broken):
            self.identity = self.identity.next_epoch()
            log.info("The producer continues with epoch %d", self.identity.epoch)
        if self.identity.is_valid:
            for queue in broken:
                sequences_of(queue).restart(self.identity, is_transactional=False)
                del self._doubtful[queue]

    def _request_id(self, monotonic_ms: int) -> None:
        node_id = self._network.least_loaded()
        if self._has_request or monotonic_ms < self._not_before_ms or node_id is None:
            return
        self._has_request = True
        self._network.submit(
            node_id,
            ApiKey.INIT_PRODUCER_ID,
            lambda version: InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1),
            self._on_response,
        )

    def _on_response(self, response: InitProducerIdResponse | None, version: int, error: Exception | None) -> None:
        self._has_request = False
        if response is not None and not response.error_code:
            self.identity = ProducerIdentity(response.producer_id, response.producer_epoch)
            self._attempts = 0
            return
        failure = error if response is None else ApiError(Error.of(response.error_code))
        self._not_before_ms = self._network.clock.monotonic_ms() + self._network.retry_backoff.pause_ms(self._attempts)
        self._attempts += 1
        if isinstance(failure, ApiError) and not failure.error.retriable:
            self._failure = failure
