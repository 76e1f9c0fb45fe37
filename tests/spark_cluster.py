"""A standalone Spark cluster on loopback: a master and workers, in processes of their own, and `spark-submit` to it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.ports import free_ports
from tests.server_process import ServerProcess


def spark_home() -> Path:
    """Returns the folder of the installed PySpark."""
    import pyspark  # only some tests need it

    return Path(pyspark.__file__).parent


def clean_environment() -> dict[str, str]:
    """Returns this process's environment without the variables from which Spark could find kafkapy."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH" and not key.startswith("PYSPARK")}
    return {**kept, "SPARK_HOME": str(spark_home()), "SPARK_LOCAL_IP": "127.0.0.1"}


class SparkDaemon(ServerProcess):
    """A process that runs a class of Spark until it is ended."""

    start_timeout_s = 300.0

    def __init__(self, directory: Path, class_name: str, *arguments: str) -> None:
        super().__init__(directory, port=0)
        self._class_name = class_name
        self._arguments = arguments
        self.ready_line = re.compile("New state: ALIVE|Successfully registered with master")

    def command(self) -> list[str]:
        return [str(spark_home() / "bin" / "spark-class"), self._class_name, *self._arguments]

    def environment(self) -> dict[str, str]:
        # An executor inherits it: nothing of ours may get there by accident.
        return {**clean_environment(), "SPARK_DAEMON_MEMORY": "256m"}


class StandaloneCluster:
    """A context manager with a master and its workers of one core each, which write below a directory. `url` is the
    value for `--master`."""

    def __init__(self, directory: Path, workers: int = 2) -> None:
        (port,) = free_ports(1)
        self.directory = directory
        self.url = f"spark://127.0.0.1:{port}"
        here = ("--host", "127.0.0.1", "--webui-port", "0")
        package = "org.apache.spark.deploy"
        self._master = SparkDaemon(directory / "master", f"{package}.master.Master", *here, "--port", str(port))
        self._workers = [
            SparkDaemon(
                directory / f"worker-{number}",
                f"{package}.worker.Worker",
                *here,
                *("--cores", "1", "--memory", "1g", "--work-dir", str(directory / f"work-{number}"), self.url),
            )
            for number in range(workers)
        ]

    def __enter__(self) -> Self:
        started: list[SparkDaemon] = []
        try:
            for each in (self._master, *self._workers):
                started.append(each)
                each.start()
        except BaseException:
            for each in reversed(started):
                if each.is_running:
                    each.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in (*self._workers, self._master):
            if each.is_running:
                each.kill()

    def submit(
        self,
        program: Path,
        *arguments: str,
        settings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        options: tuple[str, ...] = (),
        timeout_s: float = 180,
    ) -> subprocess.CompletedProcess[str]:
        """Runs `spark-submit` in client mode with these options and returns its output."""
        small = {
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            **(settings or {}),
        }
        command = [str(spark_home() / "bin" / "spark-submit"), "--master", self.url, *options]
        for key, value in small.items():
            command += ["--conf", f"{key}={value}"]
        return subprocess.run(
            [*command, str(program), *arguments],
            env={**clean_environment(), "PYSPARK_DRIVER_PYTHON": sys.executable, **(environment or {})},
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
