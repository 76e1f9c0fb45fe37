"""Probes of a node's addresses: only refused connections prove that no process is there."""

from __future__ import annotations

from collections.abc import Callable
from queue import Queue

import pytest

from kafkapy.errors import ApiError, Error
from kafkapy.nodes import refusal_probe
from kafkapy.nodes.node_channel import Destination
from kafkapy.nodes.node_thread import NodeThread
from tests.harness.stub_node import StubNode
from tests.ports import free_ports


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


def test_a_node_without_addresses_may_still_run(thread: NodeThread) -> None:
    assert not probed(thread)


class ScriptedChannel:
    """A channel whose requests fail with the scripted causes, one after the other."""

    is_refused = True

    def __init__(self, causes: list[Exception | None]) -> None:
        self._causes = causes

    def send(self, body: object, key: object, on_done: Callable[..., object], deadline_ms: int) -> None:
        error = ApiError(Error.NETWORK_EXCEPTION)
        error.__cause__ = self._causes.pop(0)
        on_done(None, -1, error)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("causes", [[ConnectionRefusedError(), None], [None], [TimeoutError()]])
def test_a_refusal_before_a_timeout_proves_nothing(
    thread: NodeThread, monkeypatch: pytest.MonkeyPatch, causes: list[Exception | None]
) -> None:
    monkeypatch.setattr(refusal_probe, "NodeChannel", lambda *arguments, **options: ScriptedChannel(causes))
    assert not probed(thread, 1)
    assert not causes


def test_a_process_whose_listener_is_closed_a_little_later_is_gone(thread: NodeThread) -> None:
    results: Queue[str] = Queue()
    with StubNode() as node:
        destinations = [Destination(2, "127.0.0.1", node.port)]
        refusal_probe.probe(thread, destinations, "tests", lambda refused: results.put(f"refused: {refused}"))
        assert results.get(timeout=20) == "refused: False"
        refusal_probe.probe_until_refused(thread, destinations, "tests", lambda: results.put("gone"))
    assert results.get(timeout=20) == "gone"


def test_a_process_that_goes_on_listening_is_not_gone(thread: NodeThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusal_probe, "PAUSES_MS", (1, 1))
    results: Queue[bool] = Queue()
    probe = refusal_probe.probe

    def noted(thread, destinations, client_id, on_result):
        probe(thread, destinations, client_id, lambda refused: (on_result(refused), results.put(refused)))

    monkeypatch.setattr(refusal_probe, "probe", noted)
    with StubNode() as node:
        refusal_probe.probe_until_refused(thread, [Destination(2, "127.0.0.1", node.port)], "tests", pytest.fail)
        assert [results.get(timeout=20) for _ in range(3)] == [False] * 3
    thread.stop()
    assert results.empty()
