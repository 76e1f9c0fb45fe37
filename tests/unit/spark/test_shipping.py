"""What is pickled for the executors can be put together where kafkapy is, and says so where it is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyspark
from pyspark import cloudpickle

from kafkapy.spark.batch_reader import BatchReader
from kafkapy.spark.options import read_options
from kafkapy.spark.source import KafkapySource

OPTIONS = {"kafka.bootstrap.servers": "h:1", "subscribe": "a"}
PACKAGES = str(Path(pyspark.__file__).parents[1])
LOAD = "import pickle, sys; pickle.load(sys.stdin.buffer)"


def test_there_and_back():
    reader = BatchReader(read_options(OPTIONS, is_streaming=False), ("value",))
    again = cloudpickle.loads(cloudpickle.dumps(reader))
    assert isinstance(again, BatchReader) and vars(again) == vars(reader)


def test_where_there_is_no_kafkapy():
    """A Python that has no packages but Spark's own, which it needs to load what Spark sends."""
    reader = BatchReader(read_options(OPTIONS, is_streaming=False), ("value",))
    path = f"import sys; sys.path.append({PACKAGES!r}); sys.modules['kafkapy'] = None; "
    for shipped in (reader, KafkapySource(OPTIONS)):
        done = subprocess.run(
            [sys.executable, "-S", "-c", path + LOAD],
            input=cloudpickle.dumps(shipped),
            capture_output=True,
            check=False,
            cwd="/",
        )
        message = done.stderr.decode()
        assert "The data source kafkapy cannot run on this Spark executor" in message
        assert "--archives" in message and sys.executable in message
