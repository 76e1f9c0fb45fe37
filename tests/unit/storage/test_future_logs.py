"""Future logs: their creation, their handling at a start, their promotion, and their deletion."""

import os

import pytest

from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.types import TopicPartition
from tests.harness.log import batch
from tests.harness.log_manager import TOPIC_ID, ManagerHarness, create_log

T0 = TopicPartition("t", 0)


@pytest.fixture
def harness(tmp_path):
    return ManagerHarness(tmp_path, 2)


def names(harness, number):
    """Returns the partition directories of a log directory: name without the random part, and suffix."""
    found = [path.name for path in harness.paths[number].iterdir() if path.is_dir()]
    return sorted((name.split(".")[0], name.rpartition("-")[2] if "." in name else "") for name in found)


def two_logs(harness, current_records, future_records):
    """Returns a manager with a current log in the first directory and its future log in the second."""
    manager = harness.start()
    current = harness.create(manager, directory_id=harness.directory_ids[0])
    if current_records:
        current.append_as_leader(batch(current_records), 0)
    future = manager.create_future_log(current, manager.directories[1])
    if future_records:
        future.append_as_leader(batch(future_records), 0)
    return manager, current, future


def restarted(manager, harness, *, is_clean=True, is_assigned=lambda *replica: True):
    if is_clean:
        manager.shutdown(1)
    else:
        manager.checkpoints.write_recovery_points()
        manager.unlock()
    harness.scheduled.clear()
    return harness.start(is_assigned=is_assigned)


def test_a_new_future_log_is_empty_and_durable(harness):
    manager, current, future = two_logs(harness, 5, 0)
    assert manager.futures.get(T0) is future
    assert manager.futures.logs() == [future]
    assert manager.get_log(T0) is current
    assert names(harness, 1) == [("t-0", "future")]
    assert os.path.exists(os.path.join(future.path, "partition.metadata"))
    assert (future.topic_id, future.log_end_offset, future.config) == (TOPIC_ID, 0, current.config)
    manager.unlock()


def test_a_new_future_log_has_nothing_of_the_checkpoints_of_an_earlier_log(harness):
    manager, current, _ = two_logs(harness, 5, 5)
    manager.futures.get(T0).flush()
    manager.checkpoints.write_recovery_points()
    checkpoint = harness.paths[1] / "recovery-point-offset-checkpoint"
    assert checkpoint.read_text() == "0\n1\nt 0 5\n"
    manager.futures.discard(T0)
    manager.create_future_log(current, manager.directories[1])
    assert checkpoint.read_text() == "0\n0\n"
    manager.unlock()


def test_a_partition_has_one_future_log(harness):
    manager, _, future = two_logs(harness, 1, 0)
    manager.futures.add(future)
    manager.futures.discard(T0)
    manager.futures.add(future)
    other = manager.futures.create(manager.get_log(T0), manager.directories[1])
    assert manager.futures.get(T0) is other
    with pytest.raises(StorageError, match="Duplicate log directories"):
        manager.futures.add(future)
    manager.unlock()


def test_none_is_created_while_a_directory_is_offline(harness):
    manager, current, _ = two_logs(harness, 1, 0)
    manager.take_offline(str(harness.paths[1]), OSError(5, "Input/output error"))
    assert manager.futures.logs() == []
    with pytest.raises(StorageError, match="it may be in"):
        manager.create_future_log(current, manager.directories[0])
    manager.unlock()


@pytest.mark.parametrize(("is_clean", "end_offset"), [(True, 3), (False, 0)])
def test_a_start_continues_a_copy_from_what_is_durable(harness, is_clean, end_offset):
    manager, _, _ = two_logs(harness, 5, 3)
    manager = restarted(manager, harness, is_clean=is_clean)
    assert manager.get_log(T0).log_end_offset == 5
    assert manager.futures.get(T0).log_end_offset == end_offset
    assert (names(harness, 0), names(harness, 1)) == ([("t-0", "")], [("t-0", "future")])
    manager.unlock()


@pytest.mark.parametrize(
    ("future_records", "is_assigned", "is_promoted"), [(6, True, True), (6, False, False), (5, True, False)]
)
def test_a_start_promotes_a_future_log_that_was_appended_to(harness, future_records, is_assigned, is_promoted):
    manager, _, _ = two_logs(harness, 5, future_records)
    manager = restarted(manager, harness, is_assigned=lambda *replica: is_assigned)
    log = manager.get_log(T0)
    assert str(harness.paths[1 if is_promoted else 0]) == log.directory.path
    assert (manager.futures.get(T0) is None) is is_promoted
    if is_promoted:
        assert (names(harness, 0), names(harness, 1)) == ([("t-0", "delete")], [("t-0", "")])
        assert log.path == str(harness.paths[1] / "t-0")
        assert log.recovery_point == log.log_end_offset == 6
        (_, remove) = harness.scheduled.pop()
        remove()
        assert names(harness, 0) == []
    manager.unlock()


