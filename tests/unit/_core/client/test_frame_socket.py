"""Frames over a socket, divided at any byte, and frames that are refused."""

from __future__ import annotations

import random
import socket

import pytest

from kafkapy._core.client.frame_socket import FrameSocket


@pytest.fixture
def pair():
    left, right = socket.socketpair()
    yield left, right
    left.close()
    right.close()


def framed(payload):
    return len(payload).to_bytes(4, "big") + payload


def test_chunks_make_one_frame(pair):
    left, right = pair
    sender = FrameSocket(left.fileno(), 1000)
    sender.put([b"head", memoryview(b"body"), b""])
    assert sender.is_sending and sender.send() and not sender.is_sending
    assert right.recv(100) == framed(b"headbody")


def test_frames_cut_anywhere():
    chance = random.Random(1)
    payloads = [chance.randbytes(chance.choice([0, 1, 5, 3000, 70_000, 200_000])) for _ in range(40)]
    stream = b"".join(map(framed, payloads))
    left, right = socket.socketpair()
    with left, right:
        receiver, received, at = FrameSocket(right.fileno(), 1 << 20), [], 0
        while at < len(stream):
            size = chance.choice([1, 3, 100, 10_000, 60_000])
            at += left.send(stream[at : at + size])
            received += receiver.receive()
        assert received == payloads
        assert receiver.receive() == []


def test_a_socket_that_is_full_takes_the_rest_later(pair):
    left, right = pair
    sender, receiver = FrameSocket(left.fileno(), 1 << 24), FrameSocket(right.fileno(), 1 << 24)
    payload = random.Random(2).randbytes(3_000_000)
    sender.put([payload])
    frames = []
    while not frames:
        sender.send()
        frames = receiver.receive()
    assert frames == [payload] and not sender.is_sending


@pytest.mark.parametrize("size", [b"\xff\xff\xff\xff", b"\x00\x00\x04\x01"])
def test_a_frame_of_impossible_size_is_refused(pair, size):
    left, right = pair
    left.send(size)
    with pytest.raises(ValueError, match="at most 1024"):
        FrameSocket(right.fileno(), 1024).receive()


def test_the_end_of_the_stream_comes_after_its_frames(pair):
    left, right = pair
    receiver = FrameSocket(right.fileno(), 1024)
    left.send(framed(b"last"))
    left.shutdown(socket.SHUT_WR)
    assert receiver.receive() == [b"last"]
    with pytest.raises(ConnectionError):
        receiver.receive()


def test_many_pieces_leave_in_few_calls_and_are_counted(pair):
    left, right = pair
    sender, receiver = FrameSocket(left.fileno(), 1000), FrameSocket(right.fileno(), 1 << 20)
    pieces = [bytes([number % 256]) * (number % 3) for number in range(500)]
    sender.put(list(pieces))
    sender.put([b"next"])
    assert sender.queued == sum(map(len, pieces)) + 4 + 8
    assert sender.send() and sender.queued == 0
    assert receiver.receive() == [b"".join(pieces), b"next"]


def test_a_large_frame_wakes_nobody_for_a_little(pair):
    left, right = pair

    def low_water():
        return right.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)

    receiver = FrameSocket(right.fileno(), 1 << 24)
    left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    left.sendall((1_100_000).to_bytes(4, "big") + bytes(1000))
    assert receiver.receive() == [] and low_water() == 1 << 20
    left.sendall(bytes(99_000))
    assert receiver.receive() == [] and low_water() == 1_000_000
    for left_over in range(900_000, 0, -100_000):
        left.sendall(bytes(100_000))
        assert receiver.receive() == [] and low_water() == left_over
    left.sendall(bytes(100_000))
    assert receiver.receive() == [bytes(1_100_000)] and low_water() == 1


def test_a_frame_comes_in_behind_a_small_send_buffer_while_nobody_reads():
    """A sender with a small buffer continues only after acknowledgements: 1 MB is sent before the first read."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as right,
        server.accept()[0] as left,
    ):
        left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 102_400)
        receiver = FrameSocket(right.fileno(), 1 << 24)
        receiver.take_ahead()
        assert right.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) > 1 << 20
        left.settimeout(60)
        left.sendall(framed(bytes(1 << 20)))
        frames = []
        while not frames:
            frames = receiver.receive()
        assert frames == [bytes(1 << 20)]
        assert right.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1
