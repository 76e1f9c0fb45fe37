"""Retries after a start: a producer snapshot has one batch of each producer, and the log has the batches before it."""

from __future__ import annotations

import pytest

from kafkapy.errors import ApiError, Error
from kafkapy.storage import producer_replay
from tests.harness.log import LogHarness, batch


def restarted(harness, log, overrides=None):
    log.close()
    harness.is_clean = True
    return harness.log(overrides)


def produce(log, sequence, *, producer_id=5, epoch=0, value=b"value"):
    records = batch(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, value=value)
    return log.append_as_leader(records, 0)


def test_each_of_five_requests_may_be_retried_after_a_clean_stop(tmp_path):
    harness = LogHarness(tmp_path)
    log = harness.log()
    offsets = {}
    for sequence in range(8):
        for producer_id in (5, 6):
            offsets[producer_id, sequence] = produce(log, sequence, producer_id=producer_id).first_offset
    before = {entry.producer_id: (entry.batches, entry.last_timestamp) for entry in log.producers.entries.values()}
    log = restarted(harness, log)
    after = {entry.producer_id: (entry.batches, entry.last_timestamp) for entry in log.producers.entries.values()}
    assert after == before
    for sequence in range(3, 8):
        again = produce(log, sequence)
        assert (again.duplicate, again.first_offset) == (True, offsets[5, sequence])
    with pytest.raises(ApiError) as refused:
        produce(log, 2)
    assert refused.value.error in (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, Error.DUPLICATE_SEQUENCE_NUMBER)
    assert not produce(log, 8).duplicate
    log.close()


def test_a_retry_is_recognized_across_the_beginning_of_a_segment(tmp_path):
    harness = LogHarness(tmp_path)
    log = harness.log({"segment.bytes": 1 << 20})
    for sequence in range(4):
        produce(log, sequence, value=b"x" * 300_000)
    assert len(log.segments) == 2
    log = restarted(harness, log, {"segment.bytes": 1 << 20})
    for sequence in range(4):
        assert produce(log, sequence, value=b"x" * 300_000).duplicate
    log.close()


def test_batches_of_an_earlier_epoch_are_not_restored(tmp_path):
    harness = LogHarness(tmp_path)
    log = harness.log()
    produce(log, 0)
    produce(log, 1)
    produce(log, 0, epoch=1)
    log = restarted(harness, log)
    (entry,) = log.producers.entries.values()
    assert [each.first_sequence for each in entry.batches] == [0]
    log.close()


def test_a_truncated_log_still_recognizes_retries(tmp_path):
    harness = LogHarness(tmp_path)
    log = harness.log()
    for sequence in range(4):
        produce(log, sequence)
    log = restarted(harness, log)
    produce(log, 4)
    log.truncate_to(4)
    assert produce(log, 1).duplicate
    log.close()


def test_only_the_end_of_a_long_segment_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(producer_replay, "TAIL_BYTES", 2000)
    harness = LogHarness(tmp_path)
    log = harness.log({"index.interval.bytes": 0})
    for sequence in range(100):
        produce(log, sequence, value=b"x" * 400)
    log = restarted(harness, log, {"index.interval.bytes": 0})
    (entry,) = log.producers.entries.values()
    assert 1 < len(entry.batches) < 5
    assert produce(log, 98).duplicate
    log.close()


def test_a_producer_that_was_silent_for_long_costs_no_read(tmp_path, monkeypatch):
    harness = LogHarness(tmp_path)
    log = harness.log()
    produce(log, 0)
    produce(log, 1)
    harness.clock.advance(producer_replay.RETRY_PERIOD_MS)
    monkeypatch.setattr(producer_replay, "scan_segment", None)
    log = restarted(harness, log)
    (entry,) = log.producers.entries.values()
    assert [each.first_sequence for each in entry.batches] == [1]
    log.close()
