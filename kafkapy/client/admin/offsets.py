"""Operations on the offsets of partitions: look them up by time or at the ends, delete earlier records."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from kafkapy.client.admin.lookups import AdminLookups, as_partition_keys
from kafkapy.client.admin.requests import AdminRequest, constant, error_of
from kafkapy.client.admin.results import Results
from kafkapy.client.offset_lookup import OffsetAndTimestamp
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.delete_records import DeleteRecordsRequest
from kafkapy.protocol.messages.list_offsets import ListOffsetsRequest
from kafkapy.types import TopicPartition, by_topic

# The values of `list_offsets` that are not timestamps in ms since 1970.
LATEST: Final = -1  # the offset after the last record
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3  # the record with the greatest timestamp (KIP-734)
EARLIEST_LOCAL: Final = -4  # the first one that is not in remote storage only (KIP-405)
LATEST_TIERED: Final = -5  # the last one in remote storage (KIP-1005)
EARLIEST_PENDING_UPLOAD: Final = -6  # the first one that is not in remote storage yet (KIP-1023)
_VERSION_OF_SEGMENTS = 0  # the only version of ListOffsets that returns several offsets
_SINCE_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}


class OffsetOperations(AdminLookups):
    """Operations on offsets of partitions."""

    def list_offsets(
        self,
        partitions: Mapping[TopicPartition, int],
        *,
        read_committed: bool = False,
        timeout: float | None = None,
    ) -> Results[TopicPartition, OffsetAndTimestamp]:
        """Returns the offset of each partition at a timestamp, or at LATEST, EARLIEST and so on. Blocks.

        `partitions` maps each partition to a timestamp in ms since 1970 or to one of these constants. The offset at a
        timestamp is that of the first record with this timestamp or a later one, -1 if there is no such record. With
        `read_committed` LATEST is the last stable offset, at which the first open transaction begins.
        """
        wanted = as_partition_keys(partitions)
        deadline_ms = self._deadline_ms(timeout)

        def make_request(node_id: int, keys: list[TopicPartition]) -> AdminRequest:
            def build(version: int) -> ListOffsetsRequest:
                if version < max(_SINCE_VERSION.get(wanted[topic_partition], 0) for topic_partition in keys):
                    raise ApiError(Error.UNSUPPORTED_VERSION, "The broker does not know this kind of offset.")
                return _list_offsets(
                    {topic_partition: wanted[topic_partition] for topic_partition in keys},
                    int(read_committed) if version >= 2 else 0,
                    self._left_ms(deadline_ms) if version >= 10 else 0,
                )

            return AdminRequest(self._broker(node_id), ApiKey.LIST_OFFSETS, build)

        def read_response(
            response: Any, keys: Collection[TopicPartition]
        ) -> Results[TopicPartition, OffsetAndTimestamp]:
            results: Results[TopicPartition, OffsetAndTimestamp] = Results()
            for topic in response.topics:
                for result in topic.partitions:
                    found = OffsetAndTimestamp(result.offset, result.timestamp, result.leader_epoch)
                    results.put(TopicPartition(topic.name, result.partition_index), error_of(result) or found)
            return results

        return self._request_by_key(list(wanted), self._find_leaders, make_request, read_response, deadline_ms)

    def list_segment_offsets(
        self, partitions: Mapping[TopicPartition, int], limit: int, *, timeout: float | None = None
    ) -> Results[TopicPartition, list[int]]:
        """Returns offsets of each partition: the end of the log and the first offset of each segment. Blocks.

        The result has at most `limit` offsets, the greatest first. `partitions` maps each partition to LATEST for all
        these offsets, to EARLIEST for the first offset of the log only, or to a timestamp in ms since 1970 for the
        segments that were last written at or before it. Apache Kafka 4 no longer has this request: the error is then
        UNSUPPORTED_VERSION.
        """
        wanted = as_partition_keys(partitions)
        deadline_ms = self._deadline_ms(timeout)

        def make_request(node_id: int, keys: list[TopicPartition]) -> AdminRequest:
            request = _list_offsets({each: wanted[each] for each in keys}, 0, 0, limit)
            return AdminRequest(
                self._broker(node_id), ApiKey.LIST_OFFSETS, constant(request), highest=_VERSION_OF_SEGMENTS
            )

        def read_response(response: Any, keys: Collection[TopicPartition]) -> Results[TopicPartition, list[int]]:
            results: Results[TopicPartition, list[int]] = Results()
            for topic in response.topics:
                for result in topic.partitions:
                    found = list(result.old_style_offsets)
                    results.put(TopicPartition(topic.name, result.partition_index), error_of(result) or found)
            return results

        return self._request_by_key(list(wanted), self._find_leaders, make_request, read_response, deadline_ms)

    def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> Results[TopicPartition, int]:
        """Deletes the records before the given offset of each partition, or all records for -1. Blocks.

        The results are the new low watermarks.
        """
        wanted = as_partition_keys(offsets)
        deadline_ms = self._deadline_ms(timeout)

        def make_request(node_id: int, keys: list[TopicPartition]) -> AdminRequest:
            topics = [
                DeleteRecordsRequest.DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsRequest.DeleteRecordsPartition(
                            partition_index=number, offset=wanted[TopicPartition(topic, number)]
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(keys).items()
            ]
            return AdminRequest(
                self._broker(node_id),
                ApiKey.DELETE_RECORDS,
                lambda version: DeleteRecordsRequest(topics=topics, timeout_ms=self._left_ms(deadline_ms)),
            )

        def read_response(response: Any, keys: Collection[TopicPartition]) -> Results[TopicPartition, int]:
            results: Results[TopicPartition, int] = Results()
            for topic in response.topics:
                for result in topic.partitions:
                    topic_partition = TopicPartition(topic.name, result.partition_index)
                    results.put(topic_partition, error_of(result) or result.low_watermark)
            return results

        return self._request_by_key(list(wanted), self._find_leaders, make_request, read_response, deadline_ms)


def _list_offsets(
    wanted: Mapping[TopicPartition, int], isolation_level: int, timeout_ms: int, limit: int = 1
) -> ListOffsetsRequest:
    topics = [
        ListOffsetsRequest.ListOffsetsTopic(
            name=topic,
            partitions=[
                ListOffsetsRequest.ListOffsetsPartition(
                    partition_index=number, timestamp=wanted[TopicPartition(topic, number)], max_num_offsets=limit
                )
                for number in numbers
            ],
        )
        for topic, numbers in by_topic(wanted).items()
    ]
    return ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics, timeout_ms=timeout_ms)
