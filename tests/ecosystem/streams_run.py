"""A Kafka Streams application with `group.protocol=streams` on one server, and its results."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from kafkapy.client import Consumer, Producer, TopicPartition
from kafkapy.client.admin import Admin, NewTopic
from tests.ecosystem.kafka_streams import StreamsInstance
from tests.ports import free_ports
from tests.server_process import ServerProcess

WAIT_S = 120
WORDS = [f"word{number}" for number in range(20)]
OUTPUTS = ("word-counts", "window-counts", "joined")
# The time of the first records, in ms. Brokers delete records of 1970, which are older than a topic's retention.
BEGIN_MS = time.time_ns() // 1_000_000
WINDOW_MS = 1000 * 24 * 3600 * 1000
PROPERTIES = {"group.streams.initial.rebalance.delay.ms": "0"}


def bootstrap(server: ServerProcess) -> str:
    return f"localhost:{server.port}"


def create_topics(server: ServerProcess, *names: str, partitions: int = 3) -> None:
    with Admin({"bootstrap.servers": bootstrap(server)}) as admin:
        admin.create_topics([NewTopic(name, partitions, 1) for name in names]).check()


def newest_values(
    server: ServerProcess, topic: str, is_done: Callable[[Mapping[bytes, bytes]], bool]
) -> dict[bytes, bytes]:
    """Reads the topic, as far as transactions are committed, until the newest values of its keys are as wanted."""
    values: dict[bytes, bytes] = {}
    settings = {"auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    deadline = time.monotonic() + WAIT_S
    with Consumer({"bootstrap.servers": bootstrap(server), **settings}) as consumer:
        consumer.assign([TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)])
        while not is_done(values):
            assert time.monotonic() < deadline, values
            values.update((record.key, record.value) for record in consumer.poll(0.5))
    return values


class Application:
    """Instances of Programs.java on one server, by number; each has a state folder and a port of its own."""

    def __init__(self, server: ServerProcess, class_path: str, directory: Path) -> None:
        self._server = server
        self._class_path = class_path
        self._directory = directory
        self._ports = free_ports(3)
        self.instances: dict[int, StreamsInstance] = {}

    def start(self, number: int) -> None:
        settings = {
            "application.id": "programs",
            "bootstrap.servers": bootstrap(self._server),
            "group.protocol": "streams",
            "processing.guarantee": "exactly_once_v2",
            "application.server": f"localhost:{self._ports[number]}",
            "state.dir": str(self._directory / f"state-{number}"),
            "auto.offset.reset": "earliest",
            "commit.interval.ms": "200",
        }
        log = self._directory / f"instance-{number}.log"
        self.instances[number] = StreamsInstance(self._class_path, settings, log)

    def kill(self, number: int) -> None:
        self.instances.pop(number).kill()

    def counts_of(self, word: str) -> int:
        """Returns the count that the instance with the word's state answers."""
        deadline = time.monotonic() + WAIT_S
        while True:
            for number, instance in self.instances.items():
                seen = len(instance.lines)
                instance.query(word)
                while not (answers := [line for line in instance.lines[seen:] if line.startswith("answer")]):
                    assert time.monotonic() < deadline, instance.lines[-20:]
                    time.sleep(0.05)
                host, _, count = answers[0].removeprefix(f"answer {word} ").partition(" ")
                if host == f"localhost:{self._ports[number]}" and count.isdigit():
                    return int(count)
            assert time.monotonic() < deadline, {each: found.lines[-3:] for each, found in self.instances.items()}
            time.sleep(0.2)

    def close(self) -> None:
        for number in list(self.instances):
            self.kill(number)


def results_on(server: ServerProcess, class_path: str, directory: Path) -> dict[str, dict[bytes, bytes]]:
    """Runs the programs in three instances, which are killed and started again; returns the results by topic."""
    create_topics(server, "lines", "names", *OUTPUTS)
    application = Application(server, class_path, directory)
    counted = 0
    with Producer({"bootstrap.servers": bootstrap(server)}) as producer:

        def send_lines() -> None:
            nonlocal counted
            counted += 1
            for word in WORDS:
                line = f"{word} and {word}".encode()
                producer.send("lines", key=word.encode(), value=line, timestamp=BEGIN_MS + counted)
            producer.flush()

        def await_counts(topic: str = "word-counts", suffix: str = "") -> dict[bytes, bytes]:
            wanted = {f"{word}{suffix}".encode(): str(2 * counted).encode() for word in WORDS}
            wanted[f"and{suffix}".encode()] = str(counted * len(WORDS)).encode()
            return newest_values(server, topic, lambda values: values == wanted)

        for word in WORDS:
            producer.send("names", key=word.encode(), value=word.upper().encode(), timestamp=BEGIN_MS)
        producer.flush()
        try:
            for number in range(3):
                application.start(number)
                send_lines()
            await_counts()
            for number in (0, 2):
                application.kill(number)
                send_lines()
                application.start(number)
                send_lines()
            results = {
                "word-counts": await_counts(),
                "window-counts": await_counts("window-counts", f"@{BEGIN_MS // WINDOW_MS * WINDOW_MS}"),
                "joined": newest_values(server, "joined", lambda values: len(values) == len(WORDS)),
            }
            assert application.counts_of(WORDS[0]) == 2 * counted
            return results
        finally:
            application.close()
