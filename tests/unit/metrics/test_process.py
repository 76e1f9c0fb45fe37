"""The metrics of the process on the metrics page."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafkapy.metrics import process, table
from kafkapy.metrics.page import Page


def written() -> dict[str, float]:
    """Returns the metrics of the process by name."""
    page = Page()
    process.ProcessMetrics().write(page)
    families = text_string_to_metric_families(bytes(page.native).decode())
    return {family.samples[0].name: family.samples[0].value for family in families}


def test_the_process_has_started_after_the_machine_and_before_now() -> None:
    boot_time_s = process.boot_time_s()
    assert boot_time_s is not None
    assert boot_time_s <= written()[table.PROCESS_START.name] <= time.time() + 1


def test_the_start_is_left_out_if_that_of_the_machine_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = written()
    statistics = tmp_path / "stat"
    statistics.write_text("cpu  1 2 3\nprocesses 4\n")
    monkeypatch.setattr(process, "SYSTEM_STATISTICS", str(statistics))
    assert usual.keys() - written().keys() == {table.PROCESS_START.name}
