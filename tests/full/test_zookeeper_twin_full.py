"""A long series of random requests to the listener of a broker and to Apache ZooKeeper."""

from __future__ import annotations

import pytest

from tests.zookeeper.listening_broker import ListeningBroker
from tests.zookeeper.real_zookeeper import RealZooKeeper
from tests.zookeeper.twin import compare

pytestmark = [pytest.mark.full, pytest.mark.peer, pytest.mark.timeout(1800)]
SEEDS, STEPS = range(100, 200), 500


def test_random_requests_have_equal_results(tmp_path):
    with (
        RealZooKeeper(tmp_path / "real") as real,
        ListeningBroker(tmp_path / "served", zookeeper_listener_max_connections_per_address="0") as served,
    ):
        for seed in SEEDS:
            compare((real.zookeeper, served.zookeeper), seed, STEPS)
