"""Random workloads on logs that are copied into a future replica at the same time: the copy equals the log."""

import random

import pytest

from kafkapy.storage.future_replica import FutureReplica
from tests.harness.cleaner import CleanerHarness, Workload, batches_of
from tests.harness.log import LogHarness


def producers_of(log):
    return {
        producer_id: (entry.producer_epoch, entry.last_sequence, entry.transaction_first_offset)
        for producer_id, entry in log.producers.entries.items()
    }


def contents_of(log, start):
    """Returns (offset, key, value, timestamp) of every record, in order."""
    return [
        (record.offset, record.key, record.value, record.timestamp)
        for segment in log.segments
        for batch in batches_of(segment)
        for record in batch
        if record.offset >= start
    ]


def committed_of(log, start):
    """Returns the offsets of data that a reader of committed records receives."""
    aborted = log.collect_aborted_transactions(start, log.last_stable_offset)
    return [
        record.offset
        for segment in log.segments
        for batch in batches_of(segment)
        for record in batch
        if start <= record.offset < log.last_stable_offset
        and not batch.is_control
        and not any(
            batch.is_transactional
            and batch.producer_id == each.producer_id
            and each.first_offset <= record.offset <= each.last_offset
            for each in aborted
        )
    ]


@pytest.mark.parametrize("seed", range(40))
def test_the_copy_is_equal_to_the_log(tmp_path, seed):
    chance = random.Random(seed)
    harness = CleanerHarness(tmp_path / "current")
    workload = Workload(harness, chance)
    for _ in range(chance.randrange(60)):
        workload.step()
    current = harness.log_
    other = LogHarness(tmp_path / "future")
    future = other.log(harness.overrides)
    replica = FutureReplica(current, future)
    workload.cleaning = False  # cleaning is paused during a move
    for _ in range(chance.randrange(30)):
        action = chance.randrange(6)
        if action == 0:
            replica.copy_some()
        elif action == 1:
            current.maybe_increment_log_start_offset(chance.randint(current.log_start_offset, current.high_watermark))
            current.delete_old_segments()
        elif action == 2 and chance.random() < 0.2:
            current.truncate_to(chance.randint(current.log_start_offset, current.log_end_offset))
            current.high_watermark = min(current.high_watermark, current.log_end_offset)
            workload.open.clear()
        elif action == 3 and chance.random() < 0.2:
            replica.close()  # simulates a restart during the copy
            replica = FutureReplica(current, future)
        else:
            with_producers_forgotten(workload)
            workload.step()
    while not replica.finish(1 << 20):
        pass
    replica.close()
    start = current.log_start_offset
    assert contents_of(future, start) == contents_of(current, start)
    assert future.log_end_offset == current.log_end_offset and future.log_start_offset == start
    assert future.leader_epochs.entries == current.leader_epochs.entries
    assert producers_of(future) == producers_of(current)
    assert future.last_stable_offset == current.last_stable_offset
    assert committed_of(future, start) == committed_of(current, start)
    for segment in future.segments:
        segment.offset_index.sanity_check()
        segment.time_index.sanity_check()
    assert not harness.failures and not other.failures
    current.close()
    future.close()


def with_producers_forgotten(workload):
    """Sets the next sequences to those that the log expects, because a truncation may have lowered them."""
    entries = workload.harness.log_.producers.entries
    for producer_id in list(workload.sequences):
        entry = entries.get(producer_id)
        workload.sequences[producer_id] = 0 if entry is None else entry.last_sequence + 1
