"""The result of a coordinator operation: records to append, and the response to send once they are committed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Generic, TypeVar

from kafkapy.errors import Error
from kafkapy.named_tuple import NamedTuple

R = TypeVar("R")


class CoordinatorRecord(NamedTuple):
    """One record of an internal topic. A record whose `value` is None is a tombstone."""

    key: bytes
    value: bytes | None


class StateChange(Enum):
    """The time at which an operation changes its shard, which is the state in memory of one partition of an internal
    topic.
    """

    REPLAY = "after the append, by replaying the records"
    # For classic groups, whose members are not in the log before the leader's SyncGroup; the records are read only
    # when the log is loaded.
    ALREADY_APPLIED = "in the operation itself"
    # For changes that other operations must not see before they are durable: `on_committed` makes them.
    ON_COMMIT = "when the records are committed, by on_committed"


class CoordinatorResult(Generic[R]):
    """The outcome of one operation. The object does not change after its construction.

    `response` is sent to the caller when the records are committed, or at once if there are no records. It is None if
    a callback of the request sends the response later, as for JoinGroup and SyncGroup. `on_committed` is called once:
    with NONE when the records are committed, or at once if there are no records; or with the error to report to the
    client if the records could not be written. `state_change` says when the operation changes the shard's state in
    memory. `producer` is (producer id, epoch) if the records belong to a transaction and take effect when its commit
    marker is written, otherwise None.
    """

    __slots__ = ("on_committed", "producer", "records", "response", "state_change")

    def __init__(
        self,
        records: Sequence[CoordinatorRecord] = (),
        response: R | None = None,
        on_committed: Callable[[Error], None] | None = None,
        state_change: StateChange = StateChange.REPLAY,
        producer: tuple[int, int] | None = None,
    ) -> None:
        self.records = records
        self.response = response
        self.on_committed = on_committed
        self.state_change = state_change
        self.producer = producer


EMPTY_RESULT: CoordinatorResult[Any] = CoordinatorResult()
