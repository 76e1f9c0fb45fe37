"""Quotas over minutes, next to Apache Kafka 4.3: the same rates and throttle times for Java's tools and librdkafka.

Both brokers run at the same time, each with a throttled producer and consumer of both clients, and with a client whose
time is limited. The quotas of bytes are doubled in the middle. Rates are taken over whole periods of the sawtooth of 11
seconds, after the first burst of each part. The figures are printed; run with -s.

Throttle times depend on how fast a client spends what the quota allows: within a second, it then waits for a second
before each request; within several, it waits shorter and more often. librdkafka's producer therefore sends requests of
the same size at moments that do not depend on the speed of the broker. The number of requests under
`request_percentage` depends on what a request costs the broker; compared is the time that the brokers' metrics show. A
second test does the same without the other clients, whose work makes each request dearer. It compares throttle times
with what the requests cost, to which they are proportional. Its requests name so many topics that they cost both
brokers about the same, and much more than what no quota counts: the client, the network, and the wait for a core.

KAFKAPY_QUOTA_PERIODS: periods of 11 s before and after the change (11).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import statistics
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from kafkapy.client.admin import Admin, NewTopic
from kafkapy.metrics import table
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.metadata import MetadataRequest
from tests.api_client import request_bytes
from tests.operations.watched_broker import WatchedBroker
from tests.peers import ApacheKafka, run_tool
from tests.ports import free_port
from tests.reactor_harness import frame
from tests.server_process import ServerProcess
from tests.twin_brokers import receive
from tests.wire.test_quotas import alter

PERIODS = int(os.environ.get("KAFKAPY_QUOTA_PERIODS", "11"))
PERIOD_S = 11
# The burst, and the rest of its period, pass before a part is measured.
SETTLING_S = 2 * PERIOD_S
PART_S = SETTLING_S + PERIODS * PERIOD_S
RATE = 262_144
REQUEST_PERCENTAGE = 5
RECORD = 1_000
# The requests of the second test name KAFKA_TOPICS topics on Apache Kafka. For kafkapy the test looks for the number,
# at most MOST_TOPICS, with which a request costs the same.
KAFKA_TOPICS, MOST_TOPICS = 200, 1000
# librdkafka's producer sends so many records in a request, and requests at most so often: three times the first quota.
REQUEST_RECORDS, REQUEST_EVERY_S = 16, 0.02
CPU_TICKS = os.sysconf("SC_CLK_TCK")
THROTTLE_TIME = struct.Struct(">5xi")  # of a metadata response: behind the correlation id and the tags of the header
JAVA = ["java", "-Xmx192M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


def topic_name(number: int) -> str:
    return f"named-{number:04}"


class Meter:
    """The total that a client has received or sent, at moments, and its throttle times."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.points: list[tuple[float, float]] = []  # (monotonic seconds, total)
        self.throttle_ms = 0.0
        self.responses = 0

    def note(self, total: float) -> None:
        self.points.append((time.monotonic(), total))

    def at(self, moment: float) -> float:
        """Returns the total at the moment, interpolated."""
        before = [point for point in self.points if point[0] <= moment][-1]
        after = next((point for point in self.points if point[0] > moment), before)
        share = (moment - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0.0
        return before[1] + share * (after[1] - before[1])

    def rate(self, from_s: float, to_s: float) -> float:
        return (self.at(to_s) - self.at(from_s)) / (to_s - from_s)

    @property
    def average_ms(self) -> float:
        return self.throttle_ms / self.responses if self.responses else 0.0


class Load:
    """The throttled clients of one broker."""

    def __init__(self, server: ServerProcess, kafka: Path, jmx_port: int = -1) -> None:
        """`jmx_port` is the port of Apache Kafka's metrics."""
        self.server = server
        self.kafka = kafka
        self.jmx_port = jmx_port
        self.meters: dict[str, Meter] = {}
        self.cpu: list[tuple[float, float]] = []
        self.used: list[tuple[float, float]] = []  # (monotonic seconds, percentage of a thread's time)
        self.named_topics = 0  # the number of topics that a request for metadata names
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._processes: list[subprocess.Popen[str]] = []

    def prepare(self) -> None:
        """Creates the topics, and fills the one that is read."""
        total = RATE * 3 * (PART_S + 40) // RECORD
        for topic in ("read", "java-producer", "rdkafka-producer"):
            run_tool(
                self.kafka, "org.apache.kafka.tools.TopicCommand",
                "--bootstrap-server", self.server.bootstrap, "--create", "--topic", topic, "--partitions", "1",
            )  # fmt: skip
        producer = Producer({"bootstrap.servers": self.server.bootstrap, "linger.ms": 20})
        for _ in range(total):
            while True:
                try:
                    producer.produce("read", os.urandom(20).ljust(RECORD, b"x"))
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(120) == 0

    def create_named_topics(self) -> None:
        """Creates the topics that requests for metadata may name."""
        with Admin({"bootstrap.servers": self.server.bootstrap}) as admin:
            for first in range(0, MOST_TOPICS, 100):
                admin.create_topics([NewTopic(topic_name(first + number), 1, 1) for number in range(100)]).check()

    def quota(self, rate: int) -> None:
        for kind in ("producer", "consumer"):
            for client in ("java", "rdkafka"):
                alter(self.server, {"client-id": f"{client}-{kind}"}, f"{kind}_byte_rate", rate)

    def time_quota(self, percentage: int) -> None:
        alter(self.server, {"client-id": "requests"}, "request_percentage", percentage)

    def start(self) -> None:
        self.quota(RATE)
        self.time_quota(REQUEST_PERCENTAGE)
        self._run(
            self._java_producer, self._java_consumer, self._rdkafka_producer, self._rdkafka_consumer, self._requests,
            self._watch_cpu, self._watch_time,
        )  # fmt: skip

    def start_requests(self) -> None:
        """Starts only the client whose time is limited."""
        self.time_quota(REQUEST_PERCENTAGE)
        self._run(self._requests, self._watch_time)

    def _run(self, *loops: Callable[[], None]) -> None:
        for run in loops:
            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        self._stopping.set()
        for process in self._processes:
            process.terminate()
        for thread in self._threads:
            thread.join(60)

    def _meter(self, name: str) -> Meter:
        meter = self.meters[name] = Meter(name)
        return meter

    def _java(self, class_name: str, *arguments: str) -> subprocess.Popen[str]:
        command = [*JAVA, "-cp", f"{self.kafka}/libs/*", f"org.apache.kafka.tools.{class_name}", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
        self._processes.append(process)
        return process

    def _java_producer(self) -> None:
        meter = self._meter("java-producer")
        # The burst, the first part, a second burst of what the change allows, and the second part.
        records = RATE * (PART_S + 10 + 2 * PART_S + 30) // (RECORD + 8)
        process = self._java(
            "ProducerPerformance", "--topic", "java-producer", "--num-records", str(records), "--throughput", "-1",
            "--record-size", str(RECORD), "--print-metrics", "--reporting-interval", "1000", "--command-property",
            f"bootstrap.servers={self.server.bootstrap}", "client.id=java-producer", "metrics.num.samples=2",
            "metrics.sample.window.ms=3600000", "buffer.memory=1048576",
        )  # fmt: skip
        assert process.stdout is not None
        total = 0
        for line in process.stdout:
            if found := re.match(r"(\d+) records sent, [\d.]+ records/sec .*max latency", line):
                if "50th" not in line:
                    total += int(found[1]) * RECORD
                    meter.note(total)
            elif "produce-throttle-time-avg" in line:
                meter.throttle_ms, meter.responses = float(line.rpartition(":")[2]), 1

    def _java_consumer(self) -> None:
        meter = self._meter("java-consumer")
        records = RATE * (PART_S + 10 + 2 * PART_S + 30) // (RECORD + 8)
        settings = self.server.directory / "consumer.properties"
        settings.write_text("client.id=java-consumer\nmetrics.sample.window.ms=3600000\nfetch.max.bytes=262144\n")
        process = self._java(
            "ConsumerPerformance", "--topic", "read", "--num-records", str(records), "--print-metrics", "--timeout",
            "60000", "--show-detailed-stats", "--reporting-interval", "500", "--bootstrap-server",
            self.server.bootstrap, "--command-config", str(settings),
        )  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            parts = line.split(", ")
            if len(parts) > 5 and re.match(r"\d{4}-\d\d-\d\d", line):
                meter.note(float(parts[2]) * 1_048_576)
            elif "fetch-throttle-time-avg" in line:
                meter.throttle_ms, meter.responses = float(line.rpartition(":")[2]), 1

    def _rdkafka(self, meter: Meter) -> dict[str, Any]:
        def statistics(text: str) -> None:
            for broker in json.loads(text)["brokers"].values():
                throttle = broker["throttle"]
                meter.throttle_ms += throttle["sum"]
                meter.responses += throttle["cnt"]

        return {
            "bootstrap.servers": self.server.bootstrap, "client.id": meter.name, "statistics.interval.ms": 1000,
            "stats_cb": statistics,
        }  # fmt: skip

    def _rdkafka_producer(self) -> None:
        meter = self._meter("rdkafka-producer")
        total = 0

        def delivered(error: object, message: Any) -> None:
            nonlocal total
            if error is None:
                total += RECORD
                meter.note(total)

        settings = {"batch.num.messages": REQUEST_RECORDS, "linger.ms": 1000, "max.in.flight": 1}
        producer = Producer({**self._rdkafka(meter), **settings, "message.timeout.ms": 0})
        value = bytes(RECORD)
        due_s = time.monotonic()
        while not self._stopping.is_set():
            for _ in range(REQUEST_RECORDS):
                producer.produce("rdkafka-producer", value, on_delivery=delivered)
            while producer.flush(1) and not self._stopping.is_set():
                pass
            due_s = max(due_s + REQUEST_EVERY_S, time.monotonic())
            time.sleep(max(0.0, due_s - time.monotonic()))

    def _rdkafka_consumer(self) -> None:
        meter = self._meter("rdkafka-consumer")
        settings = {"group.id": "quota", "auto.offset.reset": "earliest", "fetch.max.bytes": 262_144}
        consumer = Consumer({**self._rdkafka(meter), **settings, "message.max.bytes": 262_144})
        consumer.subscribe(["read"])
        total = 0
        while not self._stopping.is_set():
            for message in consumer.consume(500, 0.2):
                if message.error() is None:
                    total += RECORD
            meter.note(total)
        consumer.close()

    def _requests(self) -> None:
        """Asks for metadata as fast as the quota of time allows. The total is the number of requests."""
        meter = self._meter("requests")
        names = [MetadataRequest.MetadataRequestTopic(name=topic_name(number)) for number in range(MOST_TOPICS)]
        with socket.create_connection(("localhost", self.server.port), timeout=60) as connection:
            while not self._stopping.is_set():
                request = MetadataRequest(topics=names[: self.named_topics])
                connection.sendall(frame(request_bytes(ApiKey.METADATA, 9, request, client_id="requests")))
                (throttle_ms,) = THROTTLE_TIME.unpack_from(receive(connection))
                meter.note(meter.responses + 1)
                meter.throttle_ms += throttle_ms
                meter.responses += 1

    def _watch_time(self) -> None:
        """Reads each second which percentage of a thread's time the requests for metadata have used."""
        if isinstance(self.server, WatchedBroker):
            series = re.compile(rf'^{table.REQUEST_TIME.name}{{.*client_id="requests".*}} (\S+)$', re.MULTILINE)
            while not self._stopping.wait(1):
                status, text = self.server.get("/metrics")
                assert status == 200, text
                self.used += [(time.monotonic(), float(value)) for value in series.findall(text)]
            return
        while not self._stopping.is_set():  # the tool ends if it does not find the metric
            process = self._java(
                "JmxTool", "--jmx-url", f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{self.jmx_port}/jmxrmi",
                "--object-name", "kafka.server:type=Request,client-id=requests", "--attributes", "request-time",
                "--reporting-interval", "1000", "--wait",
            )  # fmt: skip
            assert process.stdout is not None
            for line in process.stdout:
                if found := re.match(r"\d+,([\d.E-]+)$", line.strip()):
                    self.used.append((time.monotonic(), float(found[1])))

    def percentage(self, from_s: float, to_s: float) -> float:
        """Returns the average percentage of a thread's time that the requests for metadata have used."""
        return statistics.fmean(value for moment, value in self.used if from_s <= moment <= to_s)

    def _watch_cpu(self) -> None:
        while not self._stopping.wait(1):
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{self.server.pid}/stat").read_text().rpartition(")")[2].split()
                self.cpu.append((time.monotonic(), (int(fields[11]) + int(fields[12])) / CPU_TICKS))


@pytest.fixture
def loads(kafka_43: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Load]]:
    ours = WatchedBroker(tmp_path_factory.mktemp("ours"))
    jmx_port = free_port()
    options = {
        "com.sun.management.jmxremote.port": jmx_port, "com.sun.management.jmxremote.rmi.port": jmx_port,
        "com.sun.management.jmxremote.host": "127.0.0.1", "java.rmi.server.hostname": "127.0.0.1",
        "com.sun.management.jmxremote.authenticate": "false", "com.sun.management.jmxremote.ssl": "false",
    }  # fmt: skip
    heap = ("-Xmx512M", *(f"-D{key}={value}" for key, value in options.items()))
    kafka = ApacheKafka(kafka_43, tmp_path_factory.mktemp("kafka"), heap=heap)
    with kafka, ours:
        yield [Load(kafka, kafka_43, jmx_port), Load(ours, kafka_43)]


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_rates_and_throttle_times_are_those_of_apache_kafka(loads: list[Load]) -> None:
    for load in loads:
        load.prepare()
    for load in loads:
        load.start()
    names = ("java-producer", "java-consumer", "rdkafka-producer", "rdkafka-consumer", "requests")
    while not all(name in load.meters and load.meters[name].points for load in loads for name in names):
        time.sleep(0.1)
    began_s = time.monotonic()
    time.sleep(PART_S)
    changed_s = time.monotonic()
    for load in loads:
        load.quota(2 * RATE)
    time.sleep(PART_S + 5)
    ended_s = changed_s + PART_S
    for _ in range(1200):  # the Java tools print their metrics at their end
        if all(load.meters[name].responses for load in loads for name in names):
            break
        time.sleep(0.1)
    for load in loads:
        load.stop()
    kafka, ours = loads
    spans = [(began_s + SETTLING_S, changed_s), (changed_s + SETTLING_S, ended_s)]
    faults = []
    for name in names:
        theirs, own = kafka.meters[name], ours.meters[name]
        rates = [(theirs.rate(*span), own.rate(*span)) for span in spans]
        print(
            f"{name:17}", *(f"kafka {a:10.0f} kafkapy {b:10.0f} ({b / a:.3f})  " for a, b in rates),
            f"throttle avg ms {theirs.average_ms:.1f} / {own.average_ms:.1f}",
        )  # fmt: skip
        if name == "requests":
            used = [(kafka.percentage(*span), ours.percentage(*span)) for span in spans]
            costs = [[each[0] / rate[0] * 1e4, each[1] / rate[1] * 1e4] for each, rate in zip(used, rates, strict=True)]
            print("    percentage of a thread's time", used, "us per request", costs)
            faults += [f"{name}: {a:.2f} and {b:.2f} % of a thread's time" for a, b in used if not 0.9 <= b / a <= 1.1]
            continue
        faults += [f"{name}: {a:.0f} and {b:.0f} bytes/s" for a, b in rates if not 0.9 <= b / a <= 1.1]
        if not 0.75 * theirs.average_ms <= own.average_ms <= 1.25 * theirs.average_ms:
            faults.append(f"{name}: throttle times {theirs.average_ms:.0f} and {own.average_ms:.0f} ms")
    for load in loads:
        first, last = load.cpu[0], load.cpu[-1]
        print(type(load.server).__name__, f"CPU {100 * (last[1] - first[1]) / (last[0] - first[0]):.1f} % of a core")
    assert not faults, "\n".join(faults)


