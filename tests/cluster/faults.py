"""The faults of a round of chaos, which a seed decides: what happens to which node, when, and how it is repaired."""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.chaos_proxy import CALM, Chances
from tests.cluster.cluster import Cluster
from tests.crash.failing_disk import CREATE, RESIZE, WRITE, FailingDisk

# The part of a path by which a full disk affects the data of its node.
DATA = "/logs/"
# Longer than the session of a broker in a test cluster (3 s), so that some pauses fence the node and others do not.
LONGEST_PAUSE_S = 5.0
NOISE = Chances(delay=0.2, longest_delay_s=0.03, drop=0.01, cut=0.01, silence=0.002)
SILENCE = Chances(silence=1.0)
DISK_TIMEOUT_S = 5.0


class Fault(NamedTuple):
    """A fault of some nodes; `pause_s` is its duration, and `rest_s` the time until the next fault."""

    kind: str
    nodes: tuple[int, ...]
    pause_s: float
    rest_s: float

    def __str__(self) -> str:
        return f"{self.kind} {'+'.join(map(str, self.nodes))} {self.pause_s:.1f} s"


def draw_faults(chance: random.Random, node_ids: Sequence[int], *, with_proxies: bool, at_most: int = 3) -> list[Fault]:
    """Returns one to three faults. `with_proxies`: the connections of the nodes can be cut."""
    kinds = ["kill", "kill", "stop", "roll", "roll", "pause", "full disk", "kill two", "kill all"]
    if with_proxies:
        kinds += ["noise", "noise", "silence", "silence"]
    faults = []
    for _ in range(min(at_most, chance.choice([1, 2, 2, 3]))):
        kind = chance.choice(kinds)
        count = {"kill two": 2, "kill all": len(node_ids), "roll": len(node_ids)}.get(kind, 1)
        nodes = tuple(sorted(chance.sample(list(node_ids), count)))
        faults.append(Fault(kind, nodes, chance.uniform(0.1, LONGEST_PAUSE_S), chance.choice([0.0, 0.5, 2.0])))
    return faults


class Chaos:
    """Applies faults to a cluster of three nodes. `disks` has the disk of each node."""

    def __init__(self, cluster: Cluster, disks: dict[int, FailingDisk]) -> None:
        self._cluster = cluster
        self._disks = disks
        self._faults: dict[str, Callable[[Fault], None]] = {
            "kill": self._kill,
            "kill two": self._kill,
            "kill all": self._kill,
            "stop": self._stop,
            "roll": self._roll,
            "pause": self._pause,
            "full disk": self._fill_disk,
            "noise": lambda fault: self._disturb(fault, NOISE),
            "silence": lambda fault: self._disturb(fault, SILENCE),
        }

    def apply(self, fault: Fault) -> None:
        """Causes the fault, waits for its duration and repairs it. Raises AssertionError if a node ended by itself."""
        for node_id in fault.nodes:
            node = self._cluster[node_id]
            assert node.is_running, f"node {node_id} has ended by itself:\n{node.log()[-4000:]}"
        self._faults[fault.kind](fault)
        time.sleep(fault.rest_s)

    def _kill(self, fault: Fault) -> None:
        for node_id in fault.nodes:
            self._cluster[node_id].kill()
        time.sleep(fault.pause_s)
        self._cluster.start(fault.nodes)

    def _stop(self, fault: Fault) -> None:
        for node_id in fault.nodes:
            self._cluster[node_id].stop()
        self._cluster.start(fault.nodes)

    def _roll(self, fault: Fault) -> None:
        """Restarts the nodes one after the other, without waiting until the restarted node is in sync again."""
        for node_id in fault.nodes:
            self._cluster[node_id].stop()
            self._cluster.start([node_id])
            time.sleep(fault.pause_s / 2)

    def _pause(self, fault: Fault) -> None:
        for node_id in fault.nodes:
            self._cluster[node_id].pause()
        time.sleep(fault.pause_s)
        for node_id in fault.nodes:
            self._cluster[node_id].resume()

    def _fill_disk(self, fault: Fault) -> None:
        """Fills the disk of a node, so that its only log directory fails and the node ends.

        A node that has not written anything is killed.
        """
        (node_id,) = fault.nodes
        node, disk = self._cluster[node_id], self._disks[node_id]
        disk.fail(DATA, WRITE | CREATE | RESIZE, errno.ENOSPC)
        deadline = time.monotonic() + DISK_TIMEOUT_S
        while node.is_running and time.monotonic() < deadline:
            time.sleep(0.05)
        if node.is_running:
            node.kill()
        time.sleep(fault.pause_s / 4)
        disk.heal()
        self._cluster.start([node_id])

    def _disturb(self, fault: Fault, chances: Chances) -> None:
        proxies = [proxy for node_id in fault.nodes for proxy in self._cluster.proxies[node_id]]
        for proxy in proxies:
            proxy.chances = chances
        time.sleep(fault.pause_s)
        for proxy in proxies:
            proxy.chances = CALM
            proxy.sever()
