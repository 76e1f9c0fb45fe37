"""The reactor over real loopback sockets: order, limits, backpressure, files, timers, other threads."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafkapy._core.bytes.segment_file import SegmentFile
from kafkapy._core.reactor import reactor as reactor_module
from kafkapy._core.reactor.reactor import Request
from tests.reactor_harness import TIMEOUT, ReactorHarness, frame, receive_exactly, receive_frame


def echo(requests: list[Request]) -> None:
    for request in requests:
        request.connection.respond([bytes(request.payload)])


@contextmanager
def running(dispatch: Callable[[list[Request]], None] = echo, **options: Any) -> Iterator[ReactorHarness]:
    harness = ReactorHarness(dispatch, **options)
    try:
        yield harness
    finally:
        harness.close()
    assert harness.errors == []


class Held:
    """A `dispatch` that holds requests until the test answers them."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.arrived = threading.Semaphore(0)

    def __call__(self, requests: list[Request]) -> None:
        self.requests += requests
        for _ in requests:
            self.arrived.release()

    def wait(self) -> Request:
        assert self.arrived.acquire(timeout=TIMEOUT)
        return self.requests[-1]


def test_answers_arrive_in_the_order_of_pipelined_requests() -> None:
    with running() as harness:
        client = harness.connect()
        payloads = [b"%08d" % number * (1 + number % 7) for number in range(2000)]
        sender = threading.Thread(target=client.sendall, args=(b"".join(map(frame, payloads)),))
        sender.start()
        assert [receive_frame(client) for _ in payloads] == payloads
        sender.join()


def test_a_frame_may_be_split_at_every_byte() -> None:
    with running() as harness:
        client = harness.connect()
        stream = frame(b"first request") + frame(b"second one")
        for cut in range(1, len(stream)):
            client.sendall(stream[:cut])
            harness.call(lambda: None)  # the reactor has a wake-up in between
            client.sendall(stream[cut:])
            assert (receive_frame(client), receive_frame(client)) == (b"first request", b"second one")


@pytest.mark.parametrize("size", [8, 1000, 16379, 16380, 16384, 65531, 65532, 65536, 70001, 1 << 20, 5_000_001])
def test_frames_of_every_size_come_through_whole_and_between_small_ones(size: int) -> None:
    with running() as harness:
        client = harness.connect()
        payload = os.urandom(size)
        stream = frame(b"--before") + frame(payload) + frame(b"---after")
        sender = threading.Thread(target=client.sendall, args=(stream,))
        sender.start()
        assert receive_frame(client) == b"--before"
        assert receive_frame(client) == payload
        assert receive_frame(client) == b"---after"
        sender.join()


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (-1, "Invalid receive (size = -1)"),
        (-(2**31), "Invalid receive (size = -2147483648)"),
        (0, "Invalid receive (size = 0)"),
        (7, "Invalid receive (size = 7)"),
        (1001, "Invalid receive (size = 1001 larger than 1000)"),
        (2**31 - 1, "Invalid receive (size = 2147483647 larger than 1000)"),
    ],
)
def test_an_impossible_size_closes_that_connection_only_after_the_answers_before_it(size: int, words: str) -> None:
    with running(max_request_bytes=1000) as harness:
        other = harness.connect()
        client = harness.connect()
        client.sendall(frame(b"answer me") + struct.pack(">i", size) + b"rest")
        assert receive_frame(client) == b"answer me"
        assert harness.wait_closed(harness.connections[1]) == (reactor_module.CLOSED_FOR_INVALID_SIZE, words)
        other.sendall(frame(b"still here"))
        assert receive_frame(other) == b"still here"


def test_the_largest_frame_allowed_is_served() -> None:
    with running(max_request_bytes=1000) as harness:
        client = harness.connect()
        client.sendall(frame(b"x" * 1000))
        assert receive_frame(client) == b"x" * 1000


