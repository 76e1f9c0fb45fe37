"""Finds offsets by time, the earliest and the latest ones: ListOffsets, to the leaders of the partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kafkapy.client.cluster import NO_LEADER
from kafkapy.client.network import Network
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkapy.types import TopicPartition


class OffsetAndTimestamp(NamedTuple):
    """A record's offset, its timestamp in ms since 1970 (-1: not asked by time), its leader's epoch (-1: unknown)."""

    offset: int
    timestamp: int
    leader_epoch: int


MORE_THAN_EVER_MS = 1 << 62
Found = Callable[[TopicPartition, OffsetAndTimestamp | None, ApiError | None], None]


def look_up(network: Network, wanted: Mapping[TopicPartition, int], isolation_level: int, on_found: Found) -> None:
    """Asks for the offset at a timestamp (-1 latest, -2 earliest) of each partition, once; the seat is held.

    `on_found(partition, found, error)` is called for each, perhaps at once; `found` is None if no record is so late.
    A partition without a known leader gets LEADER_NOT_AVAILABLE, and new metadata are asked for.
    """
    by_leader: dict[int, list[TopicPartition]] = {}
    for where in wanted:
        by_leader.setdefault(network.cluster.leader(*where), []).append(where)
    for leader, partitions in by_leader.items():
        if leader == NO_LEADER:
            network.metadata.request_update()
            for where in partitions:
                on_found(where, None, ApiError(Error.LEADER_NOT_AVAILABLE))
        else:
            _ask(network, leader, {where: wanted[where] for where in partitions}, isolation_level, on_found)


def _ask(
    network: Network, leader: int, wanted: dict[TopicPartition, int], isolation_level: int, on_found: Found
) -> None:
    def build(version: int) -> ListOffsetsRequest:
        topics: dict[str, list[ListOffsetsRequest.ListOffsetsPartition]] = {}
        for where, timestamp in wanted.items():
            partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=where.partition, timestamp=timestamp)
            topics.setdefault(where.topic, []).append(partition)
        named = [ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()]
        isolation = isolation_level if version >= 2 else 0
        wait_ms = network.request_timeout_ms if version >= 10 else 0  # for what lies in remote storage
        return ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=named, timeout_ms=wait_ms)

    def answered(response: ListOffsetsResponse | None, version: int, error: Exception | None) -> None:
        left = dict(wanted)
        for topic in response.topics if response is not None else ():
            for told in topic.partitions:
                where = TopicPartition(topic.name, told.partition_index)
                if left.pop(where, None) is None:
                    continue
                if told.error_code:
                    network.metadata.request_update()
                    on_found(where, None, ApiError(Error.of(told.error_code)))
                elif told.offset < 0:
                    on_found(where, None, None)
                else:
                    on_found(where, OffsetAndTimestamp(told.offset, told.timestamp, told.leader_epoch), None)
        failure = error if isinstance(error, ApiError) else ApiError(Error.NETWORK_EXCEPTION, str(error))
        for where in left:
            network.metadata.request_update()
            on_found(where, None, failure)

    network.submit(leader, ApiKey.LIST_OFFSETS, build, answered)


def look_up_all(
    network: Network, wanted: Mapping[TopicPartition, int], isolation_level: int, timeout_s: float
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """Asks until every partition has answered, without the seat; None for one without so late a record. TimeoutError,
    or the ApiError that does not pass."""
    found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
    open_until: dict[TopicPartition, int] = dict.fromkeys(wanted, 0)
    failures: list[ApiError] = []

    def on_found(where: TopicPartition, each: OffsetAndTimestamp | None, error: ApiError | None) -> None:
        if error is None:
            found[where] = each
        elif error.error.retriable:
            open_until[where] = network.clock.monotonic_ms() + network.retry_backoff.pause_ms(0)
        else:
            failures.append(error)

    def is_done() -> bool:
        now = network.clock.monotonic_ms()
        due = {where: wanted[where] for where, at in open_until.items() if where not in found and at <= now}
        for where in due:
            open_until[where] = MORE_THAN_EVER_MS
        look_up(network, due, isolation_level, on_found)
        return bool(failures) or len(found) == len(wanted)

    with network.seat:
        for where in wanted:
            network.metadata.add_topic(where.topic)
    if not network.wait_until(is_done, timeout_s, poll_ms=network.retry_backoff.pause_ms(0)):
        raise network.timed_out(f"Failed to get offsets by times in {timeout_s} s")
    if failures:
        raise failures[0]
    return found
