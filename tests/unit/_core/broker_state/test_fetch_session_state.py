"""Fetch sessions that Python and the gate share: the search for a partition by its key, and the order of partitions."""

from __future__ import annotations

import random
from collections import OrderedDict

import pytest

from kafkapy._core.broker_state.fetch_session_state import (
    FetchPartitionState,
    FetchSessionState,
    FetchSessionTable,
    SessionPartitions,
)


@pytest.mark.parametrize("seed", range(5))
def test_partitions_are_found_and_keep_their_order(seed):
    chance = random.Random(seed)
    keys = [("topic", index) for index in range(10)] + [(chance.randbytes(16), index) for index in range(10)]
    expected = OrderedDict((key, FetchPartitionState()) for key in keys[:5])
    partitions = SessionPartitions(expected)
    taken_out = FetchPartitionState()
    for _ in range(2000):
        key = chance.choice(keys)
        action = chance.randrange(3)
        if action == 0 and key not in expected:
            expected[key] = partitions[key] = FetchPartitionState()
        elif action == 1:
            partitions.pop(key)
            taken_out = expected.pop(key, taken_out)
        elif key in expected:
            expected.move_to_end(key)
            partitions.to_end(expected[key])
        partitions.to_end(taken_out)
        assert partitions.get(key) is expected.get(key)
        assert len(partitions) == len(expected)
    assert partitions.values() == list(expected.values())


def test_a_partition_is_replaced():
    one, other = FetchPartitionState(), FetchPartitionState()
    partitions = SessionPartitions({("t", 0): one, ("t", 1): FetchPartitionState()})
    partitions["t", 0] = other
    partitions.to_end(one)
    assert partitions.get(("t", 0)) is other
    assert partitions.values()[-1] is other
    assert len(partitions) == 2


def test_where_a_client_is():
    partition = FetchPartitionState()
    partition.move(2**40, 2**31 - 1, 7, 8, 9)
    found = partition.fetch_offset, partition.max_bytes, partition.current_leader_epoch
    assert found == (2**40, 2**31 - 1, 7)
    assert (partition.last_fetched_epoch, partition.log_start_offset) == (8, 9)
    assert (partition.sent_high_watermark, partition.sent_log_start_offset) == (-1, -1)


def test_sessions_by_id_and_by_use():
    table = FetchSessionTable()
    sessions = [FetchSessionState(number, SessionPartitions()) for number in (5, 2**31 - 1, 7)]
    for session in sessions:
        table.add(session)
    table.touch(sessions[0], 123)
    assert sessions[0].last_used_ms == 123
    assert table.sessions() == [sessions[1], sessions[2], sessions[0]]
    table.remove(7)
    table.remove(7)
    assert [table.get(session.session_id) for session in sessions] == [sessions[0], sessions[1], None]
    assert (len(table), table.get(8)) == (2, None)
