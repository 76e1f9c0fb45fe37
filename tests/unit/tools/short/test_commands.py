"""The commands produce, consume, ls and describe with a broker."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from kafkapy.client import Consumer, Producer, ShareConsumer
from kafkapy.errors import ApiError
from kafkapy.testing import Broker, topic_name
from kafkapy.tools.declaration import Tool
from kafkapy.tools.option import ToolError, UsageError
from kafkapy.tools.option_parser import OptionParser
from kafkapy.tools.short import consume, describe, listing, produce

FRAMES = "%K{big32}%k%V{big32}%v"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"auto.create.topics.enable": False}) as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker) -> str:
    return broker.create_topic(topic_name("short"), partitions=2)


def run(broker: Broker, tool: Tool, *words: str, **streams: Any) -> Any:
    arguments = OptionParser(tool.all_options).parse([*words, "-b", broker.bootstrap_servers])
    return tool.run(arguments, **streams)


def write(broker: Broker, *words: str, data: bytes = b"") -> None:
    assert run(broker, produce.TOOL, *words, stream=io.BytesIO(data)) == 0


def read(broker: Broker, *words: str) -> bytes:
    output = io.BytesIO()
    assert run(broker, consume.TOOL, *words, output=output) == 0
    return output.getvalue()


def printed(broker: Broker, tool: Tool, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """Returns the document that a command prints as JSON."""
    run(broker, tool, *words, "-o", "json")
    return json.loads(capsys.readouterr().out)


def test_values_of_the_command_line_are_written_with_key_headers_and_partition(broker, topic, capsys):
    write(broker, topic, "one", "two", "-k", "key", "-H", "a=1", "-p", "1", "-o", "json")
    placed = json.loads(capsys.readouterr().out)
    assert [(each["topic"], each["partition"], each["offset"]) for each in placed] == [(topic, 1, 0), (topic, 1, 1)]
    lines = [json.loads(line) for line in read(broker, topic, "-e", "-o", "json").splitlines()]
    assert [(each["key"], each["value"], each["headers"]) for each in lines] == [
        ("key", "one", [["a", "1"]]),
        ("key", "two", [["a", "1"]]),
    ]


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_the_progress_of_files_and_ranges(broker, topic, tmp_path, monkeypatch):
    (tmp_path / "input").write_bytes(b"".join(b"line %d\n" % number for number in range(300)))
    monkeypatch.setattr("kafkapy.tools.progress._PAUSE_S", 0)
    for unit, action in (
        ("bytes", lambda: run(broker, produce.TOOL, topic, stream=(tmp_path / "input").open("rb"))),
        ("offsets", lambda: run(broker, consume.TOOL, topic, "-e", output=io.BytesIO())),
    ):
        terminal = Terminal()
        monkeypatch.setattr("sys.stderr", terminal)
        assert action() == 0
        assert f" {unit}, " in terminal.getvalue()
        assert terminal.getvalue().endswith("\r\x1b[K")


def test_lines_of_the_input_are_values(broker, topic):
    write(broker, topic, "-p", "0", data=b"one\n\ntwo")
    assert read(broker, topic, "-e") == b"one\n\ntwo\n"


def test_binary_keys_values_and_nulls_survive_a_copy(broker, topic):
    pairs = [(b"\0\n\xff", bytes(range(256))), (None, b""), (b"", None)]
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for key, value in pairs:
            producer.send(topic, value, key, partition=0)
    copy = broker.create_topic(topic_name("copy"))
    write(broker, copy, "-f", FRAMES, data=read(broker, topic, "-e", "-f", FRAMES))
    settings = {"group_id": "g", "auto_offset_reset": "earliest"}
    with Consumer(bootstrap_servers=broker.bootstrap_servers, **settings) as consumer:
        consumer.subscribe([copy])
        assert [(each.key, each.value) for each in consumer.poll(20)] == pairs


def test_encoded_values_files_and_tombstones_are_written(broker, topic, tmp_path):
    (tmp_path / "image").write_bytes(b"\0\1")
    write(broker, topic, "00ff", "-k", "61", "--encoding", "hex", "-p", "0")
    write(broker, topic, "--file", str(tmp_path / "image"), "-p", "0")
    write(broker, topic, "-k", "a", "--tombstone", "-p", "0")
    shown = read(broker, topic, "-e", "-f", "%o %k %V %v{hex};", "--null", "null")
    assert shown == b"0 a 2 00ff;1 null 2 0001;2 a -1 null;"


def test_the_input_can_name_topic_partition_and_time(broker, topic):
    write(broker, "-f", "%t %p %T %v\n", data=f"{topic} 1 5000 x\n{topic} 0 6000 y\n".encode())
    assert read(broker, topic, "-e", "-p", "1", "-f", "%p %T %v") == b"1 5000 x"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--from", "-2"), "8 9"),
        (("--from", "3", "--to", "6"), "3 4 5"),
        (("--from", "@7000"), "7 8 9"),
        (("--from", "+2", "--to", "@4000"), "2 3"),
        (("-n", "3"), "0 1 2"),
        (("--from", "5", "--to", "5"), ""),
        (("--from", "end", "-e"), ""),
    ],
)
def test_a_range_is_read(words, expected, broker, topic):
    write(broker, topic, "-p", "0", "-f", "%T %v\n", data=b"".join(b"%d000 %d\n" % (n, n) for n in range(10)))
    ends = () if "--to" in words or "-n" in words or "-e" in words else ("-e",)
    assert read(broker, topic, *words, *ends).decode().split() == expected.split()


def test_a_range_may_end_with_the_marker_of_a_transaction(broker, topic):
    with Producer(bootstrap_servers=broker.bootstrap_servers, transactional_id=topic) as producer:
        producer.init_transactions()
        for value, ends in (("kept", producer.commit_transaction), ("dropped", producer.abort_transaction)):
            producer.begin_transaction()
            producer.send(topic, value, partition=0)
            producer.flush()
            ends()
    assert read(broker, topic, "-e", "--read-committed") == b"kept\n"
    assert read(broker, topic, "-e") == b"kept\ndropped\n"


def test_a_group_continues_after_the_printed_records(broker, topic):
    write(broker, topic, "-p", "0", data=b"one\ntwo\nthree\n")
    group = topic_name("group")
    assert read(broker, topic, "-g", group, "-n", "1") == b"one\n"
    assert read(broker, topic, "-g", group, "-n", "2") == b"two\nthree\n"


def test_an_error_of_the_consumer_is_the_exit_code(broker, topic, tmp_path):
    config = tmp_path / "client.properties"
    config.write_text("auto.offset.reset=none\n")
    words = (topic, "-g", topic_name("none"), "--command-config", str(config))
    assert run(broker, consume.TOOL, *words, output=io.BytesIO()) == 1


def test_records_are_a_table_or_yaml(broker, topic):
    write(broker, topic, "-k", "k", "-p", "0", "-f", "%T %v\\n", data=b"0 a\tb\xff\n")
    header, line = read(broker, topic, "-e", "-o", "table").decode().splitlines()
    assert header.split() == ["PARTITION", "OFFSET", "TIME", "KEY", "VALUE"]
    assert line.split() == ["0", "0", "1970-01-01T00:00:00.000Z", "k", "a\\x09b\\xff"]
    assert read(broker, topic, "-e", "-o", "yaml").decode().startswith(f"- topic: {topic}\n  partition: 0\n")


def test_topics_groups_and_brokers_are_listed(broker, topic, capsys):
    write(broker, topic, "x", "-p", "0")
    group = topic_name("listed")
    read(broker, topic, "-g", group, "-n", "1")
    expected = {"topic": topic, "partitions": 2, "replicas": 1, "underReplicated": 0}
    assert printed(broker, listing.TOOL, capsys, f"?{topic[1:]}") == [expected]
    assert printed(broker, listing.TOOL, capsys, "no-such*") == []
    assert "__consumer_offsets" not in [each["topic"] for each in printed(broker, listing.TOOL, capsys)]
    assert "__consumer_offsets" in [each["topic"] for each in printed(broker, listing.TOOL, capsys, "-a")]
    (found,) = printed(broker, listing.TOOL, capsys, "-g", group)
    assert (found["group"], found["protocol"], found["state"]) == (group, "consumer", "Empty")
    (only,) = printed(broker, listing.TOOL, capsys, "-B")
    assert (only["broker"], only["port"], only["controller"]) == (1, broker.port, True)


def test_topics_groups_brokers_and_the_cluster_are_described(broker, capsys):
    name = broker.create_topic(topic_name("described"), 2, {"retention.ms": "5000"})
    write(broker, name, "one", "two", "-p", "1")
    group = topic_name("members")
    read(broker, name, "-g", group, "-n", "1")
    described = printed(broker, describe.TOOL, capsys, name)
    assert described["configs"] == [{"key": "retention.ms", "value": "5000"}]
    assert [(each["leader"], each["isr"], each["records"]) for each in described["partitions"]] == [
        (1, [1], 0),
        (1, [1], 2),
    ]
    found = printed(broker, describe.TOOL, capsys, group)
    assert (found["state"], found["members"]) == ("Empty", [])
    assert [each["lag"] for each in found["offsets"] if each["partition"] == 1] == [1]
    assert printed(broker, describe.TOOL, capsys, "1")["port"] == broker.port
    assert printed(broker, describe.TOOL, capsys)["withoutLeader"] == 0
    assert len(printed(broker, describe.TOOL, capsys, name, group)) == 2
    run(broker, describe.TOOL, name)
    assert capsys.readouterr().out.startswith(f"topic: {name}\n")


def test_a_group_of_another_kind_is_described_by_its_state(broker, topic, capsys):
    group = topic_name("sharers")
    with ShareConsumer(bootstrap_servers=broker.bootstrap_servers, group_id=group) as consumer:
        consumer.subscribe([topic])
        consumer.poll(1)
        found = printed(broker, describe.TOOL, capsys, group)
    assert (found["group"], found["type"]) == (group, "Share")
    assert found["state"]


@pytest.mark.parametrize(
    ("tool", "words", "error", "message"),
    [
        (consume.TOOL, "absent", ToolError, "there is no topic absent"),
        (consume.TOOL, "{topic} -p 7", ToolError, "topic {topic} has no partition 7; number of partitions: 2"),
        (consume.TOOL, "{topic} -o xml", UsageError, "xml is not an output format"),
        (consume.TOOL, "{topic} -g g -e", UsageError, r"can't be used with option"),
        (consume.TOOL, "", UsageError, "A topic is required"),
        (produce.TOOL, "{topic} x -p 7", ToolError, "has no partition 7"),
        (produce.TOOL, "{topic} x -H a", UsageError, "a is not a header"),
        (produce.TOOL, "{topic} x --encoding hex", UsageError, "x is not hex"),
        (produce.TOOL, "{topic} --tombstone", UsageError, "--tombstone writes a null value for --key"),
        (produce.TOOL, "{topic} --file /nonexistent", FileNotFoundError, "nonexistent"),
        (produce.TOOL, "-f %v", UsageError, "A topic is required"),
        (describe.TOOL, "{topic}x", ToolError, r"there is no topic, group or broker {topic}x; did you mean {topic}\?"),
        (describe.TOOL, "{topic} --kind group", ToolError, "there is no group {topic}"),
        (describe.TOOL, "x --kind y", UsageError, "y is not a kind"),
        (listing.TOOL, "-g -B", UsageError, "can't be used"),
    ],
)
def test_what_cannot_be_done_is_named(tool, words, error, message, broker, topic):
    with pytest.raises(error, match=message.format(topic=topic)):
        run(broker, tool, *words.format(topic=topic).split())


def test_a_record_that_the_broker_refuses_is_an_error(broker):
    small = broker.create_topic(topic_name("small"), 1, {"max.message.bytes": "100"})
    with pytest.raises((ToolError, ApiError), match="1 records were not written"):
        write(broker, small, "x" * 2000)


def test_without_a_cluster_the_three_ways_to_name_one_are_shown():
    with pytest.raises(UsageError, match="give --bootstrap-server HOST:PORT, or set KAFKAPY_BOOTSTRAP_SERVERS"):
        listing.TOOL.run(OptionParser(listing.TOOL.all_options).parse([]))
