"""The content of a directory, for comparisons before and after an operation that must not change it."""

from __future__ import annotations

from pathlib import Path


def directory_content(*directories: Path) -> dict[str, bytes | None]:
    """Returns path -> content of each file; None for a directory."""
    return {
        str(path): None if path.is_dir() else path.read_bytes()
        for directory in directories
        for path in sorted(directory.rglob("*"))
    }


def assert_unchanged(before: dict[str, bytes | None], after: dict[str, bytes | None]) -> None:
    """Asserts that two contents are equal, and names the files that differ."""
    added, removed = set(after) - set(before), set(before) - set(after)
    assert not added and not removed, f"added: {sorted(added)}, removed: {sorted(removed)}"
    changed = [path for path, content in before.items() if after[path] != content]
    assert not changed, f"changed: {changed}"
