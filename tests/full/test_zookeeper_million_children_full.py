"""A node with a million children, on the listener of a broker."""

from __future__ import annotations

import time

import pytest

from kafkapy.zookeeper.jute import encode_bool, encode_int, encode_string
from kafkapy.zookeeper.requests import Op
from tests.harness.zookeeper import SocketClient, ZooKeeperReplyError, create_body
from tests.zookeeper.kills import connected
from tests.zookeeper.listening_broker import ListeningBroker

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
CHILDREN, IN_ONE_MULTI = 1_000_000, 5_000
NOT_EMPTY = -111
MULTI_END = encode_int(-1) + encode_bool(True) + encode_int(-1)


def create_children(client: SocketClient, path: str) -> None:
    client.create(path)
    header = encode_int(Op.CREATE) + encode_bool(False) + encode_int(-1)
    for first in range(0, CHILDREN, IN_ONE_MULTI):
        numbers = range(first, first + IN_ONE_MULTI)
        client.call(Op.MULTI, b"".join(header + create_body(f"{path}/{number:07}") for number in numbers) + MULTI_END)


def slowest_read(address: str, client: SocketClient, path: str) -> float:
    """Requests all children with `client`, and reads with another client of the server until they have arrived.

    Returns the duration in seconds of the slowest of these reads.
    """
    other = connected(address)
    client._socket.setblocking(True)
    client.submit(Op.GET_CHILDREN, encode_string(path) + encode_bool(False))
    times = []
    for _ in range(200):
        began = time.monotonic()
        other.exists(path)
        times.append(time.monotonic() - began)
    client.wait_for_frame()
    client.frames.clear()
    other.close_session()
    return max(times)


def test_a_million_children_are_listed_and_survive_a_kill(tmp_path):
    with ListeningBroker(tmp_path) as broker:
        client = connected(broker.zookeeper)
        began = time.monotonic()
        create_children(client, "/many")
        created = time.monotonic()
        assert sorted(client.children("/many")) == [f"{number:07}" for number in range(CHILDREN)]
        print(f"created {created - began:.1f} s, listed {time.monotonic() - created:.1f} s")
        with pytest.raises(ZooKeeperReplyError) as refused:
            client.delete("/many")
        assert refused.value.args == (NOT_EMPTY,)
        slowest = slowest_read(broker.zookeeper, client, "/many")
        print(f"slowest read of another client {slowest * 1000:.0f} ms")
        assert slowest < 10
        broker.kill()
        broker.start()
        began = time.monotonic()
        client = connected(broker.zookeeper)
        print(f"loaded {time.monotonic() - began:.1f} s after the start")
        assert client.exists("/many").children == CHILDREN
        client.close_session()
