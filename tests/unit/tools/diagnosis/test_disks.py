"""The doctor's checks of disks: access, free space, file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.tools.diagnosis.disks import check_disks
from tests.diagnosis_machine import complaints, machine


def found_on(tmp_path: Path, mount: str, *directories: Path) -> list[tuple[str, str]]:
    system = machine(tmp_path / "root", proc__self__mounts=f"/dev/a / ext4 rw,noatime 0 0\n{mount} 0 0\n")
    return complaints(check_disks(system, [str(each) for each in directories or (tmp_path,)]))


@pytest.mark.parametrize(
    ("file_system", "level", "part"),
    [
        ("ext4 rw,noatime", None, ""),
        ("xfs rw,relatime", None, ""),
        ("ext4 rw,strictatime", "warning", "records the time of each read"),
        ("ext4 rw", "warning", "records the time of each read"),
        ("ext4 ro,relatime", "problem", "read-only"),
        ("tmpfs rw,relatime", "warning", "lost at a reboot"),
        ("nfs4 rw,relatime", "warning", "over a network"),
        ("btrfs rw,noatime", "note", "copies overwritten blocks"),
    ],
)
def test_file_systems_and_mount_options_are_judged(tmp_path: Path, file_system: str, level: str | None, part: str):
    found = found_on(tmp_path, f"/dev/b {tmp_path} {file_system}")
    assert [each[0] for each in found] == ([level] if level else []), found
    assert all(part in text for _, text in found)


def test_the_mount_is_the_longest_one_and_the_last_of_equals(tmp_path: Path):
    mounts = f"/dev/b {tmp_path} nfs rw,noatime 0 0\n/dev/c {tmp_path} ext4 rw,noatime 0 0\n/dev/d {tmp_path}x nfs rw"
    assert found_on(tmp_path, mounts) == []


def test_a_missing_directory_is_noted(tmp_path: Path):
    new = tmp_path / "not" / "yet"
    assert found_on(tmp_path, "x /x x x", new) == [("note", f"{new} does not exist yet; the broker creates it")]


def test_a_file_is_no_directory(tmp_path: Path):
    (tmp_path / "file").touch()
    found = found_on(tmp_path, "x /x x x", tmp_path / "file" / "data")
    assert ("problem", f"{tmp_path}/file is not a directory") in found


def test_two_directories_on_one_disk_are_noted(tmp_path: Path):
    both = tmp_path / "a", tmp_path / "b"
    for each in both:
        each.mkdir()
    assert found_on(tmp_path, "x /x x x", *both) == [("note", f"{both[0]} and {both[1]} are on one file system")]


def test_no_file_is_left_behind(tmp_path: Path):
    (tmp_path / "data").mkdir()
    found_on(tmp_path, "x /x x x", tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []
