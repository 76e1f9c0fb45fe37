"""Moving a partition between log directories: error codes, requests during a move, and moves that fail or are
cancelled.

A broker that starts continues a move.
"""

import pytest

from kafkapy.errors import Error
from kafkapy.storage.filesystem import Filesystem
from kafkapy.types import TopicPartition
from tests.harness.move import T0, MoveHarness
from tests.harness.replica import partition_image


class Threads:
    """Moves that wait until the test runs them."""

    def __init__(self):
        self.waiting = []

    def __call__(self, work, name):
        self.waiting.append(work)

    def run(self):
        waiting, self.waiting = self.waiting, []
        for work in waiting:
            work()


@pytest.fixture
def threads():
    return Threads()


@pytest.fixture
def harness(tmp_path, threads):
    made = MoveHarness(tmp_path, start_thread=threads)
    made.create()
    for number in range(10):
        made.append(b"%d" % number)
    return made


def current_of(harness):
    return harness.log_manager.get_log(T0)


def test_a_move(harness, threads):
    assert harness.move(harness.second) is Error.NONE
    assert harness.names() == [[("t-0", "")], [("t-0", "future")]]
    moved = current_of(harness)
    threads.run()
    log = current_of(harness)
    assert log is not moved and log is harness.partition().log and log.directory is harness.second
    assert harness.names() == [[("t-0", "delete")], [("t-0", "")]]
    assert harness.assigned == {T0: harness.second.directory_id}
    assert harness.log_manager.futures.logs() == [] and harness.cleaner.state_of(T0) is None
    harness.append(b"10")
    assert harness.values() == [b"%d" % number for number in range(11)]
    assert (log.high_watermark, log.leader_epochs.entries) == (11, moved.leader_epochs.entries)


def test_records_that_come_in_meanwhile(harness, threads):
    written = 10

    def meanwhile():
        nonlocal written
        harness.append(b"%d" % written)
        written += 1

    harness.meanwhile = meanwhile
    harness.move(harness.second)
    threads.run()
    assert written > 10 and current_of(harness).directory is harness.second
    assert harness.values() == [b"%d" % number for number in range(written)]


def test_a_fetch_that_waits_is_answered_and_goes_on(harness, threads):
    harness.move(harness.second)
    answers = harness.fetch(10, max_wait_ms=1000)
    threads.run()
    assert [answer.error for answer in answers] == [Error.NONE]
    again = harness.fetch(10, max_wait_ms=1000)
    harness.append(b"more")
    assert len(again) == 1 and again[0].high_watermark == 11


