"""Requests to other brokers over a real connection, and their failure when a broker is fenced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import Queue
from typing import Any

import pytest

from kafkapy.errors import Error
from kafkapy.nodes.node_channel import Destination
from kafkapy.nodes.node_thread import NodeThread
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kafkapy.server.broker_requests import BrokerRequests
from tests.harness.stub_node import StubNode

WAIT_S = 20
KEY = ApiKey.WRITE_TXN_MARKERS


class Owner:
    """The reactor's thread, played by the test, and the brokers that its metadata knows."""

    def __init__(self) -> None:
        self.brokers: dict[int, Destination] = {}
        self.scheduled: list[Callable[[], Any]] = []
        self.answers: list[tuple[Any, Error]] = []
        self._posted: Queue[Callable[[], None]] = Queue()
        self.post = self._posted.put

    def schedule(self, delay_ms: int, work: Callable[[], Any]) -> Any:
        self.scheduled.append(work)

    def answered(self, response: Any, error: Error) -> None:
        self.answers.append((response, error))

    def run_until_answered(self, count: int = 1) -> list[Error]:
        while len(self.answers) < count:
            self._posted.get(timeout=WAIT_S)()
        return [error for _, error in self.answers]


@pytest.fixture
def owner() -> Owner:
    return Owner()


@pytest.fixture
def requests(owner: Owner) -> Iterator[BrokerRequests]:
    thread = NodeThread()
    yield BrokerRequests(
        thread, lambda broker_id: owner.brokers.get(broker_id), owner.post, owner.schedule,
        client_id="1", timeout_ms=30_000,
    )  # fmt: skip
    thread.stop()


def ask(requests: BrokerRequests, owner: Owner) -> None:
    requests.send(2, WriteTxnMarkersRequest(markers=[]), KEY, owner.answered)


def test_a_request_reaches_the_broker_at_its_present_address(requests: BrokerRequests, owner: Owner) -> None:
    answers: Any = {KEY: lambda request, version: WriteTxnMarkersResponse(markers=[])}
    with StubNode(answers) as first, StubNode(answers) as second:
        owner.brokers[2] = Destination(2, "127.0.0.1", first.port)
        ask(requests, owner)
        assert owner.run_until_answered() == [Error.NONE]
        owner.brokers[2] = Destination(2, "127.0.0.1", second.port)
        ask(requests, owner)
        assert owner.run_until_answered(2) == [Error.NONE, Error.NONE]
        assert (len(first.of(KEY)), len(second.of(KEY))) == (1, 1)


def test_a_broker_without_an_address_is_not_available(requests: BrokerRequests, owner: Owner) -> None:
    ask(requests, owner)
    assert not owner.answers  # not before `send` has returned
    assert owner.run_until_answered() == [Error.BROKER_NOT_AVAILABLE]


def test_a_connection_that_ends_fails_the_request(requests: BrokerRequests, owner: Owner) -> None:
    with StubNode() as node:
        node.answers[KEY] = lambda request, version: node.drop_connections()
        owner.brokers[2] = Destination(2, "127.0.0.1", node.port)
        ask(requests, owner)
        assert owner.run_until_answered() == [Error.NETWORK_EXCEPTION]


def test_a_request_fails_when_its_broker_is_fenced(requests: BrokerRequests, owner: Owner) -> None:
    with StubNode({KEY: lambda request, version: None}) as node:
        owner.brokers[2] = Destination(2, "127.0.0.1", node.port)
        ask(requests, owner)
        owner.scheduled.pop()()
        assert len(owner.scheduled) == 1  # it waits on
        del owner.brokers[2]
        owner.scheduled.pop()()
        assert owner.run_until_answered() == [Error.NETWORK_EXCEPTION]
