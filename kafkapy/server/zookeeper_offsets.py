"""Reads and writes offsets of consumer groups in the znodes of `zookeeper.listener`, on the broker that serves them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy.errors import Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.internal_topics import ZOOKEEPER_TREE_TOPIC
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest
from kafkapy.server.broker_requests import BrokerRequests
from kafkapy.types import TopicPartition, by_topic
from kafkapy.zookeeper.consumer_offsets import ConsumerOffsets

PURPOSE = "zookeeper-offsets"
_VERSION = 0

# The answers for partitions: an error; or an offset and an error.
CommitErrors = dict[TopicPartition, Error]
Offsets = dict[TopicPartition, tuple[int, Error]]


class ZooKeeperOffsets:
    """Reads and writes group offsets in the znodes, which one broker of the cluster serves. Only the reactor's thread
    may use it.

    `local` returns the offsets if this broker serves the znodes, otherwise None. `find_leader` returns the id of the
    other broker that serves the znodes; None if this broker serves them, or no broker does. `make_requests` constructs
    an object that sends requests to other brokers.
    """

    def __init__(
        self,
        local: Callable[[], ConsumerOffsets | None],
        find_leader: Callable[[], int | None],
        make_requests: Callable[[], BrokerRequests],
    ) -> None:
        self._local = local
        self._find_leader = find_leader
        self._make_requests = make_requests
        self._requests: BrokerRequests | None = None

    def commit(
        self,
        group_id: str,
        offsets: dict[TopicPartition, int],
        on_done: Callable[[CommitErrors], None],
        *,
        may_forward: bool,
    ) -> None:
        """Writes the offsets of a group; calls `on_done` with {partition: error}, in which NONE means success.

        If another broker serves the znodes, forwards the request to that broker. The error is COORDINATOR_NOT_AVAILABLE
        if no broker serves the znodes, or if the request would have to be forwarded and `may_forward` is False.
        `may_forward` is False for a request that another broker has forwarded to this one.
        """
        local = self._local()
        if local is not None:
            _commit_locally(local, group_id, offsets, on_done)
            return

        def answered(response: Any, error: Error) -> None:
            errors = dict.fromkeys(offsets, Error.COORDINATOR_NOT_AVAILABLE)
            for topic in () if response is None else response.topics:
                for each in topic.partitions:
                    errors[TopicPartition(topic.name, each.partition_index)] = Error.of(each.error_code)
            on_done(errors)

        topics = [
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=number,
                        committed_offset=offsets[TopicPartition(topic, number)],
                        committed_metadata="",
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(offsets).items()
        ]
        request = OffsetCommitRequest(group_id=group_id, topics=topics)
        self._forward(request, ApiKey.OFFSET_COMMIT, answered, may_forward=may_forward)

    def fetch(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition],
        on_done: Callable[[Offsets], None],
        *,
        may_forward: bool,
    ) -> None:
        """Reads the offsets of a group; calls `on_done` with {partition: (offset, error)}; the offset is -1 if unknown.

        If another broker serves the znodes, forwards the request to that broker. The error is COORDINATOR_NOT_AVAILABLE
        if no broker serves the znodes, or if the request would have to be forwarded and `may_forward` is False.
        `may_forward` is False for a request that another broker has forwarded to this one.
        """
        local = self._local()
        if local is not None:
            local.fetch(group_id, partitions, on_done)
            return

        def answered(response: Any, error: Error) -> None:
            found = dict.fromkeys(partitions, (-1, Error.COORDINATOR_NOT_AVAILABLE))
            for topic in () if response is None else response.topics:
                for each in topic.partitions:
                    partition = TopicPartition(topic.name, each.partition_index)
                    found[partition] = (each.committed_offset, Error.of(each.error_code))
            on_done(found)

        topics = [
            OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=list(numbers))
            for topic, numbers in by_topic(partitions).items()
        ]
        request = OffsetFetchRequest(group_id=group_id, topics=topics)
        self._forward(request, ApiKey.OFFSET_FETCH, answered, may_forward=may_forward)

    def _forward(
        self, request: Message, key: ApiKey, on_answer: Callable[[Any, Error], None], *, may_forward: bool
    ) -> None:
        leader = self._find_leader() if may_forward else None
        if leader is None:
            on_answer(None, Error.COORDINATOR_NOT_AVAILABLE)
            return
        if self._requests is None:
            self._requests = self._make_requests()
        self._requests.send(leader, request, key, on_answer, highest=_VERSION)


def _commit_locally(
    local: ConsumerOffsets,
    group_id: str,
    offsets: dict[TopicPartition, int],
    on_done: Callable[[CommitErrors], None],
) -> None:
    errors: CommitErrors = {}

    def committed(partition: TopicPartition, error: Error) -> None:
        errors[partition] = error
        if len(errors) == len(offsets):
            on_done(errors)

    for partition, offset in offsets.items():
        local.commit(group_id, partition, offset, partial(committed, partition))


def tree_leader(image: MetadataImage, own_id: int) -> int | None:
    """Returns the id of the broker that serves the znodes: the leader of the partition that stores them.

    Returns None if the broker `own_id` serves the znodes, or if the partition has no leader.
    """
    partition = image.topics.partition(ZOOKEEPER_TREE_TOPIC, 0)
    return None if partition is None or partition.leader in (-1, own_id) else int(partition.leader)
