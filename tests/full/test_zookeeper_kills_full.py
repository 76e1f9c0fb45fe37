"""A hundred kills of the broker that serves the tree, while clients write."""

from __future__ import annotations

import pytest

from tests.seeds import drawn_seed
from tests.zookeeper.kills import survive_kills
from tests.zookeeper.listening_broker import ListeningBroker

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


def test_acknowledged_nodes_and_sessions_survive_a_hundred_kills(tmp_path):
    with ListeningBroker(tmp_path) as broker:
        survive_kills(broker, 100, drawn_seed())
