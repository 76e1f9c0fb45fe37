"""The tool kafka-share-groups of Apache Kafka and ours on one broker: both print the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.client import AcknowledgeType, Producer, ShareConsumer
from kafkapy.client.admin import Admin, ConfigChange, ConfigResource, NewTopic, ResourceType
from tests.broker_process import BrokerProcess
from tests.tools.comparison import OURS, THEIRS, Comparison, compare
from tests.tools.side_by_side import without_numbers, words_of
from tests.tools.tool_host import ToolHost, run_here

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
PROPERTIES = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.assignment.interval.ms": "0",
}
# The groups are empty or `live`, which has a member; each group reads the topic of its name, which has two partitions.
COMMANDS = """
@ --list --state stable
@ --describe --group {me}
@ --describe --group {me} --group {me}-two --verbose
@ --describe --group {me} --members
@ --describe --group {me} --state
@ --describe --group {me} --state --verbose
@ --describe --group live
@ --describe --group live --verbose --offsets
@ --describe --group live --members
@ --describe --group live --members --verbose
@ --describe --group live --state
@ --describe --group missing
@ --describe --group missing --members
@ --reset-offsets --group {me} --topic {me} --to-earliest --dry-run
@ --reset-offsets --group {me} --topic {me}:1 --to-latest --execute
@ --describe --group {me}
@ --reset-offsets --group {me} --all-topics --to-datetime 2020-01-01T00:00:00.000 --execute
@ --describe --group {me} --verbose
@ --reset-offsets --group {me} --topic missing --to-latest --execute
@ --reset-offsets --group live --topic live --to-latest --execute
@ --reset-offsets --group {me}-new --topic {me} --to-latest --execute
@ --describe --group {me}-new
@ --delete-offsets --group {me} --topic {me}
@ --delete-offsets --group {me} --topic {me} --topic missing
@ --describe --group {me}
@ --delete-offsets --group live --topic live
@ --delete-offsets --group missing --topic {me}
@ --delete --group live --group missing --group {me}-two
@ --delete --group {me}
@ --delete --group {me}
"""
REFUSED = """
--list
@
@ --describe
@ --describe --group g --members --state
@ --describe --group g --state stable
@ --describe --group g --topic t
@ --describe --group g --all-groups
@ --list --group g
@ --list --describe --group g
@ --delete
@ --list --verbose
@ --delete --group g --state
@ --delete --group g --all-groups
@ --delete --group g --topic t
@ --delete-offsets --group g
@ --reset-offsets --group g --topic t --to-latest
@ --reset-offsets --group g --topic t --to-latest --execute --dry-run
@ --reset-offsets --topic t --to-latest --execute
@ --reset-offsets --group g --to-latest --execute
@ --reset-offsets --group g --topic t --execute
@ --reset-offsets --group g --topic t --to-latest --to-earliest --execute
@ --nonsense
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker"), PROPERTIES) as server:
        yield server


