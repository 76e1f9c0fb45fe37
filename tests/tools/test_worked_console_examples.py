"""Worked examples of a book on Kafka 0.10 that need one broker and these tools, with the flags of Kafka 4.

The examples differ from the book's because of changes since then: `--broker-list` and `--zookeeper` are now
`--bootstrap-server`; `--whitelist` is `--include`; `--property` is `--formatter-property` of the console consumer and
`--reader-property` of the producer. dump-log prints a line for each batch, with the codec in lower case; committed
offsets are printed as JSON, without an expiration time; all records of a batch without keys go to one partition; and a
topic is created without a warning.
"""

from __future__ import annotations

import json
import re

import pytest

from kafkapy._core.bytes.message_set import build_message_set
from kafkapy.client import Consumer, TopicPartition
from kafkapy.client.admin import Admin, NewTopic
from tests.broker_process import BrokerProcess
from tests.tools.tool_host import Done, run_ours

OFFSETS = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
SCHEMA = b'{"schema":{"type":"string","optional":false},"payload":"%s"}'
KEY = b'{"schema":null,"payload":null}'
# timestamp, key, value and CRC of the records in the book's dumps
DUMPED = (
    (1490746340519, None, b"4", 442199113),
    (1490746347162, None, b"10", 4005880382),
    (1490848047199, KEY, SCHEMA % b"kafka-connect", 2697874837),
    (1490962508781, KEY, SCHEMA % b"restful test", 2046084259),
    (1491039692562, None, b"connect-distributed", 1188385350),
)


@pytest.fixture
def server(broker: BrokerProcess) -> tuple[str, str]:
    return "--bootstrap-server", broker.bootstrap


def make_topic(broker: BrokerProcess, name: str, partitions: int) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(name, partitions, 1)]).check()


def end_offsets(broker: BrokerProcess, topic: str, partitions: int) -> list[int]:
    with Consumer(bootstrap_servers=broker.bootstrap) as consumer:
        found = consumer.end_offsets([TopicPartition(topic, number) for number in range(partitions)])
    return [found[TopicPartition(topic, number)] for number in range(partitions)]


def test_dump_of_messages_of_format_1(tmp_path):
    """The tool dump-log with --print-data-log prints the positions, sizes and checksums of the book."""
    records = [(offset, timestamp, key, value) for offset, (timestamp, key, value, _) in enumerate(DUMPED)]
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(build_message_set(records, magic=1))
    done = run_ours("dump-log", "--files", str(segment), "--print-data-log")
    expected = [f"Dumping {segment}", "Log starting offset: 0"]
    position = 0
    for offset, (timestamp, key, value, crc) in enumerate(DUMPED):
        size = 34 + len(key or b"") + len(value)
        expected.append(
            f"offset: {offset} position: {position} CreateTime: {timestamp} size: {size} magic: 1 compresscodec: none "
            f"crc: {crc} isvalid: true"
        )
        shown_key = f" key: {key.decode()}" if key is not None else ""
        expected.append(
            f"| offset: {offset} CreateTime: {timestamp} keySize: {-1 if key is None else len(key)} "
            f"valueSize: {len(value)} isValid: true crc: {crc}{shown_key} payload: {value.decode()}"
        )
        position += size
    assert done == Done(0, "\n".join(expected) + "\n", "")


def test_keyed_lines_with_a_blank_as_separator(broker: BrokerProcess, server):
    """The end offsets of the three partitions add up to the number of lines, sixteen."""
    make_topic(broker, "kafka-action", 3)
    lines = "".join(f"key{number} value {number}\n" for number in range(16))
    words = ("--reader-property", "parse.key=true", "--reader-property", "key.separator= ")
    assert run_ours("console-producer", *server, "--topic", "kafka-action", *words, input=lines) == Done(0, "", "")
    assert sum(end_offsets(broker, "kafka-action", 3)) == 16
    shown = ("--formatter-property", "print.key=true", "--formatter-property", "key.separator= ")
    read = run_ours(
        "console-consumer", *server, "--topic", "kafka-action", "--from-beginning", "--max-messages", "16", *shown
    )
    assert sorted(read.out.splitlines()) == sorted(lines.splitlines())
    assert read.err == "Processed a total of 16 messages\n"