class TimeSpan:
    """The requests for metadata of both loads in a span of time: their number, throttle times and use of a thread."""

    def __init__(self, loads: list[Load], span_s: float) -> None:
        meters = [load.meters["requests"] for load in loads]
        began_s, before = time.monotonic(), [(meter.responses, meter.throttle_ms) for meter in meters]
        time.sleep(span_s)
        ended_s = time.monotonic()
        self.percentages = [load.percentage(began_s, ended_s) for load in loads]
        self.counts = [meter.responses - was[0] for meter, was in zip(meters, before, strict=True)]
        waits_ms = [meter.throttle_ms - was[1] for meter, was in zip(meters, before, strict=True)]
        self.average_ms = [wait_ms / count for wait_ms, count in zip(waits_ms, self.counts, strict=True)]
        self.cost_us = [
            use / 100 * (ended_s - began_s) * 1e6 / count
            for use, count in zip(self.percentages, self.counts, strict=True)
        ]


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_request_percentage_allows_the_same_time_as_apache_kafka(loads: list[Load]) -> None:
    """The client sends its next request as soon as it may: a throttle time is proportional to the request's cost."""
    kafka, ours = loads
    for load in loads:
        load.create_named_topics()
        load.start_requests()
    while not all(load.used for load in loads):
        time.sleep(0.1)
    kafka.named_topics, ours.named_topics = KAFKA_TOPICS, KAFKA_TOPICS // 4
    for _ in range(2):
        time.sleep(PERIOD_S)
        found = TimeSpan(loads, SETTLING_S)
        print(f"{[load.named_topics for load in loads]} topics cost", [f"{cost:.0f} us" for cost in found.cost_us])
        ours.named_topics = round(ours.named_topics * found.cost_us[0] / found.cost_us[1])
    assert 0 < ours.named_topics <= MOST_TOPICS
    faults = []
    for percentage in (REQUEST_PERCENTAGE, 2 * REQUEST_PERCENTAGE):
        for load in loads:
            load.time_quota(percentage)
        time.sleep(SETTLING_S)
        found = TimeSpan(loads, PERIODS * PERIOD_S)
        for name, count, use, cost_us, average_ms in zip(
            ("kafka", "kafkapy"), found.counts, found.percentages, found.cost_us, found.average_ms, strict=True
        ):
            print(
                f"{percentage} %: {name} {count} requests of {cost_us:.0f} us each, {use:.2f} % of a thread's time,",
                f"throttled {average_ms:.2f} ms on average",
            )
        used = found.percentages
        per_cost = [wait_ms * 1000 / us for wait_ms, us in zip(found.average_ms, found.cost_us, strict=True)]
        if not 0.9 * used[0] <= used[1] <= 1.1 * used[0]:
            faults.append(f"{used[0]:.2f} and {used[1]:.2f} % of a thread's time")
        if not 0.75 * per_cost[0] <= per_cost[1] <= 1.25 * per_cost[0]:
            faults.append(f"throttled {per_cost[0]:.2f} and {per_cost[1]:.2f} times a request's cost")
    for load in loads:
        load.stop()
    assert not faults, "\n".join(faults)
