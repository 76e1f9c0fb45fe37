"""The driver's half of writing in transactions: two phases, and a ledger so that no micro-batch counts twice.

    tasks       each writes in its own transaction, and leaves it open
    ledger      batch N is decided: these transactions are its own        <- from here on it will be committed
    driver      commits them, one by one
    ledger      batch N is done

The ledger is an offset that the group of the transactional id's name has committed for the topic's first partition: the
number of the batch as the offset, the open transactions as its metadata. The transactional id is the one that was given
with the query's id behind it (`stream_sink`), for batches are numbered by the checkpoint, which that id lives in.
Whatever dies in between, Spark repeats batch N. If it is decided, its tasks write nothing and the driver goes on
committing; if it is done, what the tasks have written again is aborted; else the tasks' next attempts have fenced the
transactions of the last ones.

What is left: a driver that stays away for longer than transaction.timeout.ms after the decision. The brokers abort
then, and the commit fails and says so.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import Any, NamedTuple

from kafkapy.client.consumer import Consumer
from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.client.prepared_transaction import PreparedTransaction, end_transactions
from kafkapy.config.client_table import ADMIN_ROWS
from kafkapy.errors import ApiError, Error
from kafkapy.spark.options import TRANSACTIONAL_ID, WriteOptions
from kafkapy.types import TopicPartition

log = logging.getLogger("kafkapy.spark")

# What offset.metadata.max.bytes of a broker allows by default.
LEDGER_BYTES = 4096
_ENDED_OTHERWISE = frozenset((Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH, Error.INVALID_TXN_STATE))


class LedgerEntry(NamedTuple):
    """The last batch that was decided; `pending` are those of its transactions that may be open still."""

    batch_id: int
    pending: list[PreparedTransaction]


class SinkError(RuntimeError):
    """A micro-batch cannot be committed as it should be; the message says what can be done."""


def commit_tasks(options: WriteOptions, messages: Iterable[Any]) -> None:
    """Ends the transactions of a batch query."""
    end_transactions(client_properties(options), transactions_of(messages), committed=True)


def abort_tasks(options: WriteOptions, messages: Iterable[Any]) -> None:
    """Takes back what tasks have written that are not to count; nothing without transactions."""
    open_ones = transactions_of(messages)
    if open_ones:
        end_transactions(client_properties(options), open_ones, committed=False)


def is_batch_pending(options: WriteOptions) -> bool:
    """Whether a batch is decided and not done. Then the one that runs is that batch, once more."""
    with SinkLedger(options) as ledger:
        entry = ledger.read()
    return entry is not None and bool(entry.pending)


def commit_batch(options: WriteOptions, messages: Iterable[Any], batch_id: int) -> None:
    """Makes a micro-batch count, once. SinkError if the ledger is ahead of the checkpoint, or a transaction is lost."""
    mine = transactions_of(messages)
    with SinkLedger(options) as ledger:
        entry = ledger.read()
        if entry is None and not mine:
            return  # nothing to count yet, and the topic, which the ledger's offsets are of, may not be there
        if entry is not None and batch_id < entry.batch_id:
            raise SinkError(
                f"Batch {batch_id} comes after batch {entry.batch_id} of the same query: its checkpoint has gone back, "
                "and what is written from here on may be there already. A new checkpoint begins anew."
            )
        if entry is not None and entry.pending and batch_id > entry.batch_id:
            raise SinkError(f"Batch {entry.batch_id} was decided and not committed, and batch {batch_id} runs already")
        if entry is not None and batch_id == entry.batch_id:
            log.warning("Batch %d runs again: what it has written before counts", batch_id)
            end_transactions(client_properties(options), mine, committed=False)
            mine = entry.pending
        else:
            ledger.write(LedgerEntry(batch_id, mine))
        _commit(options, mine, batch_id)
        if mine:
            ledger.write(LedgerEntry(batch_id, []))


def _commit(options: WriteOptions, transactions: list[PreparedTransaction], batch_id: int) -> None:
    try:
        end_transactions(client_properties(options), transactions, committed=True)
    except ApiError as error:
        if error.error not in _ENDED_OTHERWISE:
            raise
        raise SinkError(
            f"Batch {batch_id} was decided, but one of its transactions has been aborted meanwhile ({error}): its "
            "driver was away for longer than transaction.timeout.ms. With another kafka.transactional.id the batch is "
            "written anew; records of its other transactions are there already and would be there twice."
        ) from error


def transactions_of(messages: Iterable[Any]) -> list[PreparedTransaction]:
    """Of the tasks' messages; None stands for a task that failed."""
    return [each.transaction for each in messages if each is not None and each.transaction is not None]


def client_properties(options: WriteOptions) -> dict[str, str]:
    """The keys that every kind of client has."""
    return {key: value for key, value in options.properties.items() if key in ADMIN_ROWS}


class SinkLedger:
    """Owns a consumer of the ledger's group, which it never joins.  For one thread; closed at the end of a `with`."""

    def __init__(self, options: WriteOptions) -> None:
        self._transactional_id = options.properties[TRANSACTIONAL_ID]
        self._where = TopicPartition(options.topic or "", 0)
        properties = {**client_properties(options), "group.id": self._transactional_id, "enable.auto.commit": "false"}
        self._consumer = Consumer(properties)

    def __enter__(self) -> SinkLedger:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def read(self) -> LedgerEntry | None:
        """None before the first batch."""
        found = self._consumer.committed([self._where])[self._where]
        if found is None:
            return None
        listed = json.loads(found.metadata or "[]")
        return LedgerEntry(
            found.offset, [PreparedTransaction(f"{self._transactional_id}-{n}", p, e) for n, p, e in listed]
        )

    def write(self, entry: LedgerEntry) -> None:
        """SinkError if there are more tasks than fit in."""
        prefix = len(self._transactional_id) + 1
        listed = [[int(each.transactional_id[prefix:]), each.producer_id, each.epoch] for each in entry.pending]
        text = json.dumps(listed, separators=(",", ":")) if listed else ""
        if len(text) > LEDGER_BYTES:
            raise SinkError(
                f"{len(listed)} tasks wrote in one batch, more than the ledger of transactions takes "
                f"({LEDGER_BYTES} bytes): use coalesce before writing"
            )
        self._consumer.commit({self._where: OffsetAndMetadata(entry.batch_id, text)})
