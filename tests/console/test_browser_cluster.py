"""The console in a browser on a cluster of three nodes: moving replicas, electing leaders, and a lost broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from kafkapy.client.admin import NewTopic
from kafkapy.types import TopicPartition
from tests.cluster.cluster import Cluster, three
from tests.cluster.nodes import Flavour
from tests.console.conftest import faults
from tests.console.screens import Brokers, Change, Overview, Partitions
from tests.console_process import ConsoleProcess

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), three(Flavour.KAFKAPY)) as running:
        running.wait_for_voters(1, 2, 3)
        yield running


@pytest.fixture(scope="module")
def changing(cluster, tmp_path_factory) -> Iterator[ConsoleProcess]:
    arguments = ("--bootstrap-server", cluster.bootstrap, "--name", "test", "--allow-changes")
    with ConsoleProcess(tmp_path_factory.mktemp("changing"), *arguments) as running:
        yield running


def create(cluster: Cluster, topic: str, replicas: list[int]) -> None:
    with cluster.admin() as admin:
        admin.create_topics([NewTopic(topic, assignments={0: replicas})]).check()
    cluster.wait_for_isr(topic)


def shown(cluster: Cluster, page: Page, screen: Partitions, **expected: str) -> dict[str, str]:
    """Returns the row of partition 0 as soon as it has the expected cells; the page is opened again until then."""

    def read() -> dict[str, str] | None:
        screen.open()
        row = screen.row(0)
        return row if all(row[name].split("\n")[0].strip() == value for name, value in expected.items()) else None

    return cluster.wait_for(f"row with {expected}", read)


def test_replicas_are_moved(cluster, editing_page, editing_place):
    create(cluster, "moving", [1])
    partitions = Partitions(editing_page, editing_place, "moving")
    shown(cluster, editing_page, partitions, Replicas="1", ISR="1")
    change = Change(editing_page, editing_place)
    change.follow("Move replicas")
    change.fill(replicas="0: 2,3")
    change.review()
    assert change.compared() == [["0", "1", "2, 3"]]
    assert "kafkapy reassign-partitions" in change.command()
    assert faults(editing_page) == []
    assert change.apply() == "1 partition will move; the page of partitions shows when they have."
    cluster.wait_for_isr("moving", isr=[2, 3])
    row = shown(cluster, editing_page, partitions, Replicas="2, 3")
    assert row["Leader"] in ("2", "3")


def test_the_preferred_leader_is_elected(cluster, editing_page, editing_place):
    create(cluster, "elected", [1, 2, 3])
    with cluster.admin() as admin:
        admin.alter_partition_reassignments({TopicPartition("elected", 0): [2, 1, 3]}).check()
    partitions = Partitions(editing_page, editing_place, "elected")
    row = shown(cluster, editing_page, partitions, Replicas="2, 1, 3")
    assert row["Leader"] == "1 not preferred"
    assert faults(editing_page) == []
    change = Change(editing_page, editing_place)
    change.follow("Elect leaders")
    change.review()
    assert change.compared() == [["0", "1", "2, 1, 3"]]
    assert change.apply() == "The leaders of 1 partition were elected."
    change.proceed()
    shown(cluster, editing_page, partitions, Leader="2")


def test_a_lost_broker_is_shown_until_it_returns(cluster, editing_page, editing_place):
    create(cluster, "bereft", [3, 1, 2])
    overview, brokers = Overview(editing_page, editing_place), Brokers(editing_page, editing_place)
    overview.open()
    assert overview.alerts() == []
    cluster[3].kill()
    cluster.wait_for_isr("bereft", isr=[1, 2])

    def lost() -> bool:
        overview.open()
        is_named = any("Broker 3 does not run" in each for each in overview.alerts())
        # The list of brokers and the ISR may come from different brokers, of which one knows the loss later.
        return is_named and int(overview.figure("Out of sync")) >= 1

    cluster.wait_for("notice of the lost broker", lost)
    assert "lost" in overview.figure("Brokers")
    assert faults(editing_page) == []
    brokers.open()
    assert brokers.row(3)[:2] == ["3", "does not run"]
    assert faults(editing_page) == []
    row = shown(cluster, editing_page, Partitions(editing_page, editing_place, "bereft"), Replicas="3, 1, 2")
    assert sorted(row["ISR"].split(", ")) == ["1", "2"]
    cluster.start([3])
    cluster.wait_for_all_in_sync()

    def returned() -> bool:
        overview.open()
        return overview.alerts() == []

    cluster.wait_for("overview without an alert", returned)
    brokers.open()
    assert brokers.row(3)[1].startswith("127.0.0.1:")
