"""The sinks Delta Lake and Apache Iceberg, on the newest Spark for which both have packages in the tests' environment.

A job's driver is killed while it writes; in the end each record is in the table once. Then a column is added, and the
table is read together with the live topic. Another test writes to a table that others write to. The packages are
downloaded from Maven Central by spark-submit.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from kafkapy.client import Producer
from tests.broker_process import BrokerProcess
from tests.spark_connector import connector_variables
from tests.spark_session import ROOT

pytestmark = [pytest.mark.full, pytest.mark.peer, pytest.mark.timeout(3600)]
RECORDS = 3000
SMALL = ("--conf", "spark.ui.enabled=false", "--driver-memory", "900m", "--master", "local[2]")
READ = """
import json, sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from kafkapy.spark import register
from kafkapy_jobs.tables import session_settings
from argparse import Namespace
_, sink, path, bootstrap, topic = sys.argv[1:]
builder = SparkSession.builder.appName("read")
for key, value in session_settings(Namespace(sink=[sink], output_path=path)):
    builder = builder.config(key, value)
spark = builder.getOrCreate()
register(spark)
table = spark.read.format("delta").load(path) if sink == "delta" else spark.table("lake.logs.archive")
found = {"rows": table.count(), "distinct": table.select("partition", "offset").distinct().count()}
found["hours"] = sorted(row["hour"] for row in table.select("hour").distinct().collect())
# The table up to its end, and the topic after it, as one DataFrame.
ends = {row["partition"]: row["end"] for row in table.groupBy("partition").agg(F.max("offset").alias("end")).collect()}
live = spark.read.format("kafkapy").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
live = live.option("startingOffsets", json.dumps({topic: {str(key): end + 1 for key, end in ends.items()}})).load()
columns = ["partition", "offset", "value", "timestamp"]
both = table.select(*columns).unionByName(live.select(*columns))
found["both"] = [both.count(), both.select("partition", "offset").distinct().count()]
# Compaction and a new column, by the tables' own means.
if sink == "delta":
    spark.sql(f"optimize delta.`{path}`")
    extra = table.limit(1).withColumn("note", F.lit("x"))
    extra.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    table = spark.read.format("delta").load(path)
else:
    spark.sql("call lake.system.rewrite_data_files(table => 'logs.archive')")
    spark.sql("alter table lake.logs.archive add column note string")
    table = spark.table("lake.logs.archive")
found["after"] = [table.count(), "note" in table.columns]
print(json.dumps(found))
"""


def environment():
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK"))}
    return {**inherited, **connector_variables(), "PYTHONPATH": str(ROOT)}


def submit(*words, **more):
    command = [sys.executable, "-m", "kafkapy", "jobs", "submit", *SMALL, *words]
    return subprocess.Popen(command, cwd=ROOT, env=environment(), text=True, stderr=subprocess.PIPE, **more)


@pytest.mark.parametrize("sink", ["delta", "iceberg"])
def test_each_record_is_in_the_table_once(tmp_path, sink):
    path = tmp_path / "lake"
    table = ("--output-table", "logs.archive") if sink == "iceberg" else ()
    with BrokerProcess(tmp_path / "kafkapy", {"num.partitions": "3", "log.retention.ms": "-1"}) as broker:
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(RECORDS):
                producer.send("clicks", f"v{number}".encode(), timestamp=1_500_000_000_000 + number * 3000)
        job = ("archive", "--bootstrap-server", broker.bootstrap, "--topic", "clicks", "--sink", sink, *table)
        job += ("--output-path", str(path), "--time-zone", "UTC", "--trigger", "200 ms")
        commits = path / "_checkpoint" / sink / "commits"
        for _ in range(2):
            before = len(list(commits.glob("[0-9]*"))) if commits.exists() else 0
            process = submit(*job, start_new_session=True)
            deadline = time.monotonic() + 300
            while not commits.exists() or len(list(commits.glob("[0-9]*"))) <= before:
                assert process.poll() is None, process.stderr.read()[-6000:]
                assert time.monotonic() < deadline
                time.sleep(0.1)
                with Producer(bootstrap_servers=broker.bootstrap) as producer:
                    producer.send("clicks", b"more", timestamp=1_500_000_000_000)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        # On Spark 4.0 a run is one micro-batch, which may be the one that the kill has interrupted.
        for _ in range(2):
            process = submit(*job, "--trigger", "available-now")
            errors = process.communicate()[1]
            assert process.returncode == 0, errors[-6000:]
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            sent = producer.send("clicks", b"after the archive", partition=0).result(30)
        reader = tmp_path / "read.py"
        reader.write_text(READ)
        packages = ("--conf", "spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        options = (
            *(packages if sink == "iceberg" else ()),
            str(reader),
            "--sink",
            sink,
            str(path),
            broker.bootstrap,
            "clicks",
        )
        # The reader's words include `--sink`, so that submit adds the package.
        process = submit(*options, stdout=subprocess.PIPE)
        output, errors = process.communicate()
        assert process.returncode == 0, errors[-6000:]
    found = json.loads(output.splitlines()[-1])
    assert found["rows"] == found["distinct"] >= RECORDS
    assert found["hours"] == ["2017-07-14-02", "2017-07-14-03", "2017-07-14-04", "2017-07-14-05"]
    assert sent.offset > 0 and found["both"] == [found["rows"] + 1] * 2
    assert found["after"] == [found["rows"] + (sink == "delta"), True]


@pytest.mark.parametrize("sink", ["delta", "iceberg"])
def test_each_row_is_once_in_a_table_that_others_write_to_and_conflicts_are_one_line(tmp_path, sink):
    program = str(ROOT / "tests" / "spark" / "table_writers.py")
    with BrokerProcess(tmp_path / "kafkapy", {"log.retention.ms": "-1"}) as broker:
        words = (program, "--sink", sink, str(tmp_path / "lake"), broker.bootstrap, "clicks")
        process = submit(*words, stdout=subprocess.PIPE)
        output, errors = process.communicate()
        assert process.returncode == 0, errors[-6000:]
    found = json.loads(output.splitlines()[-1])
    assert [found["first"], *found["beside appends"], *found["after the conflict"]] == [None] * 9
    assert found["counts"] == {"clicks": [found["sent"]] * 2, "others": [found["appended"]] * 2}
    assert found["appended"] > len(found["beside appends"]), "the others have written while the job wrote"
    for line in (found["conflict"], found["other columns"]):
        assert re.fullmatch("the table does not take the rows: .* start the job again, .*", line), line
