"""Looks up offsets by timestamp, and the earliest and latest offsets, with ListOffsets requests to the partitions'
leaders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkapy.client.cluster import NO_LEADER
from kafkapy.client.network import NEVER, Network
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkapy.types import TopicPartition


class OffsetAndTimestamp(NamedTuple):
    """The offset of a record, its timestamp and its leader epoch.

    `timestamp` is in ms since 1970, or -1 if the offset was not looked up by time; `leader_epoch` is -1 if it is
    unknown.
    """

    offset: int
    timestamp: int
    leader_epoch: int


OnFound = Callable[[TopicPartition, OffsetAndTimestamp | None, ApiError | None], None]


def look_up(network: Network, wanted: Mapping[TopicPartition, int], isolation_level: int, on_found: OnFound) -> None:
    """Requests the offset at a timestamp of each partition without retrying; called while `Network.lock` is held.

    A timestamp is in ms since 1970, -1 for the latest or -2 for the earliest offset. `on_found(partition, found,
    error)` is called for each partition, possibly before `look_up` returns; `found` is None if no record has that
    timestamp or a later one. A partition whose leader the client may not know gets TOPIC_AUTHORIZATION_FAILED.
    The caller leaves out the partitions that await metadata (`awaits_metadata`).
    """
    by_leader: dict[int, list[TopicPartition]] = {}
    for topic_partition in wanted:
        by_leader.setdefault(network.cluster.leader(*topic_partition), []).append(topic_partition)
    for leader, partitions in by_leader.items():
        if leader == NO_LEADER:
            network.metadata.request_update()
            for topic_partition in partitions:
                message = f"Not authorized to access topics: [{topic_partition.topic}]"
                on_found(topic_partition, None, ApiError(Error.TOPIC_AUTHORIZATION_FAILED, message))
        else:
            _request(
                network,
                leader,
                {topic_partition: wanted[topic_partition] for topic_partition in partitions},
                isolation_level,
                on_found,
            )


def awaits_metadata(network: Network, topic_partition: TopicPartition) -> bool:
    """Returns whether the leader is unknown and a later metadata response may name it; requests metadata in this case.

    Called while `Network.lock` is held.
    """
    if network.cluster.leader(*topic_partition) != NO_LEADER:
        return False
    if network.cluster.errors.get(topic_partition.topic) is Error.TOPIC_AUTHORIZATION_FAILED:
        return False
    network.metadata.ensure_update()
    return True


def _request(
    network: Network, leader: int, wanted: dict[TopicPartition, int], isolation_level: int, on_found: OnFound
) -> None:
    def build(version: int) -> ListOffsetsRequest:
        topics: dict[str, list[ListOffsetsRequest.ListOffsetsPartition]] = {}
        for topic_partition, timestamp in wanted.items():
            partition = ListOffsetsRequest.ListOffsetsPartition(
                partition_index=topic_partition.partition, timestamp=timestamp
            )
            topics.setdefault(topic_partition.topic, []).append(partition)
        named = [ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()]
        isolation = isolation_level if version >= 2 else 0
        wait_ms = network.request_timeout_ms if version >= 10 else 0  # for reads from remote storage
        return ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=named, timeout_ms=wait_ms)

    def on_response(response: ListOffsetsResponse | None, version: int, error: Exception | None) -> None:
        left = dict(wanted)
        for topic in response.topics if response is not None else ():
            for result in topic.partitions:
                topic_partition = TopicPartition(topic.name, result.partition_index)
                if left.pop(topic_partition, None) is None:
                    continue
                if result.error_code:
                    network.metadata.request_update()
                    on_found(topic_partition, None, ApiError(Error.of(result.error_code)))
                elif result.offset < 0:
                    on_found(topic_partition, None, None)
                else:
                    on_found(
                        topic_partition, OffsetAndTimestamp(result.offset, result.timestamp, result.leader_epoch), None
                    )
        failure = error if isinstance(error, ApiError) else ApiError(Error.NETWORK_EXCEPTION, str(error))
        for topic_partition in left:
            network.metadata.request_update()
            on_found(topic_partition, None, failure)

    network.submit(leader, ApiKey.LIST_OFFSETS, build, on_response)


def look_up_all(
    network: Network, wanted: Mapping[TopicPartition, int], isolation_level: int, timeout_s: float
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """Returns the offset at a timestamp of each partition; None if no record has that timestamp or a later one.

    `wanted` has the timestamps: ms since 1970, -1 for the latest or -2 for the earliest offset. Blocks; the caller must
    not hold `Network.lock`. The function waits for the leaders to be known. After a retriable error it waits for the
    backoff and for new metadata, because the leader may have changed, and repeats the request. Raises an ApiError that
    is not retriable, and RequestTimedOut after `timeout_s` seconds.
    """
    found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
    # The monotonic time (ms) and the number of metadata responses from which a partition may be looked up again.
    retry_from: dict[TopicPartition, tuple[int, int]] = dict.fromkeys(wanted, (0, 0))
    failures: list[ApiError] = []

    def on_found(topic_partition: TopicPartition, each: OffsetAndTimestamp | None, error: ApiError | None) -> None:
        if error is None:
            found[topic_partition] = each
        elif error.error.retriable:
            pause_ms = network.retry_backoff.pause_ms(0)
            retry_from[topic_partition] = network.clock.monotonic_ms() + pause_ms, network.metadata.updates + 1
        else:
            failures.append(error)

    def is_done() -> bool:
        now = network.clock.monotonic_ms()
        due = {
            topic_partition: wanted[topic_partition]
            for topic_partition, (from_ms, from_update) in retry_from.items()
            if topic_partition not in found
            and from_ms <= now
            and from_update <= network.metadata.updates
            and not awaits_metadata(network, topic_partition)
        }
        for topic_partition in due:
            retry_from[topic_partition] = NEVER, 0
        look_up(network, due, isolation_level, on_found)
        return bool(failures) or len(found) == len(wanted)

    with network.lock:
        for topic_partition in wanted:
            network.metadata.add_topic(topic_partition.topic)
    if not network.wait_until(is_done, timeout_s, poll_ms=network.retry_backoff.pause_ms(0)):
        raise network.timed_out(f"Failed to get offsets by times in {timeout_s} s")
    if failures:
        raise failures[0]
    return found
