"""Moving a partition between log directories: codes, what is served meanwhile, what is given up, what a start does."""

import pytest

from kafkapy.errors import Error
from kafkapy.types import TopicPartition
from tests.move_world import T0, MoveWorld
from tests.replica_world import partition_image


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
def world(tmp_path, threads):
    made = MoveWorld(tmp_path, start_thread=threads)
    made.create()
    for number in range(10):
        made.append(b"%d" % number)
    return made


def current_of(world):
    return world.log_manager.get_log(T0)


def test_a_move(world, threads):
    assert world.move(world.second) is Error.NONE
    assert world.names() == [[("t-0", "")], [("t-0", "future")]]
    moved = current_of(world)
    threads.run()
    log = current_of(world)
    assert log is not moved and log is world.partition().log and log.directory is world.second
    assert world.names() == [[("t-0", "delete")], [("t-0", "")]]
    assert world.assigned == {T0: world.second.directory_id}
    assert world.log_manager.futures.logs() == [] and world.cleaner.state_of(T0) is None
    world.append(b"10")
    assert world.values() == [b"%d" % number for number in range(11)]
    assert (log.high_watermark, log.leader_epochs.entries) == (11, moved.leader_epochs.entries)


def test_records_that_come_in_meanwhile(world, threads):
    written = 10

    def meanwhile():
        nonlocal written
        world.append(b"%d" % written)
        written += 1

    world.meanwhile = meanwhile
    world.move(world.second)
    threads.run()
    assert written > 10 and current_of(world).directory is world.second
    assert world.values() == [b"%d" % number for number in range(written)]


def test_a_fetch_that_waits_is_answered_and_goes_on(world, threads):
    world.move(world.second)
    answers = world.fetch(10, max_wait_ms=1000)
    threads.run()
    assert [answer.error for answer in answers] == [Error.NONE]
    again = world.fetch(10, max_wait_ms=1000)
    world.append(b"more")
    assert len(again) == 1 and again[0].high_watermark == 11


def test_idempotent_producers_go_on(tmp_path):
    world = MoveWorld(tmp_path)
    log = world.create()
    of_producer = {"producer_id": 5, "producer_epoch": 0}
    world.append(b"a", base_sequence=0, **of_producer)
    world.move(world.second)
    assert current_of(world) is not log
    (again,) = world.append(b"a", base_sequence=0, **of_producer)
    (gap,) = world.append(b"c", base_sequence=2, **of_producer)
    (following,) = world.append(b"b", base_sequence=1, **of_producer)
    assert (again.error, gap.error) == (Error.NONE, Error.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert (following.error, current_of(world).log_end_offset) == (Error.NONE, 2)


def test_codes(world, tmp_path):
    moves = world.moves
    assert moves.alter({T0: "/nowhere"}) == {T0: Error.LOG_DIR_NOT_FOUND}
    assert moves.alter({T0: world.first.path + "/"}) == {T0: Error.LOG_DIR_NOT_FOUND}
    assert world.move(world.second, TopicPartition("t", 1)) is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert world.move(world.second, TopicPartition("x" * 245, 0)) is Error.INVALID_TOPIC_EXCEPTION
    world.put_topic("elsewhere", [partition_image(replicas=(2,), leader=2)])
    assert world.move(world.second, TopicPartition("elsewhere", 0)) is Error.REPLICA_NOT_AVAILABLE
    assert world.move(world.first) is Error.NONE and world.log_manager.futures.get(T0) is None


def test_a_cordoned_directory(tmp_path):
    world = MoveWorld(tmp_path, overrides={"cordoned.log.dirs": str(tmp_path / "logs1")})
    world.create()
    assert world.move(world.second) is Error.INVALID_REPLICA_ASSIGNMENT


def test_offline_directories(world, threads):
    other = TopicPartition("u", 0)
    world.put_topic("u", [partition_image()])
    assert world.log_manager.directory_of(other) is world.second
    world.log_manager.take_offline(world.second.path, OSError(5, "Input/output error"))
    assert world.move(world.second) is Error.KAFKA_STORAGE_ERROR
    assert world.move(world.first, other) is Error.KAFKA_STORAGE_ERROR
    assert not threads.waiting


def test_a_wish_for_a_partition_that_is_not_there_yet(world):
    assert world.move(world.first, TopicPartition("later", 0)) is Error.UNKNOWN_TOPIC_OR_PARTITION
    world.put_topic("later", [partition_image()])
    assert world.log_manager.directory_of(TopicPartition("later", 0)) is world.first


def test_back_again_gives_the_move_up(world, threads):
    world.move(world.second)
    assert world.move(world.first) is Error.NONE
    assert world.names() == [[("t-0", "")], [("t-0", "delete")]]
    threads.run()
    assert current_of(world).directory is world.first and world.values()
    assert world.move(world.second) is Error.NONE
    threads.run()
    assert current_of(world).directory is world.second


def test_a_topic_deleted_meanwhile(world, threads):
    world.move(world.second)
    world.delete_topic("t")
    assert world.names() == [[("t-0", "delete")], [("t-0", "delete")]]
    threads.run()
    assert not world.failures and world.log_manager.futures.logs() == []


def test_the_target_fails(world, threads):
    world.move(world.second)
    world.log_manager.take_offline(world.second.path, OSError(5, "Input/output error"))
    threads.run()
    assert current_of(world).directory is world.first and len(world.values()) == 10
    assert world.assigned == {}


def test_a_damaged_source_ends_the_move(world, threads):
    world.move(world.second)
    segment = current_of(world).segments.active
    with open(segment.path(".log"), "r+b") as file:
        file.seek(segment.size - 1)
        file.write(b"\xff")
    threads.run()
    assert current_of(world).directory is world.first
    assert world.names() == [[("t-0", "")], [("t-0", "delete")]] and not world.failures


def test_a_start_goes_on_with_a_move(tmp_path, threads):
    world = MoveWorld(tmp_path, start_thread=threads)
    world.create()
    world.append(b"a", b"b")
    world.move(world.second)
    world.moves.stop()
    world.log_manager.shutdown(1)
    again = MoveWorld(tmp_path, start_thread=threads)
    assert again.names() == [[("t-0", "")], [("t-0", "future")]]
    again.put_topic("t", [partition_image()])
    threads.waiting.clear()
    again.moves.resume()
    threads.run()
    assert again.names() == [[("t-0", "delete")], [("t-0", "")]] and again.values() == [b"a", b"b"]


def test_two_futures_are_refused(tmp_path, world, threads):
    world.move(world.second)
    world.log_manager.shutdown(1)
    (future,) = (tmp_path / "logs1").glob("*-future")
    future.rename(tmp_path / "logs0" / ("t-0." + "0" * 32 + "-future"))
    (tmp_path / "logs1" / future.name).mkdir()
    (tmp_path / "logs1" / future.name / "partition.metadata").write_bytes(
        (tmp_path / "logs0" / "t-0" / "partition.metadata").read_bytes()
    )
    with pytest.raises(Exception, match="Duplicate log directories"):
        MoveWorld(tmp_path)
