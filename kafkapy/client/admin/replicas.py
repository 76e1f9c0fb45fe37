"""Reads the batches of single replicas, also those of followers, to compare them."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.client.admin.lookups import AdminLookups
from kafkapy.client.admin.requests import AdminRequest, error_of, top_level_error
from kafkapy.client.admin.results import Results
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.types import TopicPartition

# The replica id of a program that compares replicas. Followers answer a Fetch with this id too.
DEBUGGING_CONSUMER = -2
_STATE_FROM_VERSION = 15


class ReplicaBatches(NamedTuple):
    """The batches that a replica has from an offset on, and its high watermark."""

    records: bytes
    high_watermark: int


class ReplicaOperations(AdminLookups):
    """Operations on single replicas."""

    def fetch_replica(
        self,
        broker: int,
        offsets: Mapping[TopicPartition, int],
        topic_ids: Mapping[str, bytes],
        *,
        max_bytes: int = 1 << 20,
        max_wait_ms: int = 0,
        timeout: float | None = None,
    ) -> Results[TopicPartition, ReplicaBatches]:
        """Returns the batches of a broker's replicas from these offsets on, below their high watermarks. Blocks.

        `topic_ids` has the id of each topic; `max_bytes` limits the batches of one partition.
        """
        topics: dict[str, FetchRequest.FetchTopic] = {}
        for (name, number), offset in offsets.items():
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = FetchRequest.FetchTopic(topic=name, topic_id=topic_ids[name], partitions=[])
            topic.partitions.append(
                FetchRequest.FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=max_bytes)
            )

        def build(version: int) -> FetchRequest:
            request = FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=list(topics.values()))
            if version >= _STATE_FROM_VERSION:
                request.replica_state = FetchRequest.ReplicaState(replica_id=DEBUGGING_CONSUMER)
            else:
                request.replica_id = DEBUGGING_CONSUMER
            return request

        names = {topic_ids[name]: name for name in topics}
        sent = AdminRequest(self._broker(broker), ApiKey.FETCH, build, top_level_error)
        self._send_all([sent], self._deadline_ms(timeout))
        results: Results[TopicPartition, ReplicaBatches] = Results()
        response = sent.result()
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for each in topic.partitions:
                key = TopicPartition(name, each.partition_index)
                found = ReplicaBatches(bytes(each.records or b""), each.high_watermark)
                results.put(key, error_of(each) or found)
        for key in offsets:
            if key not in results.values and key not in results.errors:
                results.errors[key] = ApiError(Error.UNKNOWN_SERVER_ERROR, "The response lacks the partition.")
        return results
