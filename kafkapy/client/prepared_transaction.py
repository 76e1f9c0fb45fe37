"""Prepared transactions: a producer writes the records, and another process commits or aborts them (compare
KIP-939)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafkapy.client.configuration import admin_config
from kafkapy.client.coordinator import TRANSACTION, Coordinator
from kafkapy.client.coordinator_request import request_until_done
from kafkapy.client.network import Network
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

IN_FLIGHT_LIMIT = 5
# Up to this version EndTxn leaves the epoch unchanged, so that the request can be repeated.
HIGHEST_REPEATABLE = 4


class PreparedTransaction(NamedTuple):
    """The data needed to end an open transaction, which the coordinator otherwise aborts after its time-out."""

    transactional_id: str
    producer_id: int
    epoch: int


def end_transactions(
    properties: Mapping[str, Any], prepared: Sequence[PreparedTransaction], *, committed: bool, timeout_s: float = 60.0
) -> None:
    """Commits or aborts each transaction; the same call may be repeated. Blocks up to `timeout_s` seconds for each.

    `properties` are the configuration of a client. Raises ApiError with PRODUCER_FENCED if another producer uses the
    transactional id or the transaction has timed out, and RequestTimedOut if the coordinator does not respond in time.
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

    def send(node_id: int, on_result: Callable[[Any, Exception | None], None]) -> None:
        def on_response(response: EndTxnResponse | None, version: int, error: Exception | None) -> None:
            if response is None:
                on_result(None, error)
                return
            code = Error.of(response.error_code)
            if code is Error.INVALID_PRODUCER_EPOCH:
                code = Error.PRODUCER_FENCED
            on_result(response, ApiError(code) if code else None)

        network.submit(node_id, ApiKey.END_TXN, build, on_response, highest=HIGHEST_REPEATABLE)

    coordinator = Coordinator(network, prepared.transactional_id, TRANSACTION)
    request_until_done(network, coordinator, send, timeout_s, f"the transaction {prepared.transactional_id} ended")
