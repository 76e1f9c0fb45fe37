"""The random draw of mutants, and the list of those that cannot be told from the original."""

from __future__ import annotations

import difflib
import random
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from tests.mutation import cython_operators, python_operators
from tests.mutation.site import Site

EQUIVALENT = Path(__file__).with_name("equivalent.toml")


class Mutant(NamedTuple):
    """A changed source file; `before` and `after` are the changed lines."""

    path: str
    line: int
    operator: str
    before: str
    after: str
    source: str

    @property
    def key(self) -> str:
        """Identifies the mutant in the results for as long as its line stays where it is."""
        return f"{self.path}:{self.line}: {self.before} -> {self.after}"


def sources(root: Path, folders: Iterable[str]) -> list[Path]:
    """Returns the files of the folders that can be mutated, in a stable order."""
    found = {path for folder in folders for suffix in ("*.py", "*.pyx") for path in (root / folder).rglob(suffix)}
    return sorted(found)


def drawn(root: Path, paths: Iterable[Path], seed: int) -> Iterator[Mutant]:
    """Yields mutants in random order, at most one for each line of source.

    Lines are drawn instead of mutants, because a line with five operators is as important as one with a single call.
    """
    generator = random.Random(seed)
    by_line: dict[tuple[Path, int], list[Site]] = {}
    for path in paths:
        for site in _operators(path).sites(path.read_text()):
            by_line.setdefault((path, site.line), []).append(site)
    lines = list(by_line)
    generator.shuffle(lines)
    for path, line in lines:
        yield mutant(root, path, generator.choice(by_line[path, line]))


def mutant(root: Path, path: Path, site: Site) -> Mutant:
    source = path.read_text()
    mutated = _operators(path).mutate(source, site)
    before, after = changed_lines(source, mutated)
    return Mutant(str(path.relative_to(root)), site.line, site.operator, before, after, mutated)


def changed_lines(source: str, mutated: str) -> tuple[str, str]:
    """Returns the lines that differ, without indentation and joined by a space."""
    difference = list(difflib.ndiff(source.splitlines(), mutated.splitlines()))

    def joined(sign: str) -> str:
        return " ".join(line[2:].strip() for line in difference if line.startswith(sign))

    return joined("- "), joined("+ ")


def equivalents() -> dict[tuple[str, str, str], str]:
    """Returns the reasons of equivalent.toml by path, line before and line after."""
    rows = tomllib.loads(EQUIVALENT.read_text()).get("mutant", [])
    return {(row["path"], row["before"], row["after"]): row["reason"] for row in rows}


def _operators(path: Path) -> ModuleType:
    return cython_operators if path.suffix == ".pyx" else python_operators
