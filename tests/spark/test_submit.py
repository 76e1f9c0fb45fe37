"""Bundled jobs as users run them, with `kafkapy jobs`: a real database as a sink, mistakes, and the demo."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from kafkapy.tools.jobs_new import write_job
from tests.postgresql import PostgreSQL, jdbc_driver
from tests.spark.test_hot_search import RULE
from tests.spark.test_stock_strategy import ROWS, STAGE_1
from tests.spark_session import ROOT

pytestmark = pytest.mark.timeout(300)
# Without Java's second compiler, which does not pay off in short runs.
JAVA = ("--driver-java-options", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
SMALL = ("--conf", "spark.ui.enabled=false", "--driver-memory", "512m", "--master", "local[2]", *JAVA)


def kafkapy(*words, timeout_s=240, environment=None):
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **(environment or {})}
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, "-m", "kafkapy", *words]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
    )


def test_the_strategy_writes_to_postgresql(tmp_path):
    """The rows of the table are replaced; the table itself remains."""
    quotes = tmp_path / "stock20170301.txt"
    quotes.write_text("\n".join([*ROWS, "'x','000001'"]) + "\n")
    with PostgreSQL() as database:
        database.query("create table strategy (stock_code text, stock_name text, high_price float8, low_price float8, "
                       "high_price_date text, low_price_date text, is_new_high bool, is_new_low bool, "
                       "trading_days bigint, as_of text)")  # fmt: skip
        database.query("insert into strategy (stock_code) values ('of yesterday')")
        job = (
            "stock-strategy",
            "--source",
            "files",
            "--input",
            str(quotes),
            "--days",
            "3",
            "--shuffle-partitions",
            "2",
        )
        sinks = ("--sink", "console", "--sink", "jdbc", "--jdbc-url", database.url, "--jdbc-table", "strategy")
        login = ("--sink-option", "user=postgres", "--sink-option", "driver=org.postgresql.Driver")
        done = kafkapy("jobs", "submit", *SMALL, "--jars", str(jdbc_driver()), *job, *sinks, *login)
        assert done.returncode == 0, done.stderr[-6000:]
        found = database.query(
            "select stock_code, stock_name, high_price, is_new_high, is_new_low from strategy order by 1"
        )
    assert found == [
        ["000001", "平安银行", "9.55", "t", "f"],
        ["600547", "山东黄金", "37.99", "f", "t"],
        ["600837", "海通证券", "15.9", "f", "t"],
    ]
    printed = done.stdout.splitlines()
    assert set(printed[: printed.index("历史新高:")]) == STAGE_1
    assert "1 rows left out (fewer than 8 fields: 1)" in done.stderr.splitlines()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--bootstrap-server", "127.0.0.1:1"), "--bootstrap-server 127.0.0.1:1: "),
        (("--windo", "3 s"), "there is no option '--windo'; did you mean --window?"),
        (("--topic", "no-such-topic"), "--topic no-such-topic: there is no such topic on "),
    ],
)
def test_a_mistake_is_an_error_before_a_jvm_starts(spark_bootstrap, tmp_path, words, message):
    """JAVA_HOME names a program that fails, so that a started JVM would be noticed."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho A JVM was started >&2\nexit 9\n")
    java.chmod(0o755)
    server = () if "--bootstrap-server" in words else ("--bootstrap-server", spark_bootstrap)
    done = kafkapy("jobs", "submit", *SMALL, "hot-search", *server, *words, environment={"JAVA_HOME": str(tmp_path)})
    assert done.returncode != 0 and done.stdout == ""
    assert message in done.stderr.splitlines()[-1] and "A JVM was started" not in done.stderr


def test_the_demo_prints_the_top_ten(tmp_path):
    """The command is the README's, with an additional limit of one window."""
    done = kafkapy("jobs", "demo", "--windows", "1", "--rate", "500", "--window", "4 s", "--slide", "2 s")
    assert done.returncode == 0, done.stdout + done.stderr
    printed = done.stdout.splitlines()
    start = printed.index(RULE)
    assert re.fullmatch(r"Most searched until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d:", printed[start + 1])
    terms = printed[start + 2 : start + 12]
    counts = [int(term.rpartition(":")[2]) for term in terms]
    assert len(terms) == 10 and counts == sorted(counts, reverse=True)
    assert printed[start + 12] == RULE


def test_a_job_of_ones_own_is_tested_and_run(spark_bootstrap, topics, tmp_path):
    """The job of the template counts the values of a topic; its own test runs in a session of its own (tests/full)."""
    job = write_job("page-views", tmp_path)[0]
    topic = topics.create()
    topics.fill(topic, [b"home", b"cart", b"home"], timestamp=1_500_000_000_000)
    topics.fill(topic, [b"end"], timestamp=1_500_000_600_000)
    words = ("--bootstrap-server", spark_bootstrap, "--topic", topic, "--trigger", "available-now")
    done = kafkapy("jobs", "submit", *SMALL, str(job), *words, "--time-zone", "UTC", "--shuffle-partitions", "1")
    assert done.returncode == 0, done.stderr[-6000:]
    assert done.stdout.splitlines() == ["2017-07-14 02:41:00 home: 2", "2017-07-14 02:41:00 cart: 1"]
    assert f"page-views: reads {topic} (1 partition, 4 records now)" in done.stderr
