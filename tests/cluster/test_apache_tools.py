"""Apache Kafka's tools print the same for a cluster of ours as for a cluster of Apache Kafka, in the same course."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cluster.cluster import UNHURRIED, Cluster, Spec
from tests.cluster.nodes import BROKER, CONTROLLER, Flavour
from tests.peers import kafka_directory
from tests.tools.tool_host import ToolHost

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]
SPECS = {flavour: [Spec(flavour, CONTROLLER), Spec(flavour, BROKER), Spec(flavour, BROKER)] for flavour in Flavour}
ASSIGNMENT = "2:3,3:2,2:3"
# What differs between two runs of the same cluster.
VARYING = (
    (re.compile(r"\b[\w-]{22}\b"), "ID"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r'("port":|:)\d{4,5}\b'), "PORT"),
    (re.compile(r"((?:Epoch|HighWatermark|FollowerLag|FollowerLagTimeMs):\s+)-?\d+"), r"\1N"),
    (re.compile(r"\bEpoch: \d+"), "Epoch: N"),
    # ApiVersions of ours lacks the level of this feature, which is not in the metadata log.
    (re.compile(r"(Feature: kraft\.version .*FinalizedVersionLevel: )\d"), r"\1N"),
)
# Columns of `describe --replication` that are offsets, lags and times.
REPLICATION_NUMBERS = slice(2, 6)
# Records that the course decides; how often a broker is fenced, and an ISR changes, is a matter of time.
DECIDED = ("FEATURE_LEVEL_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD", "REMOVE_TOPIC_RECORD")


class Line(NamedTuple):
    """A command and its result, without ids, times and offsets."""

    words: str
    code: int
    out: list[str]
    error: str


class ToolCourse:
    """Runs tools on one cluster, and collects what they print in `lines`."""

    def __init__(self, cluster: Cluster, host: ToolHost, directory: Path) -> None:
        self.cluster = cluster
        self.lines: list[Line] = []
        self._host = host
        self._directory = directory

    def run(self, tool: str, words: str, normalise: Callable[[str], str] = str, **files: Any) -> None:
        """Runs a tool. `@` is replaced by the brokers' addresses, `%` by the controllers', `{name}` by a file whose
        content is given as `name`."""
        arguments = []
        for word in words.split():
            if word in "@%":
                is_broker = word == "@"
                arguments.append("--bootstrap-server" if is_broker else "--bootstrap-controller")
                word = self.cluster.bootstrap if is_broker else self.cluster.bootstrap_controllers
            elif word.startswith("{"):
                path = self._directory / f"{word[1:-1]}.json"
                path.write_text(json.dumps(files[word[1:-1]]))
                word = str(path)
            arguments.append(word)
        done = self._host.run(tool, *arguments)
        first = done.err.strip().split("\n")[0]
        text = done.out.replace(str(self._directory), "DIRECTORY")
        out = sorted(_anonymous(normalise(line)) for line in text.splitlines() if not line.startswith("\tat "))
        self.lines.append(Line(_anonymous(f"{tool} {words}"), done.code, out, _anonymous(first)))


def _anonymous(text: str) -> str:
    text = re.sub(r"(?<=Isr: )[\d,]+", lambda found: ",".join(sorted(found[0].split(","))), text)
    for pattern, instead in VARYING:
        text = pattern.sub(instead, text)
    return text.rstrip()


def without_replication_numbers(line: str) -> str:
    columns = line.split()
    if columns and columns[0].isdigit():
        columns[REPLICATION_NUMBERS] = ["N"] * 4
    return " ".join(columns)


def with_sorted_list(line: str) -> str:
    """Sorts the voters or observers of a line: Java prints them in the order of a hash table."""
    name, _, text = line.partition("[")
    return name + json.dumps(sorted(json.loads(f"[{text}"), key=lambda each: each["id"])) if text else line


def moves(*targets: tuple[str, int, Sequence[int]]) -> dict[str, Any]:
    """Returns the file of kafka-reassign-partitions."""
    partitions = [
        {"topic": topic, "partition": index, "replicas": list(replicas)} for topic, index, replicas in targets
    ]
    return {"version": 1, "partitions": partitions}


def elections(*partitions: tuple[str, int]) -> dict[str, Any]:
    """Returns the file of kafka-leader-election."""
    return {"partitions": [{"topic": topic, "partition": index} for topic, index in partitions]}


def describe_quorum(course: ToolCourse) -> None:
    for place in "@%":
        course.run("metadata-quorum", f"{place} describe --status", with_sorted_list)
        course.run("metadata-quorum", f"{place} describe --replication", without_replication_numbers)
        course.run("features", f"{place} describe")


def change_topics(course: ToolCourse) -> None:
    course.run("topics", f"@ --create --topic t --replica-assignment {ASSIGNMENT} --config min.insync.replicas=1")
    course.run("topics", "@ --create --topic t --partitions 1")
    course.run("topics", "@ --create --topic wide --partitions 1 --replication-factor 3")
    for partition in range(3):
        course.cluster.wait_for_isr("t", partition)
    course.run("topics", "@ --describe --topic t")
    course.run("topics", "@ --alter --topic t --partitions 4 --replica-assignment 2:3,3:2,2:3,2:3")
    course.run("topics", "@ --list")


def reassign(course: ToolCourse) -> None:
    target = moves(("t", 2, [3]), ("t", 3, [3, 2]))
    course.run("reassign-partitions", "@ --list")
    course.run("reassign-partitions", "@ --execute --reassignment-json-file {target}", target=target)
    course.cluster.wait_for_isr("t", 2, [3])
    course.cluster.wait_for_isr("t", 3, [2, 3])
    course.run("reassign-partitions", "@ --verify --reassignment-json-file {target}", target=target)
    course.run("reassign-partitions", "@ --cancel --reassignment-json-file {target}", target=target)
    course.run("reassign-partitions", "@ --execute --reassignment-json-file {bad}", bad=moves(("t", 0, [2, 9])))
    course.run("reassign-partitions", "@ --execute --reassignment-json-file {no}", no=moves(("nope", 0, [2])))
    course.run("topics", "@ --describe --topic t")


def elect(course: ToolCourse) -> None:
    """Runs the tools while broker 3 is stopped, and elects leaders after it has returned and broker 2 was killed."""
    cluster = course.cluster
    cluster[3].stop()
    cluster.wait_for_leader("t", 1, other_than=3)
    course.run("topics", "@ --describe --topic t")
    course.run("topics", "@ --describe --under-replicated-partitions")
    course.run("topics", "@ --describe --unavailable-partitions")
    course.run("leader-election", "@ --election-type preferred --topic t --partition 1")
    course.run("topics", "@ --create --topic single --replica-assignment 2")
    cluster[2].kill()
    cluster.start([3])
    cluster.wait_for("fenced broker 2", lambda: cluster.partition("t").leader != 2)
    course.run("leader-election", "@ --election-type preferred --topic t --partition 0")
    course.run("leader-election", "@ --election-type unclean --topic t --partition 0")
    course.run("leader-election", "@ --election-type unclean --topic single --partition 0")
    course.run("topics", "@ --describe --topic t")
    cluster.start([2])
    cluster.wait_for_all_in_sync()
    course.run("leader-election", "@ --election-type preferred --path-to-json-file {some}", some=elections(("t", 0)))
    course.run("leader-election", "@ --election-type preferred --path-to-json-file {no}", no=elections(("nope", 0)))
    course.run("leader-election", "@ --election-type preferred --all-topic-partitions")
    course.run("leader-election", "@ --election-type preferred --all-topic-partitions")
    course.run("topics", "@ --describe --topic t")
    course.run("topics", "@ --delete --topic single")


def change_features(course: ToolCourse) -> None:
    course.run("features", "@ upgrade --feature metadata.version=99")
    course.run("features", "@ downgrade --feature share.version=0")
    course.run("features", "% describe")


def change_voters(course: ToolCourse) -> None:
    """Runs the tool with requests to remove a voter that the quorum refuses."""
    words = "remove-controller --controller-id"
    course.run("metadata-quorum", f"@ {words} 9 --controller-directory-id AAAAAAAAAAAAAAAAAAAAAQ")
    course.run("metadata-quorum", f"% {words} 1 --controller-directory-id AAAAAAAAAAAAAAAAAAAAAQ")
    directory_id = course.cluster[1].directory_id
    course.run("metadata-quorum", f"@ {words} 1 --controller-directory-id {directory_id}")


def dump(host: ToolHost, path: Path) -> list[str]:
    """Returns the records of a metadata log as kafka-dump-log prints them, with their offsets."""
    done = host.run("dump-log", "--cluster-metadata-decoder", "--files", str(path))
    assert done.code == 0, done
    assert "isvalid: false" not in done.out
    found = re.findall(r"^\| offset: (\d+) .*?payload: ?(.*)$", done.out, re.MULTILINE)
    assert found, done.out[:2000]
    return [f"{offset} {payload}" for offset, payload in found]


def decided(records: Sequence[str]) -> list[str]:
    """Returns the records whose type is in DECIDED, sorted and without ids."""
    payloads = [record.partition(" ")[2] for record in records]
    return sorted(_anonymous(payload) for payload in payloads if json.loads(payload)["type"] in DECIDED)


def run_course(flavour: Flavour, host: ToolHost, directory: Path) -> tuple[list[Line], list[str]]:
    """Runs Apache Kafka's tools on a cluster; returns their output, and the records that they have caused.

    The records are those in the metadata log, which is the same on every node.
    """
    with Cluster(directory, SPECS[flavour], properties=UNHURRIED) as cluster:
        course = ToolCourse(cluster, host, directory)
        for part in (describe_quorum, change_topics, reassign, elect, change_features, change_voters):
            part(course)
        for node_id in reversed(cluster.nodes):
            cluster[node_id].stop()
        logs = [
            dump(host, node.log_dir / "__cluster_metadata-0" / "00000000000000000000.log")
            for node in cluster.nodes.values()
        ]
        for log in logs[1:]:
            assert log == logs[0][: len(log)]
        return course.lines, decided(logs[0])


def test_the_tools_print_the_same(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    with ToolHost(kafka_directory("4.3.0"), tmp_path / "host") as host:
        ours, our_records = run_course(Flavour.KAFKAPY, host, tmp_path / "ours")
        theirs, their_records = run_course(Flavour.KAFKA_43, host, tmp_path / "theirs")
    for our, their in zip(ours, theirs, strict=True):
        assert our == their
    assert our_records == their_records
