"""The log cleaner's manager: the choice of a log, states, uncleanable logs, checkpoints and their file."""

import errno
import os
import threading

import pytest

from kafkapy.errors import StorageError
from kafkapy.storage.log_cleaner_manager import CleaningAborted, CleaningState
from tests.harness.cleaner import CleanerHarness


@pytest.fixture
def harness(tmp_path):
    harness = CleanerHarness(tmp_path)
    harness.put([(b"a", b"1"), (b"a", b"2")])
    harness.log_.roll()
    return harness


def checkpoint_file(harness):
    return (harness.root / "cleaner-offset-checkpoint").read_text()


def test_the_log_that_is_cleaned_is_not_chosen_again(harness):
    log, to_clean = harness.manager.take_filthiest()
    assert log is harness.log_
    assert (to_clean.first_dirty_offset, to_clean.first_uncleanable_offset) == (0, 2)
    assert harness.manager.max_dirty_percent == 100
    assert harness.manager.state_of(log.topic_partition) is CleaningState.IN_PROGRESS
    assert harness.manager.take_filthiest() is None
    assert harness.manager.max_dirty_percent == 0
    harness.manager.release(log)
    assert harness.manager.state_of(log.topic_partition) is None
    assert harness.manager.take_filthiest() is not None


def test_the_dirtiest_share_is_the_metric_of_all_logs(harness):
    harness.clean()
    harness.put([(b"b", b"1")])
    harness.log_.roll()
    harness.manager.take_filthiest()
    assert 0 < harness.manager.max_dirty_percent < 100


def test_an_uncleanable_log_is_not_chosen_until_it_is_replaced(harness, caplog):
    partition = harness.log_.topic_partition
    harness.manager.mark_uncleanable(harness.log_, ValueError("damaged"))
    assert "damaged" in caplog.text
    assert harness.manager.take_filthiest() is None
    assert harness.manager.uncleanable_partitions == [partition]
    assert harness.manager.uncleanable_logs() == [harness.log_]
    assert harness.manager.uncleanable_bytes == harness.log_.size > 0
    harness.logs.remove(partition)
    assert harness.manager.take_filthiest() is None
    assert harness.manager.uncleanable_partitions == []
    assert harness.manager.uncleanable_bytes == 0
    harness.logs.add(harness.log_)
    assert harness.manager.take_filthiest() is not None


def test_a_pause_aborts_a_pass_and_waits_for_its_end(harness):
    manager, partition = harness.manager, harness.log_.topic_partition
    log, _ = manager.take_filthiest()
    manager.check(partition)
    pausing = threading.Thread(target=manager.pause, args=(partition,))
    pausing.start()
    while manager.state_of(partition) is not CleaningState.ABORTED:
        assert pausing.is_alive()
    with pytest.raises(CleaningAborted):
        manager.check(partition)
    assert pausing.is_alive()
    manager.release(log)
    pausing.join(30)
    assert not pausing.is_alive()
    assert manager.state_of(partition) is CleaningState.PAUSED
    assert manager.take_filthiest() is None
    manager.resume(partition)
    assert manager.state_of(partition) is None
    assert manager.take_filthiest() is not None


def test_checkpoints_of_deleted_partitions_are_removed(harness):
    (harness.root / "cleaner-offset-checkpoint").write_text("0\n2\ngone 0 7\nt 0 1\n")
    assert harness.manager.checkpoint_of(harness.log_) == 1
    harness.manager.advance_checkpoint(harness.log_, 2)
    assert checkpoint_file(harness) == "0\n1\nt 0 2\n"
    assert harness.manager.checkpoint_of(harness.log_) == 2


def test_a_topic_that_is_created_again_after_a_restart_has_no_checkpoint(harness):
    """The records before the checkpoint of the deleted topic would never be compacted."""
    (harness.root / "cleaner-offset-checkpoint").write_text("0\n2\ngone 0 7\nt 0 1\n")
    assert harness.manager.checkpoint_of(harness.log_) == 1
    again = harness.log(name="gone")
    harness.logs.add(again)
    assert harness.manager.checkpoint_of(again) is None


