"""Channels to other nodes over real loopback sockets: order, limits, time-outs, lost and refused connections."""

from __future__ import annotations

import socket
import sys
import threading
from queue import Queue
from typing import Any

import pytest

from kafkapy._core.bytes.wire import AbsentFieldError
from kafkapy.client.backoff import ExponentialBackoff
from kafkapy.client.cluster import Node
from kafkapy.client.connection import open_socket
from kafkapy.client.environment import SYSTEM
from kafkapy.errors import Error
from kafkapy.nodes.node_channel import Destination, NodeChannel
from kafkapy.nodes.node_thread import NodeThread
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.wake_pipe import WakePipe
from tests.harness.stub_node import CLOSE, StubNode
from tests.ports import free_port
from tests.unit.nodes.outcomes import KEY, WAIT_S, Outcomes, echo


def channel_to(thread: NodeThread, port: int, **settings: Any) -> NodeChannel:
    return NodeChannel(thread, Destination(2, "127.0.0.1", port), client_id="node-1", **settings)


def ask(channel: NodeChannel, outcomes: Outcomes, number: int = 0, timeout_ms: int = 30_000) -> None:
    deadline_ms = channel._thread.clock.monotonic_ms() + timeout_ms
    channel.send(AllocateProducerIdsRequest(broker_id=number), KEY, outcomes.callback, deadline_ms)


def test_the_thread_starts_with_the_first_request_and_responses_come_in_order(
    thread: NodeThread, outcomes: Outcomes
) -> None:
    with StubNode({KEY: echo}) as node:
        channel = channel_to(thread, node.port)
        assert "kafka-nodes" not in [each.name for each in threading.enumerate()]
        for number in range(20):
            ask(channel, outcomes, number)
        assert [outcomes.next_response().producer_id_start for _ in range(20)] == list(range(20))
        assert channel.is_connected
        assert channel.versions[KEY] == (0, 0)
        assert node.accepted == 1


