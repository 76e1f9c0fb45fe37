"""Every command and program of the documentation runs as it is written, or is listed here with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents.blocks import ROOT, Block, blocks, of_section, pages
from tests.documents.newcomer import Newcomer

README = "README.md"
# `run-broker` builds the tree first if it has changed since the last set-up.
START_TIMEOUT_S = 600
pytestmark = pytest.mark.timeout(900)
# (page, heading) -> the test that runs the blocks under this heading.
RUN_BY = {
    (README, "Run it"): "test_the_readmes_first_use, test_the_readmes_other_port_and_configuration_file",
    (README, "Use it"): "test_the_readmes_first_use",
    (README, "Command-line tools"): "test_the_readmes_first_use",
    (README, "Short commands"): "test_the_readmes_first_use",
    (README, "Python client"): "test_the_readmes_first_use",
    (README, "Run a cluster"): "test_the_sandbox_runs_three_nodes",
    ("docs/cluster.md", "A cluster on one machine"): "test_the_sandbox_runs_three_nodes",
    **{
        ("docs/election.md", heading): "tests/documents/test_election_page.py"
        for heading in (
            "The cluster",
            "Two kinds of leaders",
            "A client",
            "The crash",
            "A new leader of the quorum",
            "A new leader of the partition",
            "The return",
            "Nothing was lost",
        )
    },
    **{
        ("docs/testing.md", heading): "tests/unit/testing/test_plugin.py"
        for heading in ("With pytest", "In a program", "In other languages")
    },
    ("docs/zookeeper.md", "A walk through the znodes"): "tests/documents/test_zookeeper_page.py",
    ("docs/index.md", "API reference"): "tests/documents/test_reference.py",
    ("docs/operations.md", "Migration from Apache Kafka"): "tests/swap/test_migration_document.py",
    ("docs/operations.md", "Migration back to Apache Kafka"): "tests/swap/test_migration_document.py",
    ("docs/spark.md", "Spark"): "tests/documents/test_spark_pages.py",
    ("docs/spark-jobs.md", "Spark jobs"): "tests/documents/test_spark_pages.py",
    ("examples/README.md", "Examples"): "tests/examples/test_examples.py",
    **{
        ("docs/reliable.md", heading): "tests/documents/test_program_pages.py"
        for heading in ("Retries and dead letters", "Redrive", "Delayed records", "Routing", "Logs")
    },
    ("docs/schema-registry.md", "The schema registry"): "tests/documents/test_program_pages.py",
    ("docs/schema-registry.md", "Serializers"): "tests/documents/test_program_pages.py",
    ("docs/rest-proxy.md", "The REST proxy"): "tests/documents/test_program_pages.py",
    ("docs/drop-in-clients.md", "Drop-in clients"): "tests/documents/test_program_pages.py",
}
# (page, heading) -> why no test can run the blocks under this heading as they are written.
NOT_RUN = {
    ("docs/cluster.md", "A cluster of three machines"): "it needs three machines; tests/cluster runs such nodes on one",
    **{
        ("docs/operations.md", heading): "it changes a cluster of several machines; tests/cluster does the same on one"
        for heading in (
            "Checking a cluster",
            "Rolling restart",
            "Replacing a dead node",
            "Adding and removing brokers",
            "Adding and removing controllers",
        )
    },
    ("docs/cluster.md", "From one node to three"): "tests/cluster/test_voter_changes.py runs these commands",
    ("docs/operations.md", "What happened to a partition"): "it names a host; tests/cluster/test_explain.py runs it",
    ("docs/operations.md", "Evening out the load"): "it names a host; tests/cluster/test_rebalance.py runs it",
    ("docs/logging.md", "Levels"): "it names a host; tests/operations/test_log_files.py sets such levels",
    (README, "Test it"): "it is the command that runs these tests",
    (README, "Install it"): "it needs a container engine; tests/packaging and tests/full build and install the files",
    (README, "Measure it"): "a benchmark takes minutes of a quiet machine; tests/bench runs small loads",
    **{
        ("docs/performance.md", heading): "a benchmark takes minutes of a quiet machine; tests/bench runs small loads"
        for heading in ("Clusters", "Share groups")
    },
    (
        README,
        "Spark",
    ): "it installs from PyPI and runs until Ctrl-C; tests/spark/test_submit.py runs the demo",
    ("CONTRIBUTING.md", "Set up"): "it is the command that runs these tests",
    ("docs/operations.md", "The service"): "it needs systemd; tests/full/test_debian_package_full.py follows it",
    (
        "docs/operations.md",
        "Before the first use",
    ): "it needs the package; tests/full/test_debian_package_full.py",
    ("docs/security.md", "Keys from elsewhere"): "it is the outline of a class; test_python_context.py has a whole one",
    ("docs/spark.md", "Executors"): "it needs a cluster; tests/full/test_spark_cluster_full.py starts one",
    ("docs/spark-jobs.md", "Back-tests of stock rules"): "it needs quotes; tests/spark/test_stock_backtest.py has some",
    ("docs/mirroring.md", "Mirroring"): "it names two hosts; tests/reliable/test_mirror.py runs the mirror",
    ("docs/reliable.md", "Traces"): "it names a trace; tests/reliable/test_trace_and_audit.py runs the command",
    (
        "docs/spark-jobs.md",
        "Clicks, late events, reprocessing",
    ): "it needs dead letters; tests/spark/test_reprocess.py fills a topic",
    ("docs/spark-jobs.md", "Tables"): "it needs a topic; tests/spark/test_archive.py fills one",
}


def all_blocks() -> list[Block]:
    return [block for page in pages() for block in blocks(page)]


def test_the_tests_that_run_blocks_exist() -> None:
    here = Path(__file__).read_text()
    names = [name for value in RUN_BY.values() for name in value.split(", ")]
    assert [n for n in names if not ((ROOT / n).exists() if "/" in n else f"def {n}(" in here)] == []


def test_every_block_is_run_or_listed_with_a_reason() -> None:
    found = {(block.page, block.heading) for block in all_blocks()}
    assert found == RUN_BY.keys() | NOT_RUN.keys()


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    with Newcomer(tmp_path) as made:
        yield made


def test_the_readmes_other_port_and_configuration_file(newcomer: Newcomer) -> None:
    _, others = of_section(README, "Run it")
    (newcomer.clone / "server.properties").write_text(
        f"listeners=PLAINTEXT://localhost:29092\nlog.dirs={newcomer.home / 'configured'}\n"
    )
    listens_on = ["19092", "29092"]
    for command, port in zip(others.text.splitlines(), listens_on, strict=True):
        broker = newcomer.leaves_running(command, until=f"localhost:{port}", timeout_s=START_TIMEOUT_S)
        broker.terminate()
        assert broker.wait(30) == 0


def test_the_readmes_first_use(newcomer: Newcomer) -> None:
    start, _ = of_section(README, "Run it")
    newcomer.leaves_running(start.text, until="ready", timeout_s=START_TIMEOUT_S)
    activation, client = of_section(README, "Use it")
    newcomer.activates(activation.text)
    assert newcomer.types(client.text, client.kind) == "b'first' b'hello'\n"
    (tools,) = of_section(README, "Command-line tools")
    printed = newcomer.types(tools.text)
    assert "Topic: greetings" in printed and printed.endswith("hello\n")
    (commands,) = of_section(README, "Short commands")
    assert newcomer.types(commands.text).splitlines()[-3:] == [
        "favourite: blue",
        "TOPIC\tPARTITIONS\tREPLICAS\tUNDER-REPLICATED",
        "colours\t1\t1\t0",
    ]

    records, shares, admin, table = of_section(README, "Python client")
    assert newcomer.types(records.text, records.kind) == "2\nb'first' b'hello'\nNone b'hello'\nb'first' b'hello'\n"
    assert newcomer.types(shares.text, shares.kind) == ""  # a new share group begins at the end of the topic
    printed = newcomer.types(admin.text, admin.kind)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in printed and "listeners" in printed
    assert newcomer.types(table.text, table.kind) == "2 rows delivered\n"


REPLICATED = """
from kafkapy.client import Admin, Consumer, Producer
from kafkapy.client.admin import NewTopic

