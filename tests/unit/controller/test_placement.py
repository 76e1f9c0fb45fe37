"""Placement of replicas."""

import pytest

from kafkapy.controller.placement import place_replicas
from kafkapy.errors import ApiError, Error


def test_vector_of_the_book():
    """Compares with Apache Kafka: 3 brokers, 6 partitions, factor 3, start 1, shift 2."""
    placed = place_replicas([1, 2, 3], 6, 3, start_index=1, shift=2)
    assert placed == [(2, 3, 1), (3, 1, 2), (1, 2, 3), (2, 1, 3), (3, 2, 1), (1, 3, 2)]


def test_added_partitions_go_on_where_the_others_ended():
    together = place_replicas([1, 2, 3], 6, 2, start_index=0, shift=0)
    added = place_replicas([1, 2, 3], 2, 2, start_index=0, shift=0, first_partition=1)
    assert added == together[1:3]


def test_one_broker_does_not_divide_by_zero():
    assert place_replicas([7], 3, 1, start_index=0, shift=0) == [(7,)] * 3


def test_leaders_and_replicas_are_spread_evenly():
    placed = place_replicas(range(5), 50, 3, start_index=3, shift=1)
    assert all(len(set(replicas)) == 3 for replicas in placed)
    for position in range(3):
        counts = [sum(replicas[position] == broker for replicas in placed) for broker in range(5)]
        assert counts == [10] * 5


@pytest.mark.parametrize("factor", [0, 4])
def test_impossible_factors(factor):
    with pytest.raises(ApiError) as raised:
        place_replicas([1, 2, 3], 1, factor, start_index=0, shift=0)
    assert raised.value.error is Error.INVALID_REPLICATION_FACTOR
