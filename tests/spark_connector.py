"""Spark's own Kafka source (on the JVM), which is compared with the data source: its jars from Maven Central, and the
matching release of PySpark in an environment of its own, both stored below KAFKAPY_PEERS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.package_managers import fetch, made_once
from tests.peers import MAVEN, peers_directory

ROOT = Path(__file__).parents[1]
POM = Path(__file__).with_name("spark_pom.xml")
# The newest one all of whose parts are on Maven Central.
SPARK_VERSION = "4.0.0"
# The packages that the source of that release, and kafkapy in the same session, need.
PACKAGES = (
    f"pyspark=={SPARK_VERSION}",
    "pyarrow>=18,<24",
    "pandas>=2.2,<3",
    "cramjam>=2.8,<3",
    "lz4>=4.3,<5",
    "msgpack>=1.0,<2",
    "prometheus-client>=0.20,<1",
    "zstandard>=0.22,<1",
)


def connector_jars() -> list[Path]:
    """Returns the jars for `spark.jars`, which are downloaded once."""
    directory = peers_directory() / f"spark-connector-{SPARK_VERSION}"
    command = [*MAVEN, "-f", str(POM), f"-Dspark.version={SPARK_VERSION}", "dependency:copy"]
    command += [f"-DoutputDirectory={directory / 'jars'}"]
    made_once(directory, lambda: fetch(command))
    return sorted((directory / "jars").glob("*.jar"))


def connector_python() -> Path:
    """Returns the interpreter of an environment with PySpark SPARK_VERSION, which is made once (a minute, 900 MB)."""
    directory = peers_directory() / f"pyspark-{SPARK_VERSION}"
    python = directory / "venv" / "bin" / "python"

    def make() -> None:
        subprocess.run([sys.executable, "-m", "venv", str(directory / "venv")], check=True)
        fetch([str(python), "-m", "pip", "install", "-q", *PACKAGES])

    made_once(directory, make)
    return python


def connector_variables() -> dict[str, str]:
    """Returns the environment variables with which `kafkapy jobs` uses PySpark SPARK_VERSION and its Python."""
    python = connector_python()
    home = next(python.parents[1].glob("lib/python*/site-packages/pyspark"))
    return {"SPARK_HOME": str(home), "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}


def run_in_connector_environment(
    module: str, *arguments: str, timeout_s: float = 600, shows_progress: bool = False
) -> Any:
    """Runs a module of this repository in that environment; returns the JSON value of its last line of output.

    Raises AssertionError if the module fails.
    """
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK"))}
    jars = ",".join(map(str, connector_jars()))
    with tempfile.TemporaryDirectory(prefix="kafkapy-spark-", ignore_cleanup_errors=True) as scratch:
        done = subprocess.run(
            [str(connector_python()), "-m", module, *arguments],
            cwd=ROOT,
            env={**inherited, "PYTHONPATH": str(ROOT), "SPARK_JARS": jars, "TMPDIR": scratch},
            stdout=subprocess.PIPE,
            stderr=None if shows_progress else subprocess.PIPE,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    if done.returncode:
        raise AssertionError(
            f"{module} ended with {done.returncode}:\n{done.stdout[-4000:]}{(done.stderr or '')[-8000:]}"
        )
    return json.loads(done.stdout.strip().splitlines()[-1])
