"""How a job becomes a command: which spark-submit, which packages, which environment, which job."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kafkapy.tools import jobs
from kafkapy.tools.job_catalog import JOBS_DIRECTORY, describe, find_job, job_paths
from kafkapy.tools.option import ToolError
from kafkapy.tools.spark_submit import command, find_spark_submit, first_positional, spark_environment, spark_versions

JOB = Path("/jobs/hot_search.py")


@pytest.fixture
def submit(tmp_path):
    """A Spark home whose spark-submit says its version."""
    home = tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    (home / "jars").mkdir()
    program = home / "bin" / "spark-submit"
    program.write_text("#!/bin/sh\necho 'version 4.0.0'\necho 'Using Scala version 2.13.16, OpenJDK'\n")
    program.chmod(0o755)
    return program


def test_the_jobs_lie_beside_the_package_and_say_what_they_are():
    paths = job_paths()
    assert {"hot-search", "stock-strategy", "word-count"} <= set(paths)
    assert all(path.parent == JOBS_DIRECTORY for path in paths.values())
    for path in paths.values():
        assert describe(path).endswith("."), path
    for word in ("hot-search", "hot_search", "hot_search.py", "spark_jobs/hot_search.py"):
        assert find_job(word) == paths["hot-search"]
    with pytest.raises(ToolError, match="there is no job 'kafkapy_jobs'"):
        find_job("kafkapy_jobs")


def test_spark_home_comes_first(submit):
    assert find_spark_submit({"SPARK_HOME": str(submit.parent.parent)}) == submit


def test_versions_are_what_spark_submit_says(submit):
    assert spark_versions(submit, {}) == ("4.0.0", "2.13")
    submit.write_text("#!/bin/sh\necho nothing\n")
    with pytest.raises(ToolError, match="does not say the versions"):
        spark_versions(submit, {})


def test_the_environment_is_this_python_and_this_kafkapy(submit):
    environment = spark_environment(submit, {"PYTHONPATH": "/mine"})
    assert environment["PYSPARK_PYTHON"] == sys.executable
    assert environment["PYTHONPATH"] == f"{JOBS_DIRECTORY.parent}:/mine"
    assert environment["SPARK_HOME"] == str(submit.parent.parent)
    assert spark_environment(submit, {"PYSPARK_PYTHON": "/other"})["PYSPARK_PYTHON"] == "/other"


QUIET = ["--conf", "spark.log.level=WARN"]
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"


@pytest.mark.parametrize(
    ("spark_words", "job_words", "between"),
    [
        ([], ["--top", "3"], ["--master", "local[*]", *QUIET]),
        (["--master", "spark://host:7077"], [], ["--master", "spark://host:7077", *QUIET]),
        ([], ["--source", "kafka"], ["--master", "local[*]", *QUIET, "--packages", CONNECTOR]),
        (["--jars=a.jar"], ["--source=kafka"], ["--jars=a.jar", "--master", "local[*]", *QUIET]),
        (
            [],
            ["--jdbc-url", "jdbc:postgresql://localhost/x", "--source", "kafka"],
            ["--master", "local[*]", *QUIET, "--packages", f"{CONNECTOR},org.postgresql:postgresql:42.7.7"],
        ),
    ],
)
def test_master_and_packages_are_added_where_the_user_names_none(submit, spark_words, job_words, between):
    words = command(submit, spark_words, JOB, job_words, {})
    assert words == [str(submit), *between, str(JOB), *job_words]
    given = command(submit, ["--conf", "spark.log.level=INFO", "--master", "local"], JOB, [], {})
    assert given == [str(submit), "--conf", "spark.log.level=INFO", "--master", "local", str(JOB)]


@pytest.mark.parametrize(
    ("words", "index"),
    [
        (["hot-search", "--top", "3"], 0),
        (["--master", "local", "--conf=a=b", "-v", "--name", "access-log", "hot-search"], 6),
        (["--master"], None),
    ],
)
def test_the_job_is_the_first_word_that_belongs_to_no_option_of_spark_submit(words, index):
    assert first_positional(words) == index


def test_jobs_are_listed(capsys):
    assert jobs.main(["list"]) == 0
    assert "hot-search" in capsys.readouterr().out


def test_a_word_that_is_no_job_is_named_with_those_there_are(capsys):
    assert jobs.main(["submit", "--master", "local", "hot-serch", "--topic", "access-log"]) == 1
    message = "there is no job 'hot-serch'; did you mean hot-search? (there are access-log, envelope"
    assert message in capsys.readouterr().err
    assert jobs.main(["submit", "--name", "hot-search"]) == 1
    assert "no job is named: --name hot-search; there are access-log" in capsys.readouterr().err


def test_bad_arguments_of_the_generator_are_named(capsys):
    assert jobs.main(["generate", "--data", "weather"]) == 1
    assert "weather" in capsys.readouterr().err
    assert jobs.main(["generate", "--data", "quotes", "--bootstrap-server", "localhost:1"]) == 1
    assert "localhost:1" in capsys.readouterr().err
