"""The command and the environment that a bundled job runs with.

If Spark's driver (the process that controls the job) runs on this machine, the job is started as a Python program, with
spark-submit's options in the variable PYSPARK_SUBMIT_ARGS. The job can then check its own options before a JVM starts,
and its standard error is not mixed with its results, as it would be by spark-submit. With `--deploy-mode cluster` the
job is started by spark-submit itself.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.job_catalog import JOBS_DIRECTORY
from kafkapy.tools.option import ToolError

POSTGRESQL_DRIVER = "org.postgresql:postgresql:42.7.7"
# The packages of table formats, by the release of Spark that they are built for.
TABLE_PACKAGES = {
    "delta": {"4.0": "io.delta:delta-spark_2.13:4.0.0", "4.1": "io.delta:delta-spark_4.1_2.13:4.1.0"},
    "iceberg": {
        "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.1",
        "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",
    },
}
_VERSION = re.compile(r"version (\d+\.\d+\.\d+)")
_SCALA = re.compile(r"Scala version (\d+\.\d+)")
# The options of spark-submit that take no value.
_SWITCHES = frozenset(
    ("--help", "-h", "--load-spark-defaults", "--supervise", "--usage-error", "--verbose", "-v", "--version")
)
_CONNECT_PORT = 15002
_CONNECT_TIMEOUT_S = 10.0
# Options with which spark-submit only prints something.
_QUESTIONS = frozenset(("--help", "-h", "--usage-error", "--version"))
_NO_SPARK = (
    "there is no spark-submit: install PySpark (`pip install 'kafkapy[spark]'`), "
    "or set SPARK_HOME to a Spark distribution"
)


def find_spark_submit(environment: Mapping[str, str]) -> Path:
    """Returns the path of spark-submit: of SPARK_HOME, or else of the installed PySpark, or else of PATH.

    Raises ToolError if there is none.
    """
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
    """Returns `environment` with the variables that make Spark's driver use this Python and this kafkapy.

    If Spark runs only on this machine (a local master), the variables also apply to Spark's Python workers. If this
    program is the frozen executable, it contains no Python that Spark could use; Spark then uses the Python that
    PYSPARK_PYTHON names, or `python3`.
    """
    found = dict(environment)
    home = submit.parent.parent
    # PySpark warns about versions of pandas in the middle of the job's output.
    found.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")
    if (home / "jars").is_dir():
        found.setdefault("SPARK_HOME", str(home))
    if getattr(sys, "frozen", False):
        # The executable's loader puts its own libraries first; the programs that it starts need the machine's.
        original = found.pop("LD_LIBRARY_PATH_ORIG", None)
        found.pop("LD_LIBRARY_PATH", None)
        return found if original is None else {**found, "LD_LIBRARY_PATH": original}
    found.setdefault("PYSPARK_PYTHON", sys.executable)
    found["PYTHONPATH"] = os.pathsep.join(filter(None, [str(JOBS_DIRECTORY.parent), found.get("PYTHONPATH")]))
    return found


def packages_for(job_words: Sequence[str], submit: Path, environment: Mapping[str, str]) -> list[str]:
    """Returns the Maven coordinates of the libraries that the job's options require, such as a database's driver.

    Raises ToolError for a table format that has no package for this release of Spark.
    """
    packages = []
    for name in dict.fromkeys(_values(job_words, "--sink")):
        if name in TABLE_PACKAGES:
            packages.append(_table_package(name, spark_versions(submit, environment)[0]))
    if _value(job_words, "--source") == "kafka":
        spark, scala = spark_versions(submit, environment)
        packages.append(f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark}")
    if (_value(job_words, "--jdbc-url") or "").startswith("jdbc:postgresql:"):
        packages.append(POSTGRESQL_DRIVER)
    return packages


def _table_package(name: str, spark: str) -> str:
    by_release = TABLE_PACKAGES[name]
    release = ".".join(spark.split(".")[:2])
    if release not in by_release:
        raise ToolError(
            f"--sink {name}: no package is known for Spark {spark}, only for Spark {', '.join(by_release)}: use one of "
            "these releases, or name the package with spark-submit's option --packages"
        )
    return by_release[release]


def spark_versions(submit: Path, environment: Mapping[str, str]) -> tuple[str, str]:
    """Returns the versions of Spark and of Scala. Raises ToolError if spark-submit does not print them."""
    done = subprocess.run([submit, "--version"], env=dict(environment), capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    spark, scala = _VERSION.search(output), _SCALA.search(output)
    if spark is None or scala is None:
        raise ToolError(f"{submit} --version does not say the versions of Spark and Scala:\n{output[-2000:]}")
    return spark[1], scala[1]


class Program(NamedTuple):
    """A command and the environment variables to run it with."""

    words: list[str]
    environment: dict[str, str]


def job_program(
    submit: Path, spark_words: Sequence[str], job: Path, job_words: Sequence[str], environment: Mapping[str, str]
) -> Program:
    """Returns the program that runs the Spark job in the file `job`.

    It is the Python interpreter if the driver runs on this machine, and spark-submit if the driver runs elsewhere.
    `spark_words` and `job_words` are the command line's options for Spark and for the job.
    """
    remote = connect_server(spark_words)
    if remote is not None:
        changed = {**environment, "SPARK_REMOTE": remote, "SPARK_CONNECT_MODE_ENABLED": "1"}
        return _driver_program(submit, job, job_words, changed, driver_python(spark_words, changed))
    options = submit_options(submit, spark_words, job_words, environment)
    if _is_remote(spark_words):
        return Program([str(submit), *options, str(job), *job_words], dict(environment))
    if _setting(spark_words, "spark.ui.showConsoleProgress") is None:
        options += ["--conf", "spark.ui.showConsoleProgress=false"]
    changed = {**environment, "PYSPARK_SUBMIT_ARGS": shlex.join([*options, "pyspark-shell"])}
    workers_python = _setting(spark_words, "spark.pyspark.python")
    if workers_python is not None:
        changed["PYSPARK_PYTHON"] = workers_python
    return _driver_program(submit, job, job_words, changed, driver_python(spark_words, changed))


def _driver_program(
    submit: Path, job: Path, job_words: Sequence[str], environment: Mapping[str, str], python: str
) -> Program:
    """Returns the program that runs the file `job` with the interpreter `python` on this machine.

    The program is not spark-submit: the job's own process is Spark's driver or, with the option --remote, a client of
    a Spark Connect server. `submit` is the path of spark-submit in the same Spark distribution.
    """
    changed = dict(environment)
    modules = [str(path) for path in _pyspark_of_distribution(submit, python)]
    if job.parent != JOBS_DIRECTORY:  # a bundled job has the library in its own folder
        modules.append(str(JOBS_DIRECTORY))
    if modules:
        changed["PYTHONPATH"] = os.pathsep.join(filter(None, [*modules, changed.get("PYTHONPATH")]))
    return Program([python, str(job), *job_words], changed)


def connect_server(spark_words: Sequence[str]) -> str | None:
    """Returns the address of the Spark Connect server in the option --remote; None without this option.

    Raises ToolError if the value of --remote does not begin with sc:// and a host. Also raises it if there are other
    options for Spark, because they apply only where the server is started.
    """
    remote = _value(spark_words, "--remote")
    if remote is None:
        return None
    if not remote.startswith("sc://") or not urlsplit(remote).hostname:
        raise ToolError(f"--remote {remote}: the address of a Spark Connect server is sc://HOST or sc://HOST:PORT")
    others = [word for word in spark_words if word not in ("--remote", remote, f"--remote={remote}")]
    if others:
        raise ToolError(f"{others[0]} is an option of the server, which --remote does not start")
    return remote


def require_connect_server(remote: str) -> None:
    """Raises ToolError if nothing accepts a connection at the Spark Connect address `remote`.

    Without this check Spark would try to connect for minutes.
    """
    address = urlsplit(remote.partition(";")[0])
    place = (address.hostname or "", address.port or _CONNECT_PORT)
    try:
        socket.create_connection(place, _CONNECT_TIMEOUT_S).close()
    except (OSError, UnicodeError) as error:
        raise ToolError(
            f"--remote {remote}: {error}; start a server there with start-connect-server.sh of a Spark distribution"
        ) from error


def driver_python(spark_words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Returns the Python that runs the driver, chosen as spark-submit chooses it.

    Raises ToolError if that Python does not exist.
    """
    chosen = (
        _setting(spark_words, "spark.pyspark.driver.python")
        or environment.get("PYSPARK_DRIVER_PYTHON")
        or environment.get("PYSPARK_PYTHON")
        or "python3"
    )
    python = shutil.which(chosen, path=environment.get("PATH"))
    if python is None:
        raise ToolError(f"there is no program {chosen}: set PYSPARK_PYTHON to a Python for Spark")
    return python


