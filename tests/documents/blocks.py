"""The code blocks of the documentation, and the commands in them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
# What a reader may type or run. Blocks of other kinds (a `py` fragment, the table of layers) are illustrations.
RUNNABLE = ("sh", "console", "python")
_BLOCK = re.compile(r"^(?P<indent> *)```(?P<kind>\w+)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block of a page, under the heading that precedes it."""

    page: str
    heading: str
    kind: str
    text: str


def pages() -> list[Path]:
    """Returns every page that a user reads."""
    top = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "examples" / "README.md"]
    return sorted([*top, *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path) -> Iterator[Block]:
    """Yields the runnable blocks of a page in their order."""
    content = page.read_text()
    for found in _BLOCK.finditer(content):
        if found["kind"] in RUNNABLE:
            # A comment in a shell block begins like a heading; the text before the block holds whole blocks only.
            before = _BLOCK.sub("", content[: found.start()])
            heading = _HEADING.findall(before)[-1]
            yield Block(str(page.relative_to(ROOT)), heading, found["kind"], textwrap.dedent(found["text"]))


def of_section(page: str, heading: str) -> list[Block]:
    """Returns the blocks under one heading of a page; at least one."""
    found = [block for block in blocks(ROOT / page) if block.heading == heading]
    assert found, f"{page} has no block under {heading!r}"
    return found
