"""The tool kafka-reassign-partitions of Apache Kafka and ours print the same for one cluster of three nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy.client.admin import NewTopic
from tests.cluster.cluster import UNHURRIED, Cluster, three
from tests.cluster.nodes import Flavour
from tests.cluster.reassignments import create_filled_topic
from tests.tools.comparison import OURS, THEIRS
from tests.tools.tool_host import Done, ToolHost, run_ours

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
TOOL = "reassign-partitions"
# A Java stack trace, from the line with the exception's class to the end.
TRACE = re.compile(r"\n(?:[a-z]+\.)+\w+(?:Exception|Error)\b.*", re.DOTALL)
SIDES = (THEIRS, OURS)
# A follower whose rate is exceeded by one fetch waits for a long time.
PROPERTIES = {**UNHURRIED, "replica.fetch.max.bytes": "1000000"}
TOPICS = {"moved": {0: [1, 2], 1: [2, 3], 2: [3, 1]}, "one": {0: [1]}, "pair": {0: [1, 2], 1: [2, 3]}}


class Course:
    """Runs the same command with Apache Kafka's tool and with ours on one cluster, and compares their output.

    Each tool has topics and files of its own. In a command, `{me}` becomes the tool's name, which is part of their
    names.
    """

    def __init__(self, cluster: Cluster, host: ToolHost, directory: Path) -> None:
        self.cluster = cluster
        self._host = host
        self._directory = directory

    def run(self, words: str, files: dict[str, Any] | None = None) -> Done:
        """Runs a command with both tools and returns the outcome of ours. Raises AssertionError if theirs has another
        outcome.

        In `words`, `@` is the brokers' address, `%` the controllers', and `{name}` the path of a file that has the
        content `files[name]`.
        """
        theirs, ours = (self._one(me, words, files or {}) for me in SIDES)
        assert ours == theirs, f"{words}\n--- theirs\n{theirs}\n--- ours\n{ours}"
        return ours

    def run_unchanged(self, words: str) -> Done:
        """Returns what both print about the topics of both."""
        arguments = self._arguments(THEIRS, words, {})
        theirs, ours = self._host.run(TOOL, *arguments), run_ours(TOOL, *arguments)
        assert ours == theirs
        return ours

    def _one(self, me: str, words: str, files: dict[str, Any]) -> Done:
        arguments = self._arguments(me, words, files)
        done = self._host.run(TOOL, *arguments) if me == THEIRS else run_ours(TOOL, *arguments)
        out = TRACE.sub("\n", done.out).replace(me, "{me}").replace(str(self._directory), "DIRECTORY")
        first = done.err.split("\n")[0].replace("[[", "[").replace("]]", "]")
        assert "Traceback" not in done.err, done
        return Done(done.code, out, first.replace(me, "{me}") if not done.out else "")

    def _arguments(self, me: str, words: str, files: dict[str, Any]) -> list[str]:
        arguments: list[str] = []
        for word in words.split():
            if word.startswith("{") and word != "{me}":
                content = files[word[1:-1]]
                text = content if isinstance(content, str) else json.dumps(content)
                path = self._directory / f"{me}.json"
                path.write_text(text.replace("{me}", me))
                arguments.append(str(path))
            elif word == "@":
                arguments += ["--bootstrap-server", self.cluster.bootstrap]
            elif word == "%":
                arguments += ["--bootstrap-controller", self.cluster.bootstrap_controllers]
            else:
                arguments.append(word)
        return arguments


def plan(*targets: tuple[str, int, list[int]], **more: Any) -> dict[str, Any]:
    """Returns the content of a reassignment file that moves partitions to new replicas.

    Each target is (topic, partition, ids of the new replicas); `more` has further members of the JSON object.
    """
    partitions = [{"topic": topic, "partition": index, "replicas": replicas} for topic, index, replicas in targets]
    return {"version": 1, "partitions": partitions, **more}


@pytest.fixture(scope="module")
def course(host: ToolHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), three(Flavour.KAFKAPY), properties=PROPERTIES)
    with cluster:
        with cluster.admin() as admin:
            admin.create_topics(
                NewTopic(f"{name}-{me}", assignments=assignments)
                for me in SIDES
                for name, assignments in TOPICS.items()
            ).check()
        yield Course(cluster, host, tmp_path_factory.mktemp("files"))


def wait_until_moved(cluster: Cluster) -> None:
    def read() -> bool:
        with cluster.admin() as admin:
            return not admin.list_partition_reassignments()

    cluster.wait_for("end of the reassignment", read)


def test_replicas_are_moved_and_verified(course: Course) -> None:
    target = plan(("moved-{me}", 0, [3, 1]), ("moved-{me}", 1, [3]), ("moved-{me}", 2, [1, 2, 3]))
    course.run("@ --list")
    assert course.run("@ --verify --reassignment-json-file {p}", {"p": target}).code == 0
    assert "Successfully started" in course.run("@ --execute --reassignment-json-file {p}", {"p": target}).out
    wait_until_moved(course.cluster)
    assert course.run("@ --verify --reassignment-json-file {p}", {"p": target}).out.count("is completed.") == 3
    course.run("@ --verify --preserve-throttles --reassignment-json-file {p}", {"p": target})
    course.run("@ --cancel --reassignment-json-file {p}", {"p": target})
    course.run("@ --cancel --preserve-throttles --reassignment-json-file {p}", {"p": target})


def test_throttles_are_set_and_removed(course: Course) -> None:
    back = plan(("moved-{me}", 0, [1, 2]), ("moved-{me}", 1, [2, 3]))
    words = "@ --execute --throttle 10000000 --replica-alter-log-dirs-throttle 5000 --reassignment-json-file {p}"
    course.run(words, {"p": back})
    wait_until_moved(course.cluster)
    course.run("@ --verify --preserve-throttles --reassignment-json-file {p}", {"p": back})
    course.run("@ --verify --reassignment-json-file {p}", {"p": back})


def test_a_proposal_has_the_same_form(course: Course) -> None:
    """Proposals are random: the form of both is compared, and that both use only the given brokers."""
    topics = {"topics": [{"topic": "pair-{me}"}], "version": 1}
    heads = []
    for me in SIDES:
        done = course._one(me, "@ --generate --broker-list 1,3 --topics-to-move-json-file {t}", {"t": topics})
        lines = done.out.splitlines()
        proposed = json.loads(lines[-1])
        assert all(set(each["replicas"]) <= {1, 3} for each in proposed["partitions"])
        heads.append((lines[:-1], [sorted(each) for each in proposed["partitions"]], list(proposed)))
    assert heads[0] == heads[1]


STUCK_BYTES = 4_000_000


def test_a_reassignment_in_progress(course: Course) -> None:
    """A throttle of 1 KB/s holds up the reassignment after its first fetch, so that it is in progress for an hour."""
    for me in SIDES:
        create_filled_topic(course.cluster, f"stuck-{me}", {0: [1]}, STUCK_BYTES)
    target = plan(("stuck-{me}", 0, [2]))
    words = "@ --execute --additional --throttle 1000 --reassignment-json-file {p}"
    assert "Successfully started" in course.run(words, {"p": target}).out
    refused = course.run("@ --execute --reassignment-json-file {p}", {"p": target})
    assert (refused.code, refused.out[:14]) == (1, "Cannot execute")
    assert "still in progress" in course.run("@ --verify --reassignment-json-file {p}", {"p": target}).out
    assert "throttle limit" in course.run(words.replace("1000", "2000"), {"p": target}).out
    assert course.run_unchanged("@ --list").out.count("adding: 2. removing: 1.") == len(SIDES)
    assert course.run_unchanged("% --list").out.count("adding: 2. removing: 1.") == len(SIDES)
    cancelled = course.run("@ --cancel --preserve-throttles --reassignment-json-file {p}", {"p": target})
    assert "Successfully cancelled partition reassignment for: stuck-{me}-0" in cancelled.out
    course.run("@ --cancel --reassignment-json-file {p}", {"p": target})
    course.run("% --cancel --preserve-throttles --reassignment-json-file {p}", {"p": target})


def test_a_stopped_broker_is_unknown(course: Course) -> None:
    cluster = course.cluster
    cluster[3].stop()
    cluster.wait_for_isr("moved-" + OURS, 0)
    refused = course.run("@ --execute --reassignment-json-file {p}", {"p": plan(("one-{me}", 0, [3]))})
    assert refused.out == "Error: Unknown broker id 3\n"
    cluster.start([3])


REFUSED: tuple[tuple[str, Any], ...] = (
    ("execute", plan(("moved-{me}", 0, [2, 9]))),
    ("execute", plan(("moved-{me}", 0, [2, 2]))),
    ("execute", plan(("moved-{me}", 0, [2]), ("moved-{me}", 0, [3]))),
    ("execute", plan(("nope-{me}", 0, [2]))),
    ("execute", plan(("moved-{me}", 7, [2]))),
    ("execute", plan(("moved-{me}", 0, []))),
    ("execute", plan()),
    ("execute", plan(("moved-{me}", 0, [2]), version=2)),
    ("execute", {"partitions": 5}),
    ("execute", {"partitions": [{"topic": "moved-{me}"}]}),
    ("execute", {"partitions": [{"topic": 5, "partition": 0, "replicas": [1]}]}),
    ("execute", {"partitions": [{"topic": "x", "partition": "0", "replicas": [1]}]}),
    ("execute", {"partitions": [{"topic": "x", "partition": 0, "replicas": [1], "log_dirs": ["any", "any"]}]}),
    ("execute", []),
    ("verify", plan(("nope-{me}", 0, [1]))),
    ("verify", {"version": 1}),
    ("cancel", plan(("nope-{me}", 0, [1]))),
    ("execute --disallow-replication-factor-change", plan(("moved-{me}", 0, [2]))),
    ("execute", {"partitions": [{"topic": "one-{me}", "partition": 0, "replicas": [1], "log_dirs": ["/none"]}]}),
    ("execute", {"partitions": [{"topic": "one-{me}", "partition": 0, "replicas": [1], "log_dirs": ["relative"]}]}),
    ("verify", {"partitions": [{"topic": "one-{me}", "partition": 0, "replicas": [1], "log_dirs": ["/none"]}]}),
)


@pytest.mark.parametrize(("action", "content"), REFUSED)
def test_both_refuse_the_same_files(course: Course, action: str, content: Any) -> None:
    course.run(f"@ --{action} --reassignment-json-file {{p}}", {"p": content})


@pytest.mark.parametrize(
    ("brokers", "content"),
    [
        ("1,1", {"topics": [{"topic": "moved-{me}"}]}),
        ("1,x", {"topics": [{"topic": "moved-{me}"}]}),
        ("1", {"topics": [{"topic": "pair-{me}"}]}),
        ("9", {"topics": [{"topic": "pair-{me}"}]}),
        ("1,2", {"topics": [{"topic": "nope-{me}"}]}),
        ("1,2", {"topics": [{"topic": "moved-{me}"}, {"topic": "moved-{me}"}]}),
        ("1,2", {"topics": [{}]}),
        ("1,2", {"version": 3}),
    ],
)
def test_both_refuse_the_same_proposals(course: Course, brokers: str, content: Any) -> None:
    course.run(f"@ --generate --broker-list {brokers} --topics-to-move-json-file {{t}}", {"t": content})


@pytest.mark.parametrize(
    "words",
    [
        "@",
        "@ --list --execute",
        "--list",
        "@ --bootstrap-controller a:1 --list",
        "@ --execute",
        "@ --generate --topics-to-move-json-file x",
        "@ --list --throttle 5",
        "@ --verify --reassignment-json-file x --timeout 5",
        "@ --execute --reassignment-json-file /no/such/file",
        "@ --generate --broker-list 1 --topics-to-move-json-file x --additional",
        "--bootstrap-controller a:1 --verify --reassignment-json-file x",
    ],
)
def test_both_refuse_the_same_command_lines(course: Course, words: str) -> None:
    course.run(words)


@pytest.mark.parametrize("text", ["x", "{", "{'partitions': []}", ""])
def test_both_refuse_what_is_no_json(course: Course, text: str) -> None:
    """The rest of the message is that of the JSON parser."""
    for me in SIDES:
        done = course._one(me, "@ --execute --reassignment-json-file {p}", {"p": text})
        assert (done.code, done.out[:7]) == (1, "Error: ")
