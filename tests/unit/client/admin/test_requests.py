"""The request queue of an admin client: sending, retries after retriable errors, and the time-out."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kafkapy.client.admin.requests import AdminRequest, RequestQueue, constant, top_level_error
from kafkapy.client.backoff import ExponentialBackoff
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.mock_clock import MockClock

Answer = Callable[[Any, int, Exception | None], None]


class LoopbackNetwork:
    """The part of a network that the queue uses; the test responds."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.retry_backoff = ExponentialBackoff(100, 1000, chance=lambda: 0.5)
        self.metadata = SimpleNamespace(request_update=lambda: None)
        self.sent: list[tuple[int, Answer]] = []

    def submit(self, node_id: int, key: ApiKey, build: Any, on_done: Answer, *, highest: int | None) -> None:
        self.sent.append((node_id, on_done))


def make(target: Callable[[int], int | None] = lambda now: 1, retries: int = 5) -> tuple[Any, Any, AdminRequest]:
    network = LoopbackNetwork()
    queue = RequestQueue(network, retries)  # type: ignore[arg-type]
    request = AdminRequest(target, ApiKey.LIST_GROUPS, constant(ListGroupsRequest()), top_level_error)
    queue.add([request])
    return network, queue, request


def test_a_request_is_answered_once() -> None:
    network, queue, request = make()
    queue.run(0)
    queue.run(0)
    ((node_id, answer),) = network.sent
    response = ListGroupsResponse()
    answer(response, 4, None)
    assert node_id == 1 and request.is_done and request.result() is response


def test_errors_that_pass_are_asked_about_again() -> None:
    network, queue, request = make()
    queue.run(0)
    network.sent.pop()[1](ListGroupsResponse(error_code=int(Error.COORDINATOR_LOAD_IN_PROGRESS)), 4, None)
    assert not request.is_done and queue.run(0) == 100
    assert not network.sent
    queue.run(100)
    network.sent.pop()[1](None, -1, ApiError(Error.NETWORK_EXCEPTION))
    queue.run(1000)
    network.sent.pop()[1](ListGroupsResponse(error_code=int(Error.CLUSTER_AUTHORIZATION_FAILED)), 4, None)
    assert request.error is not None and request.error.error is Error.CLUSTER_AUTHORIZATION_FAILED


def test_retries_are_counted() -> None:
    network, queue, request = make(retries=0)
    queue.run(0)
    network.sent.pop()[1](None, -1, ApiError(Error.NETWORK_EXCEPTION, "gone"))
    assert request.error is not None and request.error.message == "gone"


def test_a_target_that_is_not_known_yet_is_waited_for() -> None:
    known: list[int] = []
    network, queue, request = make(lambda now: known[0] if known else None)
    assert queue.run(10) == 60 and not network.sent
    known.append(7)
    queue.run(60)
    assert network.sent[0][0] == 7
    queue.give_up([request], "late")
    assert request.error is not None and request.error.error is Error.REQUEST_TIMED_OUT
    network.sent[0][1](ListGroupsResponse(), 4, None)
    assert request.response is None


def test_a_target_that_cannot_be_ends_the_request() -> None:
    def nowhere(monotonic_ms: int) -> int | None:
        raise ApiError(Error.BROKER_NOT_AVAILABLE)

    _, queue, request = make(nowhere)
    queue.run(0)
    assert request.error is not None and request.error.error is Error.BROKER_NOT_AVAILABLE
