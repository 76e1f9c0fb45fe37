"""The position of a mutant in its source file."""

from __future__ import annotations

from typing import NamedTuple


class Site(NamedTuple):
    """`occurrence` counts the positions at which `operator` could be applied, from the start of the file."""

    line: int
    operator: str
    occurrence: int
