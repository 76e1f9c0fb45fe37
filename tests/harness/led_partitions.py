"""Replicated partitions that a running broker leads. The test plays the followers, the controller and the metadata."""

from __future__ import annotations

import threading
from typing import Any

from kafkapy.errors import Error
from kafkapy.metadata.cluster_image import BrokerRegistration
from kafkapy.metadata.topics_image import PartitionImage
from kafkapy.replica.alter_partition import AlterPartitionResult
from kafkapy.replica.replication_throttles import ReplicationThrottles
from kafkapy.types import TopicPartition
from tests.twin_brokers import BrokerTwin

FOLLOWERS = (102, 103)  # broker ids
FIRST_EPOCH = 5  # their broker epochs


class ProposedChanges:
    """Holds the proposals of one broker until the test answers them."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def submit(self, change, on_result) -> None:
        self.asked.append((change, on_result))


class LedPartitions:
    """The partitions that the broker `twin` leads; methods change them as followers, controller and metadata would.

    `run` calls the other methods on the broker's reactor.
    """

    def __init__(self, twin: BrokerTwin) -> None:
        self.twin = twin
        self.manager = twin.broker.parts.replica_manager
        self.context = self.manager.context
        self.node_id = self.context.node_id
        self.controller = self.context.alter_partition = ProposedChanges()

    def run(self, method: str, *arguments) -> Any:
        """Runs a method of this object on the reactor and returns its result."""
        done = threading.Event()
        found = []

        def call() -> None:
            try:
                found.append(getattr(self, method)(*arguments))
            finally:
                done.set()

        self.twin.broker.reactor.post(call)
        assert done.wait(20)
        return found[0]

    def register(self, epochs: dict[int, int], fenced: set[int] | frozenset[int] = frozenset()) -> None:
        """Registers the followers' brokers with these epochs."""
        self.context.follow_brokers(
            {
                broker_id: BrokerRegistration(
                    broker_id, epoch, bytes(16), {}, {}, None, broker_id in fenced, False, (), None, False
                )
                for broker_id, epoch in epochs.items()
            }
        )

    def change(self, topic_partition, leads: bool, isr: tuple[int, ...] = FOLLOWERS, raises_epoch: bool = True) -> None:
        """Applies metadata with the next partition epoch, in which this broker is the leader or a follower.

        `isr` are the followers in the ISR of a leader. With `raises_epoch` the leader epoch is the next one, too.
        """
        partition = self.manager.partitions[topic_partition]
        image = PartitionImage(
            (self.node_id, *FOLLOWERS), (bytes(16),) * 3, (self.node_id, *isr) if leads else FOLLOWERS,
            (), (), (), (), self.node_id if leads else FOLLOWERS[0], 0, partition.leader_epoch + raises_epoch,
            partition.partition_epoch + 1,
        )  # fmt: skip
        if leads:
            partition.make_leader(image, self.context.clock.monotonic_ms())
        else:
            partition.make_follower(image)

    def answer_proposal(self, error: Error) -> None:
        if self.controller.asked:
            change, on_result = self.controller.asked.pop(0)
            epoch = change.partition_epoch + 1
            result = AlterPartitionResult(Error.NONE, self.node_id, change.leader_epoch, change.new_isr, epoch)
            on_result(AlterPartitionResult(error) if error else result)

    def shrink(self, topic_partition) -> None:
        """Proposes an ISR without the followers that are behind, as if all had fetched long ago."""
        partition = self.manager.partitions[topic_partition]
        lag_max_ms = self.context.replica_lag_max_ms
        partition.maybe_shrink_isr(self.context.clock.monotonic_ms() + 10 * lag_max_ms)

    def expire_awaited(self) -> None:
        """Ends the wait of all produce requests in the gate, as if their deadlines had come."""
        self.twin.broker.parts.gate.expire_awaited(at_once=True)

    def set_min_insync_replicas(self, topic_partition, count: int) -> None:
        partition = self.manager.partitions[topic_partition]
        partition.min_insync_replicas = count
        if partition.is_leader:
            partition.maybe_increment_high_watermark(self.context.clock.monotonic_ms())

    def throttle(self, topic_partition: TopicPartition, is_throttled: bool, bound: float) -> None:
        """Lists the partition as throttled, or not, and sets the quota of all throttled partitions (KIP-73)."""
        self.throttles.leader.bound = bound
        self.manager.partitions[topic_partition].leader_throttle = self.throttles.leader if is_throttled else None

    def replicated_rate(self) -> float:
        """Returns the rate at which followers read throttled partitions."""
        return self.throttles.leader.rate(self.context.clock.monotonic_ms())

    @property
    def throttles(self) -> ReplicationThrottles:
        return self.manager.hosted.throttles

    def state(self, partitions: list[TopicPartition]) -> list[object]:
        """Returns everything that followers, the controller and the metadata have changed."""
        found: list[object] = [change._replace(topic_id=b"") for change, _ in self.controller.asked]
        for topic_partition in partitions:
            partition = self.manager.partitions[topic_partition]
            log, isr = partition.log, partition.isr_state
            replicas = [
                (each.broker_id, each.log_start_offset, each.log_end_offset, each.last_fetch_leader_end_offset,
                 each.broker_epoch, each.is_in_maximal_isr)
                for each in partition.remote_replicas.values()
            ]  # fmt: skip
            found.append(
                (topic_partition, log.log_start_offset, log.high_watermark, log.log_end_offset, partition.is_leader,
                 partition.leader_epoch, partition.partition_epoch, sorted(isr.isr), sorted(isr.maximal_isr),
                 isr.is_in_flight, replicas)
            )  # fmt: skip
        return found