@pytest.mark.parametrize("is_assigned", [True, False])
def test_a_start_without_the_current_log_promotes_the_assigned_future_one(harness, is_assigned, caplog):
    manager, current, _ = two_logs(harness, 5, 3)
    manager.shutdown(1)
    os.system(f"rm -r {current.path}")
    manager = harness.start(is_assigned=lambda *replica: is_assigned)
    if is_assigned:
        assert manager.get_log(T0).log_end_offset == 3
        assert names(harness, 1) == [("t-0", "")]
    else:
        assert manager.get_log(T0) is None
        assert names(harness, 1) == [("t-0", "future")]
        assert "Ignoring" in caplog.text
    manager.unlock()


def test_a_start_ignores_a_future_log_of_another_topic(harness, caplog):
    manager, _, future = two_logs(harness, 1, 3)
    manager.shutdown(1)
    metadata = os.path.join(future.path, "partition.metadata")
    with open(metadata, "w") as file:
        file.write("version: 0\ntopic_id: Fqhl_cLKS-CloX4J2ksPDQ")
    manager = harness.start()
    assert manager.get_log(T0).log_end_offset == 1
    assert "Ignoring" in caplog.text
    manager.unlock()


def test_a_cancelled_move_deletes_its_files_later(harness):
    for_owner = []
    manager = harness.start(run_on_owner=for_owner.append)
    current = harness.create(manager, directory_id=harness.directory_ids[0])
    future = manager.create_future_log(current, manager.directories[1])
    harness.scheduled.clear()
    manager.futures.discard(T0)
    assert manager.futures.get(T0) is None
    assert future.is_deleted
    assert names(harness, 1) == [("t-0", "delete")]
    ((delay_ms, remove),) = harness.scheduled
    assert delay_ms == 60_000
    remove()
    assert names(harness, 1) == []
    assert not for_owner, "the owner of the future log closes its files"
    manager.futures.discard(T0)
    manager.unlock()


def test_a_deleted_partition_takes_its_future_log_along(harness):
    manager, _, _ = two_logs(harness, 1, 1)
    manager.delete_log(T0)
    assert manager.futures.logs() == []
    assert (names(harness, 0), names(harness, 1)) == ([("t-0", "delete")], [("t-0", "delete")])
    manager.unlock()


def test_a_replacement_in_the_table_and_then_by_name(harness):
    manager, current, future = two_logs(harness, 5, 5)
    manager.replace_current(current, future)
    assert manager.get_log(T0) is future
    assert manager.futures.get(T0) is None
    assert names(harness, 1) == [("t-0", "future")]
    manager.finish_replacement(current, future)
    assert current.is_deleted and not future.is_deleted
    assert (names(harness, 0), names(harness, 1)) == ([("t-0", "delete")], [("t-0", "")])
    future.append_as_leader(batch(), 0)
    future.roll()
    assert os.path.exists(harness.paths[1] / "t-0" / f"{6:020d}.log")
    manager.unlock()


def test_only_the_current_and_its_future_log_can_change_places(harness):
    manager, current, future = two_logs(harness, 5, 5)
    with pytest.raises(ApiError) as raised:
        manager.replace_current(future, current)
    assert raised.value.error is Error.REPLICA_NOT_AVAILABLE
    manager.futures.discard(T0)
    with pytest.raises(ApiError) as raised:
        manager.replace_current(current, future)
    assert raised.value.error is Error.REPLICA_NOT_AVAILABLE
    assert manager.get_log(T0) is current
    manager.unlock()


def test_a_shorter_copy_does_not_replace_the_current_log(harness):
    manager, current, future = two_logs(harness, 5, 4)
    with pytest.raises(AssertionError):
        manager.replace_current(current, future)
    assert manager.get_log(T0) is current
    manager.unlock()


def test_a_promoted_log_that_was_deleted_keeps_its_name(harness):
    manager, current, future = two_logs(harness, 5, 5)
    manager.replace_current(current, future)
    manager.delete_log(T0)
    manager.finish_replacement(current, future)
    assert names(harness, 1) == [("t-0", "delete")]
    assert not harness.failures
    manager.unlock()


def test_a_chosen_directory_is_used_once(harness):
    manager = harness.start()
    manager.prefer_directory(T0, manager.directories[1])
    assert harness.create(manager).directory is manager.directories[1]
    manager.prefer_directory(T0, manager.directories[0])
    manager.delete_log(T0)
    for partition in (1, 2):
        assert harness.create(manager, partition=partition).directory is manager.directories[partition - 1]
    assert harness.create(manager).directory is manager.directories[0]
    manager.unlock()


def test_a_directory_is_found_by_its_exact_path(harness):
    manager = harness.start()
    path = str(harness.paths[1])
    assert manager.directory_at(path) is manager.directories[1]
    for unknown in (path + "/", path.upper(), "x"):
        with pytest.raises(ApiError) as raised:
            manager.directory_at(unknown)
        assert raised.value.error is Error.LOG_DIR_NOT_FOUND
    manager.take_offline(path, OSError(5, "Input/output error"))
    with pytest.raises(ApiError) as raised:
        manager.directory_at(path)
    assert raised.value.error is Error.KAFKA_STORAGE_ERROR
    manager.unlock()


