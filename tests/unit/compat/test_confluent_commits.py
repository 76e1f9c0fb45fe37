"""Tests of the commits of confluent-kafka's Consumer: which answers count, and what is sent again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.compat.confluent_kafka._commits import Commits, Offsets
from kafkapy.errors import ApiError, Error
from kafkapy.types import TopicPartition as Place

PLACE = Place("t", 0)
NOT_COORDINATOR = ApiError(Error.NOT_COORDINATOR)


def at(offset: int) -> Offsets:
    return {PLACE: OffsetAndMetadata(offset)}


class Client:
    """The inner consumer: keeps the asynchronous commits, so that a test answers them."""

    def __init__(self) -> None:
        self.sent: list[tuple[Offsets, Callable[[Offsets, Exception | None], None]]] = []
        self.is_coordinator_known = True
        self.failure: Exception | None = None

    def knows_coordinator(self) -> bool:
        return self.is_coordinator_known

    def commit(self, offsets: Offsets) -> None:
        pass

    def commit_async(self, offsets: Offsets, done: Callable[[Offsets, Exception | None], None]) -> None:
        if self.failure is not None:
            raise self.failure
        self.sent.append((offsets, done))

    def answer(self, error: Exception | None = None) -> None:
        """Answers the first commit that has no answer."""
        offsets, done = self.sent.pop(0)
        done(offsets, error)


class Case:
    """The commits of a consumer; `outcomes` has the offsets and the error code (None: success) of each report."""

    def __init__(self) -> None:
        self.client: Any = Client()
        self.outcomes: list[tuple[list[int], int | None]] = []
        self._waiting: deque[Callable[[], object]] = deque()
        self.commits = Commits(self.client, self._report, self._waiting)

    def _report(self, error: Any, partitions: Any) -> None:
        self.outcomes.append(([each.offset for each in partitions], None if error is None else error.code()))

    def served(self) -> list[tuple[list[int], int | None]]:
        while self._waiting:
            self._waiting.popleft()()
        return self.outcomes


@pytest.fixture
def case() -> Case:
    return Case()


def test_a_late_answer_of_an_older_commit_does_not_change_the_committed_offset(case: Case) -> None:
    case.commits.send(at(3))
    case.commits.commit(at(1000))
    case.client.answer()
    assert case.commits.committed == at(1000)
    assert case.served() == [([3], None)]


def test_an_answer_after_a_new_assignment_is_only_reported(case: Case) -> None:
    case.commits.send(at(3))
    case.commits.forget({PLACE})
    case.client.answer()
    assert case.commits.committed == {}
    case.commits.send(at(4))
    case.commits.forget(None)
    case.client.answer(NOT_COORDINATOR)
    case.commits.send_postponed()  # the program gets an outcome also after it has given up the partition
    case.client.answer()
    assert case.commits.committed == {}
    case.commits.send(at(5))
    case.client.answer()
    assert case.commits.committed == at(5)
    assert case.served() == [([3], None), ([4], None), ([5], None)]


def test_the_state_of_answered_commits_is_not_kept(case: Case) -> None:
    for error in (None, ApiError(Error.UNKNOWN_MEMBER_ID)):
        case.commits.send(at(3))
        case.commits.forget(None)
        case.client.answer(error)
    assert not case.commits._latest
    assert not case.commits._forgotten


def test_a_commit_in_flight_of_a_revoked_partition_is_not_sent_again(case: Case) -> None:
    case.commits.send(at(3))
    case.commits.drop([PLACE], ApiError(Error.COORDINATOR_NOT_AVAILABLE))
    case.client.answer(NOT_COORDINATOR)
    case.commits.send_postponed()
    assert case.client.sent == []
    assert case.served() == [([3], int(Error.NOT_COORDINATOR))]


def test_a_postponed_commit_that_cannot_be_sent_is_reported(case: Case) -> None:
    case.client.is_coordinator_known = False
    case.commits.send(at(3))
    case.client.is_coordinator_known = True
    case.client.failure = ApiError(Error.GROUP_AUTHORIZATION_FAILED)
    case.commits.send_postponed()
    assert case.served() == [([3], int(Error.GROUP_AUTHORIZATION_FAILED))]
    case.commits.finish(0.1)
    assert len(case.served()) == 1
