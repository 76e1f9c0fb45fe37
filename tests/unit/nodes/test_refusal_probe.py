"""Probes of a node's addresses: only refused connections prove that no process is there."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Queue

import pytest

from kafkapy.nodes import refusal_probe
from kafkapy.nodes.node_channel import Destination
from kafkapy.nodes.node_thread import NodeThread
from tests.harness.stub_node import StubNode
from tests.ports import free_ports


@pytest.fixture
def thread() -> Iterator[NodeThread]:
    running = NodeThread()
    yield running
    running.stop()


def probed(thread: NodeThread, *ports: int) -> bool:
    results: Queue[bool] = Queue()
    refusal_probe.probe(thread, [Destination(2, "127.0.0.1", port) for port in ports], "tests", results.put)
    found = results.get(timeout=20)
    thread.stop()
    assert results.empty()
    return found


def test_a_node_whose_addresses_all_refuse_is_gone(thread: NodeThread) -> None:
    assert probed(thread, *free_ports(2))


def test_a_node_that_listens_at_one_address_is_there(thread: NodeThread) -> None:
    with StubNode() as node:
        assert not probed(thread, *free_ports(1), node.port)


def test_a_node_that_accepts_and_says_nothing_is_there(thread: NodeThread, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafkapy.protocol.api import ApiKey

    with StubNode({ApiKey.API_VERSIONS: lambda request, version: None}) as node:
        monkeypatch.setattr(refusal_probe, "TIMEOUT_MS", 100)
        assert not probed(thread, node.port)
