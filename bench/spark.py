"""`python -m bench.spark`: compares the data source `kafkapy` with Spark's own.

    python -m bench.spark [--sets reads writes parts streams] [--records 10000000] [--rounds 3] [--partitions 4]
                          [--seconds 60] [--rates 1000 100000] [--directory DIR]

Topics are on kafkapy; records have values of 100 bytes. One Spark session, of the release of Spark's own Kafka source,
runs the forms in turn: Spark's own source, ours, and ours with a schema of the needed columns. The first round warms up
and is not counted. CPU seconds are those of the JVM and its Python workers.

- `reads`, in rows/s: `count` counts rows; `hot-search` finds the ten most frequent terms of each window of five
  minutes. Times are those of whole queries, planning included.
- `writes`, in rows/s: generated rows go to a topic, or with `noop` nowhere.
- `parts`, in seconds: the hot search in growing parts, with the CPU seconds of the JVM and of Python.
- `streams`, in ms: micro-batches and the hot search while records arrive at constant rates, each for `--seconds`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from bench.spark_queries import FORMS
from bench.spark_streams import RATES
from bench.spark_writes import SINKS
from kafkapy.client import Producer
from tests.broker_process import BrokerProcess
from tests.spark_connector import run_in_connector_environment

TOPIC = "words-search"
RECORD_BYTES = 100
TERMS = 10_000
FIRST_MS = 1_767_225_600_000
MINUTES = 30
SETS = ("reads", "writes", "parts", "streams")
# The least ratio of rates, of our source to Spark's own: without a schema, and with one.
GOALS = {
    "count": {"kafkapy": 2.5, "kafkapy-columns": 4.0},
    "hot-search": {"kafkapy": 3.0, "kafkapy-columns": 3.0},
    "write": {"kafkapy": 2.0},
}
_TIMEOUT_S = 7200


def create_topic(bootstrap: str, name: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(60)


def fill(bootstrap: str, records: int, partitions: int) -> None:
    """Fills the topic with search terms, some of which are more frequent, padded to 100 bytes.

    The timestamps are within half an hour.
    """
    create_topic(bootstrap, TOPIC, partitions)
    at_once = 10_000
    terms = [f"term {TERMS * number * number // at_once**2}".ljust(RECORD_BYTES).encode() for number in range(at_once)]
    with Producer(bootstrap_servers=bootstrap, linger_ms=20, batch_size=256 << 10, buffer_memory=256 << 20) as producer:
        for first in range(0, records, at_once):
            when = FIRST_MS + MINUTES * 60_000 * first // records
            partition = first // at_once % partitions
            producer.send_many(TOPIC, terms[: records - first], partition=partition, timestamp=when)


def rates(measured: Mapping[str, Sequence[Mapping[str, float]]], query: str, records: int) -> dict[str, Any]:
    """Returns rows/s and CPU seconds of each form of a query, and for ours the ratio to Spark's own and the goal."""
    own = statistics.median(each["seconds"] for each in measured["kafka"])
    told: dict[str, Any] = {}
    for form, rounds in measured.items():
        seconds = statistics.median(each["seconds"] for each in rounds)
        cpu = statistics.median(each["cpu_seconds"] for each in rounds)
        told[form] = {"rows_per_s": round(records / seconds), "cpu_s": round(cpu, 1)}
        if form in GOALS[query]:
            goal = GOALS[query][form]
            told[form] |= {"times_own": round(own / seconds, 2), "goal": goal, "reached": own / seconds >= goal}
    return told


def medians(found: Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]]) -> dict[str, Any]:
    """Returns, by part and form, the medians of seconds and CPU seconds."""
    told: dict[str, Any] = {}
    for form, parts in found.items():
        for part, rounds in parts.items():
            figures = {name: round(statistics.median(each[name] for each in rounds), 2) for name in rounds[0]}
            told.setdefault(part, {})[form] = figures
    return told


def run_set(name: str, bootstrap: str, options: argparse.Namespace) -> dict[str, Any]:
    """Runs one of the SETS of measurements against the broker at `bootstrap`, and returns the figures to print."""
    module, words = {
        "reads": ("bench.spark_queries", [TOPIC, str(options.rounds)]),
        "writes": ("bench.spark_writes", ["written", str(options.rounds), str(options.records)]),
        "parts": ("bench.spark_parts", [TOPIC, str(options.rounds)]),
        "streams": ("bench.spark_streams", ["arriving", str(options.seconds), *map(str, options.rates)]),
    }[name]
    if name == "writes":
        for form in SINKS:
            create_topic(bootstrap, f"written-{form}", options.partitions)
    for rate in options.rates if name == "streams" else ():
        create_topic(bootstrap, f"arriving-{rate}", 4)
    found = run_in_connector_environment(module, bootstrap, *words, timeout_s=_TIMEOUT_S, shows_progress=True)
    told = {"spark": found.pop("spark")}
    if name == "reads":
        told["answers_agree"] = found.pop("answers_agree")
        queries = list(found["kafka"])
        return told | {
            query: rates({form: found[form][query] for form in FORMS}, query, options.records) for query in queries
        }
    if name == "writes":
        return told | {"is_complete": found.pop("is_complete"), "write": rates(found, "write", options.records)}
    return told | (medians(found) if name == "parts" else found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rates", nargs="+", type=int, default=RATES)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="spark-", dir=options.directory))
    try:
        with BrokerProcess(root / "kafkapy", {"log.retention.ms": "-1"}) as broker:  # of records months old
            if {"reads", "parts"} & set(options.sets):
                fill(broker.bootstrap, options.records, options.partitions)
                print(f"{options.records} records of {RECORD_BYTES} B in {options.partitions} partitions", flush=True)
            for name in options.sets:
                print(json.dumps({name: run_set(name, broker.bootstrap, options)}, indent=2), flush=True)
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
