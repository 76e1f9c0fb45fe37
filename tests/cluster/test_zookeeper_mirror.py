"""The mirror of Kafka's znodes in a ZooKeeper of the user passes from broker to broker of a cluster."""

from __future__ import annotations

import json
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kafkapy.metadata.image import MetadataImage
from kafkapy.protocol.messages.metadata_records import BrokerRegistrationChangeRecord
from kafkapy.server.zookeeper_mirror import ZooKeeperMirror
from kafkapy.zookeeper.view import ClusterFacts
from tests.cluster.cluster import QUICK, Cluster, Spec, three
from tests.cluster.nodes import BROKER, CONTROLLER, Flavour
from tests.harness.metadata import bootstrapped, replay, with_brokers, with_topic
from tests.harness.quorum_nodes import wait_until
from tests.zookeeper.real_zookeeper import RealZooKeeper

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]
BROKER_SESSION_S = int(QUICK["broker.session.timeout.ms"]) / 1000
MIRROR_SESSION_S = 18
AT_ONCE_S = 2
CLAIM = "/kafkapy_mirror"


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory):
    with RealZooKeeper(tmp_path_factory.mktemp("ensemble")) as zookeeper:
        yield zookeeper


class Mirrored:
    """The nodes of a mirror below a chroot of its own, and all sets of registered brokers that they have shown
    (`history`)."""

    def __init__(self, zookeeper: RealZooKeeper, chroot: str) -> None:
        self.connect = f"{zookeeper.zookeeper}/{chroot}"
        with closing(KazooClient(zookeeper.zookeeper)) as root:
            root.start(timeout=30)
            root.create(f"/{chroot}")
            root.stop()
        self.client = KazooClient(self.connect)
        self.client.start(timeout=30)
        self.history: list[set[int]] = []
        self._is_stopping = threading.Event()
        self._observer = threading.Thread(target=self._observe, daemon=True)

    def close(self) -> None:
        self._is_stopping.set()
        if self._observer.is_alive():
            self._observer.join()
        self.client.stop()
        self.client.close()

    def registered(self) -> set[int]:
        try:
            return set(map(int, self.client.get_children("/brokers/ids")))
        except NoNodeError:
            return set()

    def observe(self) -> None:
        """Begins to record the sets of registered brokers, as fast as ZooKeeper answers."""
        self._observer.start()

    def _observe(self) -> None:
        while not self._is_stopping.is_set():
            found = self.registered()
            if not self.history or self.history[-1] != found:
                self.history.append(found)

    def value(self, path: str) -> dict[str, object]:
        return dict(json.loads(self.client.get(path)[0]))

    def owners(self) -> set[int]:
        """Returns the sessions that own the ephemeral nodes; 0 for a node that should be ephemeral and is not."""
        paths = ["/controller", *(f"/brokers/ids/{number}" for number in self.registered())]
        stats = [self.client.exists(path) for path in paths]
        return {stat.ephemeralOwner for stat in stats if stat is not None}

    def is_shown_by(self, writer: int, brokers: set[int], controller: int | None = None) -> bool:
        """Returns whether `writer` has claimed the mirror, and one session shows these brokers and this controller."""
        owners = self.owners()
        return (
            self.registered() == brokers
            and self.client.exists("/controller") is not None
            and self.value(CLAIM)["brokerid"] == writer
            and len(owners) == 1
            and 0 not in owners
            and controller in (None, self.value("/controller")["brokerid"])
        )


@pytest.fixture
def mirrored(zookeeper, request):
    mirrored = Mirrored(zookeeper, request.node.name)
    yield mirrored
    mirrored.close()


def make_cluster(directory: Path, mirrored: Mirrored, specs: list[Spec]) -> Cluster:
    return Cluster(directory, specs, properties={"zookeeper.mirror.connect": mirrored.connect})


def test_another_broker_takes_over_when_the_writer_is_killed(tmp_path, mirrored):
    cluster = make_cluster(tmp_path, mirrored, three(Flavour.KAFKAPY))
    with cluster:
        wait_until(lambda: mirrored.is_shown_by(1, {1, 2, 3}), "broker 1 does not show the cluster")
        cluster.create_topic("t", 2, 3)
        before = mirrored.owners()
        mirrored.observe()
        killed = time.monotonic()
        cluster[1].kill()
        wait_until(lambda: mirrored.is_shown_by(2, {2, 3}), "no broker takes over")
        taken = time.monotonic() - killed
        assert taken < BROKER_SESSION_S + MIRROR_SESSION_S, taken
        assert mirrored.owners() != before
        controller = cluster.wait_for_quorum_leader(other_than=1)
        wait_until(lambda: mirrored.is_shown_by(2, {2, 3}, controller), "another controller is shown")
        state = "/brokers/topics/t/partitions/0/state"
        wait_until(lambda: 1 not in mirrored.value(state)["isr"], "the dead broker stays in sync")
        wait_until(lambda: mirrored.value(state)["leader"] in (2, 3), "the dead broker stays the leader")
        cluster[1].start()
        controller = cluster.wait_for_quorum_leader()
        wait_until(lambda: mirrored.is_shown_by(1, {1, 2, 3}, controller), "broker 1 does not take over again")
        assert all({2, 3} <= found for found in mirrored.history), mirrored.history


