"""The persisted state of share partitions, and the interface through which it is read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any, Protocol

from kafkapy.errors import Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import uuid_to_string

# The start offset of a share partition that has not been resolved yet.
UNINITIALIZED_START_OFFSET = -1
UNKNOWN_COMPLETE_COUNT = -1
NO_LEADER_EPOCH = -1


class DeliveryState(IntEnum):
    """The state of a record for a share group. The values are those on disk, where ACQUIRED does not occur."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


class SharePartitionKey(NamedTuple):
    """A share partition: a partition, by its topic id and number, as one share group consumes it."""

    group_id: str
    topic_id: bytes
    partition: int

    @property
    def coordinator_key(self) -> str:
        """The key by which the share coordinator is found: `group:topic id:partition`."""
        return f"{self.group_id}:{uuid_to_string(self.topic_id)}:{self.partition}"


class StateBatch(NamedTuple):
    """The state of the records between two offsets, both inclusive."""

    first_offset: int
    last_offset: int
    state: int
    delivery_count: int


def batches_from(entries: Iterable[Any]) -> list[StateBatch]:
    """Returns the batches that the entries of a message or record describe."""
    return [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count) for each in entries
    ]


def batch_entries(message_class: Any, batches: Iterable[StateBatch]) -> list[Any]:
    """Returns an entry for each batch; `message_class` is the class of the message or record that has the entries."""
    return [
        message_class.StateBatch(
            first_offset=each.first_offset,
            last_offset=each.last_offset,
            delivery_state=each.state,
            delivery_count=each.delivery_count,
        )
        for each in batches
    ]


class PersistedState(NamedTuple):
    """The state of a share partition as its coordinator stores it."""

    state_epoch: int
    start_offset: int
    batches: Sequence[StateBatch] = ()


class StateSummary(NamedTuple):
    """The state of a share partition without its batches. `delivery_complete_count` is -1 if it is unknown."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int


class StateWrite(NamedTuple):
    """A change of a share partition's state.

    The coordinator refuses the change if the stored state has a higher state epoch or leader epoch. An epoch of -1 in
    the change omits this check. A start offset of -1 leaves the stored start offset as it is. `batches` are combined
    with the stored batches.
    """

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


OnDone = Callable[[Error, "str | None"], None]
OnState = Callable[["PersistedState | None", Error], None]
OnSummary = Callable[["StateSummary | None", Error], None]


class Persister(Protocol):
    """Stores the state of share partitions at their coordinators. Only the thread that owns it may use it.

    Every method calls its callback exactly once, perhaps before it returns: `on_done` with the error and its message or
    None, `on_state` and `on_summary` with the value (None after an error) and the error.
    """

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, on_done: OnDone) -> None:
        """Creates the state of a share partition, or replaces an existing state (InitializeShareGroupState). Calls
        `on_done` with the error and its message or None.
        """

    def read(self, key: SharePartitionKey, leader_epoch: int, on_state: OnState) -> None:
        """Reads the whole state for the leader of the partition, and stores `leader_epoch` (ReadShareGroupState). Calls
        `on_state` with the state, or with None and the error.
        """

    def write(self, key: SharePartitionKey, change: StateWrite, on_done: OnDone) -> None:
        """Applies a change to the state (WriteShareGroupState). Calls `on_done` with the error and its message or
        None.
        """

    def delete(self, key: SharePartitionKey, on_done: OnDone) -> None:
        """Deletes the state (DeleteShareGroupState); succeeds if there is none. Calls `on_done` with the error and its
        message or None.
        """

    def summarize(self, key: SharePartitionKey, on_summary: OnSummary) -> None:
        """Reads the epochs and the start offset, without the batches (ReadShareGroupStateSummary). Calls `on_summary`
        with the summary, or with None and the error.
        """
