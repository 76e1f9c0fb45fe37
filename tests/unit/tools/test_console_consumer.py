"""The tool console-consumer: its configuration, where it begins, what it prints and when it ends."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest

from kafkapy.client import TopicPartition, WakeupError
from kafkapy.errors import ApiError, Error
from kafkapy.tools.console_consumer import (
    EARLIEST,
    LATEST,
    TOOL,
    ConsoleConsumer,
    begin,
    check,
    consumer_properties,
    start_offset,
)
from kafkapy.tools.message_formatter import make_formatter
from kafkapy.tools.option import Arguments, ToolError, UsageError
from kafkapy.tools.option_parser import OptionParser
from tests.unit.tools.simulated_client import Record, SimulatedConsumer, numbered

DEFAULT = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
PARTITION = TopicPartition("t", 1)


def parsed(words: str) -> Arguments:
    return OptionParser(TOOL.all_options).parse(["--bootstrap-server", "localhost:9092", *words.split()])


def console(consumer: SimulatedConsumer, *, skips_errors: bool = False, **properties: str) -> ConsoleConsumer:
    formatter = make_formatter(DEFAULT, {name.replace("_", "."): value for name, value in properties.items()})
    return ConsoleConsumer(consumer, formatter, io.BytesIO(), skips_errors=skips_errors)


def printed(console: ConsoleConsumer) -> bytes:
    return console._output.getvalue()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "Exactly one of the following arguments is required"),
        ("--topic t --include t", "Exactly one of the following arguments is required"),
        ("--include t --partition 0", "The topic is required when partition is specified."),
        ("--topic t --offset 3", "The partition is required when offset is specified."),
        ("--topic t --partition 0 --offset 3 --from-beginning", "Options from-beginning and offset cannot"),
        ("--topic t --property a=b --formatter-property a=b", "Options --property and --formatter-property cannot"),
    ],
)
def test_contradictory_flags_are_refused(words: str, message: str):
    with pytest.raises(UsageError, match=message):
        check(parsed(words))


@pytest.mark.parametrize(
    ("words", "offset"),
    [
        ("", LATEST),
        ("--from-beginning", EARLIEST),
        ("--offset earliest", EARLIEST),
        ("--offset LATEST", LATEST),
        ("--offset 0", 0),
        ("--offset 7", 7),
    ],
)
def test_the_first_offset(words: str, offset: int):
    assert start_offset(parsed(f"--topic t --partition 0 {words}")) == offset


@pytest.mark.parametrize("text", ["-1", "-3", "first", "1.5", str(1 << 63)])
def test_offsets_that_are_none_are_refused(text: str):
    with pytest.raises(UsageError, match=f"The provided offset value '{text}' is incorrect"):
        start_offset(parsed(f"--topic t --partition 0 --offset {text}"))


def test_a_consumer_without_a_group_gets_one_and_commits_nothing():
    properties = consumer_properties(parsed("--topic t"))
    assert properties["group.id"].startswith("console-consumer-")
    assert properties["enable.auto.commit"] == "false"
    assert (properties["auto.offset.reset"], properties["isolation.level"]) == ("latest", "read_uncommitted")


def test_flags_take_precedence_over_properties_and_these_over_the_file(tmp_path: Path):
    path = tmp_path / "consumer.properties"
    path.write_text("client.id=file\nmax.poll.records=5\nisolation.level=read_committed\n")
    words = f"--topic t --command-config {path} --command-property client.id=flag --group g"
    properties = consumer_properties(parsed(words))
    assert (properties["client.id"], properties["max.poll.records"]) == ("flag", "5")
    assert (properties["group.id"], properties["isolation.level"]) == ("g", "read_committed")
    assert "enable.auto.commit" not in properties
    properties = consumer_properties(parsed(f"{words} --isolation-level read_uncommitted"))
    assert properties["isolation.level"] == "read_uncommitted"


def test_contradictory_groups_and_resets_are_refused():
    with pytest.raises(UsageError, match=r"do not match\. Detected group ids: 'a', 'b'"):
        consumer_properties(parsed("--topic t --group a --command-property group.id=b"))
    with pytest.raises(UsageError, match="Options group and partition"):
        consumer_properties(parsed("--topic t --partition 0 --group a"))
    with pytest.raises(ToolError, match="Can't simultaneously specify --from-beginning"):
        consumer_properties(parsed("--topic t --from-beginning --command-property auto.offset.reset=latest"))


def test_it_ends_after_the_wanted_records_and_goes_back_to_the_first_unprinted_one():
    consumer = SimulatedConsumer(numbered(2), [*numbered(4)[2:], *numbered(3, partition=1)])
    it = console(consumer)
    it.print_all(3, None)
    assert (printed(it), it.message_count) == (b"0\n1\n2\n", 3)
    assert consumer.positions == {TopicPartition("t", 0): 3, TopicPartition("t", 1): 0}


def test_it_ends_when_no_record_is_received_in_time(caplog: pytest.LogCaptureFixture):
    it = console(SimulatedConsumer(numbered(1)))
    it.print_all(-1, 0)
    assert printed(it) == b"0\n"
    assert "no record was received within 0 ms" in caplog.text


@pytest.mark.parametrize("end", [WakeupError(), ApiError(Error.TOPIC_AUTHORIZATION_FAILED)])
def test_it_ends_when_it_is_woken_or_the_consumer_fails(end: Exception, caplog: pytest.LogCaptureFixture):
    it = console(SimulatedConsumer(numbered(2), end))
    it.print_all(-1, None)
    assert printed(it) == b"0\n1\n"
    assert ("terminating consumer process" in caplog.text) == isinstance(end, ApiError) == it.has_failed


def test_stop_wakes_the_consumer():
    consumer = SimulatedConsumer()
    console(consumer).stop()
    assert consumer.woken == 1


def test_a_record_that_cannot_be_formatted_ends_it_unless_errors_are_skipped():
    records = [Record(b"12345678"), Record(b"short"), Record(b"87654321")]
    long = {"value_deserializer": "org.apache.kafka.common.serialization.LongDeserializer"}
    it = console(SimulatedConsumer(records), **long)
    with pytest.raises(ToolError, match="Size of data received by LongDeserializer is not 8"):
        it.print_all(3, None)
    assert printed(it).count(b"\n") == 1
    it = console(SimulatedConsumer(records), skips_errors=True, **long)
    it.print_all(3, None)
    assert (printed(it).count(b"\n"), it.message_count) == (2, 3)


def test_records_after_one_that_cannot_be_formatted_are_not_committed():
    records = [Record(value, offset=at) for at, value in enumerate((b"12345678", b"short", b"87654321", b"12345678"))]
    consumer = SimulatedConsumer(records)
    it = console(consumer, value_deserializer="org.apache.kafka.common.serialization.LongDeserializer")
    with pytest.raises(ToolError):
        it.print_all(-1, None)
    assert consumer.positions == {TopicPartition("t", 0): 2}


class ClosingPipe(io.BytesIO):
    """An output whose reader ends after the first `count` chunks: it then fails to pass on what was written."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def flush(self) -> None:
        if self._count == 0:
            raise BrokenPipeError
        self._count -= 1


