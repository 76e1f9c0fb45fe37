"""Proposes changes of ISRs to a controller that runs on another thread of this process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from kafkapy.controller.partitions import AlteredPartition, AlterPartition, alter_partition
from kafkapy.controller.port import Controller
from kafkapy.controller.settings import DEFAULT_SETTINGS, ControllerSettings
from kafkapy.errors import ApiError, Error
from kafkapy.replica.alter_partition import AlterPartitionResult, IsrChange


class LocalAlterPartition:
    """Proposes the ISR changes of the replica manager to the controller in this process.

    Implements AlterPartitionPort. `submit` is called on the reactor's thread, which also runs its callback.
    """

    def __init__(
        self,
        controller: Controller,
        node_id: int,
        post: Callable[[Callable[[], None]], None],
        settings: ControllerSettings = DEFAULT_SETTINGS,
    ) -> None:
        self._controller = controller
        self._settings = settings
        self._node_id = node_id
        self._post = post

    def submit(self, change: IsrChange, on_result: Callable[[AlterPartitionResult], None]) -> None:
        request = AlterPartition(
            change.topic_id,
            change.topic_partition.partition,
            change.leader_epoch,
            change.partition_epoch,
            change.new_isr,
            change.leader_recovery_state,
        )
        future = self._controller.submit(lambda image: alter_partition(image, self._node_id, request, self._settings))
        future.add_done_callback(lambda done: self._post(lambda: on_result(self._result(done))))

    @staticmethod
    def _result(done: Future[AlteredPartition]) -> AlterPartitionResult:
        failure = done.exception()
        if failure is not None:
            return AlterPartitionResult(failure.error if isinstance(failure, ApiError) else Error.UNKNOWN_SERVER_ERROR)
        altered = done.result()
        return AlterPartitionResult(
            altered.error, altered.leader, altered.leader_epoch, altered.isr, altered.partition_epoch
        )