def test_a_broker_that_stops_hands_over_before_its_session_ends(tmp_path, mirrored):
    cluster = make_cluster(tmp_path, mirrored, [Spec(roles=CONTROLLER), Spec(roles=BROKER), Spec(roles=BROKER)])
    with cluster:
        wait_until(lambda: mirrored.is_shown_by(2, {2, 3}, controller=2), "broker 2 does not show the cluster")
        mirrored.observe()
        cluster[2].stop()
        assert mirrored.value(CLAIM)["brokerid"] == 3
        assert 3 in mirrored.registered()
        stopped = time.monotonic()
        wait_until(lambda: mirrored.is_shown_by(3, {3}, controller=3), "broker 3 does not show the cluster")
        assert time.monotonic() - stopped < AT_ONCE_S
        assert all(3 in found for found in mirrored.history), mirrored.history
        cluster[2].start()
        wait_until(lambda: mirrored.is_shown_by(2, {2, 3}, controller=2), "broker 2 does not take over again")
        cluster[3].stop()
        wait_until(lambda: mirrored.is_shown_by(2, {2}, controller=2), "the stopped broker is still registered")
        assert all(found & {2, 3} for found in mirrored.history), mirrored.history


def test_a_broker_that_was_suspended_writes_only_when_it_is_a_member_again(tmp_path, mirrored):
    cluster = make_cluster(tmp_path, mirrored, three(Flavour.KAFKAPY))
    with cluster:
        wait_until(lambda: mirrored.is_shown_by(1, {1, 2, 3}), "broker 1 does not show the cluster")
        cluster[1].pause()
        wait_until(lambda: mirrored.is_shown_by(2, {2, 3}), "no broker takes over")
        offset = mirrored.value(CLAIM)["metadata_offset"]
        mirrored.observe()
        cluster[1].resume()
        wait_until(lambda: mirrored.is_shown_by(1, {1, 2, 3}), "broker 1 does not return")
        assert mirrored.value(CLAIM)["metadata_offset"] > offset
        assert all({2, 3} <= found for found in mirrored.history), mirrored.history


class ScriptedBroker:
    """The mirror of one broker, whose metadata the test sets."""

    def __init__(self, mirrored: Mirrored, node_id: int, image: MetadataImage) -> None:
        self.image = image
        facts = ClusterFacts("cluster-id", node_id, 0)
        self.mirror = ZooKeeperMirror(mirrored.connect, node_id, lambda: self.image, lambda: facts)
        self.mirror.start()

    def show(self, image: MetadataImage) -> None:
        self.image = image
        self.mirror.on_metadata(None, image)


def test_a_deposed_writer_changes_nothing(mirrored, caplog):
    caplog.set_level("INFO", logger="kafkapy.zookeeper.Mirror")
    both = with_brokers(bootstrapped(), 1, 2)
    first, second = ScriptedBroker(mirrored, 1, both), ScriptedBroker(mirrored, 2, both)
    try:
        wait_until(lambda: mirrored.is_shown_by(1, {1, 2}), "broker 1 does not show the cluster")
        fence = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=both.brokers[1].epoch, fenced=1)
        # Broker 1 is cut off: its metadata have something that the cluster has not committed, and no fence.
        behind = with_topic(both, "only-of-broker-1")._replace(offset=both.offset)
        fenced = replay(replay(both, fence), fence)
        second.show(fenced)
        wait_until(lambda: mirrored.is_shown_by(2, {2}, controller=2), "broker 2 does not take over")
        tree = mirrored.client.get("/brokers/topics")[1]
        first.show(behind)
        wait_until(lambda: "is written by broker 2" in caplog.text, "the refusal is not logged")
        first.mirror._client.stop()  # a new session compares and repairs all nodes, if the broker may
        first.mirror._client.start()
        time.sleep(2.5)  # two passes at least
        assert mirrored.client.get("/brokers/topics")[1] == tree
        assert mirrored.is_shown_by(2, {2}, controller=2)
        first.show(with_brokers(fenced, 1))
        wait_until(lambda: mirrored.is_shown_by(1, {1, 2}, controller=1), "broker 1 does not take over again")
    finally:
        first.mirror.stop()
        second.mirror.stop()


def test_an_idle_writer_notices_the_end_of_its_session(mirrored):
    broker = ScriptedBroker(mirrored, 1, with_brokers(bootstrapped(), 1))
    try:
        wait_until(lambda: mirrored.is_shown_by(1, {1}), "the broker is not shown")
        before = mirrored.owners()
        session_id, password = broker.mirror._client.client_id
        thief = KazooClient(mirrored.connect, client_id=(session_id, password))
        thief.start(timeout=30)
        thief.stop()  # closes the session
        thief.close()
        wait_until(lambda: mirrored.is_shown_by(1, {1}) and mirrored.owners() != before, "the nodes do not return")
    finally:
        broker.mirror.stop()
