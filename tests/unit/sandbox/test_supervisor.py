"""The wait for the nodes of a sandbox at the end of its time, and requests that are not commands."""

from __future__ import annotations

import socket
import threading

import pytest

from kafkapy.sandbox import supervisor
from kafkapy.sandbox.layout import make_layout
from kafkapy.sandbox.node_process import NodeProcess
from kafkapy.sandbox.supervisor import Supervisor, ask
from kafkapy.tools.option import ToolError


@pytest.fixture
def started(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "READY_WITHIN_S", -1.0)
    monkeypatch.setattr(NodeProcess, "is_running", True)
    monkeypatch.setattr(NodeProcess, "start", lambda node: None)
    return Supervisor(tmp_path, make_layout([("broker", "controller")], 9092, {}), ["true"], {})


def test_nodes_that_are_ready_when_the_time_ends_are_accepted(started, monkeypatch):
    monkeypatch.setattr(NodeProcess, "is_ready", lambda node: True)
    started.start()


def test_a_node_that_is_not_ready_when_the_time_ends_is_named(started, monkeypatch):
    monkeypatch.setattr(NodeProcess, "is_ready", lambda node: False)
    with pytest.raises(ToolError, match="node 1 is not ready"):
        started.start()


@pytest.mark.parametrize(
    ("request_text", "message"),
    [
        (b'{"command": "grow", "nodes": [1]}', "does not know the command 'grow'"),
        (b'{"command": "status"}', "the request is not a command: 'nodes'"),
        (b'{"command": "status", "nodes": [[1]]}', "the request is not a command: the nodes are not numbers"),
        (b"[" * 60_000, "the request is not a command: "),
        (b"status", "the request is not a command: "),
        (b"\xff", "the request is not a command: "),
    ],
)
def test_a_request_that_is_not_a_command_is_answered_with_an_error(started, request_text: bytes, message: str):
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
    ):
        client.sendall(request_text)
        started._serve_one(listener)
        assert message in client.makefile().readline()


def test_a_command_is_carried_out(started, tmp_path):
    path = str(tmp_path / "commands")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        server = threading.Thread(target=started._serve_one, args=(listener,))
        server.start()
        assert len(ask(path, "status", [])) == 2
        server.join()
