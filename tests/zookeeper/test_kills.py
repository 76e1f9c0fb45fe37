"""The tree survives kill -9 of its broker while clients write."""

from __future__ import annotations

from tests.seeds import drawn_seed
from tests.zookeeper.kills import survive_kills
from tests.zookeeper.listening_broker import ListeningBroker


def test_acknowledged_nodes_and_sessions_survive_kills(tmp_path):
    with ListeningBroker(tmp_path) as broker:
        survive_kills(broker, 4, drawn_seed())