def read_once(bootstrap: str, group: str, topic: str) -> ShareConsumer:
    """Returns an open consumer that has accepted the records of one poll."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        if topic not in admin.list_topics():
            admin.create_topics([NewTopic(topic, partitions=2, replication_factor=1)]).check()
            with Producer(bootstrap_servers=bootstrap) as producer:
                for number in range(8):
                    producer.send(topic, "value", partition=number % 2)
        resource = ConfigResource(ResourceType.GROUP, group)
        change = ConfigChange("share.auto.offset.reset", "earliest")
        admin.incremental_alter_configs({resource: [change]}).check()
    settings = {"share_acknowledgement_mode": "explicit", "client_id": "reader"}
    consumer = ShareConsumer(bootstrap_servers=bootstrap, group_id=group, **settings)
    consumer.subscribe(topic)
    count = 0
    while count < 8:
        for record in consumer.poll(60):
            count += 1
            consumer.acknowledge(record, AcknowledgeType.ACCEPT)
    consumer.commit()
    return consumer


def test_both_tools_print_the_same(
    broker: BrokerProcess, host: ToolHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = run_here(capsys)
    for me in (THEIRS, OURS):
        for group in (me, f"{me}-two"):
            read_once(broker.bootstrap, group, me).close()
    with read_once(broker.bootstrap, "live", "live"):
        for line in COMMANDS.strip().splitlines():
            exits = (0, 1) if re.search("describe --group missing|--topic missing --to-latest", line) else None
            order = "missing --group" in line
            compare(
                host,
                Comparison("share-groups", line, any_order=order, exits=exits),
                broker.bootstrap,
                tmp_path,
                run=ours,
            )
        listed = [run("share-groups", "--bootstrap-server", broker.bootstrap, "--list") for run in (host.run, ours)]
        assert sorted(listed[0].out.split()) == sorted(listed[1].out.split())
        as_json = ours("share-groups", "--bootstrap-server", broker.bootstrap, "--describe", "--all-groups", "--json")
        assert '"live"' in as_json.out


def test_both_tools_refuse_the_same(broker: BrokerProcess, host: ToolHost, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_here(capsys)
    for line in REFUSED.strip().splitlines():
        words = line.replace("@", f"--bootstrap-server {broker.bootstrap}").split()
        theirs, ours = host.run("share-groups", *words), run("share-groups", *words)
        assert (ours.code, theirs.code) == (1, 1), line
        assert words_of(ours.err) == words_of(theirs.err), line
    done = run("share-groups", *f"--bootstrap-server {broker.bootstrap} --list --state nonsense".split())
    assert done.err.startswith("Invalid state list 'nonsense'. Valid states are: Stable, Dead, Empty")


CONSOLE = """
@ --topic lines --group {me}-c --max-messages 4 --release --formatter-property print.delivery=true
@ --topic lines --group {me}-c --max-messages 2 --timeout-ms 60000 --formatter-property print.key=true
@ --topic lines --group {me}-c --max-messages 1 --reject --timeout-ms 60000 --formatter-property print.delivery=true
@ --topic lines --group {me}-c --max-messages 1 --timeout-ms 60000 --property print.offset=true --enable-systest-events
@ --topic lines --group {me}-c --timeout-ms 1000
"""
CONSOLE_REFUSED = """
@
--topic t
@ --topic t --reject --release
@ --topic t --consumer-property a=b --command-property a=b
@ --topic t --consumer-config a --command-config b
@ --topic t --property a=b --formatter-property a=b
@ --topic t --group a --command-property group.id=b
@ --topic t --formatter NoSuch
@ --topic t --from-beginning
"""
PERF_REFUSED = """
@ --topic t
--topic t --num-records 1
@ --num-records 1
@ --topic t --num-records 1 --messages 1
@ --topic t --num-records 1 --consumer.config a --command-config b
@ --topic t --num-records x
@ --topic t --num-records 1 --include t
"""


def test_both_console_share_consumers_print_the_same(
    broker: BrokerProcess, host: ToolHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic("lines", partitions=1)]).check()
        for me in (THEIRS, OURS):
            resource = ConfigResource(ResourceType.GROUP, f"{me}-c")
            admin.incremental_alter_configs({resource: [ConfigChange("share.auto.offset.reset", "earliest")]}).check()
    with Producer(bootstrap_servers=broker.bootstrap, linger_ms=1000) as producer:
        for number in range(4):
            producer.send("lines", f"line {number}", key=f"key {number}")
    run = run_here(capsys)
    for line in CONSOLE.strip().splitlines():
        comparison = Comparison("console-share-consumer", line)
        compare(host, comparison, broker.bootstrap, tmp_path, run=run)


def test_the_perf_tests_print_the_same_lines(
    broker: BrokerProcess, host: ToolHost, capsys: pytest.CaptureFixture[str]
) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic("perf", partitions=1)]).check()
        for group in ("perf-a", "perf-b"):
            resource = ConfigResource(ResourceType.GROUP, group)
            admin.incremental_alter_configs({resource: [ConfigChange("share.auto.offset.reset", "earliest")]}).check()
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for _ in range(1000):
            producer.send("perf", "x" * 100)
    words = f"--bootstrap-server {broker.bootstrap} --topic perf --num-records 1000 --threads 2 --show-consumer-stats"
    shown = []
    for run, group in ((host.run, "perf-a"), (run_here(capsys), "perf-b")):
        done = run("share-consumer-perf-test", *words.split(), "--group", group)
        assert done.code == 0, done
        shown.append(without_numbers(done.out).splitlines())
    assert shown[0] == shown[1]


@pytest.mark.parametrize("mode", ["auto", "sync", "async"])
def test_the_verifiable_share_consumers_print_the_same_events(
    broker: BrokerProcess, host: ToolHost, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    topic = f"verified-{mode}"
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions=1)]).check()
    with Producer(bootstrap_servers=broker.bootstrap, linger_ms=1000) as producer:
        for number in range(3):
            producer.send(topic, f"value {number}")
    words = f"--bootstrap-server {broker.bootstrap} --topic {topic} --max-messages 3 --acknowledgement-mode {mode}"
    shown = []
    for run, group in ((host.run, f"{mode}-a"), (run_here(capsys), f"{mode}-b")):
        options = ("--verbose", "--offset-reset-strategy", "earliest", "--group-id", group)
        done = run("verifiable-share-consumer", *words.split(), *options)
        assert done.code == 0, done
        events = [json.loads(line) for line in done.out.splitlines()]
        for event in events:
            assert event.pop("timestamp")
            for partition in event.get("partitions", ()):
                partition["offsets"].sort()  # Java prints a set
        shown.append(events)
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    ("tool", "commands"),
    [("console-share-consumer", CONSOLE_REFUSED), ("share-consumer-perf-test", PERF_REFUSED)],
)
def test_both_consumers_refuse_the_same(
    broker: BrokerProcess, host: ToolHost, capsys: pytest.CaptureFixture[str], tool: str, commands: str
) -> None:
    run = run_here(capsys)
    for line in commands.strip().splitlines():
        words = line.replace("@", f"--bootstrap-server {broker.bootstrap}").split()
        theirs, ours = host.run(tool, *words), run(tool, *words)
        assert (ours.code, theirs.code) == (1, 1), line
        assert words_of(ours.err) == words_of(theirs.err), line
