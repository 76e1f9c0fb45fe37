"""The listener of a broker and Apache ZooKeeper 3.9 give equal replies and events to the same random requests."""

from __future__ import annotations

import pytest

from tests.zookeeper.listening_broker import ListeningBroker
from tests.zookeeper.real_zookeeper import RealZooKeeper
from tests.zookeeper.twin import compare

pytestmark = pytest.mark.peer


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    with (
        RealZooKeeper(tmp_path_factory.mktemp("real")) as real,
        ListeningBroker(tmp_path_factory.mktemp("served")) as served,
    ):
        yield real.zookeeper, served.zookeeper


@pytest.mark.parametrize("seed", range(3))
def test_random_requests_have_equal_results(addresses, seed):
    compare(addresses, seed, steps=400)