def test_records_that_could_not_be_written_are_not_committed():
    consumer = SimulatedConsumer([*numbered(5)[2:], *numbered(2, partition=1)])
    it = ConsoleConsumer(consumer, make_formatter(DEFAULT, {}), ClosingPipe(0), skips_errors=False)
    with pytest.raises(BrokenPipeError):
        it.print_all(-1, None)
    assert consumer.positions == {TopicPartition("t", 0): 2, TopicPartition("t", 1): 0}


def test_records_that_a_pipe_has_accepted_before_its_reader_ended_are_committed():
    records = [Record(b"x" * 1000, offset=at) for at in range(10)]
    consumer = SimulatedConsumer(records)
    it = ConsoleConsumer(consumer, make_formatter(DEFAULT, {}), ClosingPipe(2), skips_errors=False)
    with pytest.raises(BrokenPipeError):
        it.print_all(-1, None)
    assert consumer.positions == {TopicPartition("t", 0): 8}


def decode_or_fail(topic: str, data: bytes) -> str:
    """A deserializer of the user, which raises an exception of its own for some records."""
    return {b"0": "zero", b"2": "two"}[data]


def test_every_exception_of_a_deserializer_is_an_error_that_can_be_skipped():
    own = {"value_deserializer": f"{__name__}:decode_or_fail"}
    it = console(SimulatedConsumer(numbered(3)), skips_errors=True, **own)
    it.print_all(3, None)
    assert printed(it) == b"zero\ntwo\n"
    with pytest.raises(KeyError):
        console(SimulatedConsumer(numbered(3)), **own).print_all(3, None)


@pytest.mark.parametrize(
    ("words", "position"),
    [("", "end"), ("--from-beginning", "beginning"), ("--offset earliest", "beginning"), ("--offset 5", 5)],
)
def test_a_partition_is_assigned_at_its_offset(words: str, position: int | str):
    consumer = SimulatedConsumer()
    begin(consumer, parsed(f"--topic t --partition 1 {words}"))
    assert (consumer.assigned, consumer.positions) == ([PARTITION], {PARTITION: position})


def test_a_partition_that_does_not_exist_is_reported(caplog: pytest.LogCaptureFixture):
    begin(SimulatedConsumer(partitions=3), parsed("--topic t --partition 9"))
    assert [(each.levelno, each.getMessage()) for each in caplog.records] == [
        (logging.WARNING, "Topic t has 3 partitions; waiting until partition 9 is created")
    ]
    caplog.clear()
    begin(SimulatedConsumer(partitions=0), parsed("--topic t --partition 9"))
    assert not caplog.records, "the topic may be created"


def test_an_expression_has_to_match_whole_names():
    consumer = SimulatedConsumer()
    begin(consumer, parsed("--include a|bc"))
    assert [bool(consumer.subscribed.search(topic)) for topic in ("a", "bc", "ab", "xbc")] == [True, True, False, False]
    with pytest.raises(ToolError, match="is not a regular expression"):
        begin(consumer, parsed("--include ("))
    begin(consumer, parsed("--topic a"))
    assert consumer.subscribed == ["a"]
