"""Every byte below a directory, to be compared before and after something that must not touch it."""

from __future__ import annotations

from pathlib import Path


def directory_content(*directories: Path) -> dict[str, bytes | None]:
    """Path -> content of each file; None for a directory."""
    return {
        str(path): None if path.is_dir() else path.read_bytes()
        for directory in directories
        for path in sorted(directory.rglob("*"))
    }


def assert_unchanged(before: dict[str, bytes | None], after: dict[str, bytes | None]) -> None:
    came, went = set(after) - set(before), set(before) - set(after)
    assert not came and not went, f"came: {sorted(came)}, went: {sorted(went)}"
    changed = [path for path, content in before.items() if after[path] != content]
    assert not changed, f"written to: {changed}"
