"""Damaged, foreign and duplicate log directories: Apache Kafka and kafkapy behave in the same way."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.swap.damaged_directory import RECORDS, Damage, DamagedDirectory

ALL = list(range(RECORDS))


def doubled(directories: DamagedDirectory) -> None:
    partition = directories.partition("t-0")
    (other,) = [each for each in directories.kafka.log_dirs if each != partition.parent]
    shutil.copytree(partition, other / "t-0")


def foreign_directory(directories: DamagedDirectory) -> None:
    (directories.kafka.log_dirs[1] / "photos").mkdir()


def foreign_files_and_damaged_indexes(directories: DamagedDirectory) -> None:
    """Adds files with unknown names, and damages indexes and producer snapshots."""
    (directories.kafka.log_dirs[0] / "notes.txt").write_text("x")
    partition = directories.partition("t-0")
    (partition / "notes.txt").write_text("x")
    (partition / "17.log").write_bytes(b"abc")
    cut, rubbish = [path.with_suffix(".index") for path in directories.segments()[:2]]
    cut.write_bytes(cut.read_bytes()[:-5])
    rubbish.write_bytes(b"\xff" * len(rubbish.read_bytes()))
    for snapshot in partition.glob("*.snapshot"):
        snapshot.write_bytes(snapshot.read_bytes()[:-3])


def empty_segment(directories: DamagedDirectory) -> None:
    directories.segments()[1].write_bytes(b"")


def torn_recovery_points(directories: DamagedDirectory) -> None:
    for directory in directories.kafka.log_dirs:
        (directory / "recovery-point-offset-checkpoint").write_text("0\n2\nt 0 4\nu 0")


def torn_start_offsets(directories: DamagedDirectory) -> None:
    for directory in directories.kafka.log_dirs:
        (directory / "log-start-offset-checkpoint").write_text("0\n2\nt 0 4\nu 0")


def torn_high_watermarks(directories: DamagedDirectory) -> None:
    for directory in directories.kafka.log_dirs:
        (directory / "replication-offset-checkpoint").write_text("0\n2\nt 0 4\nu 0")


def strays(directories: DamagedDirectory) -> None:
    for name in ("gone-0", "t-1"):
        stray = directories.kafka.log_dirs[0] / name
        stray.mkdir()
        (stray / "partition.metadata").write_text("version: 0\ntopic_id: Fqhl_cLKS-CloX4J2ksPDQ")
        (stray / "00000000000000000000.log").write_bytes(b"")


REFUSED: list[tuple[Damage, str]] = [
    (doubled, "Duplicate log directories for t-0"),
    (foreign_directory, "'photos' is not in the form of topic-partition"),
    (torn_start_offsets, "log-start-offset-checkpoint"),
]
COMPARED: list[Damage] = [empty_segment, strays, torn_recovery_points, torn_high_watermarks]


@pytest.fixture
def stopped(kafka_43: Path, tmp_path: Path) -> DamagedDirectory:
    return DamagedDirectory(kafka_43, tmp_path, killed=False)


@pytest.fixture
def killed(kafka_43: Path, tmp_path: Path) -> DamagedDirectory:
    return DamagedDirectory(kafka_43, tmp_path, killed=True)


@pytest.mark.timeout(600)
def test_refused(stopped: DamagedDirectory) -> None:
    for damage, reason in REFUSED:
        assert stopped.observe(stopped.kafka, damage) == {"starts": False}
        assert stopped.observe(stopped.ours, damage) == {"starts": False}
        for server in (stopped.kafka, stopped.ours):
            assert reason in server.log(), damage.__name__


def compare(directories: DamagedDirectory, damage: Damage, check: Callable[[dict[str, object]], None]) -> None:
    by_kafka = directories.observe(directories.kafka, damage)
    by_us = directories.observe(directories.ours, damage)
    assert by_us == by_kafka, damage.__name__
    check(by_us)


def serves_everything(found: dict[str, object]) -> None:
    assert found["t"] == found["u"] == ALL


@pytest.mark.timeout(600)
def test_served_after_a_clean_stop(stopped: DamagedDirectory) -> None:
    compare(stopped, foreign_files_and_damaged_indexes, serves_everything)


@pytest.mark.timeout(600)
def test_served_after_a_kill(killed: DamagedDirectory) -> None:
    compare(killed, foreign_files_and_damaged_indexes, serves_everything)
