"""Placement of replicas: stripes over racks, unfenced brokers before fenced ones."""

import random
from collections import Counter

import pytest

from kafkapy.controller.placement import place_replicas
from kafkapy.errors import ApiError, Error
from tests.harness.metadata import registration


def broker(broker_id, rack=None, *, fenced=False, **fields):
    return registration(broker_id, rack=rack)._replace(fenced=fenced, **fields)


def first(bound):
    return 0


def place(brokers, partitions, factor, random_below=first):
    return place_replicas(brokers, partitions, factor, random_below)


def test_the_start_moves_by_one_broker_for_each_partition():
    """Compares with Apache Kafka: three brokers in three racks."""
    brokers = [broker(3, "r3"), broker(1, "r1"), broker(2, "r2")]
    assert place(brokers, 3, 3) == [(1, 2, 3), (2, 3, 1), (3, 1, 2)]


def test_brokers_without_rack_are_one_rack():
    assert place([broker(number) for number in (1, 2, 3)], 3, 2) == [(1, 2), (2, 3), (3, 1)]


def test_every_rack_gets_a_replica_before_one_gets_two():
    racks = {number: f"r{number % 3}" for number in range(9)}
    brokers = [broker(number, rack) for number, rack in racks.items()]
    generator = random.Random(7)
    for replicas in place(brokers, 300, 3, generator.randrange):
        assert {racks[replica] for replica in replicas} == {"r0", "r1", "r2"}
    for replicas in place(brokers, 300, 5, generator.randrange):
        assert sorted(Counter(racks[replica] for replica in replicas).values()) == [1, 2, 2]


def test_within_a_rack_brokers_take_turns():
    brokers = [broker(number, f"r{number // 10}") for number in (10, 11, 12, 20, 21, 22, 30, 31, 32)]
    assert place(brokers, 3, 3) == [(10, 20, 30), (21, 31, 11), (32, 12, 22)]


def test_a_fenced_broker_gets_replicas_last_and_never_leads():
    brokers = [broker(1, fenced=True), broker(2), broker(3)]
    for replicas in place(brokers, 20, 3, random.Random(1).randrange):
        assert replicas[0] != 1 and replicas[2] == 1
    for replicas in place(brokers, 20, 2, random.Random(1).randrange):
        assert 1 not in replicas


def test_a_rack_of_fenced_brokers_does_not_lead():
    brokers = [broker(1, "a", fenced=True), broker(2, "b"), broker(3, "c")]
    placed = place(brokers, 20, 3, random.Random(2).randrange)
    assert all(replicas[0] != 1 and 1 in replicas for replicas in placed)


@pytest.mark.parametrize(
    "unusable",
    [
        {"in_controlled_shutdown": True},
        {"cordoned_log_dirs": registration(1).log_dirs},
    ],
)
def test_brokers_that_stop_or_are_cordoned_get_no_replicas(unusable):
    brokers = [broker(1, **unusable), broker(2), broker(3)]
    assert all(1 not in replicas for replicas in place(brokers, 10, 2))
    with pytest.raises(ApiError) as raised:
        place(brokers, 1, 3)
    assert raised.value.error is Error.INVALID_REPLICATION_FACTOR


def test_a_broker_with_one_open_directory_gets_replicas():
    two = registration(1, (b"\x01" * 16, b"\x02" * 16))._replace(fenced=False, cordoned_log_dirs=(b"\x01" * 16,))
    assert place([two], 2, 1) == [(1,), (1,)]


def test_leaders_and_replicas_are_spread_evenly():
    brokers = [broker(number) for number in range(5)]
    placed = place(brokers, 500, 3, random.Random(3).randrange)
    assert all(len(set(replicas)) == 3 for replicas in placed)
    leaders = Counter(replicas[0] for replicas in placed)
    assert all(count == 100 for count in leaders.values())
    # After each round the order is shuffled, so that more than five assignments occur.
    assert len(set(placed)) > 20


@pytest.mark.parametrize(
    ("brokers", "factor", "message"),
    [
        ([], 0, "Invalid replication factor 0: the replication factor must be positive."),
        ([], 1, "All brokers are currently fenced, or have all their log directories cordoned."),
        ([broker(1, fenced=True)], 1, "All brokers are currently fenced, or have all their log directories cordoned."),
        (
            [broker(1)],
            2,
            "The target replication factor of 2 cannot be reached because only 1 broker(s) are registered or some "
            "brokers have all their log directories cordoned.",
        ),
    ],
)
def test_impossible_factors_are_refused_in_kafkas_words(brokers, factor, message):
    with pytest.raises(ApiError) as raised:
        place(brokers, 1, factor)
    assert (raised.value.error, raised.value.message) == (Error.INVALID_REPLICATION_FACTOR, message)
