"""The sample of docs/spark.md and the commands of docs/spark-jobs.md run as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents.blocks import of_section
from tests.documents.newcomer import Newcomer

# Spark starts a JVM for each program, on two cores that other tests use too.
SPARK_TIMEOUT_S = 240
pytestmark = pytest.mark.timeout(600)
WRITE = """
from kafkapy.client import Producer
with Producer(bootstrap_servers="localhost:9092") as producer:
    producer.send("words-search", "kafka").result()
"""
COPIED = """
from kafkapy.client import Consumer
with Consumer(bootstrap_servers="localhost:9092", group_id="copied", auto_offset_reset="earliest") as consumer:
    consumer.subscribe(["words-copied"])
    while not (records := list(consumer.poll(60))):
        pass
    print(records[0].key, records[0].value)
"""


def commands_of_jobs() -> list[str]:
    """Returns the commands of the page: the demo, the list, the generator, a job, a job on a cluster, the options of a
    job, a new job, and the run of the new job.

    tests/full/test_spark_pages_full.py runs the demo, the generator with a job, and the new job;
    tests/full/test_spark_cluster_full.py starts a cluster.
    """
    (block,) = of_section("docs/spark-jobs.md", "Spark jobs")
    return block.text.splitlines()


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    with Newcomer(tmp_path) as made:
        made.activates(". .venv/bin/activate")
        yield made


def test_the_sample_of_the_data_source_copies_records(newcomer: Newcomer) -> None:
    newcomer.leaves_running("kafkapy broker start", until="ready")
    newcomer.types(WRITE, "python")
    sample = next(block for block in of_section("docs/spark.md", "Spark") if block.kind == "python")
    newcomer.leaves_running(sample.text, until="", kind=sample.kind)
    assert newcomer.types(COPIED, "python", timeout_s=SPARK_TIMEOUT_S) == "b'kafka' b'kafka'\n"


def test_the_commands_of_the_jobs_print_what_the_page_says(newcomer: Newcomer) -> None:
    _, listing, _, _, _, usage, new, _ = commands_of_jobs()
    assert "hot-search" in newcomer.types(listing)
    assert "--window" in newcomer.types(usage)
    newcomer.types(new)
