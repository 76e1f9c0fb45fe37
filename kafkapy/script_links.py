"""The command `kafkapy install-links DIRECTORY`: creates links with the names of Apache Kafka's scripts."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

USAGE = """usage: kafkapy install-links DIRECTORY

Creates links to this program in DIRECTORY with the names of Apache Kafka's scripts, with and without `.sh`; started by
such a name the program runs the script's tool. Files that exist already and are not such links are left unchanged and
listed, and the exit code is 1."""


def install_links(arguments: list[str], names: Iterable[str], called_as: str) -> int:
    """Creates links with the names of scripts, which point to this program, and returns the exit code.

    `arguments` has the directory for the links, or `--help`. `names` are the scripts, without `.sh`; `called_as` is the
    name or path by which this program was started. The exit code is 1 if a file with one of the names exists already,
    or if the links cannot be created.
    """
    if len(arguments) != 1 or arguments[0].startswith("-"):
        is_help = arguments[:1] in (["--help"], ["-h"])
        print(USAGE, file=sys.stdout if is_help else sys.stderr)
        return 0 if is_help else 1
    program = shutil.which(called_as)
    if program is None or program.endswith(".py"):
        print(f"kafkapy install-links: {called_as} is not a program that a link can point to", file=sys.stderr)
        return 1
    directory, target = Path(arguments[0]), Path(program).resolve()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        occupied = [path for name in names for path in _link(directory, name, target)]
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"kafkapy install-links: {error.strerror}: {error.filename}", file=sys.stderr)
        return 1
    for path in occupied:
        print(f"kafkapy install-links: {path} exists already and was left unchanged", file=sys.stderr)
    return 1 if occupied else 0


def _link(directory: Path, name: str, target: Path) -> list[Path]:
    """Creates the links `name` and `name.sh` to `target` in the directory. Returns those of the two paths at which
    another file exists already; that file stays unchanged.
    """
    occupied = []
    for path in (directory / name, directory / f"{name}.sh"):
        if path.is_symlink() and path.resolve() == target:
            continue
        if path.is_symlink() or path.exists():
            occupied.append(path)
            continue
        path.symlink_to(target)
        print(path)
    return occupied
