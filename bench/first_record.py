"""`python -m bench.first_record`: measures how long a new client takes until its first record.

    python -m bench.first_record [--count 100] [--output FILE.json]

Short-lived clients (functions, tasks of Spark, commands) pay this each time. In turn, each client library makes a
producer, sends one record and has it acknowledged; and makes a consumer, assigns one partition and reads its first
record. The client's close is not measured. All use the same kafkapy broker. The result is the median in milliseconds,
with the 90th and the 99th percentile.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import confluent_kafka
import kafka

from bench.programs import RESULTS
from bench.quantiles import quantile
from kafkapy.client import Consumer, Producer
from kafkapy.testing import Broker

TOPIC = "first"
PATIENCE_S = 30.0
QUANTILES = (0.5, 0.9, 0.99)


def wait_for(poll: Callable[[float], object]) -> None:
    """Calls `poll` with the seconds that are left until it returns something; raises TimeoutError after PATIENCE_S."""
    end = time.monotonic() + PATIENCE_S
    while not poll(max(end - time.monotonic(), 0)):
        if time.monotonic() > end:
            raise TimeoutError(f"a client had no record after {PATIENCE_S:g} s")


def kafkapy_produce(servers: str) -> Callable[[], object]:
    producer = Producer(bootstrap_servers=servers)
    producer.send(TOPIC, b"record").result(PATIENCE_S)
    return producer.close


def kafkapy_consume(servers: str) -> Callable[[], object]:
    consumer = Consumer(bootstrap_servers=servers)
    consumer.assign([(TOPIC, 0)])
    consumer.seek_to_beginning()
    wait_for(consumer.poll)
    return consumer.close


def confluent_produce(servers: str) -> Callable[[], object]:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    acknowledged: list[object] = []
    producer.produce(TOPIC, b"record", on_delivery=lambda error, message: acknowledged.append(error))
    wait_for(lambda left_s: producer.poll(left_s) and acknowledged == [None])
    return producer.flush


def confluent_consume(servers: str) -> Callable[[], object]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "none"})
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, confluent_kafka.OFFSET_BEGINNING)])
    wait_for(consumer.poll)
    return consumer.close


def kafka_python_produce(servers: str) -> Callable[[], object]:
    producer = kafka.KafkaProducer(bootstrap_servers=servers)
    producer.send(TOPIC, b"record").get(PATIENCE_S)
    return producer.close


def kafka_python_consume(servers: str) -> Callable[[], object]:
    consumer = kafka.KafkaConsumer(bootstrap_servers=servers)
    place = kafka.TopicPartition(TOPIC, 0)
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    wait_for(lambda left_s: consumer.poll(timeout_ms=int(left_s * 1000)))
    return consumer.close


# By what is measured and by client library: makes a client, returns when its first record is done, and returns a
# function that closes the client.
CLIENTS: dict[str, dict[str, Callable[[str], Callable[[], object]]]] = {
    "produce": {
        "kafkapy": kafkapy_produce,
        "confluent-kafka": confluent_produce,
        "kafka-python": kafka_python_produce,
    },
    "consume": {
        "kafkapy": kafkapy_consume,
        "confluent-kafka": confluent_consume,
        "kafka-python": kafka_python_consume,
    },
}


def turn(first_record: Callable[[str], Callable[[], object]], servers: str) -> float:
    """Returns the milliseconds until the first record of a new client."""
    begin = time.monotonic()
    close = first_record(servers)
    passed_ms = (time.monotonic() - begin) * 1000
    close()
    return passed_ms


def main(words: Sequence[str] | None = None) -> None:
    """Runs the turns, prints their figures and writes them to a file; `words` are the arguments of the command."""
    parser = argparse.ArgumentParser(prog="python -m bench.first_record", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--output", type=Path, default=RESULTS / "first_record.json")
    chosen = parser.parse_args(words)
    told: dict[str, dict[str, list[float]]] = {}
    with Broker() as broker:
        servers = broker.bootstrap_servers
        broker.create_topic(TOPIC)
        for name, clients in CLIENTS.items():
            found: dict[str, list[float]] = {library: [] for library in clients}
            for number in range(chosen.count + 1):
                for library, first_record in clients.items():
                    passed_ms = turn(first_record, servers)
                    if number:  # the first turn imports modules
                        found[library].append(passed_ms)
            told[name] = {}
            for library, values in found.items():
                told[name][library] = [round(quantile(values, share), 1) for share in QUANTILES]
                print(f"{name:8} {library:16} p50, p90, p99 in ms: {told[name][library]}", flush=True)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
