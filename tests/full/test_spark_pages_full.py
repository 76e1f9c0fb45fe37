"""The commands of docs/spark-jobs.md that tests/documents leaves out, run as they are written."""

from __future__ import annotations

import pytest

from tests.documents.newcomer import Newcomer
from tests.documents.test_spark_pages import SPARK_TIMEOUT_S, commands_of_jobs, newcomer

__all__ = ["newcomer"]
pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
# The heading of the hot search's results.
HEADING = "热搜词如下"
# The window of the first record ends when the second one, which is ten minutes younger, has moved the watermark.
VIEWS = """
import time
from kafkapy.client import Producer
now_ms = int(time.time() * 1000)
with Producer(bootstrap_servers="localhost:9092") as producer:
    producer.send("views", "home", timestamp=now_ms - 600_000).result()
    producer.send("views", "about", timestamp=now_ms).result()
"""


def test_the_demo_prints_the_top_ten(newcomer: Newcomer) -> None:
    demo, *_ = commands_of_jobs()
    newcomer.leaves_running(demo, until=HEADING, timeout_s=SPARK_TIMEOUT_S)


def test_a_job_reads_what_the_generator_writes(newcomer: Newcomer) -> None:
    _, _, generate, submit, *_ = commands_of_jobs()
    newcomer.leaves_running("kafkapy broker start", until="ready")
    newcomer.leaves_running(generate, until="")
    newcomer.leaves_running(submit, until=HEADING, timeout_s=SPARK_TIMEOUT_S)


def test_a_new_job_reads_its_topic(newcomer: Newcomer) -> None:
    *_, new, own = commands_of_jobs()
    newcomer.types(new)
    newcomer.leaves_running("kafkapy broker start", until="ready")
    newcomer.types(VIEWS, "python")
    newcomer.leaves_running(own, until="home: 1", timeout_s=SPARK_TIMEOUT_S)
