"""Checks a consumer's position after a change of leader, because an unclean election may lose records (KIP-320).

The record before a position was written under some leader epoch. When the partition's leader has a later epoch than the
one that the position was checked under, OffsetForLeaderEpoch returns the end offset of the position's epoch in the
leader's log. An end before the position means that the log was truncated: the consumer has read records that no longer
exist.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafkapy.client.network import Network
from kafkapy.client.subscription import PartitionState, Subscription
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kafkapy.types import OffsetAndEpoch, TopicPartition

log = logging.getLogger("kafkapy.client")

_CONSUMER = -1
# Called with a partition whose log was truncated, and the offset from which the logs differ (None: not known).
OnTruncated = Callable[[TopicPartition, PartitionState, OffsetAndEpoch | None], None]


class PositionValidator:
    """The requests that check the positions of one consumer.

    The class is a part of the fetcher, which calls it while it holds `Network.lock`, the lock of the client's network
    loop.
    """

    def __init__(self, network: Network, subscription: Subscription, on_truncated: OnTruncated) -> None:
        self._network = network
        self._subscription = subscription
        self._on_truncated = on_truncated
        self._wanted: dict[int, dict[TopicPartition, int]] = {}  # leader -> partition -> its epoch

    def may_fetch(self, topic_partition: TopicPartition, state: PartitionState, leader: int, leader_epoch: int) -> bool:
        """Returns whether the position is valid under this leader and may be fetched from.

        If this is not known, returns False and remembers the position, so that `send_requests` asks the leader.
        """
        if state.checked_epoch == leader_epoch or leader_epoch < 0:
            return True
        if state.is_checking:
            return False
        if state.leader_epoch < 0 or state.leader_epoch >= leader_epoch:
            state.checked_epoch = leader_epoch
            return True
        if state.buffers or state.fetch_offset != state.position:
            # Buffered records came from the old leader; they are fetched again after the check.
            checked, epoch = state.checked_epoch, state.leader_epoch
            state.jump(state.position, epoch)
            state.checked_epoch = checked
        self._wanted.setdefault(leader, {})[topic_partition] = leader_epoch
        return False

    def send_requests(self) -> None:
        """Sends the requests for the positions that `may_fetch` could not confirm."""
        for leader, partitions in self._wanted.items():
            self._request(leader, partitions)
        self._wanted.clear()

    def _request(self, leader: int, partitions: dict[TopicPartition, int]) -> None:
        states = {topic_partition: self._subscription.partitions[topic_partition] for topic_partition in partitions}
        generations = {topic_partition: state.generation for topic_partition, state in states.items()}
        epochs = {topic_partition: state.leader_epoch for topic_partition, state in states.items()}
        for state in states.values():
            state.is_checking = True

        def build(version: int) -> OffsetForLeaderEpochRequest:
            topics: dict[str, list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition]] = {}
            for topic_partition, epoch in partitions.items():
                partition = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                    partition=topic_partition.partition,
                    current_leader_epoch=epoch,
                    leader_epoch=epochs[topic_partition],
                )
                topics.setdefault(topic_partition.topic, []).append(partition)
            return OffsetForLeaderEpochRequest(
                replica_id=_CONSUMER,
                topics=[
                    OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=name, partitions=each)
                    for name, each in topics.items()
                ],
            )

        def on_response(response: OffsetForLeaderEpochResponse | None, version: int, error: Exception | None) -> None:
            results = {
                TopicPartition(topic.topic, each.partition): each
                for topic in (response.topics if response is not None else ())
                for each in topic.partitions
            }
            is_unknown = isinstance(error, ApiError) and error.error is Error.UNSUPPORTED_VERSION
            for topic_partition, state in states.items():
                state.is_checking = False
                if (
                    state is not self._subscription.partitions.get(topic_partition)
                    or state.generation != generations[topic_partition]
                ):
                    continue  # no longer assigned, or moved by a seek
                if is_unknown:
                    state.checked_epoch = partitions[topic_partition]  # an old broker cannot check: assumed valid
                else:
                    self._on_result(topic_partition, state, partitions[topic_partition], results.get(topic_partition))

        self._network.submit(leader, ApiKey.OFFSET_FOR_LEADER_EPOCH, build, on_response)

    def _on_result(
        self,
        topic_partition: TopicPartition,
        state: PartitionState,
        leader_epoch: int,
        result: OffsetForLeaderEpochResponse.EpochEndOffset | None,
    ) -> None:
        if state.position is None:
            return
        if result is None or result.error_code:
            # The leader has changed, or does not know the epoch yet: checked again later.
            state.not_before_ms = self._network.clock.monotonic_ms() + self._network.retry_backoff.pause_ms(0)
            self._network.metadata.request_update()
        elif result.end_offset < 0 or result.leader_epoch < 0:
            self._on_truncated(topic_partition, state, None)
        elif result.end_offset < state.position:
            log.info(
                "The log of %s was truncated to %d, before position %d",
                topic_partition,
                result.end_offset,
                state.position,
            )
            self._on_truncated(topic_partition, state, OffsetAndEpoch(result.end_offset, result.leader_epoch))
        else:
            state.checked_epoch = leader_epoch
