"""The tool metrics: the rates of counters between two pages."""

from __future__ import annotations

import pytest

from kafkapy.tools.metrics import Printer, Series


def test_rates_do_not_depend_on_the_clock_of_the_system(capsys: pytest.CaptureFixture[str]):
    """The clock of the system is set back by an hour between the two pages."""
    printer = Printer(as_csv=False, rates=True)
    printer.print_page([Series("bytesin_total", "", 100.0)], 1_700_003_600.0, 10.0)
    printer.print_page([Series("bytesin_total", "", 150.0)], 1_700_000_005.0, 15.0)
    assert capsys.readouterr().out.splitlines()[-1] == "bytesin_total:per_second 10"
