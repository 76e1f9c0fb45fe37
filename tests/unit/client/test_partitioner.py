"""The partition of records without a key, and the pauses between attempts."""

from __future__ import annotations

import pytest

from kafkapy.client.backoff import ExponentialBackoff
from kafkapy.client.partitioner import RoundRobinPartitioner, choose_sticky_partition, default_partition
from kafkapy.client.producer import _find_partitioner


def test_keys_go_among_all_partitions():
    assert [default_partition(str(key).encode(), 3) for key in range(10)] == [2, 0, 2, 2, 1, 0, 1, 0, 0, 2]


def test_the_longer_a_queue_the_smaller_its_chance():
    waiting, available = [0, 3, 3], [0, 4, 5]
    chosen = [choose_sticky_partition(waiting, available, 9, chance=lambda at=at: at / 60) for at in range(60)]
    assert [chosen.count(each) for each in available] == [40, 10, 10]
    plain = [
        choose_sticky_partition(waiting, available, 9, adaptive=False, chance=lambda at=at: at / 60) for at in range(60)
    ]
    assert [plain.count(each) for each in available] == [20, 20, 20]


def test_without_a_leader_any_partition_will_do():
    assert [choose_sticky_partition([], [], 4, chance=lambda at=at: at) for at in (0, 0.3, 0.99, 1)] == [0, 1, 3, 3]
    assert choose_sticky_partition([8], [2], 4) == 2


@pytest.mark.parametrize(("chance", "expected"), [(0.5, [100, 200, 400, 800, 1000, 1000]), (0.0, [80, 160])])
def test_pauses_double_up_to_the_largest(chance, expected):
    backoff = ExponentialBackoff(100, 1000, lambda: chance)
    assert [backoff.pause_ms(attempts) for attempts in range(len(expected))] == expected


def test_round_robin_ignores_keys():
    partitioner = RoundRobinPartitioner()
    assert [partitioner.partition("t", b"same", b"same", b"", 3) for _ in range(5)] == [0, 1, 2, 0, 1]
    assert partitioner.partition("u", None, None, b"", 3) == 0


def test_javas_partitioners_are_named_in_the_configuration():
    package = "org.apache.kafka.clients.producer."
    assert type(_find_partitioner(f"{package}RoundRobinPartitioner")) is RoundRobinPartitioner
    assert _find_partitioner(f"{package}internals.DefaultPartitioner") is None
    assert _find_partitioner(None) is None
