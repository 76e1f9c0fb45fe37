"""Where a producer's id and epoch come from: InitProducerId, and a new epoch when the sequences are lost track of."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kafkapy._core.client.record_accumulator import PartitionQueue, RecordAccumulator
from kafkapy.client.network import NEVER, Network
from kafkapy.client.sequences import NOBODY, ProducerIdentity, sequences_of
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from kafkapy.client.sender import Sender

log = logging.getLogger("kafkapy.client")


class ProducerIdSource:
    """Owns the identity of a producer without transactions.  Touched with the network's seat held.

    When a batch with a sequence is given up, nobody knows whether it was written: once nothing is in flight the epoch
    is raised and sequences begin at 0, as the broker expects of a new epoch (KIP-360).
    """

    def __init__(self, network: Network, accumulator: RecordAccumulator, *, is_idempotent: bool) -> None:
        self._network = network
        self._accumulator = accumulator
        self.is_idempotent = is_idempotent
        self.identity: ProducerIdentity = NOBODY
        self.sender: Sender | None = None
        self._is_asking = False
        self._not_before_ms = 0
        self._attempts = 0
        self._lost_track = False

    @property
    def is_ending(self) -> bool:
        """Whether batches leave at once because a transaction ends."""
        return False

    @property
    def failure(self) -> ApiError | None:
        """Why nothing can be sent any more, for the time being."""
        return None

    def next_ms(self, now_ms: int) -> int:
        """When `run` has something to do, if it said that nothing may be sent."""
        if self._is_asking or self._lost_track or self.identity.is_valid:
            return NEVER
        return max(self._not_before_ms, now_ms + 1)

    def run(self, now_ms: int) -> bool:
        """Whether batches may be sent now; asks for an id if there is none."""
        if not self.is_idempotent:
            return True
        if self._lost_track:
            if self.sender is not None and self.sender.in_flight:
                return False
            self._raise_epoch()
        if not self.identity.is_valid:
            self._ask(now_ms)
        return self.identity.is_valid

    def may_send_to(self, queue: PartitionQueue) -> bool:
        """Whether a partition may be written to; transactions add it first."""
        return True

    def lose_track(self) -> None:
        """A batch with a sequence was given up."""
        self._lost_track = True

    def heed(self, error: ApiError) -> None:
        """Told of every error that is not retried; transactions end by some."""

    def _raise_epoch(self) -> None:
        self._lost_track = False
        self.identity = self.identity.next_epoch()
        log.info("The producer goes on with epoch %d", self.identity.epoch)
        if self.identity.is_valid:
            self._restart_sequences()

    def _restart_sequences(self) -> None:
        for topic in self._accumulator.topics.values():
            for queue in topic.queues:
                sequences_of(queue).restart(self.identity, False)

    def _ask(self, now_ms: int) -> None:
        node_id = self._network.least_loaded()
        if self._is_asking or now_ms < self._not_before_ms or node_id is None:
            return
        self._is_asking = True
        self._network.submit(
            node_id,
            ApiKey.INIT_PRODUCER_ID,
            lambda version: InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1),
            self._answered,
        )

    def _answered(self, response: InitProducerIdResponse | None, version: int, error: Exception | None) -> None:
        self._is_asking = False
        if response is not None and not response.error_code:
            self.identity = ProducerIdentity(response.producer_id, response.producer_epoch)
            self._attempts = 0
            self._restart_sequences()
            return
        failure = error if response is None else ApiError(Error.of(response.error_code))
        self._not_before_ms = self._network.clock.monotonic_ms() + self._network.retry_backoff.pause_ms(self._attempts)
        self._attempts += 1
        if isinstance(failure, ApiError) and not failure.error.retriable and self.sender is not None:
            self.sender.fail_all(failure)