def test_many_connections_with_many_requests_each() -> None:
    with running() as harness:
        clients = [harness.connect() for _ in range(200)]
        for round_number in range(5):
            for number, client in enumerate(clients):
                client.sendall(frame(b"%4d %4d" % (round_number, number)) * 3)
            for number, client in enumerate(clients):
                for _ in range(3):
                    assert receive_frame(client) == b"%4d %4d" % (round_number, number)
        assert harness.reactor.counters()["requests_received"] == 3000
        assert harness.reactor.counters()["requests_in_process"] == 0
        assert harness.reactor.counters()["request_bytes"] == 0


def test_one_request_of_a_connection_is_in_process_at_a_time() -> None:
    held = Held()
    with running(held) as harness:
        client = harness.connect()
        client.sendall(frame(b"request 1") + frame(b"request 2"))
        first = held.wait()
        harness.call(lambda: None)
        assert [bytes(request.payload) for request in held.requests] == [b"request 1"]
        harness.call(lambda: first.connection.respond([b"one"]))
        second = held.wait()
        harness.call(lambda: second.connection.respond(None))  # acks=0: no answer is sent
        client.sendall(frame(b"request 3"))
        third = held.wait()
        harness.call(lambda: third.connection.respond([b"three"]))
        assert (receive_frame(client), receive_frame(client)) == (b"one", b"three")


def test_answering_without_a_request_is_refused_and_on_a_closed_connection_ignored() -> None:
    held = Held()
    with running(held) as harness:
        client = harness.connect()
        connection = harness.connections[0]

        def refuse() -> bool:
            with pytest.raises(RuntimeError, match="no request in process"):
                connection.respond([b"surprise"])
            return True

        assert harness.call(refuse)
        client.sendall(frame(b"request 1"))
        held.wait()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()  # the connection is reset
        harness.wait_closed(connection)
        harness.call(lambda: connection.respond([b"late"]))
        assert connection.is_closed
        assert harness.reactor.counters()["request_bytes"] == 0


def test_the_payload_outlives_its_request_and_can_be_changed_in_place() -> None:
    kept: list[memoryview] = []

    def keep(requests: list[Request]) -> None:
        for request in requests:
            payload = request.payload
            payload[0:4] = b"KEPT"
            kept.append(payload[4:])
            request.connection.respond([bytes(payload)])

    with running(keep) as harness:
        client = harness.connect()
        for number in range(500):
            client.sendall(frame(b"....%08d" % number + b"." * 1000))
            assert receive_frame(client).startswith(b"KEPT%08d" % number)
        assert [bytes(view[:8]) for view in kept] == [b"%08d" % number for number in range(500)]
    del harness
    assert bytes(kept[17][:8]) == b"00000017"  # even after the reactor and its pool were freed
    kept.clear()


def test_half_close_still_gets_every_answer() -> None:
    held = Held()
    with running(held) as harness:
        client = harness.connect()
        client.sendall(frame(b"request 1") + frame(b"request 2"))
        client.shutdown(socket.SHUT_WR)
        for name in (b"one", b"two"):
            request = held.wait()
            harness.call(lambda request=request, name=name: request.connection.respond([name]))
            assert receive_frame(client) == name
        assert client.recv(1) == b""
        assert harness.wait_closed(harness.connections[0])[0] == reactor_module.CLOSED_BY_PEER


def test_a_slow_reader_is_muted_and_others_are_not() -> None:
    dispatched: list[int] = []

    def large(requests: list[Request]) -> None:
        for request in requests:
            if bytes(request.payload) == b"give large":
                dispatched.append(1)
                request.connection.respond([b"x" * 1_000_000])
            else:
                request.connection.respond([b"small"])

    with running(large) as harness:
        slow = harness.connect(send_buffer=65536, receive_buffer=65536)
        other = harness.connect()
        slow.sendall(frame(b"give large") * 100)
        for _ in range(50):
            other.sendall(frame(b"give small"))
            assert receive_frame(other) == b"small"
        assert len(dispatched) <= 2  # the second is dispatched only if the kernel accepted the whole first answer
        for _ in range(100):
            assert receive_frame(slow) == b"x" * 1_000_000
        assert len(dispatched) == 100


@pytest.fixture
def segment(tmp_path: Path) -> Iterator[SegmentFile]:
    file = SegmentFile(str(tmp_path / "00000000000000000000.log"), create=True)
    file.append([bytes(range(256)) * 40_000])
    yield file
    file.close()


