"""The tool kafka-streams-groups of Apache Kafka and ours on one broker: both print the same."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy.client import Producer, TopicPartition
from kafkapy.client.admin import Admin, InternalTopic, NewTopic
from kafkapy.protocol.api import ApiKey, response_class
from kafkapy.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.api_client import ask
from tests.broker_process import BrokerProcess
from tests.tools.comparison import OURS, THEIRS, Comparison, compare
from tests.tools.side_by_side import words_of
from tests.tools.tool_host import ToolHost, run_here

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
PROPERTIES = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
}
Heartbeat = StreamsGroupHeartbeatRequest
SOURCE = "source"
WAIT_S = 60
# The groups {me} and {me}-two have no members, and `live` has one. They have committed offsets of the topic `source`.
COMMANDS = """
@ --describe --group live
@ --describe --group live --verbose
@ --describe --group live --members
@ --describe --group live --members --verbose
@ --describe --group live --state
@ --describe --group live --state --verbose
@ --describe --group {me}
@ --describe --group {me} --members
@ --describe --group {me} --state
@ --describe --group missing
@ --list --state stable
@ --reset-offsets --group {me} --all-input-topics --to-earliest --dry-run
@ --reset-offsets --group {me} --input-topic source:1 --shift-by 1 --execute
@ --reset-offsets --group {me} --input-topic source --to-latest --dry-run --export
@ --reset-offsets --group {me} --input-topic other --to-latest --dry-run
@ --reset-offsets --group {me} --input-topic source --to-offset 2 --execute
@ --reset-offsets --group {me} --all-input-topics --to-current --dry-run
@ --reset-offsets --group live --all-input-topics --to-latest --execute
@ --reset-offsets --group {me} --all-input-topics --by-duration PT1H --execute --delete-all-internal-topics
@ --reset-offsets --group {me} --all-input-topics --to-earliest --execute --delete-internal-topic missing
@ --delete-offsets --group {me} --input-topic source:0
@ --delete-offsets --group {me} --input-topic missing
@ --delete-offsets --group {me} --all-input-topics
@ --delete-offsets --group live --input-topic source
@ --delete-offsets --group missing --input-topic source
@ --delete --group live --group missing --group {me}
@ --delete --group {me}-two --delete-all-internal-topics
@ --delete --group {me}-two
"""
REFUSED = """
--list
@
@ --list --describe --group g
@ --describe
@ --describe --group g --members --offsets
@ --describe --group g --state stable
@ --describe --group g --all-groups
@ --list --members
@ --list --group g
@ --delete
@ --delete --group g --input-topic t
@ --delete --group g --execute
@ --delete-offsets --group g
@ --delete-offsets --input-topic t
@ --delete-offsets --group g --group h --input-topic t
@ --reset-offsets --group g --input-topic t --to-latest
@ --reset-offsets --group g --input-topic t --to-latest --execute --dry-run
@ --reset-offsets --input-topic t --to-latest --execute
@ --reset-offsets --group g --input-topic t --to-latest --to-offset 3 --execute
@ --list --delete-all-internal-topics
@ --reset-offsets --group g --input-topic t --to-latest --dry-run --delete-all-internal-topics
@ --reset-offsets --group g --input-topic t --to-latest --dry-run --delete-internal-topic x
@ --nonsense
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker"), PROPERTIES) as server:
        with Admin(bootstrap_servers=server.bootstrap) as admin:
            admin.create_topics([NewTopic(name, partitions=2) for name in (SOURCE, "other")]).check()
            assert admin.describe_streams_groups(["missing"]).errors  # finds the coordinator, which creates its topic
        with Producer(bootstrap_servers=server.bootstrap) as producer:
            for number in range(8):
                producer.send(SOURCE, "value", partition=number % 2)
        yield server


class Member:
    """A member of a streams group that counts the words of the topic `source`."""

    def __init__(self, port: int, group: str) -> None:
        self._connection = socket.create_connection(("localhost", port), timeout=30)
        self._group = group
        topology = Heartbeat.Topology(
            epoch=0,
            subtopologies=[
                Heartbeat.Subtopology(
                    subtopology_id="0",
                    source_topics=[SOURCE],
                    state_changelog_topics=[Heartbeat.TopicInfo(name=f"{group}-counts-changelog")],
                )
            ],
        )
        tasks: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
        fields = {"rebalance_timeout_ms": 60000, "process_id": "process", "topology": topology, **tasks}
        deadline = time.monotonic() + WAIT_S
        epoch = 0
        while True:
            response = self._heartbeat(epoch, **(fields if epoch == 0 else {}))
            if response.error_code == 0:
                epoch = response.member_epoch
                if response.active_tasks:
                    return
            assert time.monotonic() < deadline, response
            time.sleep(0.05)

    def _heartbeat(self, epoch: int, **fields: Any) -> Any:
        request = Heartbeat(group_id=self._group, member_id="member", member_epoch=epoch, **fields)
        key = ApiKey.STREAMS_GROUP_HEARTBEAT
        return ask(self._connection, key, 0, request, response_class(key))

    def leave(self) -> None:
        self._heartbeat(-1)
        self._connection.close()


def test_both_tools_print_the_same(
    broker: BrokerProcess, host: ToolHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = run_here(capsys)
    offsets = {TopicPartition(SOURCE, 0): 1, TopicPartition(SOURCE, 1): 3}
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        for me in (THEIRS, OURS):
            for group in (me, f"{me}-two"):
                Member(broker.port, group).leave()
                admin.alter_group_offsets(group, offsets).check()
        live = Member(broker.port, "live")
        described = admin.describe_streams_groups(["live"])["live"]
        (subtopology,) = described.subtopologies
        assert subtopology.changelog_topics == (InternalTopic("live-counts-changelog", 2, 0, {}),)
        assert described.members[0].assignment.active == (("0", (0, 1)),)
    failures: list[str] = []
    for line in COMMANDS.strip().splitlines():
        in_any_order = bool(re.search("describe --group live( --verbose)?$|source |all-input|--group missing", line))
        comparison = Comparison("streams-groups", line, any_order=in_any_order)
        try:
            compare(host, comparison, broker.bootstrap, tmp_path, run=ours)
        except AssertionError as failure:
            failures.append(str(failure))
    assert not failures, "\n\n".join(failures)
    listed = [run("streams-groups", "--bootstrap-server", broker.bootstrap, "--list") for run in (host.run, ours)]
    assert sorted(listed[0].out.split()) == sorted(listed[1].out.split()) == ["live"]
    done = ours("streams-groups", *f"--bootstrap-server {broker.bootstrap} --describe --all-groups --json".split())
    assert '"live"' in done.out
    live.leave()


def test_both_tools_refuse_the_same(broker: BrokerProcess, host: ToolHost, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_here(capsys)
    for line in REFUSED.strip().splitlines():
        words = line.replace("@", f"--bootstrap-server {broker.bootstrap}").split()
        theirs, ours = host.run("streams-groups", *words), run("streams-groups", *words)
        assert (ours.code, theirs.code) == (1, 1), line
        assert words_of(ours.err) == words_of(theirs.err), line
