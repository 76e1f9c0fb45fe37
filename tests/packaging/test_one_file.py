"""The file that unpacks itself once, tested with a folder that has a script instead of the program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """#!/bin/sh
echo "$KAFKAPY_PROGRAM"
for word in "$@"; do echo "<$word>"; done
cat "${0%/*}/data/text"
exit 7
"""


def run(program: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH",)}
    return subprocess.run(
        [program, *arguments], env=kept | environment, capture_output=True, text=True, timeout=30, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "text").write_text("unpacked\n")
    (folder / "kafkapy").write_text(PROGRAM)
    (folder / "kafkapy").chmod(0o755)
    return folder


def pack(folder: Path, target: Path) -> Path:
    subprocess.run([sys.executable, ROOT / "packaging" / "one_file.py", folder, target], check=True)
    return target


@pytest.fixture
def program(folder: Path, tmp_path: Path) -> Path:
    return pack(folder, tmp_path / "kafkapy")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "a cache"


def test_it_is_unpacked_once(program: Path, cache: Path):
    done = run(program, "broker", "two words", "", KAFKAPY_CACHE=str(cache))
    assert (done.returncode, done.stderr) == (7, "")
    assert done.stdout == f"{program}\n<broker>\n<two words>\n<>\nunpacked\n"
    (unpacked,) = cache.iterdir()
    (unpacked / "data" / "text").write_text("from before\n")
    assert run(program, KAFKAPY_CACHE=str(cache)).stdout.endswith("from before\n")
    assert unpacked.stat().st_mode & 0o777 == 0o755


def test_each_build_has_its_place(program: Path, folder: Path, cache: Path, tmp_path: Path):
    run(program, KAFKAPY_CACHE=str(cache))
    (folder / "data" / "text").write_text("newer\n")
    newer = pack(folder, tmp_path / "newer")
    assert run(newer, KAFKAPY_CACHE=str(cache)).stdout.endswith("newer\n")
    assert run(program, KAFKAPY_CACHE=str(cache)).stdout.endswith("unpacked\n")
    assert len(list(cache.iterdir())) == 2


def test_a_link_keeps_its_name(program: Path, cache: Path, tmp_path: Path):
    link = tmp_path / "kafka-topics.sh"
    link.symlink_to(program)
    assert run(link, KAFKAPY_CACHE=str(cache)).stdout.startswith(f"{link}\n")
    by_path = run(Path("kafka-topics.sh"), PATH=f"{tmp_path}:{os.environ['PATH']}", KAFKAPY_CACHE=str(cache))
    assert by_path.stdout.startswith(f"{link}\n")


def test_the_home_directory_when_nothing_is_said(program: Path, tmp_path: Path):
    """Runs as a user who cannot write to /var/cache, by a launcher with another folder."""
    elsewhere = tmp_path / "elsewhere"
    text = program.read_bytes().replace(b"first=/var/cache/", b"first=/proc/none/", 1)
    elsewhere.write_bytes(text)
    elsewhere.chmod(0o755)
    home = tmp_path / "home"
    assert run(elsewhere, HOME=str(home)).returncode == 7
    assert (home / ".cache" / "kafkapy").is_dir()
    assert run(elsewhere, XDG_CACHE_HOME=str(tmp_path / "xdg")).returncode == 7
    assert (tmp_path / "xdg" / "kafkapy").is_dir()


def test_many_at_once(program: Path, cache: Path):
    command, environment = [str(program), "x"], {**os.environ, "KAFKAPY_CACHE": str(cache)}
    started = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    outputs = [process.communicate(timeout=30)[0] for process in started]
    assert outputs == [f"{program}\n<x>\nunpacked\n"] * 8
    assert len(list(cache.iterdir())) == 1, "nothing is left over"


def test_no_place(program: Path, tmp_path: Path):
    (tmp_path / "file").touch()
    done = run(program, KAFKAPY_CACHE=str(tmp_path / "file"))
    assert done.returncode == 1
    assert re.fullmatch(r"kafkapy: .*/file.*cannot be written to.*KAFKAPY_CACHE\n", done.stderr), done.stderr


def test_a_file_that_was_cut_off(program: Path, cache: Path):
    content = program.read_bytes()
    program.write_bytes(content[: len(content) - 40])
    done = run(program, KAFKAPY_CACHE=str(cache))
    assert done.returncode == 1
    assert "could not be unpacked" in done.stderr
    assert list(cache.iterdir()) == []


def test_the_same_folder_gives_the_same_bytes(program: Path, folder: Path, tmp_path: Path):
    os.utime(folder / "data" / "text", (1, 1))
    assert pack(folder, tmp_path / "again").read_bytes() == program.read_bytes()
