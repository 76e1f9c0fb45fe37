"""Share groups: Apache Kafka's and our perf tool, many records in flight, and the memory of a partition in use."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from bench.run import LOAD_TIMEOUT_S, Figures, Run
from bench.workloads.partitions import SPREAD
from bench.workloads.throughput import fill, with_cost
from tests.peers import kafka_directory

SIZE = 100
MESSAGES = 1_000_000
# The partitions and the records that are in flight at once: below the limit of 2,000 for a partition.
PARTITIONS, IN_FLIGHT, ROUNDS = 6, 10_000, 10
POLL_RECORDS = 500
MANY = 500
WAIT_S = 60
TOOL_CLASS = "org.apache.kafka.tools.ShareConsumerPerformance"
PROPERTIES = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "3",
}
# The column of the rate (records per second) in the line that both tools print.
RATE_COLUMN = 4


def java_tool() -> list[str]:
    return ["java", "-Xmx512M", "-cp", f"{kafka_directory('4.3.0')}/libs/*", TOOL_CLASS]


def our_tool() -> list[str]:
    return [sys.executable, "-P", "-m", "kafkapy", "share-consumer-perf-test"]


def new_group(run: Run) -> str:
    """Returns the name of a share group that reads from the beginning of its topics."""
    from kafkapy.client.admin import Admin, ConfigChange, ConfigResource, ResourceType

    group = f"group-{time.monotonic_ns()}"
    with Admin({"bootstrap.servers": run.measured.bootstrap}) as admin:
        reset = ConfigChange("share.auto.offset.reset", "earliest")
        admin.incremental_alter_configs({ConfigResource(ResourceType.GROUP, group): [reset]}).check()
    return group


def perf_tool(tool: Callable[[], Sequence[str]]) -> Callable[[Run], Figures]:
    """Returns a workload in which the tool reads a topic of six partitions in a new group, implicitly acknowledging.

    `per_second` is the rate that the tool prints.
    """

    def run(run: Run) -> Figures:
        count = run.count(MESSAGES)
        topic = run.keep("topic", lambda: fill(run, count, SIZE, PARTITIONS))
        words = ["--bootstrap-server", run.measured.bootstrap, "--topic", topic, "--group", new_group(run)]
        words += ["--num-records", str(count), "--timeout", str(WAIT_S * 1000), "--hide-header"]

        def load() -> Figures:
            done = subprocess.run(
                [*tool(), *words], capture_output=True, text=True, timeout=LOAD_TIMEOUT_S, check=False
            )
            if done.returncode or "WARNING" in done.stdout:
                raise RuntimeError(f"{' '.join([*tool(), *words])}: {done.stdout}{done.stderr}")
            return {"messages": count, "per_second": float(done.stdout.splitlines()[-1].split(", ")[RATE_COLUMN])}

        return with_cost(run.measure(load), count * SIZE / 1e9)

    return run


def in_flight(run: Run) -> Figures:
    """Acquires 10,000 records of six partitions before the first one is acknowledged, several times.

    `per_second` counts the records that were acquired and acknowledged one by one.
    """
    from kafkapy.client import ShareConsumer

    wanted, rounds = run.count(IN_FLIGHT), ROUNDS
    topic = run.topic(PARTITIONS)
    run.produce(topic, wanted * rounds * 2, SIZE, *SPREAD).result()  # about as many in each partition
    group = new_group(run)
    limits = {"share.acquire.mode": "record_limit", "max.poll.records": str(min(POLL_RECORDS, wanted))}
    settings = {"share.acknowledgement.mode": "explicit", **limits}
    servers = {"bootstrap.servers": run.measured.bootstrap, "group.id": group}

    def load() -> Figures:
        acknowledged, held = 0, 0
        with ExitStack() as stack:
            # A consumer polls again only when it has acknowledged, so several of them hold the records together.
            consumers = []
            for _ in range(-(-wanted // POLL_RECORDS)):
                consumer = stack.enter_context(ShareConsumer({**servers, **settings}))
                consumer.subscribe(topic)
                consumers.append(consumer)
            begin = time.monotonic()
            for _ in range(rounds):
                polled = [(consumer, consumer.poll(WAIT_S)) for consumer in consumers]
                held = max(held, sum(len(records) for _, records in polled))
                for consumer, records in polled:
                    for record in records:
                        consumer.acknowledge(record)
                    consumer.commit()
                    acknowledged += len(records)
            took = time.monotonic() - begin
        return {"messages": acknowledged, "most_in_flight": held, "per_second": acknowledged / took}

    figures = run.measure(load)
    run.server.delete_topic(topic)
    return figures


def memory_of_partitions(run: Run) -> Figures:
    """Measures by how much the broker grows for each partition that a share group reads.

    A record of each partition is acquired and acknowledged. The growth includes the members' sessions.
    """
    from kafkapy.client import ShareConsumer

    count = run.count(MANY)
    topic = run.topic(count)
    run.requests(topic, 8, max(1.0, count / 500), partitions=count).result()
    before = run.measured.memory_mb()
    seen: set[int] = set()
    servers = {"bootstrap.servers": run.measured.bootstrap, "group.id": new_group(run)}
    deadline = time.monotonic() + LOAD_TIMEOUT_S

    def load() -> Figures:
        with ShareConsumer(servers) as consumer:
            consumer.subscribe(topic)
            while len(seen) < count:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"records of {len(seen)} of {count} partitions")
                seen.update(record.partition for record in consumer.poll(1))
            grown = run.measured.memory_mb() - before
        return {"kb_per_partition": grown * 1000 / count, "grown_mb": grown}

    figures = run.measure(load)
    run.server.delete_topic(topic)
    return figures
