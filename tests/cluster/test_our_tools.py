"""Our tools print the same as Apache Kafka's on one cluster of three nodes, through brokers and through controllers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.client import Producer
from kafkapy.client.admin import Admin, ConfigChange, ConfigResource, ResourceType
from kafkapy.errors import ApiError, Error
from tests.cluster.cluster import UNHURRIED, Cluster, Spec
from tests.cluster.nodes import BOTH, BROKER, CONTROLLER, Flavour
from tests.cluster.test_apache_tools import elections
from tests.peers import kafka_directory
from tests.tools.comparison import OURS, THEIRS, Comparison, compare
from tests.tools.tool_host import ROOT, ToolHost, run_ours

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
NO_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
QUORUM = tuple(
    Comparison("metadata-quorum", words)
    for words in (
        "@ describe --status",
        "% describe --status",
        "@ describe --replication",
        "% describe --status --human-readable",
        "@ describe",
        "% --command-config /nowhere describe --status",
        "% --command-config {file:4.properties} add-controller --dry-run",
        "% --command-config {file:3.properties} add-controller --dry-run",
        "@ --command-config {file:1.properties} add-controller",
        "@ add-controller",
        f"% remove-controller -i 1 -d {NO_ID} --dry-run",
        f"@ remove-controller --controller-id 1 --controller-directory-id {NO_ID}",
        f"% remove-controller -i -1 -d {NO_ID}",
        "% remove-controller -i 1 -d xyz",
        "@ remove-controller -i 1 -d AAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    )
)
THROUGH_CONTROLLERS = (
    Comparison("cluster", "cluster-id %"),
    Comparison("cluster", "list-endpoints %"),
    Comparison("cluster", "list-endpoints @"),
    Comparison("cluster", "list-endpoints @ --include-fenced-brokers"),
    Comparison("features", "% describe"),
    Comparison("features", "% upgrade --feature share.version=9 --dry-run"),
    Comparison("configs", "% --describe --entity-type brokers --entity-name 1"),
    Comparison("configs", "% --describe --entity-type broker-loggers --entity-name 1"),
    Comparison("configs", "% --alter --entity-type topics --entity-name t-{me} --add-config retention.ms=100000"),
    Comparison("configs", "@ --describe --entity-type topics --entity-name t-{me}"),
    Comparison("configs", "% --alter --entity-type brokers --entity-default --add-config log.retention.ms=900000"),
    Comparison("configs", "% --describe --entity-type brokers --entity-default"),
)
ELECTIONS = (
    Comparison("leader-election", "@ --election-type preferred --topic t-{me} --partition 0"),
    Comparison("leader-election", "@ --election-type unclean --topic t-{me} --partition 1"),
    Comparison(
        "leader-election", "@ --election-type preferred --path-to-json-file {file:elections.json}", any_order=True
    ),
    Comparison("leader-election", "@ --election-type preferred --topic t-{me} --partition 9"),
)


class Tools:
    """The cluster, and the Java process for Apache Kafka's tools."""

    def __init__(self, cluster: Cluster, host: ToolHost, directory: Path) -> None:
        self.cluster = cluster
        self._host = host
        self._directory = directory

    def compare(self, comparison: Comparison) -> None:
        """Raises AssertionError if the output of the two tools differs."""
        compare(self._host, comparison, self.cluster.bootstrap, self._directory, self.cluster.bootstrap_controllers)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    specs = [Spec(Flavour.KAFKAPY, roles) for roles in (CONTROLLER, BOTH, BROKER)]
    files, classes = tmp_path_factory.mktemp("files"), tmp_path_factory.mktemp("classes")
    with (
        Cluster(tmp_path_factory.mktemp("cluster"), specs, properties=UNHURRIED) as cluster,
        ToolHost(kafka_directory("4.3.0"), classes) as host,
    ):
        cluster.add(Spec(Flavour.KAFKAPY, CONTROLLER))
        for me in (THEIRS, OURS):
            (files / me).mkdir()
            (files / me / "elections.json").write_text(json.dumps(elections((f"t-{me}", 0), (f"t-{me}", 1))))
            for node_id, node in cluster.nodes.items():
                (files / me / f"{node_id}.properties").write_text(node.config.read_text())
            cluster.create_topic(f"t-{me}", 2, 2)
        yield Tools(cluster, host, files)


@pytest.mark.parametrize("comparison", QUORUM + THROUGH_CONTROLLERS + ELECTIONS, ids=lambda each: each.words)
def test_our_tools_print_the_same(tools: Tools, comparison: Comparison) -> None:
    tools.compare(comparison)


def test_every_controller_reports_the_dynamic_configuration(tools: Tools) -> None:
    everybody = ConfigResource(ResourceType.BROKER, "")
    with tools.cluster.admin() as admin:
        admin.incremental_alter_configs({everybody: [ConfigChange("log.cleaner.threads", "2")]}).check()
    for node in tools.cluster.controllers:
        if node.is_running:
            with Admin({"bootstrap.controllers": node.controller_address}) as admin:
                tools.cluster.wait_for(
                    f"the value on controller {node.node_id}",
                    lambda admin=admin: "log.cleaner.threads" in admin.describe_configs([everybody])[everybody] or None,
                )


def test_an_unknown_broker_is_not_unregistered(tools: Tools) -> None:
    with Admin({"bootstrap.controllers": tools.cluster.bootstrap_controllers}) as admin:
        with pytest.raises(ApiError) as refusal:
            admin.unregister_broker(9)
        assert refusal.value.error is Error.BROKER_ID_NOT_REGISTERED


def test_topics_are_not_known_to_controllers(tools: Tools) -> None:
    with Admin({"bootstrap.controllers": tools.cluster.bootstrap_controllers}) as admin:
        assert {each.node_id for each in admin.describe_cluster().brokers} == {1, 2}
        with pytest.raises(ApiError) as refusal:
            admin.describe_topics()
        assert refusal.value.error is Error.UNSUPPORTED_ENDPOINT_TYPE


def test_the_apis_of_controllers(tools: Tools) -> None:
    done = run_ours("broker-api-versions", "--bootstrap-controller", tools.cluster.bootstrap_controllers)
    assert (done.code, done.err) == (0, "")
    assert done.out.count("Vote(52): 0 to 2") == 2
    assert "UNSUPPORTED" not in done.out


def test_the_doctor_asks_every_node(tools: Tools) -> None:
    done = run_ours("doctor", "--bootstrap-server", tools.cluster.bootstrap)
    lines = [line for line in done.out.splitlines() if not line.startswith(" ")]
    assert done.code == 0, done
    assert "good     brokers: all 2 brokers answer" in lines
    assert "good     configuration: 2 brokers have the same configuration" in lines
    assert any(line.startswith("warning  replication: 2 topics refuse acks=all") for line in lines), lines
    assert any(line.startswith("note     quorum: 2 voters survive the loss of 0") for line in lines), lines
    assert "good     clock: the clock of the active controller agrees with that of this machine" in lines


def test_replicas_are_compared(tools: Tools) -> None:
    words = ["--broker-list", tools.cluster.bootstrap, "--topics-include", f"t-{OURS}", "--time", "-2"]
    command = [sys.executable, "-m", "kafkapy", "replica-verification", *words, "--report-interval-ms", "100"]
    with Producer(bootstrap_servers=tools.cluster.bootstrap) as producer:
        producer.send(f"t-{OURS}", "value", partition=0).result(30)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        reports = iter(process.stdout.readline, "")
        has_agreed = any(f"max lag is 0 for partition t-{OURS}-" in report for report in reports)
        process.terminate()
    assert "verification process is started" in first
    assert has_agreed
