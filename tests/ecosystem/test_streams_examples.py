"""The examples of a published chapter on Kafka Streams, in Java on kafkapy, with the data of that chapter."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from kafkapy.client import Producer
from tests.broker_process import BrokerProcess
from tests.ecosystem.kafka_streams import StreamsInstance, compiled_programs
from tests.ecosystem.programs import create_topics, wait_until
from tests.server_process import ServerProcess

TOPICS = ("streams-foo", "words", "numbers", "ktable-aggregate", "access-log", "left-source", "right-source")
# An hour ago, at the beginning of a minute. Brokers delete records that are older than a topic's retention.
START_MS = (time.time_ns() // 1_000_000 - 3_600_000) // 60_000 * 60_000
MINUTE_MS = 60_000
CITIES = ("shanghai", "beijing", "hangzhou")
# The documents' format has a blank before the comma, too.
STREAM_LINES = [f"[KSTREAM-SOURCE-0000000000]: jetty, {city}" for city in CITIES]


class Input:
    """Sends records to the topics of one broker."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    def send(self, topic: str, records: Iterable[tuple[str | None, str | bytes | None]], minute: int = 0) -> None:
        """Sends records (key, value), one after another, with times in the given minute."""
        for number, (key, value) in enumerate(records):
            self._producer.send(topic, value, key, timestamp=START_MS + minute * MINUTE_MS + 100 * number)
        self._producer.flush()


class Examples:
    """Runs of the program, each with an empty folder for its state."""

    def __init__(self, directory: Path, server: ServerProcess) -> None:
        self._directory = directory
        self._class_path = compiled_programs(directory / "classes", "DocumentedStreams")
        self._settings = {
            "application.id": "documented",
            "bootstrap.servers": server.bootstrap,
            "auto.offset.reset": "earliest",
            "commit.interval.ms": "600000",  # so that the cache of the table is written at the end
        }

    def run(self, number: int, expected: Iterable[str], at_the_end: Iterable[str] = ()) -> list[str]:
        """Runs the program until it has printed `expected`, and `at_the_end` while it stops; returns all lines."""
        settings = {**self._settings, "state.dir": str(self._directory / f"state-{number}")}
        log = self._directory / f"streams-{number}.log"
        instance = StreamsInstance(self._class_path, settings, log, "DocumentedStreams")
        try:
            wanted = {*expected}
            wait_until(
                lambda: wanted <= {*instance.lines}, lambda: (wanted - {*instance.lines}, log.read_text()[-4000:])
            )
        finally:
            instance.stop()
        assert {*at_the_end} <= {*instance.lines}
        return instance.lines


def of(name: str, lines: list[str]) -> list[str]:
    """Returns the results of one example."""
    return [line.removeprefix(f"{name} ") for line in lines if line.startswith(f"{name} ")]


@pytest.mark.peer
@pytest.mark.timeout(900)
def test_the_examples_have_the_documents_results(tmp_path: Path) -> None:
    run_examples(BrokerProcess(tmp_path / "broker"), tmp_path)


def run_examples(server: ServerProcess, directory: Path) -> None:
    """Runs all examples on a server, and checks their results before and after a restart of the application."""
    with server, Producer(bootstrap_servers=server.bootstrap) as producer:
        create_topics(server.bootstrap, dict.fromkeys(TOPICS, 1))
        examples = Examples(directory, server)
        source = Input(producer)
        source.send("streams-foo", [("jetty", city) for city in CITIES])
        source.send("words", [(None, line) for line in ("Kafka,Streams", "", "kafka", " ", "streams,kafka")])
        source.send("numbers", [("a", "3"), ("a", "7"), ("a", "5"), ("b", "-2")])
        source.send("numbers", [("a", "4"), ("b", "1")], minute=1)
        source.send("ktable-aggregate", [("a", number.to_bytes(4, "big")) for number in (5, 9, 2)])
        source.send("access-log", [(None, "10.0.0.1")] * 3 + [(None, "10.0.0.2")])
        source.send("access-log", [(None, "10.0.0.1")], minute=1)
        source.send("left-source", [("a", "l1"), ("b", "alone")])
        source.send("right-source", [("a", "r1")], minute=1)
        source.send("left-source", [("a", "l2")], minute=2)
        source.send("left-source", [("a", "late")], minute=7)  # more than five minutes after its partner
        lines = examples.run(
            0,
            [
                *STREAM_LINES,
                "count kafka 3",
                "count streams 2",
                "max a 7",
                "max b 1",
                "table-max a 9",
                "blacklist ip:10.0.0.1被加入到黑名单,请求次数为:3",
                "streams a left:l1, right:r1",
                "streams a left:l2, right:r1",
                "tables a left:late, right:r1",
                "stream-table b left:alone, right:null",
                "stream-table a left:late, right:r1",
            ],
            ["table jetty hangzhou", f"max2 a@{START_MS} 7", f"max2 b@{START_MS + MINUTE_MS} 1"],
        )
        assert [line for line in lines if line.startswith("[")] == STREAM_LINES
        assert of("table", lines) == ["jetty hangzhou"]
        assert [line for line in of("max", lines) if line.startswith("a ")] == ["a 3", "a 7", "a 7", "a 7"]
        assert {*of("max2", lines)} == {
            *(f"a@{START_MS} 7", f"b@{START_MS} -2", f"a@{START_MS + MINUTE_MS} 4", f"b@{START_MS + MINUTE_MS} 1")
        }
        assert of("table-max", lines)[-1] == "a 9" and {*of("table-max", lines)} == {"a 5", "a 9"}
        assert of("blacklist", lines) == [f"ip:10.0.0.1被加入到黑名单,请求次数为:{count}" for count in (2, 3)]
        assert of("streams", lines) == ["a left:l1, right:r1", "a left:l2, right:r1"]

        # The counts go on after a restart, from the changelog.
        source.send("words", [(None, "kafka,new")])
        lines = examples.run(1, ["count kafka 4", "count new 1"])
        assert sorted(of("count", lines)) == ["kafka 4", "new 1"]
        assert not of("table", lines) and not of("blacklist", lines)
