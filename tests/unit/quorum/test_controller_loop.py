"""The controller's thread: order, grouping, errors, faults."""

import threading

import pytest

from kafkapy.controller.result import ControllerResult
from kafkapy.controller.topics import NewTopic, create_topics
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.quorum import controller_loop
from tests.metadata_world import QuorumWorld, rules


@pytest.fixture
def world(tmp_path):
    world = QuorumWorld(tmp_path / "data")
    world.start()
    yield world
    world.loop.stop()


class Recorder:
    """A listener that notes what it was told."""

    def __init__(self):
        self.seen = []

    def on_metadata(self, delta, image):
        self.seen.append((sorted(topic.name for topic in delta.changed_topics.values()), image.offset))


def create(name):
    return lambda image: create_topics(image, [NewTopic(name, 1)], rules())


def test_listeners_see_a_change_before_its_answer(world):
    recorder = Recorder()
    world.loop.submit(lambda image: (world.loop.add_listener(recorder), ControllerResult([], None))[1]).result()
    seen_at_answer = []
    future = world.loop.submit(create("a"))
    future.add_done_callback(lambda done: seen_at_answer.append((list(recorder.seen), world.loop.image)))
    future.result()
    world.loop.submit(lambda image: ControllerResult([], None)).result()
    [(seen, image)] = seen_at_answer
    assert seen == [(["a"], image.offset)] and "a" in image.topics.by_name


def test_what_waits_is_run_one_on_another_and_synced_once(world):
    gate, synced = threading.Event(), []
    world.filesystem = world.quorum.log.filesystem

    class Counting(type(world.filesystem)):
        def sync_file(self, fd):
            synced.append(fd)
            super().sync_file(fd)

    world.quorum.log.filesystem = Counting()
    blocker = world.loop.submit(lambda image: (gate.wait(), ControllerResult([], None))[1])
    futures = [world.loop.submit(create("same")) for _ in range(3)] + [world.loop.submit(create("other"))]
    gate.set()
    blocker.result()
    errors = [next(iter(future.result().values())).error.error for future in futures]
    assert errors == [Error.NONE, Error.TOPIC_ALREADY_EXISTS, Error.TOPIC_ALREADY_EXISTS, Error.NONE]
    assert len(synced) <= 2  # the blocker may have been taken alone; the rest went together


def test_errors_are_the_callers_and_nobody_elses(world):
    def refuse(image):
        raise ApiError(Error.INVALID_REQUEST, "no")

    def fail(image):
        raise ZeroDivisionError

    futures = [world.loop.submit(operation) for operation in (refuse, fail, create("a"))]
    assert isinstance(futures[0].exception(), ApiError)
    assert isinstance(futures[1].exception(), ZeroDivisionError)
    assert futures[2].result()["a"].error.error == 0
    assert not world.faults


def test_a_bounded_queue(world):
    gate = threading.Event()
    world.loop.submit(lambda image: (gate.wait(), ControllerResult([], None))[1])
    nothing = lambda image: ControllerResult([], None)  # noqa: E731
    futures = [world.loop.submit(nothing) for _ in range(controller_loop.MAX_QUEUED_OPERATIONS + 200)]
    gate.set()
    refused = [future for future in futures if future.exception() is not None]
    assert refused
    assert all(future.exception().error is Error.REQUEST_TIMED_OUT for future in refused)


def test_after_stop_nothing_is_taken(world):
    world.loop.stop()
    assert world.loop.submit(create("a")).exception().error is Error.NOT_CONTROLLER


def test_a_failed_append_is_fatal_and_says_so_once(world):
    class Full(type(world.filesystem)):
        def sync_file(self, fd):
            raise OSError(28, "No space left on device")

    world.quorum.log.filesystem = Full()
    first = world.loop.submit(create("a"))
    assert first.exception().error is Error.KAFKA_STORAGE_ERROR
    world.loop.stop()
    assert [type(fault) for fault in world.faults] == [StorageError]
    assert world.loop.submit(create("b")).exception().error is Error.NOT_CONTROLLER
    assert "a" not in world.loop.image.topics.by_name
