"""The end offsets of partitions, from the logs of this broker or by ListOffsets from the partition's leader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkapy.errors import Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.topics_image import NO_LEADER
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.list_offsets import ListOffsetsRequest
from kafkapy.replica.list_offsets import LATEST_TIMESTAMP
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.server.broker_requests import BrokerRequests
from kafkapy.types import TopicPartition


class ClusterEndOffsets:
    """The end offsets of all partitions; implements the coordinator's EndOffsets. Only the reactor's thread may use
    it."""

    def __init__(
        self,
        manager: ReplicaManager,
        node_id: int,
        image: Callable[[], MetadataImage],
        make_requests: Callable[[], BrokerRequests],
    ) -> None:
        """`make_requests` is called once, when the first request to another broker has to be sent. It returns the
        object that sends these requests."""
        self._manager = manager
        self._node_id = node_id
        self._image = image
        self._make_requests = make_requests
        self._requests: BrokerRequests | None = None

    def find(self, partition: TopicPartition, on_offset: Callable[[int], None]) -> None:
        """Calls `on_offset` with the high watermark of the partition, or with -1 if it cannot be found out."""
        here = self._manager.find_partition(partition)
        if not isinstance(here, Error) and here.is_leader:
            on_offset(here.log.high_watermark)
            return
        state = self._image().topics.partition(partition.topic, partition.partition)
        if state is None or state.leader in (NO_LEADER, self._node_id):
            on_offset(-1)
            return
        if self._requests is None:
            self._requests = self._make_requests()
        kind = ListOffsetsRequest
        asked = kind.ListOffsetsPartition(partition_index=partition.partition, timestamp=LATEST_TIMESTAMP)
        request = kind(replica_id=-1, topics=[kind.ListOffsetsTopic(name=partition.topic, partitions=[asked])])

        def answered(response: Any, error: Error) -> None:
            found = [] if response is None else [each for topic in response.topics for each in topic.partitions]
            on_offset(found[0].offset if len(found) == 1 and not found[0].error_code else -1)

        self._requests.send(state.leader, request, ApiKey.LIST_OFFSETS, answered)
