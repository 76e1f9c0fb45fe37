"""Expressions are evaluated on another thread, and their matches are delivered in order through `post`."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from kafkapy.coordinator.group.regex_resolver import Matches, RegexResolver

WAIT_S = 30


def test_matches_are_posted_in_the_order_of_the_requests() -> None:
    posted: queue.SimpleQueue[tuple[threading.Thread, Callable[[], None]]] = queue.SimpleQueue()
    resolver = RegexResolver(lambda work: posted.put((threading.current_thread(), work)))
    found: list[Matches] = []
    for expression in ("a.*", "b", "(", ".*"):
        resolver([expression], ["a1", "a2", "b", "bb"], found.append)
    for _ in range(4):
        thread, work = posted.get(timeout=WAIT_S)
        assert thread is not threading.current_thread()
        work()
    assert found == [
        {"a.*": frozenset({"a1", "a2"})},
        {"b": frozenset({"b"})},
        {"(": frozenset()},
        {".*": frozenset({"a1", "a2", "b", "bb"})},
    ]
    # The thread ends with its work; a later request starts another one.
    resolver(["a1"], ["a1"], found.append)
    posted.get(timeout=WAIT_S)[1]()
    assert found[4] == {"a1": frozenset({"a1"})}
