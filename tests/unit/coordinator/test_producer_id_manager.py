"""Producer ids are never returned twice, the next block is requested in time, and errors reach the requests that
wait."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from kafkapy.controller.producer_ids import ProducerIdsBlock
from kafkapy.coordinator.producer_id_manager import ProducerIdManager, blocks_from_controller
from kafkapy.errors import ApiError, Error


def test_the_next_block_is_asked_for_before_the_first_is_spent():
    asked, given = [], []
    manager = ProducerIdManager(asked.append)
    manager.generate(given.append)
    asked.pop()(ProducerIdsBlock(0, 10))
    for _ in range(8):
        manager.generate(given.append)
    assert given == list(range(9))
    assert len(asked) == 1  # 9 of the 10 ids are used.
    manager.generate(given.append)
    manager.generate(given.append)
    manager.generate(given.append)
    assert given == list(range(10))  # Two requests wait.
    assert len(asked) == 1
    asked.pop()(ProducerIdsBlock(500, 10))
    assert given == [*range(10), 500, 501]


def test_who_waits_for_more_than_a_block_waits_for_the_following_one():
    asked, given = [], []
    manager = ProducerIdManager(asked.append)
    for _ in range(3):
        manager.generate(given.append)
    asked.pop()(ProducerIdsBlock(0, 2))
    assert given == [0, 1]
    asked.pop()(ProducerIdsBlock(2, 2))
    assert given == [0, 1, 2]


def test_a_block_that_overlaps_the_last_one_is_refused():
    asked, given = [], []
    manager = ProducerIdManager(asked.append)
    manager.generate(given.append)
    asked.pop()(ProducerIdsBlock(0, 1))
    manager.generate(given.append)
    with pytest.raises(AssertionError, match="after a block that ends at 1"):
        asked.pop()(ProducerIdsBlock(0, 1))
    assert given == [0]


def test_an_error_is_told_and_the_next_request_asks_again():
    asked, given = [], []
    manager = ProducerIdManager(asked.append)
    manager.generate(given.append)
    asked.pop()(Error.COORDINATOR_NOT_AVAILABLE)
    assert given == [Error.COORDINATOR_NOT_AVAILABLE]
    manager.generate(given.append)
    asked.pop()(ProducerIdsBlock(7, 1))
    assert given[1:] == [7]


class Controller:
    def __init__(self):
        self.future = Future()

    def submit(self, operation):
        return self.future


def test_the_controllers_answer_is_posted():
    for outcome, expected in (
        (ProducerIdsBlock(1, 2), ProducerIdsBlock(1, 2)),
        (ApiError(Error.BROKER_ID_NOT_REGISTERED), Error.BROKER_ID_NOT_REGISTERED),
        (RuntimeError("stopped"), Error.COORDINATOR_NOT_AVAILABLE),
    ):
        controller, posted, given = Controller(), [], []
        blocks_from_controller(controller, posted.append, 1)(given.append)
        if isinstance(outcome, Exception):
            controller.future.set_exception(outcome)
        else:
            controller.future.set_result(outcome)
        assert given == []
        posted.pop()()
        assert given == [expected]
