"""Commits the transactions of tasks on the driver, in two phases, with a ledger that prevents duplicate micro-batches.

    tasks       each writes in its own transaction and leaves it prepared
    ledger      batch N is decided and consists of these transactions     <- from here on it will be committed
    driver      commits them, one by one
    ledger      batch N is done

The ledger is an offset that is committed for the first partition of the topic, by a group whose id is the transactional
id. The offset is the number of the batch; its metadata lists the transactions that may be open. The transactional id is
the option with the id of the query appended (`stream_sink`): the query's checkpoint, which stores this id, also numbers
the batches. If the driver dies at any point, Spark repeats batch N. If the batch is decided, its tasks write nothing
and the driver continues to commit. If the batch is done, the records that the tasks have written again are aborted.
Otherwise the new attempts of the tasks have fenced the transactions of the earlier attempts.

One case is not covered. If the driver is down for longer than transaction.timeout.ms after the decision, the brokers
abort the transactions. The commit then fails with an error that reports this.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import Any

from kafkapy.client.consumer import Consumer
from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.client.prepared_transaction import PreparedTransaction, end_transactions
from kafkapy.config.client_table import ADMIN_ROWS
from kafkapy.errors import ApiError, Error, KafkapyError
from kafkapy.named_tuple import NamedTuple
from kafkapy.spark.options import TRANSACTIONAL_ID, WriteOptions
from kafkapy.types import TopicPartition

log = logging.getLogger("kafkapy.spark")

# The default of the broker's offset.metadata.max.bytes.
LEDGER_BYTES = 4096
# The errors of a transaction that was already ended or fenced.
_ALREADY_ENDED = frozenset((Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH, Error.INVALID_TXN_STATE))


class LedgerEntry(NamedTuple):
    """The id of the last micro-batch that the driver has decided to commit, and its transactions to be committed.

    `pending` is empty once all of them are committed.
    """

    batch_id: int
    pending: list[PreparedTransaction]


class SinkError(KafkapyError, RuntimeError):
    """Raised when a micro-batch cannot be committed; the message says what can be done."""


def commit_tasks(options: WriteOptions, messages: Iterable[Any]) -> None:
    """Commits the transactions that the tasks of a batch query have prepared; `messages` has a message of each task."""
    end_transactions(client_properties(options), transactions_of(messages), committed=True)


def abort_tasks(options: WriteOptions, messages: Iterable[Any]) -> None:
    """Aborts the transactions that the tasks of a batch query have prepared, if there are any."""
    transactions = transactions_of(messages)
    if transactions:
        end_transactions(client_properties(options), transactions, committed=False)


def abort_batch(options: WriteOptions, messages: Iterable[Any]) -> None:
    """Aborts the transactions that the tasks of a micro-batch have prepared, but not those of a decided batch.

    Spark also calls this after a commit that has failed. The ledger then has the batch, and its transactions are
    committed when Spark repeats it.
    """
    transactions = transactions_of(messages)
    if not transactions:
        return
    with SinkLedger(options) as ledger:
        entry = ledger.read()
    decided = [] if entry is None else entry.pending
    undecided = [each for each in transactions if each not in decided]
    end_transactions(client_properties(options), undecided, committed=False)


def is_batch_pending(options: WriteOptions) -> bool:
    """Returns whether the ledger has a batch whose transactions are not all committed.

    In this case the driver has already decided to commit that batch, and the batch that runs now repeats it.
    """
    with SinkLedger(options) as ledger:
        entry = ledger.read()
    return entry is not None and bool(entry.pending)


def commit_batch(options: WriteOptions, messages: Iterable[Any], batch_id: int) -> None:
    """Commits the micro-batch `batch_id` exactly once; `messages` has a message of each of its tasks.

    If the ledger has this batch already, its earlier transactions are committed and the new ones are aborted. Raises
    SinkError if the ledger has a later batch or an earlier uncommitted one, or if a transaction was aborted.
    """
    mine = transactions_of(messages)
    with SinkLedger(options) as ledger:
        entry = ledger.read()
        if entry is None and not mine:
            return  # nothing to record, and the topic, which the ledger's offsets refer to, may not exist yet
        if entry is not None and batch_id < entry.batch_id:
            raise SinkError(
                f"Batch {batch_id} comes after batch {entry.batch_id} of the same query: its checkpoint was reset, and "
                "the records of the following batches may have been written already. Use a new checkpoint."
            )
        if entry is not None and entry.pending and batch_id > entry.batch_id:
            raise SinkError(f"Batch {entry.batch_id} was decided and not committed, but batch {batch_id} is running")
        if entry is not None and batch_id == entry.batch_id:
            log.warning("Batch %d is repeated: the records that it wrote before are kept", batch_id)
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
        if error.error not in _ALREADY_ENDED:
            raise
        raise SinkError(
            f"Batch {batch_id} was decided, but one of its transactions has been aborted ({error}): the driver was "
            "down for longer than transaction.timeout.ms. Another kafka.transactional.id writes the batch again, "
            "which duplicates the records of its other transactions."
        ) from error


def transactions_of(messages: Iterable[Any]) -> list[PreparedTransaction]:
    """Returns the transactions in the messages of tasks; the message of a failed task is None."""
    return [each.transaction for each in messages if each is not None and each.transaction is not None]


def client_properties(options: WriteOptions) -> dict[str, str]:
    """Returns the client properties of the user that an admin client accepts. Consumers accept them, too."""
    return {key: value for key, value in options.properties.items() if key in ADMIN_ROWS}


class SinkLedger:
    """The ledger of one transactional id: the last batch, stored as the committed offset of a group. For one thread.

    The group's name is the transactional id. The offset is the batch id; its metadata has the transactions. The
    object is a context manager, and owns a consumer, which never joins the group.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._transactional_id = options.properties[TRANSACTIONAL_ID]
        self._partition = TopicPartition(options.topic or "", 0)
        properties = {**client_properties(options), "group.id": self._transactional_id, "enable.auto.commit": "false"}
        self._consumer = Consumer(properties)

    def __enter__(self) -> SinkLedger:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def read(self) -> LedgerEntry | None:
        """Returns the entry of the last batch; None if no batch has been written to the ledger yet."""
        found = self._consumer.committed([self._partition])[self._partition]
        if found is None:
            return None
        listed = json.loads(found.metadata or "[]")
        return LedgerEntry(
            found.offset,
            [
                PreparedTransaction(f"{self._transactional_id}-{task}", producer_id, epoch)
                for task, producer_id, epoch in listed
            ],
        )

    def write(self, entry: LedgerEntry) -> None:
        """Replaces the entry. Raises SinkError if `entry` has more transactions than fit into the metadata of an
        offset."""
        prefix = len(self._transactional_id) + 1
        listed = [[int(each.transactional_id[prefix:]), each.producer_id, each.epoch] for each in entry.pending]
        text = json.dumps(listed, separators=(",", ":")) if listed else ""
        if len(text) > LEDGER_BYTES:
            raise SinkError(
                f"{len(listed)} tasks wrote in one batch, more than fit into the ledger of transactions "
                f"({LEDGER_BYTES} bytes): use coalesce before writing"
            )
        self._consumer.commit({self._partition: OffsetAndMetadata(entry.batch_id, text)})
