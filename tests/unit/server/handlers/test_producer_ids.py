"""InitProducerId: new ids from blocks, with epoch 0; requests that need a transaction coordinator are refused."""

from __future__ import annotations

import pytest

from kafkapy.controller.producer_ids import ProducerIdsBlock
from kafkapy.errors import Error
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.server.handlers.producer_ids import handle_init_producer_id
from tests.harness.handler import HandlerHarness


@pytest.fixture
def harness(tmp_path):
    return HandlerHarness(tmp_path)


def ask(harness, version=5, **fields):
    values = {"transactional_id": None, "transaction_timeout_ms": 60_000, **fields}
    return harness.send(handle_init_producer_id, InitProducerIdRequest(**values), version)


@pytest.mark.parametrize("version", range(6))
def test_ids_come_from_blocks(harness, version):
    waiting = [ask(harness, version) for _ in range(3)]
    assert not any(answer.is_answered for answer in waiting)
    assert len(harness.blocks) == 1
    harness.blocks[0](ProducerIdsBlock(4000, 1000))
    found = [(a.response.error_code, a.response.producer_id, a.response.producer_epoch) for a in waiting]
    assert found == [(0, 4000, 0), (0, 4001, 0), (0, 4002, 0)]
    assert ask(harness, version).response.producer_id == 4003


def test_a_given_id_without_transactional_id_is_replaced(harness):
    answer = ask(harness, 4, producer_id=77, producer_epoch=3)
    harness.blocks[0](ProducerIdsBlock(0, 1000))
    assert (answer.response.producer_id, answer.response.producer_epoch) == (0, 0)


def test_refusals(harness):
    for fields, error in (
        ({"producer_id": 7}, Error.INVALID_REQUEST),
        ({"producer_epoch": 7}, Error.INVALID_REQUEST),
    ):
        response = ask(harness, 4, **fields).response
        assert (response.error_code, response.producer_id, response.producer_epoch) == (error, -1, -1)
    assert harness.blocks == []


def test_a_controller_that_fails(harness):
    answer = ask(harness)
    harness.blocks[0](Error.COORDINATOR_NOT_AVAILABLE)
    assert (answer.response.error_code, answer.response.producer_id) == (Error.COORDINATOR_NOT_AVAILABLE, -1)
