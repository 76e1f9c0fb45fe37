"""The channel to the active controller: look-ups, NOT_CONTROLLER, lost connections, order and time-outs."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kafkapy.errors import Error
from kafkapy.nodes.controller_channel import ControllerChannel
from kafkapy.nodes.node_channel import Destination
from kafkapy.nodes.node_thread import NodeThread
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from tests.harness.stub_node import CLOSE, StubNode
from tests.unit.nodes.outcomes import KEY, Outcomes, echo

POLL_S = 0.001


class Quorum:
    """The active controller as a test sets it, and the number of look-ups."""

    def __init__(self, node: StubNode | None = None) -> None:
        self.lookups = 0
        self.active: Destination | None = None
        if node is not None:
            self.set(node)

    def set(self, node: StubNode, node_id: int = 1) -> None:
        self.active = Destination(node_id, "127.0.0.1", node.port)

    def find(self) -> Destination | None:
        self.lookups += 1
        return self.active


def channel_of(thread: NodeThread, quorum: Quorum, **settings: Any) -> ControllerChannel:
    timeouts = {"request_timeout_ms": 30_000, "retry_timeout_ms": 60_000, **settings}
    return ControllerChannel(thread, quorum.find, client_id="broker-2", **timeouts)


def ask(channel: ControllerChannel, outcomes: Outcomes, number: int) -> None:
    channel.send(AllocateProducerIdsRequest(broker_id=number), KEY, outcomes.callback)


def not_controller(request: Any, version: int) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=Error.NOT_CONTROLLER)


def numbers(outcomes: Outcomes, count: int) -> list[int]:
    return [outcomes.next_response().producer_id_start for _ in range(count)]


def test_requests_reach_the_active_controller_in_order(thread: NodeThread, outcomes: Outcomes) -> None:
    with StubNode({KEY: echo}) as node:
        channel = channel_of(thread, Quorum(node))
        for number in range(5):
            ask(channel, outcomes, number)
        assert numbers(outcomes, 5) == [0, 1, 2, 3, 4]
        assert channel.versions[KEY] == (0, 0)
        assert node.accepted == 1


def test_requests_wait_until_a_controller_is_known(thread: NodeThread, outcomes: Outcomes) -> None:
    with StubNode({KEY: echo}) as node:
        quorum = Quorum()
        channel = channel_of(thread, quorum)
        ask(channel, outcomes, 1)
        while not quorum.lookups:
            threading.Event().wait(POLL_S)
        assert outcomes.empty()
        quorum.set(node)
        channel.controller_changed()
        assert numbers(outcomes, 1) == [1]


def test_a_request_that_waits_for_a_connection_to_a_former_controller_is_sent_to_the_next_one(
    thread: NodeThread, outcomes: Outcomes
) -> None:
    with StubNode({KEY: echo}) as second, StubNode() as first:
        asked = threading.Event()
        first.answers[ApiKey.API_VERSIONS] = lambda request, version: asked.set()  # the connection never gets ready
        quorum = Quorum(first)
        channel = channel_of(thread, quorum, retry_timeout_ms=5000)
        ask(channel, outcomes, 1)
        assert asked.wait(20)
        quorum.set(second, 3)
        channel.controller_changed()
        assert numbers(outcomes, 1) == [1]


def test_a_request_to_a_former_controller_is_sent_to_the_next_one_before_the_requests_behind_it(
    thread: NodeThread, outcomes: Outcomes
) -> None:
    with StubNode({KEY: echo}) as second, StubNode() as first:
        quorum = Quorum(first)

        def resign(request: Any, version: int) -> AllocateProducerIdsResponse:
            quorum.set(second, 3)
            return not_controller(request, version)

        first.answers[KEY] = resign
        channel = channel_of(thread, quorum)
        for number in range(3):
            ask(channel, outcomes, number)
        assert numbers(outcomes, 3) == [0, 1, 2]
        assert [request.broker_id for request in first.of(KEY)] == [0]
        assert [request.broker_id for request in second.of(KEY)] == [0, 1, 2]


def test_a_topic_that_a_former_controller_refuses_is_created_by_the_next_one(
    thread: NodeThread, outcomes: Outcomes
) -> None:
    """The response of CreateTopics has no error of the whole request."""

    def result(error: Error) -> CreateTopicsResponse:
        return CreateTopicsResponse(topics=[CreateTopicsResponse.CreatableTopicResult(name="t", error_code=error)])

    key = ApiKey.CREATE_TOPICS
    with StubNode({key: lambda request, version: result(Error.NONE)}) as second, StubNode() as first:
        quorum = Quorum(first)

        def resign(request: Any, version: int) -> CreateTopicsResponse:
            quorum.set(second, 3)
            return result(Error.NOT_CONTROLLER)

        first.answers[key] = resign
        channel = channel_of(thread, quorum)
        channel.send(CreateTopicsRequest(topics=[CreateTopicsRequest.CreatableTopic(name="t")]), key, outcomes.callback)
        assert outcomes.next_response().topics[0].error_code == Error.NONE
        assert len(first.of(key)) == len(second.of(key)) == 1


def test_a_controller_that_is_not_active_yet_is_asked_again_after_a_pause(
    thread: NodeThread, outcomes: Outcomes
) -> None:
    with StubNode() as node:
        node.answers[KEY] = lambda request, version: (not_controller if len(node.of(KEY)) < 3 else echo)(
            request, version
        )
        channel = channel_of(thread, Quorum(node))
        ask(channel, outcomes, 1)
        ask(channel, outcomes, 2)
        assert numbers(outcomes, 2) == [1, 2]
        assert [request.broker_id for request in node.of(KEY)] == [1, 1, 1, 2]


def test_a_request_on_a_lost_connection_is_sent_again_first(thread: NodeThread, outcomes: Outcomes) -> None:
    with StubNode() as node:
        node.answers[KEY] = lambda request, version: CLOSE if len(node.of(KEY)) == 1 else echo(request, version)
        channel = channel_of(thread, Quorum(node))
        for number in range(3):
            ask(channel, outcomes, number)
        assert numbers(outcomes, 3) == [0, 1, 2]
        assert [request.broker_id for request in node.of(KEY)] == [0, 0, 1, 2]
        assert node.accepted == 2


def test_a_controller_that_died_is_replaced_by_the_one_that_the_quorum_elects(
    thread: NodeThread, outcomes: Outcomes
) -> None:
    first = StubNode({KEY: echo})
    quorum = Quorum(first)
    channel = channel_of(thread, quorum)
    ask(channel, outcomes, 1)
    assert numbers(outcomes, 1) == [1]
    first.close()
    ask(channel, outcomes, 2)
    with StubNode({KEY: echo}) as second:
        quorum.set(second, 3)
        assert numbers(outcomes, 1) == [2]


def test_a_controller_that_does_not_respond_is_asked_again_on_a_new_connection(
    thread: NodeThread, outcomes: Outcomes
) -> None:
    with StubNode() as node:
        node.answers[KEY] = lambda request, version: None if len(node.of(KEY)) == 1 else echo(request, version)
        channel = channel_of(thread, Quorum(node), request_timeout_ms=50)
        ask(channel, outcomes, 1)
        assert numbers(outcomes, 1) == [1]
        assert node.accepted == 2


@pytest.mark.parametrize("controller", ["none", "silent", "former"])
def test_a_request_times_out_in_the_end(thread: NodeThread, outcomes: Outcomes, controller: str) -> None:
    with StubNode({KEY: not_controller if controller == "former" else lambda request, version: None}) as node:
        channel = channel_of(thread, Quorum(None if controller == "none" else node), retry_timeout_ms=150)
        ask(channel, outcomes, 1)
        ask(channel, outcomes, 2)
        assert [outcomes.next_error() for _ in range(2)] == [Error.REQUEST_TIMED_OUT] * 2


def test_an_error_other_than_not_controller_is_a_response(thread: NodeThread, outcomes: Outcomes) -> None:
    stale = AllocateProducerIdsResponse(error_code=Error.STALE_BROKER_EPOCH)
    with StubNode({KEY: lambda request, version: stale}) as node:
        channel = channel_of(thread, Quorum(node))
        ask(channel, outcomes, 1)
        assert outcomes.next_response().error_code == Error.STALE_BROKER_EPOCH


def test_an_api_that_the_controller_does_not_serve_is_unsupported(thread: NodeThread, outcomes: Outcomes) -> None:
    with StubNode() as node:
        node.versions[KEY] = None
        channel = channel_of(thread, Quorum(node))
        ask(channel, outcomes, 1)
        assert outcomes.next_error() is Error.UNSUPPORTED_VERSION


def test_a_full_queue_times_the_next_request_out_at_once(thread: NodeThread, outcomes: Outcomes) -> None:
    channel = channel_of(thread, Quorum(), queue_limit=1)
    ask(channel, outcomes, 1)
    ask(channel, outcomes, 2)
    assert outcomes.get_nowait().error is Error.REQUEST_TIMED_OUT


@pytest.mark.parametrize("end", ["close", "stop"])
def test_the_end_of_the_channel_fails_requests_in_flight_waiting_and_later(
    thread: NodeThread, outcomes: Outcomes, end: str
) -> None:
    with StubNode({KEY: lambda request, version: None}) as node:
        channel = channel_of(thread, Quorum(node))
        ask(channel, outcomes, 1)
        ask(channel, outcomes, 2)
        while not node.of(KEY):
            threading.Event().wait(POLL_S)
        channel.close() if end == "close" else thread.stop()
        assert [outcomes.next_error() for _ in range(2)] == [Error.NETWORK_EXCEPTION] * 2
        ask(channel, outcomes, 3)
        assert outcomes.next_error() is Error.NETWORK_EXCEPTION


def test_the_end_of_the_thread_fails_every_one_of_many_requests(thread: NodeThread, outcomes: Outcomes) -> None:
    with StubNode({KEY: lambda request, version: None}) as node:
        channels = [channel_of(thread, Quorum(node)) for _ in range(6)]  # their order at the end is not determined
        for channel in channels:
            for number in range(400):
                ask(channel, outcomes, number)
        while len(node.of(KEY)) < len(channels):
            threading.Event().wait(POLL_S)
        thread.stop()
    assert [outcomes.next_error() for _ in range(2400)] == [Error.NETWORK_EXCEPTION] * 2400


def test_channels_of_one_thread_do_not_wait_for_each_other(thread: NodeThread, outcomes: Outcomes) -> None:
    with StubNode() as node:
        node.answers[KEY] = lambda request, version: None if request.broker_id == 1 else echo(request, version)
        blocked = channel_of(thread, Quorum(node))
        free = channel_of(thread, Quorum(node))
        ask(blocked, outcomes, 1)
        ask(free, outcomes, 2)
        assert numbers(outcomes, 1) == [2]
        assert ApiKey.ALLOCATE_PRODUCER_IDS in [key for key, _, _ in node.received]
