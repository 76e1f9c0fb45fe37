"""A client of the listener that does not read its replies."""

from __future__ import annotations

import re
import socket

from kafkapy.zookeeper.jute import encode_bool, encode_string
from kafkapy.zookeeper.requests import Op
from tests.harness.quorum_nodes import wait_until
from tests.harness.zookeeper import SocketClient
from tests.zookeeper.listening_broker import ListeningBroker

REQUESTS = 100
SIZE = 1_000_000


def is_served(broker):
    """Returns whether the broker serves the tree."""
    host, _, port = broker.zookeeper.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(b"ruok")
            return connection.recv(4) == b"imok"
    except ConnectionError:
        return False


def received_of_clients(broker):
    """Returns the number of requests that the broker has received from each connection."""
    host, _, port = broker.zookeeper.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(b"cons")
        text = b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode()
    return [int(number) for number in re.findall(r"recved=(\d+)", text)]


def test_requests_wait_until_the_replies_are_read(tmp_path):
    with ListeningBroker(tmp_path) as broker:
        wait_until(lambda: is_served(broker), "the tree is not served")
        slow, other = SocketClient(broker.zookeeper), SocketClient(broker.zookeeper)
        try:
            slow.connect(timeout_ms=40_000)
            other.connect()
            other.create("/large", bytes(SIZE))
            body = encode_string("/large") + encode_bool(False)
            for _ in range(REQUESTS):
                slow.submit(Op.GET_DATA, body)
            for number in range(20):
                other.create(f"/other-{number}")
            assert max(received_of_clients(broker)) < REQUESTS
            for _ in range(REQUESTS):
                slow.wait_for_frame()
            assert {len(frame) for frame in slow.frames} == {len(slow.frames[0])}
            assert slow.get("/other-19")[0] == b""
        finally:
            slow.disconnect()
            other.disconnect()
