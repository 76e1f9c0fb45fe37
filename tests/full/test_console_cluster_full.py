"""The console's scenarios in a browser on three nodes of Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import UNHURRIED, Cluster, three
from tests.cluster.nodes import Flavour
from tests.console.conftest import browser, editing_page, editing_place
from tests.console.test_browser_cluster import *  # noqa: F403  (the same tests, with the cluster of this module)

pytestmark = [pytest.mark.full, pytest.mark.peer, pytest.mark.timeout(900)]
__all__ = ["browser", "editing_page", "editing_place"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("cluster")
    with Cluster(directory, three(Flavour.KAFKA_43), properties=UNHURRIED) as running:
        running.wait_for_voters(1, 2, 3)
        yield running