def test_a_thread_that_ends_before_stop_waits_for_it_closes_its_descriptors_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A second close could close a file that another thread has opened under the number in the meantime."""
    stopping = NodeThread()
    stopping.schedule(3_600_000, list)
    wake = WakePipe.wake

    def wake_and_let_the_thread_end(pipe: WakePipe) -> None:
        wake(pipe)
        if stopping.is_stopped:
            stopping._lock.release()
            stopping._thread.join(WAIT_S)
            stopping._lock.acquire()

    monkeypatch.setattr("kafkapy.wake_pipe.WakePipe.wake", wake_and_let_the_thread_end)
    stopping.stop()
    assert not stopping._thread.is_alive()


def test_one_request_is_in_flight_unless_more_are_allowed(thread: NodeThread, outcomes: Outcomes) -> None:
    held = threading.Event()

    def wait(request: Any, version: int) -> AllocateProducerIdsResponse:
        assert held.wait(WAIT_S)
        return echo(request, version)

    with StubNode({KEY: wait}) as node:
        channel = channel_to(thread, node.port)
        for number in range(3):
            ask(channel, outcomes, number)
        while len(node.of(KEY)) < 1:
            held.wait(0.001)
        turned = threading.Event()
        thread.post(turned.set)
        assert turned.wait(WAIT_S)
        assert channel._connection is not None
        assert channel._connection.in_flight == 1
        held.set()
        assert [outcomes.next_response().producer_id_start for _ in range(3)] == [0, 1, 2]


def test_the_version_is_the_newest_that_both_nodes_support(thread: NodeThread, outcomes: Outcomes) -> None:
    with StubNode({ApiKey.FETCH: lambda request, version: CLOSE}) as node:
        channel = channel_to(thread, node.port)
        for highest, expected in ((None, 18), (16, 16)):
            channel.send(lambda version: FetchRequest(), ApiKey.FETCH, outcomes.callback, 1 << 60, highest=highest)
            assert outcomes.next_error() is Error.NETWORK_EXCEPTION
            assert [version for key, version, _ in node.received if key is ApiKey.FETCH][-1] == expected


def test_an_api_that_the_node_does_not_serve_and_a_message_that_has_no_such_version_are_unsupported(
    thread: NodeThread, outcomes: Outcomes
) -> None:
    with StubNode({KEY: echo}) as node:
        node.versions[KEY] = None
        channel = channel_to(thread, node.port)
        ask(channel, outcomes)
        assert outcomes.next_error() is Error.UNSUPPORTED_VERSION

        def refuse(version: int) -> Any:
            raise AbsentFieldError("a field that version 0 does not have")

        channel.send(refuse, ApiKey.FETCH, outcomes.callback, 1 << 60)
        assert outcomes.next_error() is Error.UNSUPPORTED_VERSION
        channel.send(ApiVersionsRequest(), ApiKey.API_VERSIONS, outcomes.callback, 1 << 60)
        assert KEY not in [each.api_key for each in outcomes.next_response().api_keys]


def test_a_lost_connection_fails_what_was_sent_and_what_was_not_sent_is_sent_on_the_next(
    thread: NodeThread, outcomes: Outcomes
) -> None:
    with StubNode() as node:
        node.answers[KEY] = lambda request, version: CLOSE if request.broker_id == 0 else echo(request, version)
        channel = channel_to(thread, node.port)
        ask(channel, outcomes, 0)
        ask(channel, outcomes, 1)
        assert outcomes.next_error() is Error.NETWORK_EXCEPTION
        assert outcomes.next_response().producer_id_start == 1
        assert node.accepted == 2
        assert not channel.is_refused


def test_a_refused_connection_fails_all_requests_and_is_known_as_refused_until_a_process_listens(
    thread: NodeThread, outcomes: Outcomes
) -> None:
    port = free_port()
    channel = channel_to(thread, port)
    assert not channel.is_refused
    ask(channel, outcomes)
    ask(channel, outcomes)
    assert [outcomes.next_error() for _ in range(2)] == [Error.NETWORK_EXCEPTION] * 2
    assert channel.is_refused
    with StubNode({KEY: echo}, port=port):
        ask(channel, outcomes, 7)
        assert outcomes.next_response().producer_id_start == 7
        assert not channel.is_refused


def test_a_response_that_is_shorter_than_its_header_fails_the_request(thread: NodeThread, outcomes: Outcomes) -> None:
    def respond(request: Any, version: int) -> AllocateProducerIdsResponse | None:
        if request.broker_id == 1:
            node._open[-1].sendall(b"\0\0\0\2xx")
            return None
        return echo(request, version)

    with StubNode({KEY: respond}) as node:
        channel = channel_to(thread, node.port)
        ask(channel, outcomes, 1)
        assert outcomes.next_error() is Error.NETWORK_EXCEPTION
        ask(channel, outcomes, 2)
        assert outcomes.next_response().producer_id_start == 2


def test_a_node_that_dies_and_comes_back_is_reached_again(thread: NodeThread, outcomes: Outcomes) -> None:
    first = StubNode({KEY: echo})
    channel = channel_to(thread, first.port)
    ask(channel, outcomes, 1)
    outcomes.next_response()
    first.close()
    ask(channel, outcomes, 2)
    assert outcomes.next_error() is Error.NETWORK_EXCEPTION
    with StubNode({KEY: echo}, port=first.port):
        ask(channel, outcomes, 3)
        assert outcomes.next_response().producer_id_start == 3


def test_a_node_that_does_not_respond_times_out_and_the_next_request_gets_a_new_connection(
    thread: NodeThread, outcomes: Outcomes
) -> None:
    with StubNode() as node:
        node.answers[KEY] = lambda request, version: None if request.broker_id == 0 else echo(request, version)
        channel = channel_to(thread, node.port)
        ask(channel, outcomes, 0, timeout_ms=50)
        ask(channel, outcomes, 1)
        assert outcomes.next_error() is Error.REQUEST_TIMED_OUT
        assert outcomes.next_response().producer_id_start == 1
        assert node.accepted == 2


def test_a_queued_request_times_out_while_the_one_before_it_is_in_flight(
    thread: NodeThread, outcomes: Outcomes
) -> None:
    release = threading.Event()

    def wait(request: Any, version: int) -> AllocateProducerIdsResponse:
        assert release.wait(WAIT_S)
        return echo(request, version)

    with StubNode({KEY: wait}) as node:
        channel = channel_to(thread, node.port)
        ask(channel, outcomes, 0)
        ask(channel, outcomes, 1, timeout_ms=20)
        assert outcomes.next_error() is Error.REQUEST_TIMED_OUT
        release.set()
        assert outcomes.next_response().producer_id_start == 0


def test_a_full_queue_refuses_the_next_request_at_once(thread: NodeThread, outcomes: Outcomes) -> None:
    with StubNode({KEY: lambda request, version: None}) as node:
        channel = channel_to(thread, node.port, queue_limit=2)
        ask(channel, outcomes)
        ask(channel, outcomes)
        ask(channel, outcomes)
        assert outcomes.get_nowait().error is Error.NETWORK_EXCEPTION
        channel.close()
        assert [outcomes.next_error() for _ in range(2)] == [Error.NETWORK_EXCEPTION] * 2
        ask(channel, outcomes)
        assert outcomes.next_error() is Error.NETWORK_EXCEPTION


def test_the_pauses_between_attempts_to_connect_double_from_20_ms(outcomes: Outcomes) -> None:
    pauses: list[int] = []

    class Recorded(ExponentialBackoff):
        def pause_ms(self, attempts: int) -> int:
            pauses.append(super().pause_ms(attempts))
            return 1

    thread = NodeThread()
    channel = channel_to(thread, free_port(), backoff=Recorded(20, 1000, chance=lambda: 0.5))
    for _ in range(7):
        ask(channel, outcomes)
        assert outcomes.next_error() is Error.NETWORK_EXCEPTION
    thread.stop()
    assert pauses == [20, 40, 80, 160, 320, 640, 1000]


def test_a_connection_that_the_node_closes_while_idle_is_no_failure(thread: NodeThread, outcomes: Outcomes) -> None:
    with StubNode({KEY: echo}) as node:
        channel = channel_to(thread, node.port)
        ask(channel, outcomes, 1)
        outcomes.next_response()
        node.drop_connections()
        while channel.is_connected:
            threading.Event().wait(0.001)
        ask(channel, outcomes, 2)
        assert outcomes.next_response().producer_id_start == 2


def test_the_look_up_of_a_name_delays_no_other_channel(outcomes: Outcomes) -> None:
    release = threading.Event()

    def connect(node: Node, buffers: tuple[int, int]) -> socket.socket:
        if node.host == "slow.invalid":
            assert release.wait(WAIT_S)
            raise OSError("no address for slow.invalid")
        return open_socket(node, buffers)

    thread = NodeThread(environment=SYSTEM._replace(connect=connect))
    with StubNode({KEY: echo}) as node:
        slow = NodeChannel(thread, Destination(3, "slow.invalid", node.port), client_id="node-1")
        ask(slow, outcomes, 1)
        for host in ("127.0.0.1", "localhost"):
            ask(NodeChannel(thread, Destination(2, host, node.port), client_id="node-1"), outcomes, 2)
            assert outcomes.next_response().producer_id_start == 2
        release.set()
        assert outcomes.next_error() is Error.NETWORK_EXCEPTION
        assert not slow.is_refused
    thread.stop()


def test_a_channel_goes_on_after_an_unexpected_error(outcomes: Outcomes, caplog: pytest.LogCaptureFixture) -> None:
    attempts = iter([RuntimeError("can't start new thread")])

    def connect(node: Node, buffers: tuple[int, int]) -> socket.socket:
        for error in attempts:
            raise error
        return open_socket(node, buffers)

    thread = NodeThread(environment=SYSTEM._replace(connect=connect))
    with StubNode({KEY: echo}) as node:
        channel = channel_to(thread, node.port)
        ask(channel, outcomes, 1)
        assert outcomes.next_error() is Error.NETWORK_EXCEPTION
        ask(channel, outcomes, 2)
        assert outcomes.next_response().producer_id_start == 2
    thread.stop()
    assert "can't start new thread" in caplog.text


def test_a_callback_that_raises_harms_no_other_request(
    thread: NodeThread, outcomes: Outcomes, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(response: Any, version: int, error: Exception | None) -> None:
        raise ValueError("from a callback")

    with StubNode({KEY: echo}) as node:
        channel = channel_to(thread, node.port)
        channel.send(AllocateProducerIdsRequest(), KEY, fail, 1 << 60)
        ask(channel, outcomes, 3)
        assert outcomes.next_response().producer_id_start == 3
        assert node.accepted == 1
    assert "from a callback" in caplog.text


def test_stopping_the_thread_fails_the_requests_in_flight_and_later_ones(outcomes: Outcomes) -> None:
    thread = NodeThread()
    with StubNode({KEY: lambda request, version: None}) as node:
        channel = channel_to(thread, node.port)
        ask(channel, outcomes)
        while not node.of(KEY):
            threading.Event().wait(0.001)
        thread.stop()
        assert outcomes.next_error() is Error.NETWORK_EXCEPTION
        ask(channel, outcomes)
        assert outcomes.next_error() is Error.NETWORK_EXCEPTION
        thread.stop()


def test_a_timer_runs_on_the_node_thread_unless_it_was_cancelled(thread: NodeThread) -> None:
    ran: Queue[tuple[str, str]] = Queue()
    cancelled = thread.schedule(1, lambda: ran.put(("cancelled", "")))
    cancelled.cancel()
    thread.schedule(30, lambda: ran.put(("second", threading.current_thread().name)))
    thread.schedule(1, lambda: ran.put(("first", threading.current_thread().name)))
    assert ran.get(timeout=WAIT_S) == ("first", "kafka-nodes")
    assert ran.get(timeout=WAIT_S) == ("second", "kafka-nodes")


def test_a_stopped_thread_that_never_started_runs_nothing() -> None:
    thread = NodeThread()
    thread.stop()
    assert thread.is_stopped
    assert not thread.post(lambda: None)


def test_the_package_loads_neither_producer_nor_consumer() -> None:
    import subprocess

    code = "import sys, kafkapy.nodes.controller_channel as c; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "kafkapy.client.connection" in loaded
    assert not {"kafkapy.client.producer", "kafkapy.client.consumer", "kafkapy.config"} & set(loaded)
