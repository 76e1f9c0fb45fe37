"""The assignment of partitions to the fetchers of a leader (AbstractFetcherManager.getFetcherId)."""

from __future__ import annotations

from kafkapy.types import TopicPartition, java_string_hash

_SMALLEST_INT = -(2**31)


def fetcher_index(topic_partition: TopicPartition, fetchers: int) -> int:
    """Returns the number of the fetcher, below `fetchers`, that reads a partition from its leader.

    It is |31 * hash(topic) + partition| % fetchers in Java's 32-bit arithmetic, where |-2^31| counts as 0.
    """
    value = (31 * java_string_hash(topic_partition.topic) + topic_partition.partition + 2**31) % 2**32 - 2**31
    return 0 if value == _SMALLEST_INT else abs(value) % fetchers
