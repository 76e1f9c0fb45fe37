"""Whether a position still holds under another leader (KIP-320): one who was elected uncleanly may have lost records.

The record before a position was written under some leader epoch. When a partition has a leader of a later epoch than
the position was checked under, that leader is asked where its log ends for the position's epoch. An end before the
position says that the log was cut off and written anew: the consumer has read what is not there any more.
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
# Called with a partition whose log was cut off, and where it and the consumer's agree last (None: not known).
OnTruncated = Callable[[TopicPartition, PartitionState, OffsetAndEpoch | None], None]


class PositionValidator:
    """Owns the questions on their way.  Part of the fetcher: all of it runs with the network's seat held."""

    def __init__(self, network: Network, subscription: Subscription, on_truncated: OnTruncated) -> None:
        self._network = network
        self._subscription = subscription
        self._on_truncated = on_truncated
        self._wanted: dict[int, dict[TopicPartition, int]] = {}  # leader -> partition -> its epoch

    def holds(self, where: TopicPartition, state: PartitionState, leader: int, leader_epoch: int) -> bool:
        """Whether the partition may be fetched from this leader now; if not, `ask` will ask."""
        if state.checked_epoch == leader_epoch or leader_epoch < 0:
            return True
        if state.is_checking:
            return False
        if state.leader_epoch < 0 or state.leader_epoch >= leader_epoch:
            state.checked_epoch = leader_epoch
            return True
        if state.buffers or state.fetch_offset != state.position:
            # What was fetched ahead came from the old leader: it is fetched again once the position is checked.
            checked, epoch = state.checked_epoch, state.leader_epoch
            state.jump(state.position, epoch)
            state.checked_epoch = checked
        self._wanted.setdefault(leader, {})[where] = leader_epoch
        return False

    def ask(self) -> None:
        """Sends what `holds` has found to be asked."""
        for leader, partitions in self._wanted.items():
            self._ask(leader, partitions)
        self._wanted.clear()

    def _ask(self, leader: int, partitions: dict[TopicPartition, int]) -> None:
        states = {where: self._subscription.partitions[where] for where in partitions}
        generations = {where: state.generation for where, state in states.items()}
        asked = {where: state.leader_epoch for where, state in states.items()}
        for state in states.values():
            state.is_checking = True

        def build(version: int) -> OffsetForLeaderEpochRequest:
            topics: dict[str, list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition]] = {}
            for where, epoch in partitions.items():
                partition = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                    partition=where.partition, current_leader_epoch=epoch, leader_epoch=asked[where]
                )
                topics.setdefault(where.topic, []).append(partition)
            return OffsetForLeaderEpochRequest(
                replica_id=_CONSUMER,
                topics=[
                    OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=name, partitions=each)
                    for name, each in topics.items()
                ],
            )

        def answered(response: OffsetForLeaderEpochResponse | None, version: int, error: Exception | None) -> None:
            told = {
                TopicPartition(topic.topic, each.partition): each
                for topic in (response.topics if response is not None else ())
                for each in topic.partitions
            }
            is_unknown = isinstance(error, ApiError) and error.error is Error.UNSUPPORTED_VERSION
            for where, state in states.items():
                state.is_checking = False
                if state is not self._subscription.partitions.get(where) or state.generation != generations[where]:
                    continue  # gone, or it reads elsewhere by now
                if is_unknown:
                    state.checked_epoch = partitions[where]  # nobody to ask: taken for granted
                else:
                    self._heed(where, state, partitions[where], told.get(where))

        self._network.submit(leader, ApiKey.OFFSET_FOR_LEADER_EPOCH, build, answered)

    def _heed(
        self,
        where: TopicPartition,
        state: PartitionState,
        leader_epoch: int,
        told: OffsetForLeaderEpochResponse.EpochEndOffset | None,
    ) -> None:
        if state.position is None:
            return
        if told is None or told.error_code:
            # Another leader by now, or one that cannot say: asked again.
            state.not_before_ms = self._network.clock.monotonic_ms() + self._network.retry_backoff.pause_ms(0)
            self._network.metadata.request_update()
        elif told.end_offset < 0 or told.leader_epoch < 0:
            self._on_truncated(where, state, None)
        elif told.end_offset < state.position:
            log.info("The log of %s was cut off at %d, before position %d", where, told.end_offset, state.position)
            self._on_truncated(where, state, OffsetAndEpoch(told.end_offset, told.leader_epoch))
        else:
            state.checked_epoch = leader_epoch
