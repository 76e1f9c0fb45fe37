"""The doctor's checks of the clock."""

from __future__ import annotations

from pathlib import Path

from kafkapy.tools.diagnosis.clock import check_clock, is_synchronized
from tests.diagnosis_machine import NOW_S, complaints, machine, only


def test_a_synchronized_clock_is_good(tmp_path: Path):
    assert complaints(check_clock(machine(tmp_path), NOW_S - 5, synchronized=True)) == []
    assert complaints(check_clock(machine(tmp_path), 0, synchronized=None)) == []


def test_a_clock_without_synchronization_is_a_warning(tmp_path: Path):
    assert only(check_clock(machine(tmp_path), 0, synchronized=False)).level == "warning"


def test_a_clock_that_was_set_back_is_a_warning(tmp_path: Path):
    found = only(check_clock(machine(tmp_path), NOW_S + 7200, synchronized=True))
    assert found.text == "a segment was written to 2.0 hours in the future"


def test_a_slow_source_is_noted(tmp_path: Path):
    source = {"sys__devices__system__clocksource__clocksource0__current_clocksource": "acpi_pm"}
    assert only(check_clock(machine(tmp_path, **source), 0, synchronized=True)).level == "note"


def test_the_kernel_reports_the_state_of_the_clock():
    assert is_synchronized() in (True, False, None)