brokers = {"bootstrap_servers": "localhost:9092,localhost:9093,localhost:9094"}
with Admin(**brokers) as admin:
    admin.create_topics([NewTopic("copied", partitions=3, replication_factor=3)]).check()
with Producer(acks="all", **brokers) as producer:
    print(len([future.result() for future in [producer.send("copied", str(number)) for number in range(100)]]))
with Consumer(group_id="readers", auto_offset_reset="earliest", **brokers) as consumer:
    consumer.subscribe(["copied"])
    found = []
    while len(found) < 100:
        found += list(consumer.poll(10))
    print(len(found))
"""


@pytest.mark.parametrize("page", [(README, "Run a cluster"), ("docs/cluster.md", "A cluster on one machine")])
def test_the_sandbox_runs_three_nodes(newcomer: Newcomer, page: tuple[str, str]) -> None:
    newcomer.activates(". .venv/bin/activate")
    (command,) = of_section(*page)
    sandbox = newcomer.leaves_running(command.text, until="sandbox ready")
    assert newcomer.types(REPLICATED, "python") == "100\n100\n"
    newcomer.types("kafkapy sandbox kill 2")
    assert "SIGKILL" in newcomer.types("kafkapy sandbox status")
    newcomer.types("kafkapy sandbox restart 2")
    sandbox.terminate()
    assert sandbox.wait(60) == 0
