"""Readers and sources that are pickled for executors, with and without kafkapy."""

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


def test_a_reader_is_restored_with_its_state():
    reader = BatchReader(read_options(OPTIONS, is_streaming=False), ("value",))
    again = cloudpickle.loads(cloudpickle.dumps(reader))
    assert isinstance(again, BatchReader) and vars(again) == vars(reader)


def test_an_executor_without_kafkapy_says_so():
    """The subprocess can import only Spark's packages, which are needed to load the pickle."""
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
