"""Delayed operations: they complete once, by an event or by their deadline, and leave nothing behind."""

from __future__ import annotations

from kafkapy.purgatory.delayed_operation import DelayedOperation
from kafkapy.purgatory.purgatory import Purgatory
from tests.mock_scheduler import MockScheduler


class Countdown(DelayedOperation):
    """Completes when `remaining` reaches 0; `log` tells in which order things were called."""

    __slots__ = ("log", "remaining", "tries")

    def __init__(self, timeout_ms=100, remaining=1):
        super().__init__(timeout_ms)
        self.remaining = remaining
        self.tries = 0
        self.log = []

    def try_complete(self):
        self.tries += 1
        return self.remaining <= 0 and self.force_complete()

    def on_complete(self):
        self.log.append("complete")


def test_an_operation_whose_condition_holds_never_waits():
    scheduler = MockScheduler()
    purgatory = Purgatory("Test", scheduler.schedule)
    operation = Countdown(remaining=0)
    assert purgatory.try_complete_else_watch(operation, ["key"])
    assert operation.log == ["complete"]
    assert purgatory.watched_count() == purgatory.delayed_count == 0
    assert scheduler.pending() == 0


def test_an_event_completes_it_once_and_the_timer_is_cancelled():
    scheduler = MockScheduler()
    purgatory = Purgatory("Test", scheduler.schedule)
    operation = Countdown()
    assert not purgatory.try_complete_else_watch(operation, ["a", "b", "a"])
    assert operation.tries == 2  # try, watch, try again
    assert purgatory.watched_count() == 2
    assert purgatory.check_and_complete("a") == 0
    operation.remaining = 0
    assert purgatory.check_and_complete("b") == 1
    assert purgatory.check_and_complete("a") == 0
    assert not operation.force_complete()
    scheduler.advance(1000)
    assert operation.log == ["complete"]
    assert purgatory.watched_count() == purgatory.delayed_count == purgatory.expired_count == 0
    assert scheduler.pending() == 0


def test_the_deadline_completes_it():
    scheduler = MockScheduler()
    purgatory = Purgatory("Test", scheduler.schedule)
    operation = Countdown(timeout_ms=100)
    purgatory.try_complete_else_watch(operation, ["key"])
    scheduler.advance(99)
    assert operation.log == []
    scheduler.advance(1)
    assert operation.log == ["complete"]
    assert purgatory.expired_count == 1
    operation.remaining = 0
    assert purgatory.check_and_complete("key") == 0
    assert purgatory.watched_count() == 0


def test_completed_operations_do_not_linger_under_their_other_keys():
    purgatory = Purgatory("Test", MockScheduler().schedule)
    operations = [Countdown() for _ in range(5000)]
    for number, operation in enumerate(operations):
        purgatory.try_complete_else_watch(operation, ["shared", number])
    for number, operation in enumerate(operations):
        operation.remaining = 0
        assert purgatory.check_and_complete(number) == 1
    assert purgatory.watched_count() == purgatory.delayed_count == 0


def test_an_answer_may_bring_in_the_next_operation_under_the_same_key():
    purgatory = Purgatory("Test", MockScheduler().schedule)
    following = Countdown()

    class Chained(Countdown):
        def on_complete(self):
            super().on_complete()
            purgatory.try_complete_else_watch(following, ["key"])

    first = Chained()
    purgatory.try_complete_else_watch(first, ["key"])
    first.remaining = 0
    assert purgatory.check_and_complete("key") == 1
    assert not following.is_completed
    following.remaining = 0
    assert purgatory.check_and_complete("key") == 1


def test_shutdown_completes_everything():
    purgatory = Purgatory("Test", MockScheduler().schedule)
    operations = [Countdown() for _ in range(3)]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["a", "b"])
    purgatory.force_complete_all()
    assert [operation.log for operation in operations] == [["complete"]] * 3
    assert purgatory.watched_count() == 0
