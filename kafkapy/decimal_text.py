"""Checks of texts that are to be numbers: unlike `str.isdigit`, they accept only what `int` can read."""

from __future__ import annotations

import re

_INTEGER = re.compile("-?[0-9]+")


def is_number(text: str) -> bool:
    """Returns whether `text` consists of one or more ASCII digits and nothing else."""
    return text.isascii() and text.isdigit()


def is_integer(text: str) -> bool:
    """Returns whether `text` is a decimal number of ASCII digits, with or without one minus sign."""
    return _INTEGER.fullmatch(text) is not None