def test_a_topic_that_is_created_again_during_a_pass_has_no_checkpoint(harness):
    other = harness.log(name="other", topic_id=b"o" * 16)
    harness.logs.add(other)
    harness.manager.take_filthiest()
    harness.manager.advance_checkpoint(other, 5)
    harness.manager.advance_checkpoint(harness.log_, 1)
    assert checkpoint_file(harness) == "0\n2\nother 0 5\nt 0 1\n"
    harness.logs.add(harness.log(name="other", topic_id=b"p" * 16))
    harness.manager.advance_checkpoint(harness.log_, 2)
    assert checkpoint_file(harness) == "0\n1\nt 0 2\n"


def test_a_damaged_checkpoint_costs_only_another_pass(harness, caplog):
    (harness.root / "cleaner-offset-checkpoint").write_text("0\n2\nt 0 1\n")
    assert harness.manager.checkpoint_of(harness.log_) is None
    assert "cleaner-offset-checkpoint" in caplog.text
    assert harness.clean()
    assert checkpoint_file(harness) == "0\n1\nt 0 2\n"


def test_a_checkpoint_that_cannot_be_written_takes_the_directory_offline(harness, monkeypatch):
    def fail(*arguments, **keywords):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(type(harness.filesystem), "write_atomically", fail)
    with pytest.raises(StorageError, match="cleaner's checkpoint"):
        harness.manager.advance_checkpoint(harness.log_, 2)
    assert len(harness.failures) == 1


def test_a_truncation_lowers_the_checkpoint_to_the_end_of_the_log(harness):
    """A tombstone that is appended there later must not be removed as if older values had been cleaned away."""
    harness.manager.truncate_checkpoint(harness.log_)
    assert not (harness.root / "cleaner-offset-checkpoint").exists(), "there was none to lower"
    harness.manager.advance_checkpoint(harness.log_, 2)
    harness.manager.truncate_checkpoint(harness.log_)
    assert checkpoint_file(harness) == "0\n1\nt 0 2\n"
    harness.log_.truncate_to(1)
    harness.manager.truncate_checkpoint(harness.log_)
    assert checkpoint_file(harness) == "0\n1\nt 0 0\n"
    assert harness.manager.checkpoint_of(harness.log_) == 0


def test_a_lowered_checkpoint_that_cannot_be_written_takes_the_directory_offline(harness, monkeypatch):
    def fail(*arguments, **keywords):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    harness.manager.advance_checkpoint(harness.log_, 2)
    harness.log_.truncate_to(1)
    monkeypatch.setattr(type(harness.filesystem), "write_atomically", fail)
    harness.manager.truncate_checkpoint(harness.log_)
    assert len(harness.failures) == 1


def test_a_moved_checkpoint_is_in_the_new_directory_only(harness, tmp_path):
    other = CleanerHarness(tmp_path / "other")
    harness.logs.add(other.log_)
    harness.manager.move_checkpoint(harness.log_, other.log_)
    assert not (other.root / "cleaner-offset-checkpoint").exists(), "there was none to move"
    harness.logs.add(harness.log_)
    harness.manager.advance_checkpoint(harness.log_, 2)
    harness.logs.add(other.log_)
    harness.manager.move_checkpoint(harness.log_, other.log_)
    assert checkpoint_file(harness) == "0\n0\n"
    assert checkpoint_file(other) == "0\n1\nt 0 2\n"
    assert harness.manager.checkpoint_of(harness.log_) is None


def test_a_log_that_cannot_be_read_is_not_chosen(harness, caplog):
    harness.overrides["max.compaction.lag.ms"] = "1000"
    harness.log_.close()
    harness.reopen()
    os.rename(harness.log_.segments.first.path(".log"), harness.root / "elsewhere")
    assert harness.manager.take_filthiest() is None
    assert "cannot be read for cleaning" in caplog.text