@pytest.mark.parametrize("length", [1, 100, 8192, 8193, 1_000_000, 10_000_000])
def test_file_ranges_between_bytes(segment: SegmentFile, length: int) -> None:
    def fetch(requests: list[Request]) -> None:
        for request in requests:
            request.connection.respond(
                [b"head", segment.slice(5, length), b"middle", memoryview(b"view"), segment.slice(7, 3), b"",
                 segment.slice(9, 0), b"tail"]
            )  # fmt: skip

    whole = bytes(range(256)) * 40_000
    with running(fetch) as harness:
        client = harness.connect()
        client.sendall(frame(b"fetch it") * 3)
        for _ in range(3):
            assert receive_frame(client) == b"head" + whole[5 : 5 + length] + b"middleview" + whole[7:10] + b"tail"
        assert harness.errors == []


def test_a_slow_reader_of_a_file_range_gets_all_of_it(segment: SegmentFile) -> None:
    def fetch(requests: list[Request]) -> None:
        for request in requests:
            request.connection.respond([b"head", segment.slice(0, 10_240_000), b"tail"])

    with running(fetch) as harness:
        client = harness.connect(send_buffer=16384, receive_buffer=16384)
        client.sendall(frame(b"fetch it"))
        assert receive_frame(client) == b"head" + bytes(range(256)) * 40_000 + b"tail"


def test_a_file_that_ends_early_closes_the_connection(segment: SegmentFile) -> None:
    def fetch(requests: list[Request]) -> None:
        for request in requests:
            end = segment.size
            pieces = [segment.slice(0, end)]
            os.truncate(segment.path, end - 10)
            request.connection.respond(pieces)

    with running(fetch) as harness:
        client = harness.connect()
        client.sendall(frame(b"fetch it"))
        received = bytearray()
        while part := client.recv(1 << 20):
            received += part
        assert len(received) == 4 + 10_239_990
        kind, words = harness.wait_closed(harness.connections[0])
        assert kind == reactor_module.CLOSED_FOR_SHORT_FILE
        assert words == "a file ended 10 bytes before the answer did"


def test_large_python_buffers_are_pinned_and_let_go() -> None:
    buffer = bytearray(b"y" * 300_000)

    def give(requests: list[Request]) -> None:
        for request in requests:
            request.connection.respond([b"head", memoryview(buffer)])

    with running(give) as harness:
        client = harness.connect()
        client.sendall(frame(b"give it!"))
        assert receive_frame(client) == b"head" + b"y" * 300_000
        harness.call(lambda: None)
        harness.call(lambda: None)
        buffer.append(1)  # raises BufferError while the payload is pinned


def test_a_chunk_that_is_no_buffer_closes_the_connection() -> None:
    refused: list[BaseException] = []

    def wrong(requests: list[Request]) -> None:
        for request in requests:
            try:
                request.connection.respond([b"good", 17])  # type: ignore[list-item]
            except TypeError as error:
                refused.append(error)

    with running(wrong) as harness:
        client = harness.connect()
        client.sendall(frame(b"request 1"))
        assert client.recv(1) == b""
        assert len(refused) == 1


def test_posted_callbacks_run_in_order_on_the_reactor_thread() -> None:
    with running() as harness:
        seen: dict[int, list[int]] = {}
        threads: set[int] = set()

        def poster(name: int) -> None:
            def note(number: int) -> None:
                seen.setdefault(name, []).append(number)
                threads.add(threading.get_ident())

            for number in range(1000):
                harness.reactor.post(lambda number=number: note(number))

        posters = [threading.Thread(target=poster, args=(name,)) for name in range(4)]
        for thread in posters:
            thread.start()
        for thread in posters:
            thread.join()
        harness.call(lambda: None)
        assert seen == {name: list(range(1000)) for name in range(4)}
        assert len(threads) == 1 and threading.get_ident() not in threads