def test_idempotent_producers_go_on(tmp_path):
    harness = MoveHarness(tmp_path)
    log = harness.create()
    of_producer = {"producer_id": 5, "producer_epoch": 0}
    harness.append(b"a", base_sequence=0, **of_producer)
    harness.move(harness.second)
    assert current_of(harness) is not log
    (again,) = harness.append(b"a", base_sequence=0, **of_producer)
    (gap,) = harness.append(b"c", base_sequence=2, **of_producer)
    (following,) = harness.append(b"b", base_sequence=1, **of_producer)
    assert (again.error, gap.error) == (Error.NONE, Error.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert (following.error, current_of(harness).log_end_offset) == (Error.NONE, 2)


def test_the_copied_bytes_are_counted(harness, threads):
    now_ms = harness.clock.monotonic_ms()
    assert harness.moves.copied.rate(now_ms) == 0
    size = current_of(harness).size
    harness.move(harness.second)
    threads.run()
    assert harness.moves.copied.rate(now_ms) == size  # a simple sensor's time is at least one second


def test_codes(harness, tmp_path):
    moves = harness.moves
    assert moves.alter({T0: "/nowhere"}) == {T0: Error.LOG_DIR_NOT_FOUND}
    assert moves.alter({T0: harness.first.path + "/"}) == {T0: Error.LOG_DIR_NOT_FOUND}
    assert harness.move(harness.second, TopicPartition("t", 1)) is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert harness.move(harness.second, TopicPartition("x" * 245, 0)) is Error.INVALID_TOPIC_EXCEPTION
    harness.put_topic("elsewhere", [partition_image(replicas=(2,), leader=2)])
    assert harness.move(harness.second, TopicPartition("elsewhere", 0)) is Error.REPLICA_NOT_AVAILABLE
    assert harness.move(harness.first) is Error.NONE and harness.log_manager.futures.get(T0) is None


def test_a_cordoned_directory(tmp_path):
    harness = MoveHarness(tmp_path, overrides={"cordoned.log.dirs": str(tmp_path / "logs1")})
    harness.create()
    assert harness.move(harness.second) is Error.INVALID_REPLICA_ASSIGNMENT


def test_offline_directories(harness, threads):
    other = TopicPartition("u", 0)
    harness.put_topic("u", [partition_image()])
    assert harness.log_manager.directory_of(other) is harness.second
    harness.log_manager.take_offline(harness.second.path, OSError(5, "Input/output error"))
    assert harness.move(harness.second) is Error.KAFKA_STORAGE_ERROR
    assert harness.move(harness.first, other) is Error.KAFKA_STORAGE_ERROR
    assert not threads.waiting


def test_a_wish_for_a_partition_that_is_not_there_yet(harness):
    assert harness.move(harness.first, TopicPartition("later", 0)) is Error.UNKNOWN_TOPIC_OR_PARTITION
    harness.put_topic("later", [partition_image()])
    assert harness.log_manager.directory_of(TopicPartition("later", 0)) is harness.first


def test_back_again_gives_the_move_up(harness, threads):
    harness.move(harness.second)
    assert harness.move(harness.first) is Error.NONE
    assert harness.names() == [[("t-0", "")], [("t-0", "delete")]]
    threads.run()
    assert current_of(harness).directory is harness.first and harness.values()
    assert harness.move(harness.second) is Error.NONE
    threads.run()
    assert current_of(harness).directory is harness.second


def at_the_last_step(harness, happen):
    """Has `happen` called once, after the copy was assigned and before it replaces the partition's log."""

    def meanwhile():
        if harness.assigned:
            harness.meanwhile = lambda: None
            happen()

    harness.meanwhile = meanwhile


def test_a_move_that_is_given_up_at_its_last_step_replaces_nothing(harness, threads):
    at_the_last_step(harness, lambda: harness.move(harness.first))
    harness.move(harness.second)
    threads.run()
    assert harness.names() == [[("t-0", "")], [("t-0", "delete")]]
    assert harness.assigned == {T0: harness.first.directory_id}
    assert len(harness.values()) == 10 and not harness.failures


def test_a_topic_deleted_at_the_last_step_of_a_move_stays_deleted(harness, threads):
    at_the_last_step(harness, lambda: harness.delete_topic("t"))
    harness.move(harness.second)
    threads.run()
    assert harness.names() == [[("t-0", "delete")], [("t-0", "delete")]]
    assert harness.log_manager.get_log(T0) is None and not harness.failures


def test_a_stop_before_the_last_step_leaves_the_copy_to_the_next_start(harness, threads):
    at_the_last_step(harness, harness.moves.stop)
    harness.move(harness.second)
    threads.run()
    assert harness.names() == [[("t-0", "")], [("t-0", "future")]]
    assert current_of(harness).directory is harness.first and not harness.failures


def test_a_topic_deleted_meanwhile(harness, threads):
    harness.move(harness.second)
    harness.delete_topic("t")
    assert harness.names() == [[("t-0", "delete")], [("t-0", "delete")]]
    threads.run()
    assert not harness.failures and harness.log_manager.futures.logs() == []


def test_the_target_fails(harness, threads):
    harness.move(harness.second)
    harness.log_manager.take_offline(harness.second.path, OSError(5, "Input/output error"))
    threads.run()
    assert current_of(harness).directory is harness.first and len(harness.values()) == 10
    assert harness.assigned == {}


def test_a_damaged_source_ends_the_move(harness, threads):
    harness.move(harness.second)
    segment = current_of(harness).segments.active
    with open(segment.path(".log"), "r+b") as file:
        file.seek(segment.size - 1)
        file.write(b"\xff")
    threads.run()
    assert current_of(harness).directory is harness.first
    assert harness.names() == [[("t-0", "")], [("t-0", "delete")]] and not harness.failures


def test_a_copy_that_cannot_be_removed_does_not_end_the_thread(tmp_path, threads):
    class BrokenFilesystem(Filesystem):
        is_broken = False

        def rename(self, source, target):
            if self.is_broken:
                raise OSError(5, "Input/output error")
            super().rename(source, target)

    filesystem = BrokenFilesystem()
    harness = MoveHarness(tmp_path, start_thread=threads, filesystem=filesystem)
    harness.create()
    harness.append(b"a" * 100)
    harness.move(harness.second)
    segment = current_of(harness).segments.active
    with open(segment.path(".log"), "r+b") as file:
        file.seek(segment.size - 1)
        file.write(b"\xff")
    filesystem.is_broken = True
    threads.run()
    assert harness.failures == [harness.second.path]
    assert harness.moves._busy_threads == 0


def test_a_start_goes_on_with_a_move(tmp_path, threads):
    harness = MoveHarness(tmp_path, start_thread=threads)
    harness.create()
    harness.append(b"a", b"b")
    harness.move(harness.second)
    harness.moves.stop()
    harness.log_manager.shutdown(1)
    again = MoveHarness(tmp_path, start_thread=threads)
    assert again.names() == [[("t-0", "")], [("t-0", "future")]]
    again.put_topic("t", [partition_image()])
    threads.waiting.clear()
    again.moves.resume()
    threads.run()
    assert again.names() == [[("t-0", "delete")], [("t-0", "")]] and again.values() == [b"a", b"b"]


def test_two_futures_are_refused(tmp_path, harness, threads):
    harness.move(harness.second)
    harness.log_manager.shutdown(1)
    (future,) = (tmp_path / "logs1").glob("*-future")
    future.rename(tmp_path / "logs0" / ("t-0." + "0" * 32 + "-future"))
    (tmp_path / "logs1" / future.name).mkdir()
    (tmp_path / "logs1" / future.name / "partition.metadata").write_bytes(
        (tmp_path / "logs0" / "t-0" / "partition.metadata").read_bytes()
    )
    with pytest.raises(Exception, match="Duplicate log directories"):
        MoveHarness(tmp_path)
