"""Specifications of Trogdor's workloads: names with ranges, generators, and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkapy.errors import ApiError, Error
from kafkapy.tools.option import ToolError
from kafkapy.tools.trogdor import command
from kafkapy.tools.trogdor.generators import generator_of
from kafkapy.tools.trogdor.round_trip import RoundTrip
from kafkapy.tools.trogdor.specification import Specification, expanded, partitions_of, read_specification, topics_of
from kafkapy.types import TopicPartition

SPEC = {
    "class": "org.apache.kafka.trogdor.workload.ProduceBenchSpec",
    "producerNode": "node0",
    "bootstrapServers": "localhost:1",
    "targetMessagesPerSec": 10,
    "maxMessages": 5,
    "activeTopics": {"foo[1-2]": {"numPartitions": 3, "replicationFactor": 1}},
}


def test_ranges_stand_for_several_names():
    assert list(expanded("foo[1-3]")) == ["foo1", "foo2", "foo3"]
    assert list(expanded("a[0-1]:[5-6]")) == ["a0:5", "a0:6", "a1:5", "a1:6"]
    assert topics_of(SPEC["activeTopics"]) == {"foo1": (3, 1), "foo2": (3, 1)}
    assert partitions_of(["a", "b:[0-1]"]) == (["a"], [TopicPartition("b", 0), TopicPartition("b", 1)])


def test_generators():
    assert generator_of({"type": "sequential", "size": 4, "startOffset": 256})(1) == b"\x01\x01\x00\x00"
    assert generator_of({"type": "constant", "size": 2})(7) == b"\0\0"
    assert generator_of({"type": "constant", "value": "AAEC"})(7) == b"\0\1\2"
    assert generator_of({"type": "null"})(0) is None
    uniform = generator_of({"type": "uniformRandom", "size": 10, "padding": 4, "seed": 1})
    assert (len(uniform(3) or b""), uniform(3), (uniform(3) or b"")[-4:]) == (10, uniform(3), b"\0" * 4)
    with pytest.raises(ToolError, match="is not a supported type of generator"):
        generator_of({"type": "other"})


def test_a_file_may_have_comments(tmp_path: Path):
    path = tmp_path / "spec.json"
    path.write_text("// a licence\n" + json.dumps(SPEC))
    spec = read_specification(str(path))
    assert (spec.workload, spec.number("maxMessages")) == ("ProduceBench", 5)
    assert spec.client_properties("producerConf") == {"bootstrap.servers": "localhost:1"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("agent --exec /nowhere/spec.json", "/nowhere/spec.json cannot be read: No such file or directory"),
        ("agent --exec {", "the specification is no JSON: "),
        (
            'agent --exec {"class":"x.SleepSpec"}',
            "x.SleepSpec is not a workload that can be run here: ProduceBenchSpec, ",
        ),
        ('agent --exec {"class":"ProduceBenchSpec"}', "the specification lacks the field bootstrapServers: a text"),
    ],
)
def test_bad_input_is_one_line(words: str, message: str, capsys: pytest.CaptureFixture[str]):
    assert command.main(words.split()) == 1
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)
    assert printed.err.startswith(message)


def test_a_workload_of_another_node_is_not_run(capsys: pytest.CaptureFixture[str]):
    assert command.main(["agent", "-n", "node1", "--exec", json.dumps(SPEC)]) == 1
    assert capsys.readouterr().out == (
        "This task is not configured to run on this node.  It runs on node(s): node0, whereas this node is node1\n"
    )


def test_a_missing_broker_is_named(capsys: pytest.CaptureFixture[str]):
    assert command.main(["agent", "--exec", json.dumps(SPEC)]) == 1
    assert "localhost:1: Connection refused" in capsys.readouterr().err


class FlakyProducer:
    """A producer whose deliveries fail with the given errors; None, and each delivery after the last one, succeeds."""

    def __init__(self, *outcomes: ApiError | None) -> None:
        self._outcomes = list(outcomes)
        self.keys: list[int] = []

    def send(self, topic: str, value: bytes, key: bytes, *, partition: int, on_delivery: Any) -> None:
        self.keys.append(int.from_bytes(key, "little"))
        on_delivery(None, self._outcomes.pop(0) if self._outcomes else None)

    def flush(self) -> None:
        """Does nothing, because every record is delivered at once."""


def test_a_round_trip_sends_records_again_after_a_retriable_error():
    round_trip = RoundTrip(Specification({"maxMessages": 3, "targetMessagesPerSec": 0}, "spec"))
    error = ApiError(Error.NOT_LEADER_OR_FOLLOWER)
    producer = FlakyProducer(None, error, None, error)
    round_trip.send_all(producer, [TopicPartition("t", 0)])
    assert producer.keys == [0, 1, 2, 1, 1]
    assert round_trip.status()["totalUniqueSent"] == 3
    assert not round_trip.is_over


def test_another_error_of_a_delivery_ends_a_round_trip():
    round_trip = RoundTrip(Specification({"maxMessages": 3, "targetMessagesPerSec": 0}, "spec"))
    producer = FlakyProducer(None, ApiError(Error.TOPIC_AUTHORIZATION_FAILED))
    round_trip.send_all(producer, [TopicPartition("t", 0)])
    assert (producer.keys, round_trip.is_over) == ([0, 1], True)
