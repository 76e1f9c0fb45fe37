"""Checks of the machine before Spark starts: a Java that Spark supports, and a Spark that the jobs support."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kafkapy.tools.option import ToolError

LEAST_JAVA = 17
LEAST_SPARK = (4, 0)
_CORE = re.compile(r"spark-core_[\d.]+-(\d+)\.(\d+)\.(\d+)")
_JAVA = re.compile(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)')


def check_requirements(home: Path, environment: Mapping[str, str]) -> None:
    """Raises ToolError if the Spark in `home` is too old for the jobs, or if there is no Java that Spark 4 supports."""
    spark = spark_version(home)
    if spark is not None and spark < LEAST_SPARK:
        raise ToolError(
            f"the Spark in {home} is {'.'.join(map(str, spark))}, and the jobs need {LEAST_SPARK[0]} or newer: "
            "install it with `pip install 'pyspark>=4,<5'`, or set SPARK_HOME to a newer Spark"
        )
    java = find_java(environment)
    version = java_version(java)
    if version is not None and version < LEAST_JAVA:
        raise ToolError(
            f"{java} is Java {version}, and Spark 4 needs {LEAST_JAVA} or newer: set JAVA_HOME to a newer Java"
        )


def spark_version(home: Path) -> tuple[int, int, int] | None:
    """Returns the version in the name of the library of Spark's core; None if `home` has no such library."""
    for path in sorted(home.glob("jars/spark-core_*.jar")):
        found = _CORE.match(path.name)
        if found is not None:
            return int(found[1]), int(found[2]), int(found[3])
    return None


def find_java(environment: Mapping[str, str]) -> Path:
    """Returns the path of the Java that Spark starts, which is in JAVA_HOME or, if JAVA_HOME is not set, in PATH.
    Raises ToolError if there is no Java, or if JAVA_HOME contains none."""
    home = environment.get("JAVA_HOME")
    if home:
        if not (Path(home) / "bin" / "java").is_file():
            raise ToolError(f"JAVA_HOME is {home}, which has no program bin/java: set it to a Java {LEAST_JAVA}")
        return Path(home) / "bin" / "java"
    found = shutil.which("java", path=environment.get("PATH"))
    if found is None:
        raise ToolError(f"Spark needs Java {LEAST_JAVA} or newer, and there is none: install one, or set JAVA_HOME")
    return Path(found)


def java_version(java: Path) -> int | None:
    """Returns the major version of the executable `java`; None if it cannot be determined.

    The version is read from the file `release` of the Java installation or, if there is none, from what `java -version`
    prints.
    """
    release = java.resolve().parent.parent / "release"
    if release.is_file():
        text = release.read_text(errors="replace")
    else:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, errors="replace", check=False)
        text = done.stdout + done.stderr
    found = _JAVA.search(text)
    return None if found is None else int(found[1])
