"""The Spark session of the programs of `python -m bench.spark`, and the CPU seconds of its processes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from kafkapy.spark import register
from tests.spark_session import start_session


class CpuSeconds(NamedTuple):
    """The CPU seconds of this process's descendants: of the JVM, and of its Python workers."""

    jvm: float
    python: float


def start() -> Any:
    """Starts the session with both data sources."""
    settings = {
        "spark.jars": os.environ["SPARK_JARS"],
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": "",  # both compilers, because throughput is measured
        "spark.sql.streaming.numRecentProgressUpdates": "100000",
    }
    spark = start_session(Path(tempfile.mkdtemp(prefix="spark-queries-")), settings=settings)
    register(spark)
    return spark


def cpu_seconds() -> CpuSeconds:
    """Returns the CPU seconds so far. Those of ended processes are included, as seconds of their parents."""
    children: dict[int, list[tuple[int, bool, int]]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, tail = path.read_text().rpartition(")")
        except OSError:
            continue  # the process has ended since it was listed
        fields = tail.split()
        found = (int(path.parent.name), head.endswith("(java"), sum(map(int, fields[11:15])))
        children.setdefault(int(fields[1]), []).append(found)
    waiting, ticks = [os.getpid()], [0, 0]
    while waiting:
        for pid, is_jvm, used in children.get(waiting.pop(), ()):
            ticks[not is_jvm] += used
            waiting.append(pid)
    jvm, python = (each / os.sysconf("SC_CLK_TCK") for each in ticks)
    return CpuSeconds(jvm, python)
