"""The interface through which a leader asks the controller to change the in-sync replicas (AlterPartition, KIP-497)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkapy.errors import Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition


class IsrChange(NamedTuple):
    """A change of the ISR that a leader proposes. The controller refuses it if one of the epochs is not current.

    `broker_epochs` has an entry for each member of `new_isr` (KIP-903): the broker epoch that the member sent with its
    last Fetch, or -1, which the controller does not compare. The entry of the leader is -1 too; the sender of the
    request replaces it by this broker's epoch.
    """

    topic_partition: TopicPartition
    topic_id: bytes
    leader_epoch: int
    partition_epoch: int
    leader_recovery_state: int
    new_isr: tuple[int, ...]
    broker_epochs: tuple[int, ...] = ()


class AlterPartitionResult(NamedTuple):
    """The controller's response to one IsrChange.

    If `error` is NONE, the other fields have the new state of the partition, which is durable. After an error they are
    not set.
    """

    error: Error
    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1


class AlterPartitionPort(Protocol):
    """The interface through which a leader submits changes of ISRs to the controller.

    `on_result` is called exactly once with the controller's response to `change`, on the reactor's thread, after
    `submit` has returned.
    """

    def submit(self, change: IsrChange, on_result: Callable[[AlterPartitionResult], None]) -> None: ...