def _pyspark_of_distribution(submit: Path, python: str) -> list[Path]:
    """Returns the archives with Python modules of the Spark distribution whose spark-submit is `submit`.

    Returns [] if `submit` belongs to the PySpark that is installed for the interpreter `python`.
    """
    home = submit.resolve().parent.parent
    spec = find_spec("pyspark") if python == sys.executable else None
    if spec is not None and spec.origin is not None and Path(spec.origin).resolve().parent == home:
        return []
    return sorted((home / "python" / "lib").glob("*.zip"))


def _is_remote(spark_words: Sequence[str]) -> bool:
    mode = _value(spark_words, "--deploy-mode") or _setting(spark_words, "spark.submit.deployMode")
    return mode == "cluster" or not _QUESTIONS.isdisjoint(spark_words)


def _setting(spark_words: Sequence[str], key: str) -> str | None:
    """Returns the value that `--conf key=value` gives to `key`; None if no option gives it one."""
    for index, word in enumerate(spark_words):
        flag, equals, rest = word.partition("=")
        if flag not in ("--conf", "-c"):
            continue
        pair = rest if equals else (spark_words[index + 1] if index + 1 < len(spark_words) else "")
        name, _, value = pair.partition("=")
        if name == key:
            return value
    return None


def submit_options(
    submit: Path, spark_words: Sequence[str], job_words: Sequence[str], environment: Mapping[str, str]
) -> list[str]:
    """Returns the options `spark_words` of the user, completed by those that the job needs.

    Adds a master unless the user names one, the log level WARN unless the user sets a log level, and the packages that
    the job requires unless the user names packages or jars.
    """
    words = list(spark_words)
    if _value(spark_words, "--master") is None:
        words += ["--master", "local[*]"]
    if not any("spark.log.level" in word for word in spark_words):
        words += ["--conf", "spark.log.level=WARN"]
    if _value(spark_words, "--packages") is None and _value(spark_words, "--jars") is None:
        packages = packages_for(job_words, submit, environment)
        words += ["--packages", ",".join(packages)] if packages else []
    return words


def first_positional(words: Sequence[str]) -> int | None:
    """Returns the index of the program in a command line of spark-submit; None if there is no program.

    The program is the first word that is neither an option nor the value of an option.
    """
    index = 0
    while index < len(words):
        word = words[index]
        if not word.startswith("-"):
            return index
        index += 1 if word in _SWITCHES or "=" in word else 2
    return None


def _value(words: Sequence[str], flag: str) -> str | None:
    """Returns the first value of a flag, given as `--flag value` or `--flag=value`; None if it is not given."""
    return next(_values(words, flag), None)


def _values(words: Sequence[str], flag: str) -> Iterator[str]:
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == flag:
            yield value if equals else (words[index + 1] if index + 1 < len(words) else "")
