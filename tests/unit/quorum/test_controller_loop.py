"""The controller's thread: order, groups of operations, errors, faults."""

import threading

import pytest

from kafkapy.controller.result import ControllerResult
from kafkapy.controller.topics import NewTopic, create_topics
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.quorum import controller_loop
from tests.harness.metadata import QuorumHarness, rules


@pytest.fixture
def harness(tmp_path):
    harness = QuorumHarness(tmp_path / "data")
    harness.start()
    yield harness
    harness.loop.stop()


class Recorder:
    """A listener that records its notifications."""

    def __init__(self):
        self.seen = []

    def on_metadata(self, delta, image):
        self.seen.append((sorted(topic.name for topic in delta.changed_topics.values()), image.offset))


def create(name):
    return lambda image: create_topics(image, [NewTopic(name, 1)], rules())


def test_listeners_see_a_change_before_its_answer(harness):
    recorder = Recorder()
    harness.loop.follow(recorder).result()
    seen_at_answer = []
    future = harness.loop.submit(create("a"))
    future.add_done_callback(lambda done: seen_at_answer.append((list(recorder.seen), harness.loop.image)))
    future.result()
    harness.loop.submit(lambda image: ControllerResult([], None)).result()
    [(seen, image)] = seen_at_answer
    assert seen == [(["a"], image.offset)] and "a" in image.topics.by_name


def test_what_waits_is_run_one_on_another_and_synced_once(harness):
    gate, synced = threading.Event(), []
    harness.filesystem = harness.quorum.log.filesystem

    class Counting(type(harness.filesystem)):
        def sync_file(self, fd):
            synced.append(fd)
            super().sync_file(fd)

    harness.quorum.log.filesystem = Counting()
    blocker = harness.loop.submit(lambda image: (gate.wait(), ControllerResult([], None))[1])
    futures = [harness.loop.submit(create("same")) for _ in range(3)] + [harness.loop.submit(create("other"))]
    gate.set()
    blocker.result()
    errors = [next(iter(future.result().values())).error.error for future in futures]
    assert errors == [Error.NONE, Error.TOPIC_ALREADY_EXISTS, Error.TOPIC_ALREADY_EXISTS, Error.NONE]
    assert len(synced) <= 2  # The blocker may have been taken alone; the other operations were run together.


def test_errors_are_the_callers_and_nobody_elses(harness):
    def refuse(image):
        raise ApiError(Error.INVALID_REQUEST, "no")

    def fail(image):
        raise ZeroDivisionError

    futures = [harness.loop.submit(operation) for operation in (refuse, fail, create("a"))]
    assert isinstance(futures[0].exception(), ApiError)
    assert isinstance(futures[1].exception(), ZeroDivisionError)
    assert futures[2].result()["a"].error.error == 0
    assert not harness.faults


def test_a_bounded_queue(harness):
    gate = threading.Event()
    harness.loop.submit(lambda image: (gate.wait(), ControllerResult([], None))[1])
    nothing = lambda image: ControllerResult([], None)  # noqa: E731
    futures = [harness.loop.submit(nothing) for _ in range(controller_loop.MAX_QUEUED_OPERATIONS + 200)]
    gate.set()
    refused = [future for future in futures if future.exception() is not None]
    assert refused
    assert all(future.exception().error is Error.REQUEST_TIMED_OUT for future in refused)


def test_the_quorum_thread_does_not_wait_for_room_in_its_own_queue(harness):
    filled, gate, order = threading.Event(), threading.Event(), []

    def work():
        filled.set()
        gate.wait()
        harness.loop.post(lambda: order.append("posted by the quorum thread"))

    harness.loop.post(work)
    filled.wait()
    while harness.loop.offer(lambda: order.append("queued")):
        pass
    gate.set()
    harness.loop.call(lambda: None).result(30)
    assert order.count("posted by the quorum thread") == 1
    assert order.count("queued") == controller_loop.MAX_QUEUED_OPERATIONS


def test_work_that_posts_itself_again_keeps_nothing_else_waiting(harness):
    runs, ended = [], threading.Event()

    def work():
        runs.append(len(runs))
        if not ended.is_set():
            harness.loop.post(work)

    harness.loop.post(work)
    harness.loop.submit(create("a")).result(30)
    ended.set()
    assert runs and "a" in harness.loop.image.topics.by_name


def test_after_stop_nothing_is_taken(harness):
    harness.loop.stop()
    assert harness.loop.submit(create("a")).exception().error is Error.NOT_CONTROLLER


def test_a_failed_append_is_fatal_and_says_so_once(harness):
    class Full(type(harness.filesystem)):
        def sync_file(self, fd):
            raise OSError(28, "No space left on device")

    harness.quorum.log.filesystem = Full()
    first = harness.loop.submit(create("a"))
    assert first.exception().error is Error.KAFKA_STORAGE_ERROR
    harness.loop.stop()
    assert [type(fault) for fault in harness.faults] == [StorageError]
    assert harness.loop.submit(create("b")).exception().error is Error.NOT_CONTROLLER
    assert "a" not in harness.loop.image.topics.by_name


def block(harness):
    """Blocks the quorum thread until the returned event is set."""
    entered, gate = threading.Event(), threading.Event()
    harness.loop.post(lambda: (entered.set(), gate.wait()))
    entered.wait()
    return gate


def test_a_stop_ends_what_waits_behind_it(harness):
    gate = block(harness)
    stopping = threading.Thread(target=harness.loop.stop)
    stopping.start()
    while harness.loop._queue.empty():
        pass
    for _ in range(controller_loop.MAX_EVENTS_TOGETHER):  # which are run together with the stop
        harness.loop.post(lambda: None)
    futures = [harness.loop.call(lambda: 1), harness.loop.submit(create("a")), harness.loop.caught_up()]
    gate.set()
    stopping.join()
    assert [future.exception(20).error for future in futures] == [Error.NOT_CONTROLLER] * 3


def test_an_image_that_is_never_reached_ends_with_the_loop(harness):
    harness.quorum.machine._node.high_watermark += 1000
    waiting = harness.loop.caught_up()
    harness.loop.call(lambda: None).result()
    assert not waiting.done()
    harness.loop.stop()
    assert waiting.exception(20).error is Error.NOT_CONTROLLER


def test_a_failure_ends_what_was_taken_together_with_it(harness):
    def fail():
        raise StorageError("directory", "the disk has failed")

    gate = block(harness)
    harness.loop.post(fail)
    futures = [harness.loop.call(lambda: 1), harness.loop.submit(create("a")), harness.loop.caught_up()]
    gate.set()
    assert [future.exception(20).error for future in futures] == [Error.NOT_CONTROLLER] * 3
    assert harness.loop.call(lambda: 1).exception(20).error is Error.NOT_CONTROLLER
    assert harness.loop.caught_up().exception(20).error is Error.NOT_CONTROLLER
