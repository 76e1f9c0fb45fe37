"""Docstrings, comments and pages follow the rules of docs/writing.md that a program can check."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.style.prose import faults
from tests.style.sources import ROOT, all_sources

# This page quotes what not to write.
QUOTES_FAULTS = ROOT / "docs" / "writing.md"


def pages() -> list[Path]:
    top = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
    return [*top, ROOT / "examples" / "README.md", *(ROOT / "docs").rglob("*.md")]


def found_in(paths: list[Path]) -> list[str]:
    return [f"{path.relative_to(ROOT)}:{line}: {fault}" for path in paths for line, fault in faults(path)]


def test_sources_are_written_in_full_sentences() -> None:
    found = found_in([path for path in all_sources() if path.name != "prose.py"])
    assert not found, "\n".join(found)


def test_pages_have_no_banned_phrases() -> None:
    found = found_in([path for path in pages() if path != QUOTES_FAULTS])
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('"""Whether it waits."""\n', "begins with 'Whether'"),
        ('"""returns a batch."""\n', "begins with a small letter"),
        ('"""Returns a batch"""\n', "does not end with a full stop"),
        ('"""Returns a batch."""\n# Reads it anew.\n', "banned phrase: 'anew'"),
        ('"""Returns a batch.  It is read once."""\n', "two spaces"),
    ],
)
def test_a_fault_is_found(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(text)
    assert [fault in each for _, each in faults(path)] == [True]
    path.write_text('"""Returns a batch of the topic, or None if it is no more than a header."""\n')
    assert list(faults(path)) == []