def test_a_log_that_must_be_cleaned_by_its_age(tmp_path):
    overrides = {"max.compaction.lag.ms": "1000", "min.cleanable.dirty.ratio": "1.0"}
    harness = CleanerHarness(tmp_path, overrides=overrides)
    harness.put([(b"a", b"1"), (b"a", b"2")])
    harness.log_.roll()
    assert harness.manager.take_filthiest() is None
    harness.clock.advance(1001)
    log, to_clean = harness.manager.take_filthiest()
    assert (log, to_clean.must_clean) == (harness.log_, True)


def test_only_compacted_logs_with_an_inactive_segment_are_chosen(tmp_path):
    harness = CleanerHarness(tmp_path)
    harness.put([(b"a", b"1"), (b"a", b"2")])
    assert harness.manager.take_filthiest() is None
    harness.log_.roll()
    harness.log_.mark_deleted()
    assert harness.manager.take_filthiest() is None
    plain = CleanerHarness(tmp_path / "plain", overrides={"cleanup.policy": "delete"})
    plain.put([(b"a", b"1"), (b"a", b"2")])
    plain.log_.roll()
    assert plain.manager.take_filthiest() is None


@pytest.mark.parametrize("writes", ["a pass over another log", "a truncation of another log", "nothing"])
def test_a_replica_that_comes_back_to_the_broker_has_no_checkpoint(harness, writes):
    """The new log has the topic id of the former one."""
    other = harness.log(name="other", topic_id=b"o" * 16)
    harness.logs.add(other)
    harness.manager.advance_checkpoint(harness.log_, 2)
    harness.manager.advance_checkpoint(other, 0)
    harness.logs.remove(other.topic_partition)
    harness.directory.forget([other.topic_partition])
    again = harness.log(name="other", topic_id=b"o" * 16)
    harness.logs.add(again)
    if writes == "a pass over another log":
        harness.manager.advance_checkpoint(harness.log_, 1)
    elif writes == "a truncation of another log":
        harness.log_.truncate_to(1)
        harness.manager.truncate_checkpoint(harness.log_)
    assert harness.manager.checkpoint_of(again) is None
    assert "other" not in checkpoint_file(harness)


def test_the_pass_over_a_deleted_log_leaves_no_checkpoint_for_the_new_one(harness):
    """The topic is deleted and created again while the pass ends; the new records were taken as clean."""
    log, _ = harness.manager.take_filthiest()
    again = harness.log(topic_id=b"n" * 16)
    harness.logs.add(again)
    harness.manager.advance_checkpoint(log, 2)
    assert harness.manager.checkpoint_of(again) is None


def test_the_move_of_a_deleted_log_leaves_no_checkpoint_for_the_new_one(harness, tmp_path):
    """The topic is deleted and created again in the new directory while the move ends."""
    other = CleanerHarness(tmp_path / "other")
    harness.manager.advance_checkpoint(harness.log_, 2)
    again = other.log(topic_id=b"n" * 16)
    harness.logs.add(again)
    harness.manager.take_filthiest()
    harness.manager.move_checkpoint(harness.log_, other.log_)
    assert harness.manager.checkpoint_of(again) is None


def test_a_truncation_after_a_pass_leaves_no_checkpoint_above_the_new_records(harness):
    """The records that replaced the truncated ones were taken as clean."""
    advance = harness.manager.advance_checkpoint

    def overtaken(log, *result):
        log.truncate_to(0)
        harness.manager.truncate_checkpoint(log)
        harness.put([(b"a", b"3"), (b"a", b"4")])
        advance(log, *result)

    harness.manager.advance_checkpoint = overtaken
    assert harness.clean()
    assert not harness.manager.checkpoint_of(harness.log_)
