"""The random draw of mutants, and the list of those that cannot be told from the original."""

from __future__ import annotations

import difflib
import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from tests.mutation import cython_operators, python_operators
from tests.mutation.site import Site

EQUIVALENT = Path(__file__).with_name("equivalent.toml")


class Mutant(NamedTuple):
    """A changed source file; `before` and `after` are the changed lines.

    `earlier` counts the lines above with the same text.
    """

    path: str
    line: int
    earlier: int
    operator: str
    before: str
    after: str
    source: str

    @property
    def key(self) -> str:
        """Identifies the mutant in the results, also after a change of other lines."""
        repeated = f" (repetition {self.earlier})" if self.earlier else ""
        return f"{self.path}: {self.before} -> {self.after}{repeated}"


def sources(root: Path, folders: Iterable[str]) -> list[Path]:
    """Returns the files of the folders that can be mutated, in a stable order."""
    found = {path for folder in folders for suffix in ("*.py", "*.pyx") for path in (root / folder).rglob(suffix)}
    return sorted(found)


def drawn(root: Path, paths: Iterable[Path], seed: int) -> Iterator[Mutant]:
    """Yields mutants in random order, at most one for each line of source.

    Lines are drawn instead of mutants, because a line with five operators is as important as one with a single call.
    The seed and the text of a line decide its place in the order and its mutant. A change of the sources therefore
    changes the draw only where lines were added, changed or removed. The sources are read before the first mutant is
    yielded, so that a later change of the files does not matter.
    """
    candidates: list[tuple[int, Path, str, int, list[Site]]] = []
    found_before = _KeptSites(root)
    for path in paths:
        source = path.read_text()
        by_line: dict[int, list[Site]] = {}
        for site in found_before.of(path, source):
            by_line.setdefault(site.line, []).append(site)
        for line, name in _lines(source, by_line):
            identity = f"{seed}\0{path.relative_to(root)}\0{name}"
            rank = int.from_bytes(hashlib.sha256(identity.encode()).digest(), "big")
            candidates.append((rank, path, source, line, by_line[line]))
    found_before.save()
    for rank, path, source, line, found in sorted(candidates, key=lambda candidate: candidate[0]):
        yield mutant(str(path.relative_to(root)), source, line, found[rank % len(found)])


class _KeptSites:
    """The sites of sources, kept in a file because finding them takes milliseconds for each line."""

    def __init__(self, root: Path) -> None:
        self._path = root / "build" / "mutation-sites.json"
        self._sites = json.loads(self._path.read_text()) if self._path.exists() else {}
        self._used: dict[str, list[Site]] = {}

    def of(self, path: Path, source: str) -> list[Site]:
        operators = _operators(path)
        text = Path(operators.__file__ or "").read_text() + source
        digest = hashlib.sha256(text.encode()).hexdigest()
        found = self._sites.get(digest)
        self._used[digest] = list(operators.sites(source)) if found is None else [Site(*each) for each in found]
        return self._used[digest]

    def save(self) -> None:
        if self._used.keys() - self._sites.keys():
            self._path.parent.mkdir(exist_ok=True)
            self._path.write_text(json.dumps({**self._sites, **self._used}))


def _lines(source: str, numbers: Iterable[int]) -> Iterator[tuple[int, str]]:
    """Yields (number, identity) for each of the lines `numbers` of a source.

    The identity is the text of the line and the number of earlier lines with the same text, so that it stays the same
    when lines are added elsewhere.
    """
    wanted = set(numbers)
    seen: dict[str, int] = {}
    for number, line in enumerate(source.splitlines(), 1):
        text = line.strip()
        seen[text] = seen.get(text, -1) + 1
        if number in wanted:
            yield number, f"{text}\0{seen[text]}"


def mutant(path: str, source: str, line: int, site: Site) -> Mutant:
    mutated = _operators(Path(path)).mutate(source, site)
    before, after = changed_lines(source, mutated)
    before_here = source.splitlines()[: line - 1]
    earlier = sum(text.strip() == source.splitlines()[line - 1].strip() for text in before_here)
    return Mutant(path, line, earlier, site.operator, before, after, mutated)


def changed_lines(source: str, mutated: str) -> tuple[str, str]:
    """Returns the lines that differ, without indentation and joined by a space."""
    difference = list(difflib.ndiff(source.splitlines(), mutated.splitlines()))

    def joined(sign: str) -> str:
        return " ".join(line[2:].strip() for line in difference if line.startswith(sign))

    return joined("- "), joined("+ ")


def equivalents() -> dict[tuple[str, str, str, int], str]:
    """Returns the mutants that equivalent.toml lists as equivalent to the source, and the reason for each.

    A key is (path of the source, line before the mutation, line after it, number of the same lines above it).
    """
    rows = tomllib.loads(EQUIVALENT.read_text()).get("mutant", [])
    return {(row["path"], row["before"], row["after"], row.get("repetition", 0)): row["reason"] for row in rows}


def _operators(path: Path) -> ModuleType:
    return cython_operators if path.suffix == ".pyx" else python_operators
