"""The producer performance test: its command line, payloads, transactions and summaries, with a simulated producer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkapy.errors import ApiError, Error
from kafkapy.tools.option import Arguments, ToolError, UsageError
from kafkapy.tools.producer_perf_test import TOOL, ProducerTest, check, payloads_of, producer_properties, read_payloads
from kafkapy.tools.tool import parse
from tests.unit.tools.simulated_client import SimulatedProducer

USUAL = "--topic t --num-records 10 --throughput -1 --bootstrap-server localhost:9092"


def parsed(words: str) -> Arguments:
    _, arguments = parse(TOOL, [*USUAL.split(), *words.split()])
    return arguments


def run_test(words: str, producer: SimulatedProducer, transaction_ms: int | None = None) -> ProducerTest:
    arguments = parsed(words)
    check(arguments)
    test = ProducerTest(producer, arguments, transaction_ms)
    test.send_all(payloads_of(arguments))
    return test


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--record-size 0", "--record-size should be greater than zero"),
        ("--record-size 1 --num-records 0", "asked for only one|--num-records should be greater than zero"),
        ("--record-size 1 --warmup-records 10", "--warmup-records must be strictly fewer"),
        ("--record-size 1 --transaction-duration-ms 0", "--transaction-duration-ms should be greater than zero"),
        ("--record-size 1 --reporting-interval 0", "--reporting-interval should be greater than zero"),
        ("--record-size 1 --command-property a=b --producer-props a=b", "cannot be specified together"),
        ("--record-size 1 --payload-monotonic", "not allowed with argument --record-size"),
        ("", "one of the arguments --record-size --payload-file --payload-monotonic is required"),
    ],
)
def test_invalid_command_lines_are_refused(words: str, message: str):
    with pytest.raises(UsageError, match=message):
        check(parsed(words))


def test_the_configuration(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    path = tmp_path / "producer.properties"
    path.write_text("acks=1\nbootstrap.servers=elsewhere:1\n")
    words = f"--record-size 1 --producer.config {path} --producer-props linger.ms=3 --transaction-duration-ms 5"
    properties = producer_properties(parsed(words))
    assert properties["bootstrap.servers"] == "localhost:9092"
    assert (properties["acks"], properties["linger.ms"]) == ("1", "3")
    assert properties["transactional.id"].startswith("performance-producer-")
    assert capsys.readouterr().out.count("has been deprecated") == 2
    assert "transactional.id" not in producer_properties(parsed("--record-size 1"))
    assert producer_properties(parsed("--record-size 1 --transactional-id me"))["transactional.id"] == "me"
    with pytest.raises(ToolError, match="Invalid property: a"):
        producer_properties(parsed("--record-size 1 --command-property a"))


def test_payloads(tmp_path: Path):
    payload_of = payloads_of(parsed("--record-size 20"))
    assert all(len(payload_of(number)) == 20 and payload_of(number).isalpha() for number in range(5))
    assert [payloads_of(parsed("--payload-monotonic"))(number) for number in (0, 12)] == [b"0", b"12"]
    path = tmp_path / "payloads"
    path.write_text("a;b;")
    payload_of = payloads_of(parsed(f"--payload-file {path} --payload-delimiter ;"))
    assert {payload_of(number) for number in range(50)} == {b"a", b"b"}
    path.write_text("")
    with pytest.raises(ToolError, match="File does not exist or empty file provided"):
        payloads_of(parsed(f"--payload-file {path}"))


@pytest.mark.parametrize(
    ("delimiter", "content", "values"),
    [
        ("\\n", "a\n\nb\n", {b"a", b"", b"b"}),
        ("\\t", "a\tb", {b"a", b"b"}),
        ("\\|\\|", "||a|b||c||", {b"a|b", b"c"}),
        ("[\r\n]+", "a\r\nb\r\n", {b"a", b"b"}),
    ],
)
def test_the_delimiter_of_payloads_is_a_regular_expression(delimiter: str, content: str, values: set, tmp_path: Path):
    path = tmp_path / "payloads"
    path.write_bytes(content.encode())
    assert set(read_payloads(str(path), delimiter)) == values


def test_delimiters_that_divide_nothing_are_refused(tmp_path: Path):
    path = tmp_path / "payloads"
    path.write_text(";")
    with pytest.raises(ToolError, match="contains nothing but delimiters"):
        read_payloads(str(path), ";")
    with pytest.raises(ToolError, match=r"--payload-delimiter \( is not a regular expression"):
        read_payloads(str(path), "(")


def test_all_records_are_sent_and_failures_counted(capsys: pytest.CaptureFixture[str]):
    producer = SimulatedProducer({b"3": ApiError(Error.MESSAGE_TOO_LARGE)})
    test = run_test("--payload-monotonic", producer)
    assert [value for _, _, value, _ in producer.sent] == [b"%d" % number for number in range(10)]
    assert (test.failures, test.stats.count, test.stats.bytes) == (1, 9, 9)
    assert "MESSAGE_TOO_LARGE" in capsys.readouterr().err


@pytest.mark.parametrize(("duration_ms", "transactions"), [(0, 10), (3_600_000, 1)])
def test_records_are_sent_within_transactions(duration_ms: int, transactions: int):
    producer = SimulatedProducer()
    run_test("--payload-monotonic", producer, duration_ms)
    assert producer.events == ["begin", *["send"] * (10 // transactions), "commit"] * transactions


def test_records_of_the_warm_up_are_left_out_of_the_second_summary(capsys: pytest.CaptureFixture[str]):
    run_test("--payload-monotonic --warmup-records 4 --json", SimulatedProducer()).print_totals()
    totals = json.loads(capsys.readouterr().out)
    assert (totals["records"], totals["steadyState"]["records"]) == (10, 6)
    run_test("--payload-monotonic --warmup-records 4", SimulatedProducer()).print_totals()
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("10 records sent, ")
    assert second.startswith("6 steady state records sent, ")