def test_a_callback_may_post_and_one_that_raises_is_reported() -> None:
    harness = ReactorHarness(echo)
    done = threading.Event()
    harness.reactor.post(lambda: harness.reactor.post(done.set))
    harness.reactor.post(lambda: 1 // 0)
    assert done.wait(TIMEOUT)
    harness.close()
    assert [type(error) for error in harness.errors] == [ZeroDivisionError]


def test_timers_run_in_the_order_of_their_deadlines_and_can_be_cancelled() -> None:
    with running() as harness:
        ran: list[str] = []
        done = threading.Event()

        def plan() -> None:
            harness.reactor.schedule(60, done.set)
            harness.reactor.schedule(40, lambda: ran.append("late"))
            harness.reactor.schedule(10, lambda: ran.append("early"))
            harness.reactor.schedule(20, lambda: ran.append("never")).cancel()

        harness.call(plan)
        assert done.wait(TIMEOUT)
        assert ran == ["early", "late"]


def test_the_owner_alone_may_schedule() -> None:
    with running() as harness, pytest.raises(RuntimeError, match="post"):
        harness.reactor.schedule(1, lambda: None)


def test_an_idle_reactor_does_not_wake_up() -> None:
    with running() as harness:
        harness.connect()
        harness.call(lambda: None)
        before = harness.reactor.counters()["wakeups"]
        harness.thread.join(0.2)
        assert harness.reactor.counters()["wakeups"] <= before + 2


def test_idle_connections_are_closed_and_busy_ones_are_not() -> None:
    held = Held()
    with running(held, connections_max_idle_ms=200) as harness:
        idle = harness.connect()
        waiting = harness.connect()
        waiting.sendall(frame(b"long poll"))
        request = held.wait()
        assert idle.recv(1) == b""
        assert harness.wait_closed(harness.connections[0])[0] == reactor_module.CLOSED_WHEN_IDLE
        assert not harness.connections[1].is_closed
        # The answer is sent in the wake-up in which the connection would otherwise count as idle.
        begun = threading.Event()
        harness.reactor.post(lambda: (begun.set(), time.sleep(0.3)))
        assert begun.wait(TIMEOUT)
        harness.call(lambda: request.connection.respond([b"at last"]))
        assert receive_frame(waiting) == b"at last"


def test_a_reader_that_never_reads_is_closed_when_idle() -> None:
    def large(requests: list[Request]) -> None:
        for request in requests:
            request.connection.respond([b"x" * 10_000_000])

    with running(large, connections_max_idle_ms=200) as harness:
        client = harness.connect(send_buffer=16384, receive_buffer=16384)
        client.sendall(frame(b"give large"))
        assert harness.wait_closed(harness.connections[0])[0] == reactor_module.CLOSED_WHEN_IDLE


def test_a_bound_on_buffered_bytes_stops_new_frames_and_lets_begun_ones_finish() -> None:
    held = Held()
    with running(held, queued_max_request_bytes=50_000) as harness:
        first, second, third = (harness.connect() for _ in range(3))
        second.sendall(frame(b"s" * 30_000)[:-1])
        harness.call(lambda: None)
        first.sendall(frame(b"f" * 40_000))
        held.wait()
        assert harness.reactor.counters()["request_bytes"] == 70_000
        third.sendall(frame(b"blocked!"))
        harness.call(lambda: None)
        assert len(held.requests) == 1
        second.sendall(b"s")
        assert held.wait().size_in_bytes == 30_000
        harness.call(lambda: [request.connection.respond([b"done"]) for request in held.requests])
        assert receive_frame(first) == receive_frame(second) == b"done"
        request = held.wait()
        assert bytes(request.payload) == b"blocked!"
        harness.call(lambda: request.connection.respond([b"done"]))
        assert receive_frame(third) == b"done"


def test_paused_intake_takes_nothing_until_it_is_resumed() -> None:
    held = Held()
    with running(held) as harness:
        client = harness.connect()
        harness.call(harness.reactor.pause_intake)
        client.sendall(frame(b"patience"))
        harness.call(lambda: None)
        harness.call(lambda: None)
        assert held.requests == []
        harness.call(harness.reactor.resume_intake)
        assert bytes(held.wait().payload) == b"patience"


def test_memory_follows_what_arrived_not_what_was_announced() -> None:
    with running() as harness:
        clients = [harness.connect() for _ in range(50)]
        for client in clients:
            client.sendall(struct.pack(">i", 100_000_000) + b"only a few bytes")
        harness.call(lambda: None)
        harness.call(lambda: None)
        assert harness.reactor.counters()["request_bytes"] == 50 * 100_000_000
        assert harness.reactor.counters()["slab_bytes"] < 50 * 20_000 + 200_000


def test_a_dispatch_that_raises_closes_the_connections_it_left_unanswered() -> None:
    def broken(requests: list[Request]) -> None:
        raise ValueError("a bug")

    harness = ReactorHarness(broken)
    client = harness.connect()
    client.sendall(frame(b"request 1"))
    assert client.recv(1) == b""
    harness.close()
    assert [str(error) for error in harness.errors] == ["a bug"]


def test_stop_waits_for_the_request_in_process_and_reads_no_more() -> None:
    held = Held()
    harness = ReactorHarness(held)
    client = harness.connect()
    client.sendall(frame(b"request 1") + frame(b"request 2"))
    request = held.wait()
    harness.reactor.stop(grace_ms=TIMEOUT * 1000)
    harness.call(lambda: request.connection.respond([b"one"]))
    harness.thread.join(TIMEOUT)
    assert receive_frame(client) == b"one"
    assert client.recv(1) == b""
    assert len(held.requests) == 1
    assert harness.wait_closed(harness.connections[0])[0] == reactor_module.CLOSED_AT_SHUTDOWN
    harness.close()


def test_close_from_another_thread_sends_the_answers_given() -> None:
    held = Held()
    with running(held) as harness:
        client = harness.connect()
        client.sendall(frame(b"request 1"))
        request = held.wait()

        def answer_and_close() -> None:
            request.connection.respond([b"goodbye"])
            request.connection.close("enough")

        harness.call(answer_and_close)
        assert receive_frame(client) == b"goodbye"
        assert client.recv(1) == b""
        assert harness.wait_closed(request.connection) == (reactor_module.CLOSED_LOCALLY, "enough")
        other = harness.connect()
        harness.connections[1].close("from outside")
        assert other.recv(1) == b""


def test_watched_descriptors_call_back_pause_and_resume() -> None:
    with running() as harness:
        ours, theirs = socket.socketpair()
        readable = threading.Semaphore(0)

        def ready() -> None:
            ours.recv(1)
            readable.release()

        watch = harness.call(lambda: harness.reactor.watch(ours.fileno(), ready))
        theirs.send(b"1")
        assert readable.acquire(timeout=TIMEOUT)
        harness.call(watch.pause)
        theirs.send(b"2")
        harness.call(lambda: None)
        assert not readable.acquire(blocking=False)
        harness.call(watch.resume)
        assert readable.acquire(timeout=TIMEOUT)
        harness.call(watch.close)
        ours.close()
        theirs.close()


def test_answers_of_one_wakeup_leave_together() -> None:
    with running() as harness:
        client = harness.connect()
        client.sendall(b"".join(frame(b"request %d" % number) for number in range(7)))
        expected = b"".join(frame(b"request %d" % number) for number in range(7))
        assert receive_exactly(client, len(expected)) == expected


def test_a_simulation_runs_single_wake_ups_at_its_own_time():
    received: list[int] = []

    def dispatch(requests: list[Request]) -> None:
        received.extend(request.received_ms for request in requests)
        echo(requests)

    reactor = reactor_module.Reactor(dispatch, connections_max_idle_ms=-1)
    client, server = socket.socketpair()
    server.setblocking(False)
    reactor.adopt(server.detach(), None, "localhost", 0, "1")
    assert not reactor.step(5000)
    client.sendall(frame(b"first request") + frame(b"second request"))
    while reactor.step(6000):
        assert reactor.monotonic_ms == 6000
    assert received == [6000, 6000]
    assert [receive_frame(client), receive_frame(client)] == [b"first request", b"second request"]
    client.sendall(frame(b"third request"))
    reactor.close_connections()
    assert reactor.counters()["connections"] == 0
    with pytest.raises(ConnectionResetError):
        client.recv(1)
