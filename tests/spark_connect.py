"""A Spark Connect server on loopback, in a process of its own; its Python workers have this repository's kafkapy."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tests.server_process import ServerProcess
from tests.spark_cluster import clean_environment, spark_home
from tests.spark_session import ROOT, SETTINGS

CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


class ConnectServer(ServerProcess):
    """A server whose queries run in two threads. `url` is the value for `--remote`."""

    start_timeout_s = 300.0
    ready_line = re.compile("Spark Connect server started at")

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, port=None)
        self.url = f"sc://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        settings = {
            **SETTINGS,
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.sql.warehouse.dir": str(self.directory / "warehouse"),
        }
        del settings["spark.log.level"]  # a line of the log says that the server is ready
        words = [str(spark_home() / "bin" / "spark-submit"), "--class", CLASS, "--master", "local[2]"]
        for key, value in settings.items():
            words += ["--conf", f"{key}={value}"]
        return words

    def environment(self) -> dict[str, str]:
        path = os.pathsep.join((str(ROOT), str(Path(spark_home()).parent)))
        return {**clean_environment(), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path}
