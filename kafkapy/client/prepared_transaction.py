"""A transaction whose records are written and that another process is to end (as KIP-939 has it)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kafkapy.client.configuration import admin_config
from kafkapy.client.coordinator import TRANSACTION, Coordinator
from kafkapy.client.exchange import until_answered
from kafkapy.client.network import Network
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

IN_FLIGHT_LIMIT = 5
# Up to here ending a transaction leaves the epoch as it is: asked again, it is answered again.
HIGHEST_REPEATABLE = 4


class PreparedTransaction(NamedTuple):
    """What it takes to end an open transaction. It ends by itself after its timeout, with an abort."""

    transactional_id: str
    producer_id: int
    epoch: int


def end_transactions(
    properties: Mapping[str, Any], prepared: Sequence[PreparedTransaction], *, committed: bool, timeout_s: float = 60.0
) -> None:
    """Commits or aborts each; one that was ended so before is ended. `properties` are client keys.

    ApiError PRODUCER_FENCED if somebody has taken its id over or its time was up; TimeoutError.
    """
    if not prepared:
        return
    network = Network(admin_config(properties), in_flight_limit=IN_FLIGHT_LIMIT)
    network.start()
    try:
        for each in prepared:
            _end(network, each, committed, timeout_s)
    finally:
        network.close()


def _end(network: Network, prepared: PreparedTransaction, committed: bool, timeout_s: float) -> None:
    def build(version: int) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=prepared.transactional_id,
            producer_id=prepared.producer_id,
            producer_epoch=prepared.epoch,
            committed=committed,
        )

    def ask(node_id: int, answered: Callable[[Any, Exception | None], None]) -> None:
        def done(response: EndTxnResponse | None, version: int, error: Exception | None) -> None:
            if response is None:
                answered(None, error)
                return
            code = Error.of(response.error_code)
            if code is Error.INVALID_PRODUCER_EPOCH:
                code = Error.PRODUCER_FENCED
            answered(response, ApiError(code) if code else None)

        network.submit(node_id, ApiKey.END_TXN, build, done, highest=HIGHEST_REPEATABLE)

    coordinator = Coordinator(network, prepared.transactional_id, TRANSACTION)
    until_answered(network, coordinator, ask, timeout_s, f"the transaction {prepared.transactional_id} ended")
