"""The colours of output: used on a terminal only, and not if the environment disables them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

BOLD, RED, YELLOW, GREEN = "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[32m"
_NORMAL = "\x1b[0m"


def is_terminal() -> bool:
    """Returns whether standard output is a terminal."""
    return sys.stdout.isatty()


def has_colours(environment: Mapping[str, str] = os.environ) -> bool:
    """Returns whether standard output is a terminal with colours that $NO_COLOR does not switch off."""
    return is_terminal() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def painted(text: str, style: str) -> str:
    """Returns `text` preceded by the escape sequence `style`, such as BOLD, and followed by the sequence that ends the
    style."""
    return f"{style}{text}{_NORMAL}"
