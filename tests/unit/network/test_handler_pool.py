"""The handler pool: continuations run on the reactor, the queue is bounded, a failure affects only its request."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from kafkapy.network.handler_pool import HandlerPool

TIMEOUT = 20


class Owner:
    """A reactor that runs posted work on demand and records pause and resume."""

    def __init__(self, thread_count: int, queue_limit: int) -> None:
        self.posted: deque[Callable[[], object]] = deque()
        self.arrived = threading.Semaphore(0)
        self.notes: list[str] = []
        self.pool = HandlerPool(
            thread_count,
            queue_limit,
            post=self.post,
            pause=lambda: self.notes.append("pause"),
            resume=lambda: self.notes.append("resume"),
        )

    def post(self, callback: Callable[[], object]) -> None:
        self.posted.append(callback)
        self.arrived.release()

    def run(self, count: int) -> None:
        for _ in range(count):
            assert self.arrived.acquire(timeout=TIMEOUT)
            self.posted.popleft()()


def test_work_runs_elsewhere_and_its_continuation_here() -> None:
    owner = Owner(2, 10)
    threads: list[str] = []

    def work() -> Callable[[], object]:
        threads.append(threading.current_thread().name)
        return lambda: threads.append(threading.current_thread().name)

    owner.pool.submit(work)
    owner.run(1)
    assert threads == ["data-plane-kafka-request-handler-0", threading.current_thread().name]
    owner.pool.stop()


def test_too_much_work_pauses_the_intake_until_there_is_room() -> None:
    owner = Owner(1, 2)
    gate = threading.Event()

    def wait() -> None:
        gate.wait(TIMEOUT)

    for _ in range(4):
        owner.pool.submit(wait)
    assert owner.notes == ["pause"]
    assert owner.pool.queued == 3
    gate.set()
    owner.run(4)
    assert owner.notes == ["pause", "resume"]
    assert owner.pool.queued == 0
    owner.pool.stop()


def test_a_failure_frees_its_place_and_the_thread_goes_on() -> None:
    owner = Owner(1, 10)
    done: list[int] = []
    owner.pool.submit(lambda: 1 // 0)  # type: ignore[arg-type, return-value]
    owner.pool.submit(lambda: lambda: done.append(1))
    owner.run(2)
    assert done == [1]
    assert owner.pool.queued == 0
    owner.pool.stop()


def test_the_number_of_threads_follows_the_configuration() -> None:
    owner = Owner(1, 2)
    gate = threading.Event()
    running = threading.Semaphore(0)

    def wait() -> None:
        running.release()
        gate.wait(TIMEOUT)

    for _ in range(3):
        owner.pool.submit(wait)
    assert (owner.notes, owner.pool.queued) == (["pause"], 2)
    owner.pool.set_thread_count(3)
    for _ in range(3):
        assert running.acquire(timeout=TIMEOUT)
    assert (owner.notes, owner.pool.queued) == (["pause", "resume"], 0)
    gate.set()
    owner.run(3)
    gate.clear()
    owner.pool.set_thread_count(1)
    for _ in range(2):
        owner.pool.submit(wait)
    assert running.acquire(timeout=TIMEOUT)
    assert owner.pool.queued == 1
    assert not running.acquire(timeout=0.05)  # the two surplus threads run nothing
    gate.set()
    owner.run(2)
    owner.pool.stop()
