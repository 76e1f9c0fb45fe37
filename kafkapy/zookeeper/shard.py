"""Stores the tree of znodes in an internal topic with one partition. The partition's leader is the coordinator of the
tree.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.coordinator.record import EMPTY_RESULT, CoordinatorResult
from kafkapy.coordinator.shard import ShardContext
from kafkapy.errors import Error
from kafkapy.zookeeper.records import TreeLoader, epoch_record, next_epoch, transaction_records
from kafkapy.zookeeper.tree import Transaction, Tree

# The interval of the attempts to write the record of a new epoch.
EPOCH_RETRY_MS = 500


class ZooKeeperShard:
    """The state of the coordinator of the tree: the tree of znodes. Only the reactor's thread may use it.

    This broker has the state while it leads the partition that stores the tree. `on_ready` is called with this object
    when the tree is loaded and the epoch of its zxids is durable. `on_lost` is called when this broker no longer leads
    the partition.
    """

    def __init__(
        self, context: ShardContext, on_ready: Callable[[ZooKeeperShard], None], on_lost: Callable[[], None]
    ) -> None:
        self._context = context
        self._on_ready = on_ready
        self._on_lost = on_lost
        self.tree = Tree()
        self._loader: TreeLoader | None = TreeLoader(self.tree)
        self._pending: Transaction | None = None

    # -- the log

    def replay(self, offset: int, producer_id: int, key: bytes, value: bytes | None) -> None:
        if self._loader is not None:
            self._loader.replay(key, value)
        elif self._pending is not None:
            # The records are those of the transaction that has just been appended: all changes are made with the first.
            pending, self._pending = self._pending, None
            self.tree.apply(pending)

    def replay_end_of_transaction(self, offset: int, producer_id: int, committed: bool) -> None:
        """Does nothing: the topic has no transactions."""

    def on_loaded(self) -> None:
        """Completes the tree after its last record, and writes a new epoch, with which all later zxids begin.

        Zxids of a new epoch are greater than all zxids before.
        """
        assert self._loader is not None
        self._loader.finish()
        self._loader = None
        epoch = next_epoch(self.tree)
        self.tree.zxid = epoch << 32
        self._context.run(lambda: CoordinatorResult([epoch_record(epoch)], on_committed=self._began))

    def on_unloaded(self) -> None:
        self._on_lost()

    def _began(self, error: Error) -> None:
        if error is Error.NONE:
            self._on_ready(self)
        else:
            self._context.schedule("epoch", EPOCH_RETRY_MS, self._begin_again)

    def _begin_again(self) -> CoordinatorResult[None]:
        epoch = self.tree.zxid >> 32
        return CoordinatorResult([epoch_record(epoch)], on_committed=self._began)

    # -- operations

    def append(self, transaction: Transaction, on_committed: Callable[[Error], None]) -> CoordinatorResult[None]:
        """Returns the records of a transaction for the coordinator's runtime, which appends them and then replays them.

        The replay applies the transaction to the tree. `on_committed` is called with NONE when the records are
        committed, or with an error if that fails; at once with NONE if the transaction changes nothing.
        """
        records = transaction_records(transaction)
        if not records:
            on_committed(Error.NONE)
            return EMPTY_RESULT
        self._pending = transaction
        return CoordinatorResult(records, on_committed=on_committed)

    def drop_pending(self) -> bool:
        """Returns True if the last transaction given to `append` has been applied to the tree.

        Otherwise drops the transaction, whose records could not be written, and returns False.
        """
        was_applied = self._pending is None
        self._pending = None
        return was_applied
