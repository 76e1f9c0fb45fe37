"""The consumer performance test: its command line, its end, and what it counts, with a simulated consumer and clock."""

from __future__ import annotations

import itertools

import pytest

from kafkapy.client import TopicPartition
from kafkapy.tools import consumer_perf_test
from kafkapy.tools.consumer_perf_test import TOOL, ConsumerTest, JoinTimes, check, consumer_properties
from kafkapy.tools.java_date import JavaDateFormat
from kafkapy.tools.option import Arguments, ToolError, UsageError
from kafkapy.tools.option_parser import OptionParser
from tests.unit.tools.simulated_client import Record, SimulatedConsumer

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
TEN = [Record(b"v" * 90, b"k" * 10, offset=number) for number in range(10)]


def parsed(words: str) -> Arguments:
    return OptionParser(TOOL.all_options).parse(["--bootstrap-server", "localhost:9092", *words.split()])


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the tool's clock by one that advances by 100 ms with each reading."""
    readings = itertools.count(1_700_000_000_000, 100)
    monkeypatch.setattr(consumer_perf_test, "wall_ms", lambda: next(readings))


def run_test(words: str, *polls: list[Record]) -> ConsumerTest:
    test = ConsumerTest(SimulatedConsumer(*polls), parsed(f"--topic t {words}"), JavaDateFormat("HH"))
    test.read_all()
    return test


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("--topic t", UsageError),
        ("--num-records 1", UsageError),
        ("--topic t --include t --num-records 1", UsageError),
        ("--topic t --num-records 1 --messages 1", UsageError),
        ("--topic t --num-records 1 --consumer.config a --command-config a", UsageError),
        ("--topic t --num-records 1 --reporting-interval x", UsageError),
        ("--topic t --num-records 1 --reporting-interval 0", ToolError),
    ],
)
def test_invalid_command_lines_are_refused(words: str, error: type[Exception]):
    with pytest.raises(error):
        check(parsed(words))


def test_deprecated_flags_are_reported(capsys: pytest.CaptureFixture[str]):
    check(parsed("--topic t --messages 5"))
    assert capsys.readouterr().out == "Warning: --messages is deprecated. Use --num-records instead.\n"


def test_the_configuration():
    properties = consumer_properties(parsed("--topic t --num-records 1 --command-property client.id=me"))
    assert properties["group.id"].startswith("perf-consumer-")
    assert (properties["client.id"], properties["auto.offset.reset"]) == ("me", "earliest")
    properties = consumer_properties(parsed("--topic t --num-records 1 --group g --from-latest --fetch-size 9"))
    assert (properties["group.id"], properties["auto.offset.reset"]) == ("g", "latest")
    assert properties["max.partition.fetch.bytes"] == "9"


def test_it_ends_with_the_poll_that_has_the_last_record():
    test = run_test("--num-records 15", TEN, TEN, TEN)
    assert (test.count, test.bytes) == (20, 2000)


def test_it_ends_when_no_record_is_received_in_time(capsys: pytest.CaptureFixture[str]):
    test = run_test("--num-records 15 --timeout 1000", TEN)
    assert test.count == 10
    assert "WARNING: Exiting before consuming the expected number of records: timeout (1000 ms)" in (
        capsys.readouterr().out
    )


def test_stop_ends_it_without_a_warning(capsys: pytest.CaptureFixture[str]):
    test = ConsumerTest(SimulatedConsumer(), parsed("--topic t --num-records 1"), JavaDateFormat("HH"))
    test.stop()
    test.read_all()
    assert (test.count, capsys.readouterr().out) == (0, "")


def test_totals_leave_the_time_of_rebalances_out_of_the_fetch_time():
    test = run_test("--num-records 10", TEN)
    test.joins.total_ms = 100
    totals = test.totals()
    elapsed_ms = test.end_ms - test.start_ms
    assert totals["data.consumed.in.nMsg"] == 10
    assert totals["nMsg.sec"] == pytest.approx(10_000 / elapsed_ms)
    assert totals["fetch.time.ms"] == elapsed_ms - 100
    assert totals["fetch.nMsg.sec"] == pytest.approx(10_000 / (elapsed_ms - 100))
    assert totals["data.consumed.in.MB"] == pytest.approx(1000 / 1024 / 1024)


def test_a_line_in_each_interval(capsys: pytest.CaptureFixture[str]):
    run_test("--num-records 30 --show-detailed-stats --reporting-interval 200", TEN, TEN, TEN)
    (line,) = capsys.readouterr().out.splitlines()
    cells = line.split(", ")
    assert (cells[1], cells[4], cells[5]) == ("0", "20", "100.0000")


def test_the_time_without_partitions_is_measured():
    joins = JoinTimes()  # reads the clock once
    joins.on_partitions_assigned([A])
    assert (joins.total_ms, joins.round_ms) == (100, 100)
    joins.on_partitions_assigned([B])
    joins.on_partitions_revoked([A])
    assert joins.total_ms == 100, "a partition is left"
    joins.on_partitions_lost([B])
    joins.on_partitions_assigned([A])
    assert joins.total_ms == 200


def test_rates_without_time_are_javas():
    assert consumer_perf_test.shown_decimal(consumer_perf_test.per_second(5, 0)) == "Infinity"
    assert consumer_perf_test.shown_decimal(consumer_perf_test.per_second(0, 0)) == "NaN"
    assert consumer_perf_test.shown_decimal(consumer_perf_test.per_second(5, 2000)) == "2.5000"
