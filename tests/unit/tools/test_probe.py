"""The probe: what it sends, counts, prints and serves, with a simulated path instead of a broker."""

from __future__ import annotations

import re

import pytest

from kafkapy.tools.probe import Measurements, Outcome, Report, main, probe

GOOD = Outcome(0.004, 0.02)
UNREAD = Outcome(0.004, None, "the record was acknowledged and could not be read in time")
UNSENT = Outcome(None, None, "Connection refused")


class SimulatedPath:
    """A path that returns the outcomes of a list in order."""

    def __init__(self, *outcomes: Outcome) -> None:
        self._outcomes = list(outcomes)
        self.sent: list[int] = []

    def send(self, number: int) -> Outcome:
        self.sent.append(number)
        return self._outcomes[number]

    def close(self) -> None:
        """Does nothing: there is nothing to close."""


def run_probe(*outcomes: Outcome, as_csv: bool = False, only_failures: bool = False) -> tuple[int, Measurements]:
    pauses: list[float] = []
    path, measurements = SimulatedPath(*outcomes), Measurements()
    report = Report(as_csv=as_csv, only_failures=only_failures)
    failures = probe(path, measurements, report, interval_s=3600, count=len(outcomes), sleep=pauses.append)
    assert path.sent == list(range(len(outcomes)))
    assert len(pauses) == len(outcomes) - 1, "no pause after the last record"
    assert all(0 < pause <= 3600 for pause in pauses)
    return failures, measurements


def test_failures_are_counted_and_printed_with_their_reason(capsys: pytest.CaptureFixture[str]):
    failures, measurements = run_probe(GOOD, UNREAD, UNSENT)
    assert (failures, measurements.attempts, measurements.is_up) == (2, 3, False)
    lines = [line.partition(" ")[2] for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "ok: acknowledged in 4.00 ms, read in 20.00 ms",
        f"failed: {UNREAD.reason}",
        "failed: Connection refused",
    ]


def test_csv_has_a_header_and_empty_cells_for_what_did_not_happen(capsys: pytest.CaptureFixture[str]):
    run_probe(GOOD, UNREAD, UNSENT, as_csv=True)
    header, *rows = capsys.readouterr().out.splitlines()
    assert header == "time,outcome,produce_ms,end_to_end_ms,reason"
    assert [row.partition(",")[2] for row in rows] == [
        "ok,4.00,20.00,",
        f"failed,4.00,,{UNREAD.reason}",
        "failed,,,Connection refused",
    ]


def test_quiet_prints_failures_only(capsys: pytest.CaptureFixture[str]):
    run_probe(GOOD, UNSENT, GOOD, only_failures=True)
    assert re.fullmatch(r"\S+ failed: Connection refused\n", capsys.readouterr().out)


def test_the_page_has_cumulative_buckets(capsys: pytest.CaptureFixture[str]):
    _, measurements = run_probe(GOOD, UNREAD, UNSENT)
    lines = bytes(measurements.page().body).decode().splitlines()
    assert "kafkapy_probe_attempts_total 3" in lines
    assert "kafkapy_probe_failures_total 2" in lines
    assert "kafkapy_probe_up 0" in lines
    assert 'kafkapy_probe_seconds_bucket{le="0.01"} 0' in lines
    assert 'kafkapy_probe_seconds_bucket{le="0.02"} 1' in lines
    assert 'kafkapy_probe_seconds_bucket{le="+Inf"} 1' in lines
    assert "kafkapy_probe_produce_seconds_count 2" in lines


def test_help_names_the_exit_codes_the_end_and_the_topic(capsys: pytest.CaptureFixture[str]):
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert "Runs until it is interrupted" in printed
    assert "Creates the topic kafkapy-probe" in printed
    assert "Exit codes: 0 " in printed


def test_intervals_must_be_positive(capsys: pytest.CaptureFixture[str]):
    assert main(["--bootstrap-server", "localhost:1", "--interval", "0"]) == 1
    assert capsys.readouterr().err.startswith("--interval takes a number of seconds above 0\n")
