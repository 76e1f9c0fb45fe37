"""Fixtures of the unit tests of several packages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkapy.nodes.node_thread import NodeThread


@pytest.fixture
def thread() -> Iterator[NodeThread]:
    """Yields a running thread for requests to other nodes."""
    running = NodeThread()
    yield running
    running.stop()
