"""Log directories on disks that answer EIO under load: one has a followed partition, another one a led partition.

The disks are file systems that fail on demand where the machine allows this process to mount them, and otherwise a
library that is preloaded into the broker.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from kafkapy.client.admin import NewTopic
from kafkapy.client.admin.log_dirs import Replica
from kafkapy.client.admin.partitions import ElectionType
from tests.cluster.cluster import Cluster, Spec
from tests.cluster.nodes import BROKER, CONTROLLER, Flavour
from tests.cluster.scenarios import TOPIC, Course
from tests.crash.failing_disk import DiskControl, FailingDisk, FailingFilesystem, build, build_filesystem

FAILING, OTHER = 2, 3
FOLLOWS, LEADS = "disk-that-follows", "disk-that-leads"
# The partition whose replica of broker FAILING is on the disk; partition 2 is on its disk that works.
PARTITION_ON = {FOLLOWS: 1, LEADS: 0}
ASSIGNMENTS = {0: (FAILING, OTHER), 1: (OTHER, FAILING), 2: (FAILING, OTHER)}


class State(NamedTuple):
    """The state of a partition as clients learn it; the ids are sorted."""

    leader: int
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()


IN_ORDER = {
    0: State(FAILING, (FAILING, OTHER)),
    1: State(OTHER, (FAILING, OTHER)),
    2: State(FAILING, (FAILING, OTHER)),
}
LOST = State(OTHER, (OTHER,), (FAILING,))


def fail_both_disks(directory: Path, flavours: tuple[Flavour, Flavour, Flavour], *kinds: int) -> None:
    """Fails the disks of broker FAILING under load, in each of these manners (operations that answer EIO).

    `flavours` are the programs of the controller, of broker FAILING and of the other broker. Checks after each failure
    that exactly the partition on the disk has another leader or a smaller ISR, that the broker lives, and that clients
    go on; at the end that no acknowledged record is lost.
    """
    roles = (CONTROLLER, BROKER, BROKER)
    # A flush of each record: a disk that refuses only syncs is noticed.
    properties = {"min.insync.replicas": "1", "log.flush.interval.messages": "1"}
    specs = [Spec(flavour, role) for flavour, role in zip(flavours, roles, strict=True)]
    cluster = Cluster(directory / "nodes", specs, properties=properties)
    with ExitStack() as stack:
        disks = attach(cluster, directory, stack)
        stack.enter_context(cluster)
        with cluster.admin() as admin:
            paths = {
                Replica(TOPIC, PARTITION_ON[name], FAILING): str(cluster[FAILING].directory / name / "data")
                for name in disks
            }
            admin.alter_replica_log_dirs(paths)  # decides where the replicas will be created
            admin.create_topics([NewTopic(TOPIC, assignments=ASSIGNMENTS)]).check()
        await_states(cluster, IN_ORDER)
        for path, number in ((Path(paths[each]), each.partition) for each in paths):
            cluster.wait_for(f"replica in {path}", (path / f"{TOPIC}-{number}").is_dir)
        with Course(cluster, is_transactional=False) as course:
            for kind in kinds:
                expected = dict(IN_ORDER)
                course.await_progress()
                for name, number in PARTITION_ON.items():
                    disks[name].fail(f"/{name}", kind)
                    expected[number] = LOST
                    await_states(cluster, expected)
                    course.await_progress()
                    assert cluster[FAILING].is_running
                cluster[FAILING].stop()
                for disk in disks.values():
                    assert disk.hits
                    disk.repair()
                cluster.start([FAILING])
                course.await_in_sync()
                with cluster.admin() as admin:
                    admin.elect_leaders(ElectionType.PREFERRED)
                await_states(cluster, IN_ORDER)
            course.await_progress()


def attach(cluster: Cluster, directory: Path, stack: ExitStack) -> dict[str, DiskControl]:
    """Gives broker FAILING, which is not formatted yet, two more log directories; returns the controls of their disks.

    `stack` unmounts the file systems.
    """
    node = cluster[FAILING]
    program = build_filesystem(directory)
    mounts = {
        name: stack.enter_context(FailingFilesystem(program, directory / "disks" / name, node.directory / name))
        for name in PARTITION_ON
    }
    disks: dict[str, DiskControl] = dict(mounts)
    if not all(mount.is_mounted for mount in mounts.values()):
        library = build(directory)
        preloaded = FailingDisk(library, directory)
        node.extra_environment = preloaded.environment
        disks = dict.fromkeys(PARTITION_ON, preloaded)
    directories = [node.log_dir, *(node.directory / name / "data" for name in PARTITION_ON)]
    node.properties["log.dirs"] = ",".join(map(str, directories))
    node.write_config(cluster._quorum)
    return disks


def await_states(cluster: Cluster, expected: dict[int, State]) -> None:
    """Waits until broker OTHER reports these states."""
    found: dict[int, State] = {}

    def is_as_expected() -> bool:
        with cluster.admin(OTHER) as admin:
            partitions = admin.describe_topics([TOPIC], timeout=10)[TOPIC].partitions
        for each in partitions:
            offline = tuple(sorted(each.offline_replicas))
            found[each.partition] = State(each.leader, tuple(sorted(each.isr)), offline)
        return found == expected

    try:
        cluster.wait_for("expected states", is_as_expected)
    except AssertionError as error:
        raise AssertionError(f"{error}\nexpected {expected}\nfound    {found}") from error
