"""Clusters whose nodes authenticate to each other: traffic passes, sessions are renewed, and strangers are refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Spec, three
from tests.cluster.nodes import BROKER, CONTROLLER, Flavour
from tests.cluster.scenarios import Course
from tests.cluster.secured_cluster import SESSION_MS, SecuredCluster, kerberos
from tests.kerberos import KerberosRealm

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
OURS, THEIRS = Flavour.KAFKAPY, Flavour.KAFKA_43
CLUSTERS = {
    "three of ours": three(OURS),
    "two of ours and one of theirs": [Spec(OURS), Spec(OURS), Spec(THEIRS)],
    "our brokers under their controller": [Spec(THEIRS, CONTROLLER), Spec(OURS, BROKER), Spec(OURS, BROKER)],
    "a broker of theirs under our controller": [Spec(OURS, CONTROLLER), Spec(THEIRS, BROKER), Spec(OURS, BROKER)],
}


# tests/full/test_secured_clusters_full.py has each protocol of each cluster.
SAMPLE = [
    ("three of ours", "SASL_SSL"),
    ("two of ours and one of theirs", "SSL"),
    ("a broker of theirs under our controller", "SASL_PLAINTEXT"),
]


@pytest.mark.parametrize(("name", "protocol"), SAMPLE)
def test_records_pass_between_nodes_that_authenticate(tmp_path: Path, name: str, protocol: str) -> None:
    records_pass(tmp_path, name, protocol)


def records_pass(directory: Path, name: str, protocol: str) -> None:
    secured = SecuredCluster(directory, CLUSTERS[name], protocol)
    with secured as cluster, Course(cluster, is_transactional=False) as course:
        course.await_progress()
        end = time.monotonic() + 2 * SESSION_MS / 1000
        while time.monotonic() < end:  # until every session had to be renewed
            course.await_progress()


@pytest.fixture
def realm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KerberosRealm]:
    with KerberosRealm(tmp_path / "realm") as running:
        java = f"-Djava.security.krb5.conf={running.config}"
        for name, value in {**running.environment(), "JAVA_TOOL_OPTIONS": java}.items():
            monkeypatch.setenv(name, value)  # for the nodes
        yield running


def test_nodes_authenticate_by_kerberos(tmp_path: Path, realm: KerberosRealm) -> None:
    specs = CLUSTERS["two of ours and one of theirs"]
    secured = SecuredCluster(tmp_path, specs, "SASL_PLAINTEXT", more=kerberos(realm))
    with secured as cluster, Course(cluster, is_transactional=False) as course:
        course.await_progress()
        cluster.wait_for_all_in_sync()  # the followers authenticate as well
        course.await_progress()
