"""The doctor's checks of limits of the process and the kernel, on simulated machines."""

from __future__ import annotations

from pathlib import Path

from kafkapy.tools.diagnosis.limits import check_limits
from tests.diagnosis_machine import complaints, machine, only


def test_a_good_machine_has_no_findings(tmp_path: Path):
    assert complaints(check_limits(machine(tmp_path), 1000)) == []


def test_few_open_files_are_a_warning_or_a_problem(tmp_path: Path):
    few = only(check_limits(machine(tmp_path, limit=1024), 1000))
    assert few.level == "problem"
    assert few.text == "1024 files may be open; 1000 partitions need up to 2100, and each connection one more"
    assert only(check_limits(machine(tmp_path, limit=1024), 10)).level == "warning"


def test_few_memory_maps_are_a_warning(tmp_path: Path):
    found = only(check_limits(machine(tmp_path, proc__sys__vm__max_map_count="65530"), 20_000))
    assert (found.level, found.advice) == ("warning", "sysctl vm.max_map_count=262144")
    assert "20000 partitions need up to 80000" in found.text


def test_little_memory_is_a_warning(tmp_path: Path):
    full = "MemTotal: 8000000 kB\nMemAvailable: 100000 kB\nSwapTotal: 0 kB\n"
    assert only(check_limits(machine(tmp_path, proc__meminfo=full), 0)).text.startswith("102.4 MB of 8.2 GB are free")


def test_swapping_is_judged_by_swappiness(tmp_path: Path):
    memory = "MemTotal: 8000000 kB\nMemAvailable: 7000000 kB\nSwapTotal: 4000000 kB\n"
    eager = only(check_limits(machine(tmp_path, proc__meminfo=memory), 0))
    assert (eager.level, eager.advice) == ("warning", "sysctl vm.swappiness=1")
    calm = only(check_limits(machine(tmp_path, proc__meminfo=memory, proc__sys__vm__swappiness="1"), 0))
    assert calm.level == "note"


def test_missing_files_of_the_system_are_ignored(tmp_path: Path):
    system = machine(tmp_path)
    for name in ("meminfo", "sys/vm/swappiness", "sys/vm/max_map_count"):
        (tmp_path / "proc" / name).unlink()
    assert complaints(check_limits(system, 1000)) == []
