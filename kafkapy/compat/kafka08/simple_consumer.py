"""The low-level consumer of Apache Kafka 0.8: the caller names broker, partitions and offsets in each request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from kafkapy._core.client.fetched_records import FetchedRecords
from kafkapy.client.admin.lookups import AdminLookups
from kafkapy.client.closing import Closing
from kafkapy.client.cluster import Node
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.protocol.messages.list_offsets import ListOffsetsRequest
from kafkapy.types import TopicPartition, by_topic

EARLIEST_TIME, LATEST_TIME = -2, -1
_GIVEN = -1  # the id of the only address in bootstrap.servers
_DEFAULT_TIMEOUT_MS, _DEFAULT_BUFFER_BYTES = 30_000, 64 * 1024


class MessageAndOffset(NamedTuple):
    """A message and its offset; `next_offset` is the offset to fetch the next message from."""

    offset: int
    key: bytes | None
    message: bytes | None

    @property
    def next_offset(self) -> int:
        return self.offset + 1


class FetchedMessages(NamedTuple):
    """The result of a fetch for one partition: the error, the high watermark, the size in bytes and the messages."""

    error: Error
    high_watermark: int
    size_in_bytes: int
    messages: tuple[MessageAndOffset, ...]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.messages)


class _Connection(AdminLookups):
    """The connection of a SimpleConsumer; requests go to the broker at one address."""

    def __init__(self, host: str, port: int, timeout_ms: int, buffer_bytes: int, client_id: str) -> None:
        super().__init__(
            {
                "bootstrap.servers": f"{host}:{port}",
                "client.id": client_id,
                "request.timeout.ms": timeout_ms,
                "default.api.timeout.ms": timeout_ms,
                "receive.buffer.bytes": buffer_bytes,
            }
        )
        # The connection to the given address stays, also if the broker advertises another one.
        self._network.coordinators[_GIVEN] = Node(_GIVEN, host, port)

    def leader_and_topics(self, topics: Sequence[str] | None) -> Any:
        """Returns the metadata of topics (None: of all). Blocks."""
        return self._metadata(topics, self._deadline_ms(None))

    def ask(self, key: ApiKey, request: Any) -> Any:
        """Sends a request to the broker at the address and returns the response. Blocks."""
        return self._request(lambda _: _GIVEN, key, lambda version: request, deadline_ms=self._deadline_ms(None))


class SimpleConsumer(Closing):
    """Fetches from chosen offsets of chosen partitions, from one broker. Thread-safe.

    The caller finds the leaders of the partitions and the offsets at which to start. When the leader of
    a partition changes, the old leader responds with NOT_LEADER_OR_FOLLOWER, and the caller makes a SimpleConsumer for
    the new leader. `so_timeout` is in ms.
    """

    def __init__(
        self,
        host: str,
        port: int,
        so_timeout: int = _DEFAULT_TIMEOUT_MS,
        buffer_size: int = _DEFAULT_BUFFER_BYTES,
        client_id: str = "simple-consumer",
    ) -> None:
        self._connection = _Connection(host, port, so_timeout, buffer_size, client_id)
        self._so_timeout = so_timeout

    def topic_metadata(self, topics: Sequence[str] | None = None) -> dict[str, dict[int, tuple[str, int] | None]]:
        """Returns the address of each partition's leader, None for a partition without one. Blocks.

        Raises ApiError for a topic that does not exist.
        """
        response = self._connection.leader_and_topics(topics)
        brokers = {each.node_id: (each.host, each.port) for each in response.brokers}
        found = {}
        for topic in response.topics:
            if topic.error_code:
                raise ApiError(Error.of(topic.error_code), f"Topic {topic.name}")
            found[topic.name] = {each.partition_index: brokers.get(each.leader_id) for each in topic.partitions}
        return found

    def offsets_before(self, topic: str, partition: int, time: int, max_offsets: int = 1) -> list[int]:
        """Returns the offset at a time: EARLIEST_TIME, LATEST_TIME, or ms since 1970. Blocks.

        The list has at most one offset, because brokers since 0.10.1 return only one. It is empty if no message has
        this timestamp or a later one. Raises ApiError.
        """
        wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition, timestamp=time)
        topics = [ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[wanted])]
        request = ListOffsetsRequest(replica_id=-1, topics=topics)
        (found,) = self._connection.ask(ApiKey.LIST_OFFSETS, request).topics[0].partitions
        if found.error_code:
            raise ApiError(Error.of(found.error_code), f"Offsets of {topic}-{partition}")
        return [found.offset][:max_offsets] if found.offset >= 0 else []

    def fetch(
        self, wanted: Iterable[tuple[str, int, int, int]], *, max_wait_ms: int = 0, min_bytes: int = 0
    ) -> dict[TopicPartition, FetchedMessages]:
        """Fetches messages. Each element of `wanted` is (topic, partition, offset, greatest number of bytes). Blocks.

        Messages before the offset, which a compressed batch may contain, are removed. At least one batch is returned
        even if it is larger than the limit.
        """
        offsets = {TopicPartition(topic, number): (offset, size) for topic, number, offset, size in wanted}
        metadata = self._connection.leader_and_topics(sorted({each.topic for each in offsets}))
        ids = {topic.name: topic.topic_id for topic in metadata.topics}
        names = {topic_id: name for name, topic_id in ids.items()}
        topics = [
            FetchRequest.FetchTopic(
                topic_id=ids[name],
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=number,
                        fetch_offset=offsets[TopicPartition(name, number)][0],
                        partition_max_bytes=offsets[TopicPartition(name, number)][1],
                    )
                    for number in numbers
                ],
            )
            for name, numbers in by_topic(offsets).items()
        ]
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=sum(size for _, size in offsets.values()),
            topics=topics,
            session_epoch=-1,
        )
        response = self._connection.ask(ApiKey.FETCH, request)
        if response.error_code:
            raise ApiError(Error.of(response.error_code), "Fetch")
        found = {}
        for topic in response.responses:
            for data in topic.partitions:
                partition = TopicPartition(names[topic.topic_id], data.partition_index)
                found[partition] = _messages(partition, offsets[partition][0], data)
        return found

    def close(self) -> None:
        """Closes the connections. May be called again."""
        self._connection.close()


def _messages(partition: TopicPartition, offset: int, data: Any) -> FetchedMessages:
    error = Error.of(data.error_code)
    if data.records is None or not len(data.records):
        return FetchedMessages(error, data.high_watermark, 0, ())
    records = FetchedRecords(data.records, partition.topic, partition.partition, offset)
    taken = records.take(len(data.records))
    messages = tuple(MessageAndOffset(each.offset, each.key, each.value) for each in taken)
    return FetchedMessages(error, data.high_watermark, len(data.records), messages)