def test_a_topic_that_is_missing_is_made_by_the_first_record(server):
    assert run_ours("console-producer", *server, "--topic", "producer-create-topic", input="landed\n").code == 0
    words = ("--topic", "producer-create-topic", "--from-beginning", "--max-messages", "1")
    assert run_ours("console-consumer", *server, *words).out == "landed\n"


def test_unicast_multicast_and_a_list_of_topics(server):
    """A group reads a record once, another group reads the same record, and --include reads both topics."""
    for topic in ("multicast-a", "multicast-b"):
        run_ours("console-producer", *server, "--topic", topic, input=f"from {topic}\n")
    reading = ("--topic", "multicast-a", "--from-beginning", "--timeout-ms", "2500")
    outputs = [run_ours("console-consumer", *server, *reading, "--group", group).out for group in ("one", "one", "two")]
    assert outputs == ["from multicast-a\n", "", "from multicast-a\n"]
    both = run_ours(
        "console-consumer", *server, "--include", "multicast-a|multicast-b", "--from-beginning", "--max-messages", "2"
    )
    assert sorted(both.out.splitlines()) == ["from multicast-a", "from multicast-b"]


def test_committed_offsets_are_in_the_groups_partition(broker: BrokerProcess, server):
    """The group's partition of __consumer_offsets is 6, and its committed offsets are the ends of the log."""
    make_topic(broker, "offsets-foo", 3)
    run_ours(
        "console-producer",
        *server,
        "--topic",
        "offsets-foo",
        "--reader-property",
        "parse.key=true",
        input="".join(f"{number}\tvalue\n" for number in range(36)),
    )
    group = ("--group", "new-consumer-test", "--from-beginning", "--max-messages", "36")
    run_ours("console-consumer", *server, "--topic", "offsets-foo", *group)
    words = ("--topic", "__consumer_offsets", "--partition", "6", "--from-beginning", "--timeout-ms", "3000")
    shown = run_ours("console-consumer", *server, *words, "--formatter", OFFSETS).out
    committed: dict[int, int] = {}
    decoder = json.JSONDecoder()
    while shown:
        record, end = decoder.raw_decode(shown)
        shown = shown[end:]
        if record["key"]["data"]["group"] != "new-consumer-test":
            continue  # a tool's group with a random name may have the same partition
        committed[record["key"]["data"]["partition"]] = record["value"]["data"]["offset"]
    assert [committed[number] for number in range(3)] == end_offsets(broker, "offsets-foo", 3)


def test_the_lines_of_the_performance_tools(server):
    """The rate has six decimals, a megabyte is 1,048,576 bytes, percentiles are whole numbers."""
    produced = run_ours(
        *("producer-perf-test", "--topic", "producer-perf-test", "--num-records", "1000", "--record-size", "1000"),
        *("--throughput", "-1", "--producer-props", f"bootstrap.servers={server[1]}", "acks=all"),
    )
    line = produced.out.splitlines()[-1]
    assert re.fullmatch(
        r"1000 records sent, \d+\.\d{6} records/sec \(\d+\.\d\d MB/sec\), \d+\.\d\d ms avg latency, \d+\.\d\d ms max "
        r"latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\.",
        line,
    )
    rate, megabytes = map(float, re.search(r"([\d.]+) records/sec \(([\d.]+) MB", line).groups())
    assert abs(rate * 1000 / 1048576 - megabytes) < 0.01
    consumed = run_ours("consumer-perf-test", *server, "--topic", "producer-perf-test", "--num-records", "1000")
    head, row = consumed.out.splitlines()
    assert head.startswith("start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec")
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"
    assert re.fullmatch(rf"{time}, {time}, 0\.9537, \d+\.\d{{4}}, 1000, \d+\.\d{{4}}, .*", row)
