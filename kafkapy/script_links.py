"""`kafkapy install-links DIRECTORY`: links to this program under the names of Apache Kafka's scripts."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

USAGE = """usage: kafkapy install-links DIRECTORY

Puts links for every tool into DIRECTORY, named like Apache Kafka's script for it, with and without `.sh`; run by such
a name this program is that tool. What is there already and is no link to this program stays, and is named."""


def install_links(arguments: list[str], names: Iterable[str], called_as: str) -> int:
    """The exit code. `names`: the scripts, without `.sh`; `called_as`: by what this program was started."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        is_help = arguments[:1] in (["--help"], ["-h"])
        print(USAGE, file=sys.stdout if is_help else sys.stderr)
        return 0 if is_help else 1
    program = shutil.which(called_as)
    if program is None or program.endswith(".py"):
        print(f"kafkapy install-links: {called_as} is not a program that a link can stand for", file=sys.stderr)
        return 1
    directory, target = Path(arguments[0]), Path(program).resolve()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        kept = [path for name in names for path in _link(directory, name, target)]
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"kafkapy install-links: {error.strerror}: {error.filename}", file=sys.stderr)
        return 1
    for path in kept:
        print(f"kafkapy install-links: {path} is there already and was left alone", file=sys.stderr)
    return 1 if kept else 0


def _link(directory: Path, name: str, target: Path) -> list[Path]:
    """Makes the links of one script; the paths that others have taken."""
    kept = []
    for path in (directory / name, directory / f"{name}.sh"):
        if path.is_symlink() and path.resolve() == target:
            continue
        if path.is_symlink() or path.exists():
            kept.append(path)
            continue
        path.symlink_to(target)
        print(path)
    return kept
