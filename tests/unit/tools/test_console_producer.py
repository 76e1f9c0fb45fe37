"""The tool console-producer: its configuration, its reader's properties, and its handling of failed records."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.errors import ApiError, Error
from kafkapy.tools.console_producer import TOOL, ConsoleProducer, check, producer_properties, reader_properties
from kafkapy.tools.line_reader import InputRecord
from kafkapy.tools.option import Arguments, UsageError
from kafkapy.tools.option_parser import OptionParser
from tests.unit.tools.simulated_client import SimulatedProducer

TOO_LARGE = ApiError(Error.MESSAGE_TOO_LARGE)
RECORDS = [InputRecord("t", None, b"a"), InputRecord("t", b"k", b"b", (("h", b"1"),)), InputRecord("t", b"k", None)]


def parsed(words: str) -> Arguments:
    return OptionParser(TOOL.all_options).parse(["--bootstrap-server", "localhost:9092", *words.split()])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", 'Missing required argument "\\[topic\\]"'),
        ("--topic t --property a=b --reader-property a=b", "Options --reader-property and --property cannot"),
        ("--topic t --producer.config a --command-config a", "Options --command-config and --producer.config cannot"),
    ],
)
def test_contradictory_flags_are_refused(words: str, message: str):
    with pytest.raises(UsageError, match=message):
        check(parsed(words))


def test_addresses_are_checked_with_kafkas_text():
    with pytest.raises(UsageError, match="Please provide valid host:port"):
        check(OptionParser(TOOL.all_options).parse(["--topic", "t", "--bootstrap-server", "localhost"]))


def test_deprecated_flags_are_reported(capsys: pytest.CaptureFixture[str]):
    check(parsed("--topic t --property parse.key=true --max-partition-memory-bytes 5"))
    assert [line.split(" is ")[0] for line in capsys.readouterr().out.splitlines()] == [
        "Warning: --property",
        "Warning: --max-partition-memory-bytes",
    ]


@pytest.mark.parametrize(
    ("words", "codec"), [("", "none"), ("--compression-codec", "gzip"), ("--compression-codec zstd", "zstd")]
)
def test_the_codec(words: str, codec: str):
    assert producer_properties(parsed(f"--topic t {words}"))["compression.type"] == codec


def test_a_flags_default_gives_way_to_a_property_and_a_given_flag_does_not(tmp_path: Path):
    path = tmp_path / "producer.properties"
    path.write_text("acks=1\nlinger.ms=7\n")
    words = f"--topic t --command-config {path} --command-property retries=9"
    properties = producer_properties(parsed(words))
    assert {key: properties[key] for key in ("acks", "linger.ms", "retries", "batch.size", "client.id")} == {
        "acks": "1",
        "linger.ms": "7",
        "retries": "9",
        "batch.size": "16384",
        "client.id": "console-producer",
    }
    properties = producer_properties(parsed(f"{words} --request-required-acks all --timeout 3"))
    assert (properties["acks"], properties["linger.ms"]) == ("all", "3")
    assert producer_properties(parsed("--topic t --max-partition-memory-bytes 5"))["batch.size"] == "5"


def test_reader_properties_of_flags_take_precedence_over_the_file(tmp_path: Path):
    path = tmp_path / "reader.properties"
    path.write_text("parse.key=true\nkey.separator=:\n")
    words = f"--topic t --reader-config {path} --reader-property key.separator=;"
    assert reader_properties(parsed(words)) == {"topic": "t", "parse.key": "true", "key.separator": ";"}


def test_failures_are_counted_and_the_other_records_sent(caplog: pytest.LogCaptureFixture):
    producer = SimulatedProducer({b"b": TOO_LARGE})
    console = ConsoleProducer(producer, is_synchronous=False)
    console.send_all(iter(RECORDS))
    assert producer.sent == [
        ("t", None, b"a", None),
        ("t", b"k", b"b", (("h", b"1"),)),
        ("t", b"k", None, None),
    ]
    assert console.failures == 1
    assert "Error when sending message to topic t with key: 1 bytes, value: 1 bytes with error: " in caplog.text


def test_a_synchronous_producer_ends_at_the_first_failure():
    producer = SimulatedProducer({b"b": TOO_LARGE})
    with pytest.raises(ApiError, match="MESSAGE_TOO_LARGE"):
        ConsoleProducer(producer, is_synchronous=True).send_all(iter(RECORDS))
    assert [value for _, _, value, _ in producer.sent] == [b"a", b"b"]
