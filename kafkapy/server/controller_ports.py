"""The replica manager's port to the controller, which runs on another thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from kafkapy.controller.partitions import AlterPartition, alter_partition
from kafkapy.errors import ApiError, Error
from kafkapy.quorum.controller_loop import ControllerLoop
from kafkapy.replica.alter_partition import AlterPartitionResult, IsrChange


class LocalAlterPartition:
    """The AlterPartitionPort to the controller in this process. `submit` is called on the reactor's thread."""

    def __init__(self, controller: ControllerLoop, node_id: int, post: Callable[[Callable[[], None]], None]) -> None:
        self._controller = controller
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
        future = self._controller.submit(lambda image: alter_partition(image, self._node_id, request))
        future.add_done_callback(lambda done: self._post(lambda: on_result(self._result(done))))

    def _result(self, done: Future[tuple[bytes, int]]) -> AlterPartitionResult:
        failure = done.exception()
        if failure is not None:
            return AlterPartitionResult(failure.error if isinstance(failure, ApiError) else Error.UNKNOWN_SERVER_ERROR)
        topic_id, number = done.result()
        topic = self._controller.image.topics.by_id.get(topic_id)
        partition = None if topic is None else topic.partitions.get(number)
        if partition is None:
            return AlterPartitionResult(Error.UNKNOWN_TOPIC_OR_PARTITION)
        return AlterPartitionResult(
            Error.NONE, partition.leader, partition.leader_epoch, partition.isr, partition.partition_epoch
        )
