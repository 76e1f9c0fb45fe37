"""A waiting fetch of many partitions: an event on one partition does not make it look at the others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafkapy.errors import Error
from kafkapy.purgatory.purgatory import Purgatory
from kafkapy.replica.delayed_fetch import DelayedFetch
from kafkapy.replica.fetch import FetchParams
from kafkapy.types import TopicPartition
from tests.mock_scheduler import MockScheduler

COUNT = 1000


class Partitions:
    """Partitions whose log ends are numbers; one byte for each offset. `looks` counts how often one is looked up."""

    def __init__(self) -> None:
        self.ends = dict.fromkeys((TopicPartition("t", number) for number in range(COUNT)), 10)
        self.lost: set[TopicPartition] = set()
        self.looks = 0

    def find(self, key: TopicPartition) -> Any:
        self.looks += 1
        if key in self.lost:
            return Error.NOT_LEADER_OR_FOLLOWER
        end = self.ends[key]
        log = SimpleNamespace(offset_metadata=_place, position_delta=lambda start, end: end.offset - start.offset)
        return SimpleNamespace(
            end_offset=lambda isolation: end,
            is_leader=True,
            leader_epoch=0,
            is_follower_throttled=lambda broker: False,
            log=log,
        )


def _place(offset: int) -> Any:
    return SimpleNamespace(offset=offset, segment_base_offset=0)


def _watched(partitions: Partitions, min_bytes: int) -> tuple[Purgatory, list[Any]]:
    """Returns the purgatory with a fetch at offset 10 of each partition, and the list of its responses."""
    asked = [
        SimpleNamespace(
            topic_partition=key, current_leader_epoch=0, last_fetched_epoch=-1, fetch_offset=10, max_bytes=1 << 20
        )
        for key in partitions.ends
    ]
    responses: list[Any] = []
    params = FetchParams(replica_id=2, max_wait_ms=500, min_bytes=min_bytes, max_bytes=1 << 20)
    purgatory = Purgatory("Fetch", MockScheduler().schedule)
    fetch = DelayedFetch(
        params,
        [(each, _place(10)) for each in asked],  # type: ignore[misc]
        partitions.find,
        lambda params, read: SimpleNamespace(results=len(read)),  # type: ignore[arg-type,return-value]
        responses.append,
    )
    assert not purgatory.try_complete_else_watch(fetch, partitions.ends)
    partitions.looks = 0
    return purgatory, responses


def test_events_without_records_look_at_their_partition_only() -> None:
    partitions = Partitions()
    purgatory, responses = _watched(partitions, min_bytes=1)
    for key in partitions.ends:
        assert purgatory.check_and_complete(key) == 0
    assert (partitions.looks, responses) == (COUNT, [])


def test_a_record_or_a_new_leader_of_one_partition_completes_it() -> None:
    for number in (0, COUNT - 1):
        for is_lost in (False, True):
            partitions = Partitions()
            purgatory, responses = _watched(partitions, min_bytes=1)
            key = TopicPartition("t", number)
            if is_lost:
                partitions.lost.add(key)
            else:
                partitions.ends[key] = 11
            assert purgatory.check_and_complete(TopicPartition("t", 5)) == 0
            assert purgatory.check_and_complete(key) == 1
            assert responses == [COUNT]


def test_bytes_of_several_partitions_are_added_up() -> None:
    partitions = Partitions()
    purgatory, responses = _watched(partitions, min_bytes=3)
    for number in range(3):
        assert not responses
        partitions.ends[TopicPartition("t", number)] = 11
        purgatory.check_and_complete(TopicPartition("t", number))
    assert responses == [COUNT]