def test_a_deleted_topic_takes_along_the_log_that_a_move_has_replaced(harness):
    """A new topic of the name had the old records, and lost its directory when the move was completed."""
    manager, current, future = two_logs(harness, 5, 5)
    manager.replace_current(current, future)
    manager.delete_log(T0)
    new = create_log(manager, T0, b"n" * 16, harness.topic_config(), directory_id=harness.directory_ids[0])
    assert new.log_end_offset == 0
    manager.finish_replacement(current, future)
    assert new.path == str(harness.paths[0] / "t-0") and os.path.exists(new.path)
    manager.unlock()


def test_a_deleted_topic_takes_its_future_log_along_although_the_current_log_is_offline(harness):
    """The recovery point of the future log was written as that of the log of a new topic with the name."""
    manager, _, future = two_logs(harness, 5, 5)
    future.flush()
    manager.take_offline(str(harness.paths[0]), OSError(5, "Input/output error"))
    manager.delete_log(T0)
    new = create_log(manager, T0, b"n" * 16, harness.topic_config())
    new.append_as_leader(batch(9), 0)
    manager.checkpoints.write_recovery_points()
    assert (harness.paths[1] / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 0\n"
    assert manager.futures.get(T0) is None
    manager.unlock()


def test_a_future_log_that_cannot_be_deleted_fails_its_own_directory(harness):
    manager, _, future = two_logs(harness, 1, 1)
    os.system(f"rm -r {future.path}")
    with pytest.raises(StorageError):
        manager.delete_log(T0)
    assert [directory.is_online for directory in manager.directories] == [True, False]
    manager.unlock()


def test_a_start_continues_a_copy_only_with_records_of_the_current_log(harness):
    """The current log has lost records that were copied, and gets others with their offsets."""
    manager, _, future = two_logs(harness, 5, 8)
    future.flush()
    manager = restarted(manager, harness, is_clean=False, is_assigned=lambda *replica: False)
    assert manager.get_log(T0).log_end_offset == 5
    assert manager.futures.get(T0).log_end_offset <= 5
    manager.unlock()


@pytest.mark.parametrize("count", [3, 9])
def test_a_start_removes_copied_records_that_the_current_log_has_replaced(harness, count):
    """The broker was killed before the copying thread noticed that the current log was truncated."""
    manager, current, future = two_logs(harness, 2, 2)
    current.append_as_leader(batch(6), 0)
    future.append_as_leader(batch(6), 0)
    future.flush()
    current.truncate_to(2)
    current.append_as_leader(batch(count), 1)
    manager = restarted(manager, harness, is_clean=False)
    assert manager.get_log(T0).log_end_offset == 2 + count
    assert manager.futures.get(T0).log_end_offset == 2
    manager.unlock()


@pytest.mark.parametrize("is_finished", [False, True])
def test_deleted_records_remain_deleted_after_a_move(harness, is_finished):
    manager, current, future = two_logs(harness, 5, 5)
    current.high_watermark = 5
    current.maybe_increment_log_start_offset(3)
    manager.checkpoints.write_log_start_offsets()
    future.take_over(current)
    manager.replace_current(current, future)
    future.append_as_leader(batch(), 0)
    future.flush()
    if is_finished:
        manager.finish_replacement(current, future)
    manager = restarted(manager, harness, is_clean=False)
    log = manager.get_log(T0)
    assert (log.directory.path, log.log_start_offset) == (str(harness.paths[1]), 3)
    manager.unlock()


def failing_writes(manager, directory, monkeypatch):
    """Makes the log start offsets of a directory unwritable."""

    def fail(offsets):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(directory.log_start_offsets), "write", lambda file, offsets: (
        fail(offsets) if file is directory.log_start_offsets else None
    ))  # fmt: skip


def test_a_replaced_log_is_kept_if_the_directory_of_the_new_one_fails(harness, monkeypatch):
    manager, current, future = two_logs(harness, 5, 5)
    manager.replace_current(current, future)
    failing_writes(manager, future.directory, monkeypatch)
    with pytest.raises(StorageError):
        manager.finish_replacement(current, future)
    assert [directory.is_online for directory in manager.directories] == [True, False]
    assert names(harness, 0) == [("t-0", "")]
    manager.unlock()


def test_a_deletion_goes_on_after_a_directory_has_failed(harness):
    """The log that a move had replaced stayed, and its records were in the next topic of the name."""
    manager, current, future = two_logs(harness, 5, 5)
    manager.replace_current(current, future)
    os.system(f"rm -r {future.path}")
    with pytest.raises(StorageError):
        manager.delete_log(T0)
    assert [directory.is_online for directory in manager.directories] == [True, False]
    assert names(harness, 0) == [("t-0", "delete")]
    manager.unlock()
