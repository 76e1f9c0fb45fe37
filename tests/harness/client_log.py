"""Brokers in memory with the logs of partitions and one group's offsets, for consumers."""

from __future__ import annotations

from typing import Any

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.client import OffsetAndMetadata, TopicPartition
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchResponse
from kafkapy.protocol.messages.list_offsets import ListOffsetsResponse
from kafkapy.protocol.messages.offset_commit import OffsetCommitResponse
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from tests.harness.client import MemoryBrokers

IDLE_FETCH_MS = 20


class LogBrokers(MemoryBrokers):
    """Brokers whose partitions have logs of text values; the record at offset n has the timestamp 1000 + n.

    `starts`: log start offsets. `fetch_errors`, `offset_errors`, `commit_errors`: errors of a partition that are sent
    first, one per request. `committed`: the offsets of the group. A fetch returns at most `batch_records` records of a
    partition, as one batch.
    """

    def __init__(self, *, node_ids: tuple[int, ...] = (1,)) -> None:
        super().__init__(node_ids=node_ids)
        self.logs: dict[TopicPartition, list[str]] = {}
        self.starts: dict[TopicPartition, int] = {}
        self.batch_records = 10
        self.fetch_errors: dict[TopicPartition, list[Error]] = {}
        self.offset_errors: dict[TopicPartition, list[Error]] = {}
        self.commit_errors: list[Error] = []
        self.committed: dict[TopicPartition, OffsetAndMetadata] = {}
        self.fetched_offsets: list[tuple[TopicPartition, int]] = []
        self.answers |= {
            ApiKey.FETCH: self._fetch,
            ApiKey.LIST_OFFSETS: self._list_offsets,
            ApiKey.OFFSET_COMMIT: self._commit,
            ApiKey.OFFSET_FETCH: self._fetch_offsets,
        }

    def fill(self, topic: str, *logs: list[str], leader: int = 1, epoch: int = 3) -> bytes:
        """Adds a topic with these logs; returns its id."""
        for number, values in enumerate(logs):
            self.logs[TopicPartition(topic, number)] = values
        return self.add_topic(topic, [(leader, epoch)] * len(logs))

    def _fetch(self, request: Any, version: int) -> FetchResponse:
        names = {topic_id: name for name, (topic_id, _) in self.topics.items()}
        topics = []
        has_data = False
        for topic in request.topics:
            name = names[topic.topic_id] if version >= 13 else topic.topic
            partitions = [
                self._fetch_partition(TopicPartition(name, each.partition), each) for each in topic.partitions
            ]
            has_data = has_data or any(each.records or each.error_code for each in partitions)
            made = FetchResponse.FetchableTopicResponse(partitions=partitions)
            if version >= 13:
                made.topic_id = topic.topic_id
            else:
                made.topic = name
            topics.append(made)
        if not has_data:
            self.clock.advance(IDLE_FETCH_MS)
        return FetchResponse(responses=topics)

    def _fetch_partition(self, topic_partition: TopicPartition, requested: Any) -> FetchResponse.PartitionData:
        self.fetched_offsets.append((topic_partition, requested.fetch_offset))
        log, start = self.logs[topic_partition], self.starts.get(topic_partition, 0)
        result = FetchResponse.PartitionData(
            partition_index=topic_partition.partition,
            high_watermark=len(log),
            last_stable_offset=len(log),
            log_start_offset=start,
        )
        if self.fetch_errors.get(topic_partition):
            result.error_code = int(self.fetch_errors[topic_partition].pop(0))
        elif not start <= requested.fetch_offset <= len(log):
            result.error_code = int(Error.OFFSET_OUT_OF_RANGE)
        else:
            result.records = self._batch(topic_partition, requested.fetch_offset)
        return result

    def _batch(self, topic_partition: TopicPartition, offset: int) -> bytes | None:
        values = self.logs[topic_partition][offset : offset + self.batch_records]
        if not values:
            return None
        epoch = self.topics[topic_partition.topic][1][topic_partition.partition][1]
        batch = RecordBatchBuilder(offset, partition_leader_epoch=epoch)
        for index, value in enumerate(values):
            batch.append(1000 + offset + index, None, value.encode())
        return batch.build()

    def _list_offsets(self, request: Any, version: int) -> ListOffsetsResponse:
        topics = []
        for topic in request.topics:
            partitions = [
                self._offset(TopicPartition(topic.name, each.partition_index), each, version)
                for each in topic.partitions
            ]
            topics.append(ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        return ListOffsetsResponse(topics=topics)

    def _offset(self, topic_partition: TopicPartition, requested: Any, version: int) -> Any:
        result = ListOffsetsResponse.ListOffsetsPartitionResponse(
            partition_index=topic_partition.partition, offset=-1, timestamp=-1, leader_epoch=-1
        )
        log, start = self.logs[topic_partition], self.starts.get(topic_partition, 0)
        if self.offset_errors.get(topic_partition):
            result.error_code = int(self.offset_errors[topic_partition].pop(0))
            return result
        if requested.timestamp == -1:
            result.offset = len(log)
        elif requested.timestamp == -2:
            result.offset = start
        else:
            offset = max(requested.timestamp - 1000, start)
            if offset < len(log):
                result.offset, result.timestamp = offset, 1000 + offset
        if version >= 4:
            result.leader_epoch = self.topics[topic_partition.topic][1][topic_partition.partition][1]
        return result

    def _commit(self, request: Any, version: int) -> OffsetCommitResponse:
        error = int(self.commit_errors.pop(0)) if self.commit_errors else 0
        topics = []
        for topic in request.topics:
            partitions = []
            for each in topic.partitions:
                partitions.append(
                    OffsetCommitResponse.OffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=error
                    )
                )
                if not error:
                    self.committed[TopicPartition(topic.name, each.partition_index)] = OffsetAndMetadata(
                        each.committed_offset, each.committed_metadata or "", each.committed_leader_epoch
                    )
            topics.append(OffsetCommitResponse.OffsetCommitResponseTopic(name=topic.name, partitions=partitions))
        return OffsetCommitResponse(topics=topics)

    def _fetch_offsets(self, request: Any, version: int) -> OffsetFetchResponse:
        (group,) = request.groups
        requested = group.topics
        if requested is None:
            requested = [
                OffsetFetchRequest.OffsetFetchRequestTopics(name=each.topic, partition_indexes=[each.partition])
                for each in self.committed
            ]
        topics = []
        for topic in requested:
            partitions = []
            for number in topic.partition_indexes:
                found = self.committed.get(TopicPartition(topic.name, number), OffsetAndMetadata(-1))
                partitions.append(
                    OffsetFetchResponse.OffsetFetchResponsePartitions(
                        partition_index=number,
                        committed_offset=found.offset,
                        committed_leader_epoch=found.leader_epoch,
                        metadata=found.metadata,
                    )
                )
            topics.append(OffsetFetchResponse.OffsetFetchResponseTopics(name=topic.name, partitions=partitions))
        return OffsetFetchResponse(
            groups=[OffsetFetchResponse.OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)]
        )
