"""Fixtures of the tests of channels to other nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkapy.nodes.node_thread import NodeThread
from tests.unit.nodes.outcomes import Outcomes


@pytest.fixture
def thread() -> Iterator[NodeThread]:
    running = NodeThread()
    yield running
    running.stop()


@pytest.fixture
def outcomes() -> Outcomes:
    return Outcomes()
