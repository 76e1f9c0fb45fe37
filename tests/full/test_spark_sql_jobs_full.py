"""The SQL jobs as users submit them: with the file in a system property, on Hadoop, or missing."""

from __future__ import annotations

import pytest

from kafkapy.client import Producer
from tests.broker_process import BrokerProcess
from tests.spark.test_submit import SMALL, kafkapy

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
WORDS = ("--trigger", "available-now", "--shuffle-partitions", "2")
SETTINGS = SMALL[: SMALL.index("--driver-java-options")]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as made:
        with Producer(bootstrap_servers=made.bootstrap) as producer:
            producer.send("people", "{'name':'caocao','age':'32','sex':'male'}")
            producer.send("dyl_test01", '{"a":"1","b":"2","c":"2018-01-08","d":[23.9,45]}')
        yield made


def cells(output):
    """Returns the rows of all tables on Spark's console, in order."""
    lines = [line for line in output.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize(
    ("scheme", "topic", "words"),
    [("", "people", ()), ("file://", "none", ("--topic", "people"))],
    ids=["local", "hadoop"],
)
def test_the_file_is_named_by_a_system_property(broker, tmp_path, scheme, topic, words):
    """Checks that options of the command line take precedence over the file."""
    path = tmp_path / "job.properties"
    path.write_text(f"kafka.bootstrap.servers={broker.bootstrap}\nsubscribe={topic}\nmaster=local[1]\n")
    done = kafkapy(
        "jobs", "submit", *SETTINGS, "--driver-java-options", f"-DPropPath={scheme}{path}", "sql-job", *WORDS, *words
    )
    assert done.returncode == 0, done.stdout[-6000:]
    names, *rows = cells(done.stdout)
    assert names == [f"_{number}" for number in range(1, 8)]
    assert rows == [["caocao", "32", "male", "", "", "", ""]]


def test_a_missing_file_is_a_message(tmp_path):
    done = kafkapy(
        "jobs", "submit", *SMALL, "sql-job", *WORDS, "--properties", "/none.properties", "--source", "files",
        "--input", str(tmp_path),
    )  # fmt: skip
    assert "there is no properties file /none.properties, neither here nor in Hadoop's" in done.stderr
    assert done.returncode == 0, done.stdout[-6000:]


def test_each_statement_is_a_query_of_its_own(broker):
    done = kafkapy("jobs", "submit", *SMALL, "sql-statements", *WORDS, "--bootstrap-server", broker.bootstrap)
    assert done.returncode == 0, done.stdout[-6000:]
    found = sorted(cells(done.stdout), key=len)
    assert found == [
        ["a", "b", "c", "d"],
        ["1", "2", "2018-01-08", "[23.9, 45]"],
        ["a", "b", "c", "d", "e"],
        ["1", "2", "2018-01-08", "[23.9, 45]", "2"],
    ]


def test_without_a_schema_there_is_a_message_and_no_view(broker):
    done = kafkapy("jobs", "submit", *SMALL, "sql-statements", "--schema", "")
    assert done.returncode != 0
    assert "--schema is empty: the view needs columns" in done.stdout + done.stderr
