"""Operations of the controller whose records are committed later than they are appended."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from kafkapy.controller.result import ControllerResult
from kafkapy.controller.topics import NewTopic, create_topics
from kafkapy.errors import ApiError, Error
from kafkapy.quorum.active_controller import ActiveController
from kafkapy.quorum.metadata_batch import metadata_batches
from tests.harness.metadata import bootstrapped, rules, with_brokers

EPOCH = 5


class Quorum:
    """The log of a controller, of which the test decides when it is committed."""

    def __init__(self) -> None:
        image = with_brokers(bootstrapped(), 1)
        self.appends: list[int] = []
        self.published: list[tuple[list[str], int]] = []
        self.applying: list[Future[None]] = []  # of the listeners that have not applied the next change yet
        self.controller = ActiveController(image, EPOCH, self.encode, self.append, self.publish)
        self.end_offset = image.offset

    def encode(self, base_offset: int, records: Any) -> tuple[list[bytes], int]:
        assert base_offset >= self.end_offset
        return metadata_batches(base_offset, EPOCH, 0, records)

    def append(self, batches: list[bytes]) -> None:
        self.appends.append(len(batches))
        self.end_offset = self.controller.image.offset

    def publish(self, delta: Any, image: Any) -> list[Future[None]]:
        self.published.append((sorted(topic.name for topic in delta.changed_topics.values()), image.offset))
        applying, self.applying = self.applying, []
        return applying

    def run(self, *operations: Any) -> list[Future[Any]]:
        futures: list[Future[Any]] = [Future() for _ in operations]
        self.controller.run(list(zip(operations, futures, strict=True)))
        return futures


def create(name: str) -> Any:
    return lambda image: create_topics(image, [NewTopic(name, 1)], rules())


def nothing(image: Any) -> ControllerResult[str]:
    return ControllerResult([], "done")


def test_a_response_waits_until_the_records_are_committed():
    quorum = Quorum()
    first, second = quorum.run(create("a"), create("b"))
    assert quorum.appends == [2] and not first.done() and not quorum.published
    middle = quorum.end_offset - 2
    quorum.controller.commit(middle)
    assert first.done() and not second.done()
    quorum.controller.commit(quorum.end_offset)
    assert second.done()
    assert quorum.published == [(["a"], middle), (["b"], quorum.end_offset)]


def test_an_operation_sees_records_that_are_not_committed():
    quorum = Quorum()
    quorum.run(create("a"))
    (again,) = quorum.run(create("a"))
    quorum.controller.commit(quorum.end_offset)
    assert again.result()["a"].error.error is Error.TOPIC_ALREADY_EXISTS


def test_an_operation_without_records_waits_for_those_before_it():
    quorum = Quorum()
    (idle,) = quorum.run(nothing)
    assert idle.result() == "done"
    quorum.run(create("a"))
    late, failed = quorum.run(nothing, lambda image: 1 // 0)
    assert not late.done() and not failed.done()
    quorum.controller.commit(quorum.end_offset)
    assert late.result() == "done" and isinstance(failed.exception(), ZeroDivisionError)
    assert quorum.appends == [1]


def test_a_response_waits_until_every_listener_has_applied_the_change():
    quorum = Quorum()
    one, two = Future[None](), Future[None]()
    quorum.applying = [one, two]
    created, other = quorum.run(create("a"), nothing)
    quorum.controller.commit(quorum.end_offset)
    assert not created.done() and other.result() == "done"
    two.set_result(None)
    assert not created.done()
    one.set_result(None)
    assert created.result()["a"].error.error == Error.NONE


def test_a_response_fails_with_the_listener_that_could_not_apply_the_change():
    quorum = Quorum()
    quorum.applying = [Future()]
    (failing,) = quorum.applying
    (created,) = quorum.run(create("a"))
    quorum.controller.commit(quorum.end_offset)
    failing.set_exception(OSError("no"))
    assert isinstance(created.exception(), OSError)


def test_control_records_move_the_image_and_are_published_at_their_commit():
    quorum = Quorum()
    quorum.controller.skip_to(quorum.end_offset + 2)
    quorum.end_offset += 2
    (future,) = quorum.run(create("a"))
    quorum.controller.commit(quorum.end_offset)
    assert future.done() and [names for names, _ in quorum.published] == [[], ["a"]]


def test_after_a_failure_the_outcomes_are_unknown():
    quorum = Quorum()
    future, other = quorum.run(create("a"), nothing)
    quorum.controller.fail(ApiError(Error.NOT_CONTROLLER))
    assert [each.exception().error for each in (future, other)] == [Error.NOT_CONTROLLER] * 2
    quorum.controller.commit(quorum.end_offset)
    assert not quorum.published
