"""The command and the environment of a job: spark-submit, packages, Python, the job's program."""

from __future__ import annotations

import signal
import sys
import tomllib
from pathlib import Path

import pytest

from kafkapy.tools import jobs
from kafkapy.tools.job_catalog import JOBS_DIRECTORY, describe, find_job, job_paths
from kafkapy.tools.option import ToolError
from kafkapy.tools.spark_submit import (
    find_spark_submit,
    first_positional,
    job_program,
    spark_environment,
    spark_versions,
    submit_options,
)

JOB = JOBS_DIRECTORY / "hot_search.py"


@pytest.fixture
def submit(tmp_path):
    """Returns the spark-submit of a Spark distribution, which prints its version."""
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


def test_mypy_checks_every_job():
    settings = tomllib.loads((JOBS_DIRECTORY.parent / "pyproject.toml").read_text())["tool"]["mypy"]
    assert JOBS_DIRECTORY.name in settings["files"]
    assert all(path.parent == JOBS_DIRECTORY for path in job_paths().values())


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
    assert submit_options(submit, spark_words, job_words, {}) == between
    given = ["--conf", "spark.log.level=INFO", "--master", "local"]
    assert submit_options(submit, given, [], {}) == given


DELTA = "io.delta:delta-spark_2.13:4.0.0"
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.1"


def test_tables_need_the_package_of_their_release(submit):
    words = ["--sink", "delta", "--sink=console", "--sink", "iceberg"]
    assert submit_options(submit, [], words, {})[-2:] == ["--packages", f"{DELTA},{ICEBERG}"]
    assert "--packages" not in submit_options(submit, ["--jars", "delta.jar"], words, {})
    submit.write_text("#!/bin/sh\necho 'version 4.3.0'\necho 'Using Scala version 2.13.16, OpenJDK'\n")
    with pytest.raises(
        ToolError, match=r"^--sink delta: no package is known for Spark 4\.3\.0, only for Spark 4\.0, 4"
    ):
        submit_options(submit, [], ["--sink", "delta"], {})


def test_a_job_is_a_program_of_its_own_with_spark_submits_options_in_the_environment(submit):
    modules = submit.parent.parent / "python" / "lib"
    modules.mkdir(parents=True)
    (modules / "pyspark.zip").touch()
    environment = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": "/mine"}
    program = job_program(submit, ["--name", "a b"], JOB, ["--top", "3"], environment)
    assert program.words == [sys.executable, str(JOB), "--top", "3"]
    options = "--name 'a b' --master 'local[*]' --conf spark.log.level=WARN --conf spark.ui.showConsoleProgress=false"
    assert program.environment["PYSPARK_SUBMIT_ARGS"] == f"{options} pyspark-shell"
    assert program.environment["PYTHONPATH"] == f"{modules / 'pyspark.zip'}:/mine"
    own = job_program(submit, [], Path("/mine/job.py"), [], environment).environment["PYTHONPATH"]
    assert own == f"{modules / 'pyspark.zip'}:{JOBS_DIRECTORY}:/mine", "the user's own job has the library"
    progress = ["--conf", "spark.ui.showConsoleProgress=true"]
    assert "=false" not in job_program(submit, progress, JOB, [], environment).environment["PYSPARK_SUBMIT_ARGS"]


def test_the_drivers_python_is_chosen_as_spark_submit_chooses_it(submit):
    def python_of(*spark_words, **environment):
        program = job_program(submit, spark_words, JOB, [], environment)
        return program.words[0], program.environment.get("PYSPARK_PYTHON")

    assert python_of(PYSPARK_PYTHON=sys.executable) == (sys.executable, sys.executable)
    assert python_of(PYSPARK_PYTHON="/other", PYSPARK_DRIVER_PYTHON=sys.executable) == (sys.executable, "/other")
    workers = ("--conf", f"spark.pyspark.python={sys.executable}")
    assert python_of(*workers, PYSPARK_PYTHON="/other") == (sys.executable, sys.executable)
    driver = (f"--conf=spark.pyspark.driver.python={sys.executable}",)
    assert python_of(*driver, PYSPARK_PYTHON="/other") == (sys.executable, "/other")
    with pytest.raises(ToolError, match="there is no program /other: set PYSPARK_PYTHON"):
        python_of(PYSPARK_PYTHON="/other")


@pytest.mark.parametrize(
    "spark_words", [["--deploy-mode", "cluster"], ["--conf", "spark.submit.deployMode=cluster"], ["--version"]]
)
def test_spark_submit_runs_what_does_not_run_on_this_machine(submit, spark_words):
    words = [*spark_words, "--master", "yarn"]
    program = job_program(submit, words, JOB, ["--top", "3"], {})
    assert program.words == [str(submit), *words, *QUIET, str(JOB), "--top", "3"]
    assert "PYSPARK_SUBMIT_ARGS" not in program.environment


@pytest.mark.parametrize(
    ("number", "expected"), [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, 128 + signal.SIGINT)]
)
def test_a_signal_ends_the_job_and_is_the_status(monkeypatch, tmp_path, number, expected):
    """A terminal sends Ctrl-C to the job too; SIGTERM comes to this process alone, which passes it on."""
    job = tmp_path / "job.py"
    to_all = "os.kill(os.getpid(), signal.SIGINT)" if number == signal.SIGINT else "time.sleep(600)"
    job.write_text(f"import os, signal, time\nos.kill(os.getppid(), {int(number)})\n{to_all}\n")
    monkeypatch.setattr(jobs.job_catalog, "find_job", lambda word: job)
    assert jobs.submit(["hot-search"]) == expected


def test_the_status_of_a_job_is_passed_on(monkeypatch, tmp_path):
    job = tmp_path / "job.py"
    monkeypatch.setattr(jobs.job_catalog, "find_job", lambda word: job)
    job.write_text("raise SystemExit(3)\n")
    assert jobs.submit(["hot-search"]) == 3
    job.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert jobs.submit(["hot-search"]) == 128 + signal.SIGKILL


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
    message = "there is no job 'hot-serch'; did you mean hot-search? (the jobs are access-log, archive"
    assert message in capsys.readouterr().err
    assert jobs.main(["submit", "--name", "hot-search"]) == 1
    assert "no job is named: --name hot-search; the jobs are access-log" in capsys.readouterr().err


def test_bad_arguments_of_the_generator_are_named(capsys):
    assert jobs.main(["generate", "--data", "weather"]) == 1
    assert "weather" in capsys.readouterr().err
    assert jobs.main(["generate", "--data", "quotes", "--bootstrap-server", "localhost:1"]) == 1
    assert "localhost:1" in capsys.readouterr().err


def test_a_connect_server_replaces_master_and_submit_arguments(submit):
    found = job_program(
        submit, ["--remote", "sc://here:15002"], JOB, ["--top", "3"], {"PYSPARK_PYTHON": sys.executable}
    )
    assert found.words == [sys.executable, str(JOB), "--top", "3"]
    assert found.environment["SPARK_REMOTE"] == "sc://here:15002"
    assert "PYSPARK_SUBMIT_ARGS" not in found.environment
