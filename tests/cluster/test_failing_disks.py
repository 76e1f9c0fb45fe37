"""A log directory fails on a broker that leads some partitions and follows others, under load: nothing is lost.

The broker continues on its other directory, reports the failure, and other replicas lead. A restart brings a directory
back, or finds an empty disk in its place. The broker ends when its last directory fails.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafkapy.client.admin import Admin
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.topics_image import PartitionImage
from kafkapy.tools.metadata_log import fetch_history
from tests.cluster.cluster import Cluster, Spec
from tests.cluster.nodes import BROKER, CONTROLLER, Flavour
from tests.cluster.scenarios import TOPIC, Course
from tests.crash.failing_disk import EVERY_CHANGE, FailingDisk, build

pytestmark = pytest.mark.timeout(300)
BROKERS = (2, 3)


def image_of(cluster: Cluster) -> MetadataImage:
    with Admin({"bootstrap.controllers": cluster.bootstrap_controllers}) as admin:
        history = fetch_history(admin)
    return history.image_at(history.end_offset)


def partitions(cluster: Cluster) -> list[PartitionImage]:
    return list(image_of(cluster).topics.by_name[TOPIC].partitions.values())


def online_directories(cluster: Cluster) -> int:
    """Returns the number of log directories that broker 2 has registered as working."""
    return len(image_of(cluster).brokers[2].log_dirs)


def test_a_directory_fails_returns_and_is_replaced(tmp_path: Path) -> None:
    specs = [Spec(Flavour.KAFKAPY, roles) for roles in (CONTROLLER, BROKER, BROKER)]
    cluster = Cluster(tmp_path, specs, properties={"min.insync.replicas": "1"})
    node = cluster[2]
    directories = [node.directory / "logs", node.directory / "more"]
    node.properties["log.dirs"] = ",".join(map(str, directories))
    node.write_config(cluster._quorum)
    disk = FailingDisk(build(tmp_path), node.directory)
    node.extra_environment = disk.environment
    with cluster, Course(cluster, is_transactional=False) as course:
        course.await_progress()
        failed = next(each for each in directories[1:] if list(each.glob(f"{TOPIC}-*")))
        lost = {int(each.name.rpartition("-")[2]) for each in failed.glob(f"{TOPIC}-*")}
        assert lost
        disk.fail("/more/", EVERY_CHANGE)
        cluster.wait_for("report of the failure", lambda: online_directories(cluster) == 1)
        cluster.wait_for(
            "other leaders",
            lambda: all(
                each.leader == 3 and each.isr == (3,)
                for number, each in enumerate(partitions(cluster))
                if number in lost
            ),
        )
        assert all(set(each.isr) == {2, 3} for number, each in enumerate(partitions(cluster)) if number not in lost)
        assert node.is_running
        course.await_progress()

        disk.heal()  # the directory is back after a restart, with the records that it had
        node.stop()
        cluster.start([2])
        cluster.wait_for_all_in_sync()
        assert online_directories(cluster) == 2
        course.await_progress()

        node.stop()  # the disk is replaced by an empty one
        shutil.rmtree(failed)
        cluster.start([2])
        cluster.wait_for_all_in_sync()
        assert online_directories(cluster) == 2
        course.await_progress()

        disk.fail(str(node.directory), EVERY_CHANGE)  # the last directory fails
        cluster.wait_for("end of broker 2", lambda: not node.is_running)
        cluster.wait_for("other leaders", lambda: all(each.leader == 3 for each in partitions(cluster)))
        course.await_progress()
        disk.heal()
        cluster.start([2])
        cluster.wait_for_all_in_sync()
        course.await_progress()
