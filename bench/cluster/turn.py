"""The turn of a cluster in one round: its topics, and the states that its workloads wait for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.cluster.clusters import IDS, Cluster, RealCluster
from bench.cluster.records import TIMEOUT_S, Records
from bench.run import Turn
from kafkapy.errors import ApiError

if TYPE_CHECKING:
    from kafkapy.client.admin import Admin

POLL_S = 0.005
ONE_LEADER = (1,)
SPREAD_LEADERS = IDS


def replicas_behind(leader: int) -> list[int]:
    """Returns all nodes, `leader` first and the others in the order of a ring."""
    place = IDS.index(leader)
    return [*IDS[place:], *IDS[:place]]


class ClusterTurn(Turn):
    """One cluster's turn in one round. `kept` is for all workloads of the turn."""

    def __init__(self, cluster: Cluster, scale: float, kept: dict[str, Any]) -> None:
        super().__init__(cluster, scale, kept)
        self.cluster = cluster

    def topic(self, leaders: Sequence[int] = ONE_LEADER) -> str:
        """Creates a topic with a partition for each of the leaders and three replicas of each; returns its name.

        Its files are new, because growing the page cache is part of producing. Each partition has one record: the
        first one waits up to `replica.fetch.wait.max.ms`, until the followers fetch the new partition.
        """
        topic = f"bench-{time.monotonic_ns()}"
        self.cluster.create_topic(topic, [replicas_behind(leader) for leader in leaders])
        if isinstance(self.cluster, RealCluster):
            self.await_in_sync(topic)
            Records(self.cluster.bootstrap, topic, len(leaders)).send()
        return topic

    @contextmanager
    def admin(self) -> Iterator[Admin]:
        from kafkapy.client.admin import Admin

        with Admin({"bootstrap.servers": self.cluster.bootstrap}) as admin:
            yield admin

    # -- waiting

    def wait_for(self, what: str, is_true: Callable[[], bool], poll_s: float = POLL_S) -> None:
        """Calls `is_true` every `poll_s` seconds until it returns True.

        An ApiError or OSError, which a cluster may cause while it changes, counts as False. Raises RuntimeError after
        TIMEOUT_S seconds; its message says that there was no `what`.
        """
        deadline = time.monotonic() + TIMEOUT_S
        last: object = None
        while time.monotonic() < deadline:
            try:
                if is_true():
                    return
            except (ApiError, OSError) as error:
                last = error
            time.sleep(poll_s)
        raise RuntimeError(f"{self.cluster.name}: no {what} within {TIMEOUT_S} s; {last!r}")

    def await_in_sync(self, topic: str, replicas: Sequence[int] = IDS) -> None:
        """Waits until every partition has a leader, and exactly these nodes in sync, as each running broker knows."""
        for node in self.cluster.running:
            self.wait_for(f"ISR of {topic}", partial(self._is_in_sync, topic, node.port, replicas), 0.05)

    def _is_in_sync(self, topic: str, port: int, replicas: Sequence[int]) -> bool:
        from kafkapy.client.admin import Admin

        with Admin({"bootstrap.servers": f"127.0.0.1:{port}"}) as admin:
            partitions = admin.describe_topics([topic], timeout=TIMEOUT_S)[topic].partitions
        return all(each.leader >= 0 and sorted(each.isr) == sorted(replicas) for each in partitions)

    def await_replicated(self, topic: str) -> None:
        """Waits until all nodes have stored equally much."""
        self.wait_for(f"copies of {topic}", lambda: len({self.cluster.stored_bytes(topic, each) for each in IDS}) == 1)

    def active_controller(self) -> int:
        """Returns the id of the node that leads the quorum."""
        found: list[int] = []

        def ask() -> bool:
            with self.admin() as admin:
                found[:] = [admin.describe_metadata_quorum(timeout=TIMEOUT_S).leader]
            return found[0] in IDS

        self.wait_for("active controller", ask, 0.05)
        return found[0]
