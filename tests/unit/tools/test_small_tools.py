"""The tools of Kafka 0.8 to 2.8 that have no counterpart today, with a broker."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from kafkapy.client import Producer
from kafkapy.testing import Broker, topic_name
from kafkapy.tools import preferred_replica_election, replay_log_producer, simple_consumer_shell
from kafkapy.tools.option import ToolError, UsageError
from kafkapy.tools.option_parser import OptionParser
from kafkapy.tools.short import consume


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker) -> str:
    """Returns a topic with the values 0 to 9 and keys in partition 1, and nothing in partition 0."""
    name = broker.create_topic(topic_name("small"), partitions=2)
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(10):
            producer.send(name, str(number), f"k{number}", partition=1, headers=(("h", b"1"),), timestamp=1000 + number)
    return name


def shell(broker: Broker, *words: str) -> list[str]:
    output = io.BytesIO()
    line = ["--broker-list", broker.bootstrap_servers, "--no-wait-at-logend", *words]
    assert simple_consumer_shell.run(OptionParser(simple_consumer_shell.TOOL.options).parse(line), output) == 0
    return output.getvalue().decode().splitlines()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--partition 1", "0 1 2 3 4 5 6 7 8 9"),
        ("--partition 1 --offset 7", "7 8 9"),
        ("--partition 1 --offset -1", ""),
        ("--partition 1 --max-messages 2", "0 1"),
        ("", ""),
        ("--partition 1 --offset 9 --property print.key=true --property key.separator=/", "k9/9"),
    ],
)
def test_the_shell_prints_one_partition(words, expected, broker, topic):
    assert shell(broker, "--topic", topic, *words.split()) == expected.split()


def test_the_shell_prints_the_next_offsets(broker, topic):
    printed = shell(broker, "--topic", topic, "--partition", "1", "--offset", "8", "--print-offsets")
    assert printed == ["next offset = 9", "8", "next offset = 10", "9"]


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ("--partition 9", ToolError, "Error: partition 9 does not exist for topic"),
        ("--offset -3", UsageError, "Invalid starting offset: -3"),
    ],
)
def test_the_shell_refuses_what_does_not_exist(words, error, message, broker, topic):
    with pytest.raises(error, match=message):
        shell(broker, "--topic", topic, *words.split())


def replay(broker: Broker, *words: str) -> None:
    line = ["--broker-list", broker.bootstrap_servers, *words]
    assert replay_log_producer.run(OptionParser(replay_log_producer.TOOL.options).parse(line)) == 0


@pytest.mark.parametrize(("words", "count"), [((), 10), (("--messages", "3", "--sync"), 3)])
def test_a_topic_is_copied_with_keys_headers_and_times(words, count, broker, topic, capsys):
    copy = broker.create_topic(topic_name("copy"))
    replay(broker, "--inputtopic", topic, "--outputtopic", copy, *words)
    assert capsys.readouterr().out == f"{count} records were copied from {topic} to {copy}\n"
    output = io.BytesIO()
    line = [copy, "-b", broker.bootstrap_servers, "-e", "-f", "%T %k %v %h\\n"]
    consume.run(OptionParser(consume.TOOL.options).parse(line), output)
    assert output.getvalue().decode().splitlines() == [f"{1000 + n} k{n} {n} h=1" for n in range(count)]


def test_a_topic_that_does_not_exist_is_not_copied(broker):
    with pytest.raises(ToolError, match="there is no topic absent"):
        replay(broker, "--inputtopic", "absent", "--outputtopic", "x")


def test_preferred_replicas_are_elected_by_file_or_everywhere(broker, topic, tmp_path, capsys):
    file = tmp_path / "partitions.json"
    file.write_text(f'{{"partitions": [{{"topic": "{topic}", "partition": 1}}]}}')
    main = preferred_replica_election.main
    assert main(["--bootstrap-server", broker.bootstrap_servers, "--path-to-json-file", str(file)]) == 0
    assert capsys.readouterr().out == f"Valid replica already elected for partitions {topic}-1\n"
    assert main(["--bootstrap-server", broker.bootstrap_servers]) == 0
    assert capsys.readouterr().err == ""
    file.write_text("{}")
    assert main(["--bootstrap-server", broker.bootstrap_servers, "--path-to-json-file", str(file)]) == 1
    assert capsys.readouterr().err == 'Replica election data is missing "partitions" field\n'
