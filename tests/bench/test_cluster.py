"""The benchmark of clusters: its turns, and small loads on three nodes of kafkapy and of the ceiling."""

import pytest

from bench.cluster import measure
from bench.cluster.clusters import CeilingCluster, KafkapyCluster, cluster_of
from bench.cluster.life import started
from bench.cluster.measure import run_clusters
from bench.cluster.turn import replicas_behind
from bench.table import WORKLOADS, in_set
from bench.workload import CLUSTER, FULL, Workload

RATES = ("cluster-produce-1KB-acks-all", "cluster-requests-64-connections-acks-all")


def test_the_leader_is_first_and_the_others_follow_in_a_ring():
    assert [replicas_behind(leader) for leader in (1, 2, 3)] == [[1, 2, 3], [2, 3, 1], [3, 1, 2]]


def test_workloads_of_three_nodes_are_a_set_of_their_own():
    assert {WORKLOADS[name].nodes for name in in_set(CLUSTER)} == {3}
    assert {WORKLOADS[name].nodes for name in in_set(FULL)} == {1}


class FakeCluster(KafkapyCluster):
    """A cluster that runs nothing."""

    def __init__(self, directory):
        self.directory = directory

    def start(self):
        pass

    def kill(self):
        pass


def failing(turn):
    raise RuntimeError("as the test wants")


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Returns a function that runs workloads on fake clusters in one round that counts."""
    monkeypatch.setattr(measure, "start", lambda turn: {"start_seconds": 1.0})
    monkeypatch.setattr(measure, "warm_up", lambda turn: None)
    saved = []

    def run(*workloads):
        clusters = [FakeCluster, type("Before", (FakeCluster,), {"name": "before"})]
        found = run_clusters(
            workloads, clusters, 1, tmp_path, scale=1, limit=1, save=lambda each: saved.append(dict(each))
        )
        return *found, saved

    return run


def test_both_trees_have_turns_and_results_are_saved_after_each(fake):
    found, failed, saved = fake(Workload("cluster-start", "start_seconds", False, started, nodes=3))
    assert not failed
    assert {name: [each["start_seconds"] for each in turns] for name, turns in found["cluster-start"].items()} == {
        "kafkapy": [1.0],
        "before": [1.0],
    }
    assert len(saved) == 4  # two clusters, a round that warms up, and one that counts


def test_a_workload_that_fails_does_not_end_the_turn(fake):
    found, failed, _ = fake(
        Workload("fails", "per_second", True, failing, nodes=3),
        Workload("cluster-start", "start_seconds", False, started, nodes=3),
    )
    assert failed == ["fails"]
    assert list(found) == ["cluster-start"]


def test_another_tree_is_on_the_path_of_its_nodes(tmp_path):
    cluster = cluster_of(tmp_path / "tree")
    node = cluster.make_node(cluster, 1, tmp_path / "node", 1, 2)
    assert cluster.name == "before"
    assert node.environment()["PYTHONPATH"] == str(tmp_path / "tree")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("cluster", [KafkapyCluster, CeilingCluster], ids=lambda cluster: cluster.name)
def test_small_rates(tmp_path, cluster):
    workloads = [WORKLOADS[name] for name in RATES]
    found, failed = run_clusters(
        workloads, [cluster], 1, tmp_path, scale=0.02, limit=float("inf"), save=lambda found: None
    )
    assert not failed
    produced, requested = (found[name][cluster.name][0] for name in RATES)
    assert produced["messages"] == 8_000 and produced["replicated_per_second"] > 0
    assert requested["answered"] > 0 and requested["failed"] == 0


@pytest.mark.timeout(240)
def test_small_elections(tmp_path):
    workload = WORKLOADS["cluster-preferred-election"]
    found, failed = run_clusters(
        [workload], [KafkapyCluster], 1, tmp_path, scale=0.005, limit=float("inf"), save=lambda found: None
    )
    assert not failed
    figures = found[workload.name]["kafkapy"][0]
    assert 0 < figures["answered_seconds"] <= figures["election_seconds"] <= figures["records_seconds"]
