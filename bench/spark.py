"""`python -m bench.spark`: compares the data source `kafkapy` with Spark's own, in rows/s.

    python -m bench.spark [--records 10000000] [--rounds 3] [--partitions 4] [--directory DIR]

One topic on kafkapy holds records of 100 bytes. One Spark session, of the release of Spark's own Kafka source, runs
three forms in turn: Spark's own source, ours, and ours with a schema of the needed columns. `count` counts rows;
`hot-search` finds the ten most frequent terms of each window of five minutes. Times are those of whole queries,
planning included; the first round warms up and is not counted. CPU seconds are those of the JVM and its Python
workers.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from bench.spark_queries import FORMS
from kafkapy.client import Producer
from tests.broker_process import BrokerProcess
from tests.spark_connector import run_in_connector_environment

TOPIC = "words-search"
RECORD_BYTES = 100
TERMS = 10_000
FIRST_MS = 1_767_225_600_000
MINUTES = 30
GOALS = {"count": 2.0, "hot-search": 1.0}


def fill(bootstrap: str, records: int, partitions: int) -> None:
    """Fills the topic with search terms, some of which are more frequent, padded to 100 bytes.

    The timestamps are within half an hour.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, partitions, 1)])[TOPIC].result(60)
    at_once = 10_000
    terms = [f"term {TERMS * number * number // at_once**2}".ljust(RECORD_BYTES).encode() for number in range(at_once)]
    with Producer(bootstrap_servers=bootstrap, linger_ms=20, batch_size=256 << 10, buffer_memory=256 << 20) as producer:
        for first in range(0, records, at_once):
            when = FIRST_MS + MINUTES * 60_000 * first // records
            partition = first // at_once % partitions
            producer.send_many(TOPIC, terms[: records - first], partition=partition, timestamp=when)


def report(found: dict[str, Any], records: int) -> dict[str, Any]:
    """Returns rows/s and CPU seconds by query and form, the ratio to Spark's own source, and the verdict."""
    told: dict[str, Any] = {}
    for query, goal in GOALS.items():
        own = statistics.median(each["seconds"] for each in found["kafka"][query])
        told[query] = {"goal": goal}
        for form in FORMS:
            seconds = statistics.median(each["seconds"] for each in found[form][query])
            cpu = statistics.median(each["cpu_seconds"] for each in found[form][query])
            told[query][form] = {
                "rows_per_s": round(records / seconds),
                "cpu_s": round(cpu, 1),
                "times_own": round(own / seconds, 2),
                "reached": own / seconds >= goal,
            }
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="spark-", dir=options.directory))
    try:
        with BrokerProcess(root / "kafkapy") as broker:
            fill(broker.bootstrap, options.records, options.partitions)
            print(f"{options.records} records of {RECORD_BYTES} B in {options.partitions} partitions", flush=True)
            found = run_in_connector_environment(
                "bench.spark_queries", broker.bootstrap, TOPIC, str(options.rounds), timeout_s=3600, shows_progress=True
            )
        told = report(found, options.records)
        print(json.dumps({"spark": found["spark"], "answers_agree": found["answers_agree"], **told}, indent=2))
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
