"""The checks of Java and Spark before `kafkapy jobs submit` starts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.tools import jobs
from kafkapy.tools.option import ToolError
from kafkapy.tools.spark_requirements import check_requirements, java_version, spark_version


def executable(path: Path, text: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def spark(tmp_path):
    """Returns a function that makes the home of a Spark of this version."""

    def make(version: str) -> Path:
        home = tmp_path / f"spark-{version}"
        (home / "jars").mkdir(parents=True)
        (home / "jars" / f"spark-core_2.13-{version}.jar").touch()
        return home

    return make


def java(home: Path, release: str) -> dict[str, str]:
    """Makes a Java with the file `release`; returns the environment that names it."""
    executable(home / "bin" / "java", "exit 9")
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{release}"\n')
    return {"JAVA_HOME": str(home)}


def test_a_supported_spark_and_java_pass(spark, tmp_path):
    check_requirements(spark("4.0.0"), java(tmp_path / "java", "17.0.15"))
    check_requirements(spark("4.3.0-preview1"), java(tmp_path / "newer", "25"))


def test_no_java_is_one_line(spark, tmp_path):
    with pytest.raises(ToolError, match=r"^Spark needs Java 17 or newer, and there is none: install one, or set"):
        check_requirements(spark("4.1.0"), {"PATH": str(tmp_path)})
    with pytest.raises(ToolError, match=r"^JAVA_HOME is .*, which has no program bin/java"):
        check_requirements(spark("4.2.0"), {"JAVA_HOME": str(tmp_path)})


@pytest.mark.parametrize(("release", "number"), [("11.0.2", 11), ("1.8.0_402", 8)])
def test_an_old_java_is_one_line(spark, tmp_path, release, number):
    with pytest.raises(ToolError, match=f"is Java {number}, and Spark 4 needs 17 or newer: set JAVA_HOME"):
        check_requirements(spark("4.1.0"), java(tmp_path / "java", release))


def test_an_old_spark_is_one_line(spark, tmp_path):
    with pytest.raises(ToolError, match=r"is 3\.5\.1, and the jobs need 4 or newer: install it with `pip install"):
        check_requirements(spark("3.5.1"), java(tmp_path / "java", "17"))


def test_a_java_without_the_file_release_is_asked(tmp_path):
    old = executable(tmp_path / "bin" / "java", """echo 'openjdk version "1.8.0_402"' >&2""")
    assert java_version(old) == 8
    assert java_version(executable(tmp_path / "broken" / "java", "echo no; exit 9")) is None
    assert spark_version(tmp_path) is None


def test_a_job_is_not_started_without_java(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert jobs.main(["submit", "hot-search"]) == 1
    found = capsys.readouterr()
    assert found.out == "" and len(found.err.splitlines()) == 1 and "has no program bin/java" in found.err
