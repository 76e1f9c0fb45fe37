"""How a bundled job is given to spark-submit: which one, with which packages, in which environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from kafkapy.tools.job_catalog import JOBS_DIRECTORY
from kafkapy.tools.option import ToolError

POSTGRESQL_DRIVER = "org.postgresql:postgresql:42.7.7"
_VERSION = re.compile(r"version (\d+\.\d+\.\d+)")
_SCALA = re.compile(r"Scala version (\d+\.\d+)")
# Those of spark-submit's options that stand alone; behind every other one comes its value.
_SWITCHES = frozenset(
    ("--help", "-h", "--load-spark-defaults", "--supervise", "--usage-error", "--verbose", "-v", "--version")
)
_NO_SPARK = (
    "there is no spark-submit: install PySpark (`pip install 'kafkapy[spark]'`), "
    "or set SPARK_HOME to a Spark distribution"
)


def find_spark_submit(environment: Mapping[str, str]) -> Path:
    """Of SPARK_HOME, of the PySpark that is installed beside us, or on the path; ToolError if there is none."""
    homes = [Path(environment["SPARK_HOME"])] if environment.get("SPARK_HOME") else []
    spec = find_spec("pyspark")
    if spec is not None and spec.origin is not None:
        homes.append(Path(spec.origin).parent)
    for home in homes:
        if (home / "bin" / "spark-submit").is_file():
            return home / "bin" / "spark-submit"
    found = shutil.which("spark-submit", path=environment.get("PATH"))
    if found is None:
        raise ToolError(_NO_SPARK)
    return Path(found)


def spark_environment(submit: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of the driver, and with a local master of its workers: this Python, and this kafkapy.

    From the executable there is no Python of ours: Spark takes the one that PYSPARK_PYTHON names, or `python3`.
    """
    found = dict(environment)
    home = submit.parent.parent
    # Of PySpark about versions of pandas, into the output of the job.
    found.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")
    if (home / "jars").is_dir():
        found.setdefault("SPARK_HOME", str(home))
    if getattr(sys, "frozen", False):
        # The executable's loader has put its own libraries first; programs that it starts need the machine's.
        original = found.pop("LD_LIBRARY_PATH_ORIG", None)
        found.pop("LD_LIBRARY_PATH", None)
        return found if original is None else {**found, "LD_LIBRARY_PATH": original}
    found.setdefault("PYSPARK_PYTHON", sys.executable)
    found["PYTHONPATH"] = os.pathsep.join(filter(None, [str(JOBS_DIRECTORY.parent), found.get("PYTHONPATH")]))
    return found


def packages_for(job_words: Sequence[str], submit: Path, environment: Mapping[str, str]) -> list[str]:
    """The Maven coordinates that the job's options call for: Spark's own connector, a database's driver."""
    packages = []
    if _value(job_words, "--source") == "kafka":
        spark, scala = spark_versions(submit, environment)
        packages.append(f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark}")
    if (_value(job_words, "--jdbc-url") or "").startswith("jdbc:postgresql:"):
        packages.append(POSTGRESQL_DRIVER)
    return packages


def spark_versions(submit: Path, environment: Mapping[str, str]) -> tuple[str, str]:
    """Of Spark, and of Scala; ToolError if spark-submit does not say."""
    done = subprocess.run([submit, "--version"], env=dict(environment), capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    spark, scala = _VERSION.search(output), _SCALA.search(output)
    if spark is None or scala is None:
        raise ToolError(f"{submit} --version does not say the versions of Spark and Scala:\n{output[-2000:]}")
    return spark[1], scala[1]


def command(
    submit: Path, spark_words: Sequence[str], job: Path, job_words: Sequence[str], environment: Mapping[str, str]
) -> list[str]:
    """The whole command. Packages are added unless the user names jars or packages; Spark talks less than usual."""
    words = [str(submit), *spark_words]
    if _value(spark_words, "--master") is None:
        words += ["--master", "local[*]"]
    if not any("spark.log.level" in word for word in spark_words):
        words += ["--conf", "spark.log.level=WARN"]
    if _value(spark_words, "--packages") is None and _value(spark_words, "--jars") is None:
        packages = packages_for(job_words, submit, environment)
        words += ["--packages", ",".join(packages)] if packages else []
    return [*words, str(job), *job_words]


def first_positional(words: Sequence[str]) -> int | None:
    """Where the program stands in a command line of spark-submit: the first word that is neither option nor value."""
    index = 0
    while index < len(words):
        word = words[index]
        if not word.startswith("-"):
            return index
        index += 1 if word in _SWITCHES or "=" in word else 2
    return None


def _value(words: Sequence[str], flag: str) -> str | None:
    """What a flag was given, as `--flag value` or `--flag=value`."""
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == flag:
            return value if equals else (words[index + 1] if index + 1 < len(words) else "")
    return None
