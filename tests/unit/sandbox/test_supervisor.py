"""The wait for the nodes of a sandbox, at the end of its time."""

from __future__ import annotations

import pytest

from kafkapy.sandbox import supervisor
from kafkapy.sandbox.layout import make_layout
from kafkapy.sandbox.node_process import NodeProcess
from kafkapy.sandbox.supervisor import Supervisor
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
