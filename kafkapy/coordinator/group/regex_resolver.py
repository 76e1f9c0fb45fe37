"""Evaluates clients' regular expressions on a separate thread, so that the thread that owns the groups does
not wait."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

logger = logging.getLogger("kafka.coordinator.group")

Matches = dict[str, frozenset[str]]
Job = tuple[list[str], list[str], Callable[[Matches], None]]


def evaluate(expressions: list[str], names: list[str]) -> Matches:
    """Returns a dict that maps each expression to the names in `names` that it matches as a whole.

    Internal topics are included, as in Apache Kafka. An expression that is too expensive to match matches no name.
    """
    from kafkapy.coordinator.group.topic_pattern import PatternError, TopicPattern

    matches: Matches = {}
    for expression in expressions:
        try:
            pattern = TopicPattern(expression)
            matches[expression] = frozenset(name for name in names if pattern.matches(name))
        # The expression is too expensive, or was accepted by a broker with larger Unicode tables.
        except PatternError as error:
            logger.warning("Regular expression %r matches no topic: %s", expression, error)
            matches[expression] = frozenset()
    return matches


def evaluate_here(expressions: list[str], names: list[str], on_matches: Callable[[Matches], None]) -> None:
    """Evaluates the expressions on the caller's thread, and calls `on_matches` before it returns.

    The argument of `on_matches` maps each expression to the topic names in `names` that it matches as a whole.
    """
    on_matches(evaluate(expressions, names))


class RegexResolver:
    """A queue of regular expressions, and the thread that evaluates them. The thread ends when the queue is empty.

    The thread passes each result to the owner thread, which is the thread that owns the groups: it calls `post(work)`,
    and the owner thread then calls `work()`.
    """

    def __init__(self, post: Callable[[Callable[[], None]], None]) -> None:
        self._post = post
        self._lock = threading.Lock()
        self._jobs: deque[Job] = deque()
        self._is_running = False

    def __call__(self, expressions: list[str], names: list[str], on_matches: Callable[[Matches], None]) -> None:
        """Evaluates the expressions on another thread; then calls `on_matches` on the thread that owns the groups.

        The argument of `on_matches` maps each expression to the topic names in `names` that it matches as a whole.
        """
        with self._lock:
            self._jobs.append((expressions, names, on_matches))
            if self._is_running:
                return
            self._is_running = True
        threading.Thread(target=self._run, name="group-coordinator-regex", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._is_running = False
                    return
                expressions, names, on_matches = self._jobs.popleft()
            matches = evaluate(expressions, names)
            self._post(lambda on_matches=on_matches, matches=matches: on_matches(matches))  # type: ignore[misc]
