"""The verifiable producer and consumer and the transactional copier of Apache Kafka, and ours: both print the same."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator

import pytest

from kafkapy.client import Consumer, Producer
from kafkapy.client.admin import Admin, NewTopic
from tests.broker_process import BrokerProcess
from tests.peers import kafka_directory
from tests.tools.side_by_side import words_of
from tests.tools.tool_host import CLASSES, Done, ToolHost, run_here

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
# Events of a consumer: both tools print them as long as the group has one member and all records are in one batch.
CONSUMERS = (
    "--verbose",
    "--verbose --max-messages 2",
    "--enable-autocommit",
    "--group-protocol consumer",
    "--group-instance-id one --session-timeout 10000 --assignment-strategy "
    "org.apache.kafka.clients.consumer.RoundRobinAssignor",
)
PRODUCERS = (
    "--max-messages 3 --acks 1 --value-prefix 7 --repeating-keys 2 --throughput 1000",
    "--max-messages 2 --message-create-time 1600000000000",
)
REFUSED = (
    "verifiable-producer --topic t",
    "verifiable-producer @ --topic t --acks 2",
    "verifiable-producer @ --topic t --producer.config /x --command-config /y",
    "verifiable-consumer @ --topic t",
    "transactional-message-copier --input-topic t --input-partition 0 --output-topic o --transactional-id i",
)
NOTHING_ASSIGNED = '{"timestamp":0,"name":"partitions_assigned","partitions":[]}'
# Tools that end their process by System.exit, or that print at its end, need a process of their own.
JAVA = ("java", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_directory('4.3.0')}/libs/*")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker"), PROPERTIES) as server:
        yield server


def run_java(tool: str, *words: str) -> Done:
    """Runs Apache Kafka's tool in a process of its own."""
    command = [*JAVA, CLASSES[tool], *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def make_topic(bootstrap: str, topic: str, count: int = 0) -> None:
    """Creates a topic of one partition with `count` records in one batch."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions=1)]).check()
    with Producer(bootstrap_servers=bootstrap, linger_ms=1000) as producer:
        for number in range(count):
            producer.send(topic, f"value {number}", key=f"key {number}")


def events(text: str) -> list[str]:
    """Returns the lines with their measurements replaced, without empty assignments.

    A member of the new protocol gets an empty assignment first if its metadata lacks the topic at that time.
    """
    text = re.sub(r'"timestamp":\d+', '"timestamp":0', text)
    text = re.sub(r'"time":"[\d/: ]+"', '"time":""', text)
    text = re.sub(r'"avg_throughput":[\d.E]+', '"avg_throughput":0', text)
    return [line for line in text.splitlines() if line != NOTHING_ASSIGNED]


@pytest.mark.parametrize("words", PRODUCERS)
def test_the_producers_print_the_same_events(broker: BrokerProcess, capsys, words: str) -> None:
    shown = []
    for run in (run_java, run_here(capsys)):
        topic = "produced"
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            if topic in admin.list_topics():
                admin.delete_topics([topic]).check()
        make_topic(broker.bootstrap, topic)
        done = run("verifiable-producer", "--bootstrap-server", broker.bootstrap, "--topic", topic, *words.split())
        assert done.code == 0, done
        with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([(topic, 0)])
            records: list[tuple] = []
            while len(records) < int(words.split()[1]):
                records += [(each.key, each.value) for each in consumer.poll(1)]
        shown.append((sorted(events(done.out)), records))
    assert shown[0] == shown[1]


@pytest.mark.parametrize("words", CONSUMERS)
def test_the_consumers_print_the_same_events(broker: BrokerProcess, host: ToolHost, capsys, words: str) -> None:
    number = CONSUMERS.index(words)
    topic = f"consumed-{number}"
    make_topic(broker.bootstrap, topic, 3)
    if "--max-messages" not in words:
        words += " --max-messages 3"
    shown = []
    for run, group in ((host.run, f"theirs-{number}"), (run_here(capsys), f"ours-{number}")):
        place = ("--bootstrap-server", broker.bootstrap, "--topic", topic, "--group-id", group)
        done = run("verifiable-consumer", *place, *words.split())
        assert done.code == 0, done
        shown.append(events(done.out))
    # The Java process of both tools goes on, so that it does not print what it prints at its end.
    assert [*shown[0], '{"timestamp":0,"name":"shutdown_requested"}'] == shown[1]


def test_the_end_of_a_consumer_is_the_same(broker: BrokerProcess, capsys) -> None:
    make_topic(broker.bootstrap, "ended", 1)
    shown = []
    for run, group in ((run_java, "ended-theirs"), (run_here(capsys), "ended-ours")):
        place = ("--bootstrap-server", broker.bootstrap, "--topic", "ended", "--group-id", group)
        done = run("verifiable-consumer", *place, "--max-messages", "1")
        assert done.code == 0, done
        shown.append(events(done.out))
    assert shown[0] == shown[1]


@pytest.mark.parametrize("words", ["", "--group-mode", "--group-mode --use-group-metadata", "--max-messages 4"])
def test_the_copiers_print_the_same_status(broker: BrokerProcess, host: ToolHost, capsys, words: str) -> None:
    topic = f"copied{len(words)}"
    make_topic(broker.bootstrap, topic, 10)
    shown = []
    for run, me in ((host.run, "theirs"), (run_here(capsys), "ours")):
        output, group = f"{topic}-by-{me}", f"group-of-{topic}-by-{me}"
        make_topic(broker.bootstrap, output)
        place = ("--broker-list", broker.bootstrap, "--input-topic", topic, "--input-partition", "0")
        names = ("--output-topic", output, "--consumer-group", group, "--transactional-id", "copier")
        done = run("transactional-message-copier", *place, *names, "--transaction-size", "4", *words.split())
        assert done.code == 0, done
        lines = events(done.out)
        # A poll may return nothing, and then the status is printed again.
        shown.append([line for at, line in enumerate(lines) if at == 0 or line != lines[at - 1]])
        settings = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        with Consumer(bootstrap_servers=broker.bootstrap, **settings) as consumer:
            consumer.assign([(output, 0)])
            wanted = 4 if "max-messages" in words else 10
            values: list[bytes] = []
            while len(values) < wanted:
                values += [record.value for record in consumer.poll(1)]
        assert values == [f"value {number}".encode() for number in range(wanted)]
    # The Java process goes on, so that it does not print the status that it prints at its end.
    assert shown[1][-1].startswith('{"transactionalId":"copier","stage":"ShutdownComplete","time":"","totalProcessed":')
    assert shown[0] == shown[1][:-1]


def test_random_aborts_lose_and_repeat_nothing(broker: BrokerProcess, capsys, monkeypatch) -> None:
    """Every second transaction is aborted, so that the consumer returns to the committed position."""
    turns = iter([1, 0] * 50)
    monkeypatch.setattr("kafkapy.tools.transactional_message_copier.random.randrange", lambda limit: next(turns))
    make_topic(broker.bootstrap, "aborted", 12)
    make_topic(broker.bootstrap, "aborted-copy")
    place = ("--broker-list", broker.bootstrap, "--input-topic", "aborted", "--input-partition", "0")
    names = ("--output-topic", "aborted-copy", "--consumer-group", "aborted", "--transactional-id", "aborting")
    done = run_here(capsys)(
        "transactional-message-copier", *place, *names, "--transaction-size", "3", "--enable-random-aborts"
    )
    assert done.code == 0, done
    last = json.loads(done.out.splitlines()[-1])
    assert (last["stage"], last["totalProcessed"], last["remaining"]) == ("ShutdownComplete", 12, 0)
    settings = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    with Consumer(bootstrap_servers=broker.bootstrap, **settings) as consumer:
        consumer.assign([("aborted-copy", 0)])
        values: list[bytes] = []
        while len(values) < 12:
            values += [record.value for record in consumer.poll(1)]
    assert values == [f"value {number}".encode() for number in range(12)]


@pytest.mark.parametrize("line", REFUSED)
def test_both_refuse_the_same(capsys, line: str) -> None:
    tool, *words = line.replace("@", "--bootstrap-server localhost:1").split()
    theirs, ours = run_java(tool, *words), run_here(capsys)(tool, *words)
    assert (ours.code, theirs.code) == (1, 1)
    assert words_of(ours.err) == words_of(theirs.err)


def test_a_missing_broker_is_one_line(capsys) -> None:
    done = run_here(capsys)("verifiable-producer", "--bootstrap-server", "localhost:1", "--topic", "t")
    assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1), done
