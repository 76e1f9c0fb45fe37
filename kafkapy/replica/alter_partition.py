"""The port through which a leader asks the controller to change the in-sync replicas (AlterPartition, KIP-497)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkapy.errors import Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition


class IsrChange(NamedTuple):
    """A change of the ISR that a leader proposes. The controller refuses it if one of the epochs is not current.

    `broker_epochs` has one epoch for each member of `new_isr` (KIP-903): the epoch of its last fetch, or -1, which the
    controller does not compare. It is -1 for the leader; the sender of the request knows this broker's epoch.
    """

    topic_partition: TopicPartition
    topic_id: bytes
    leader_epoch: int
    partition_epoch: int
    leader_recovery_state: int
    new_isr: tuple[int, ...]
    broker_epochs: tuple[int, ...] = ()


class AlterPartitionResult(NamedTuple):
    """The controller's response to one change: the state that it has made durable if `error` is NONE, otherwise only
    the error."""

    error: Error
    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1


class AlterPartitionPort(Protocol):
    """The port that submits changes of ISRs. `on_result` is called exactly once, on the owner thread, after the call
    has returned."""

    def submit(self, change: IsrChange, on_result: Callable[[AlterPartitionResult], None]) -> None: ...
