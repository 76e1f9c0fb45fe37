"""Comparison of Apache Kafka's tool and ours with the same words and one broker: output and exit codes are equal.

The word `{me}` is replaced by one name for Apache Kafka's tool and by another of the same length for ours, so that each
command changes a topic or group of its own; in the output both names become `{me}` again. `@` is replaced by
--bootstrap-server with the broker's address, `%` by --bootstrap-controller with the controllers' addresses, `{file:x}`
by a path.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.tools.tool_host import Done, ToolHost, run_ours

THEIRS, OURS = "zz-theirs", "zz-ours-x"
# Ids and times that differ between runs.
_VARYING = (
    (re.compile(r"TopicId: \S{22}"), "TopicId: ID"),
    (re.compile(r"\b1[67]\d{11}\b"), "TIME"),
    (re.compile(r"(?<=MaxFollowerLagTimeMs:   )\d+"), "TIME"),
)


class Comparison(NamedTuple):
    """A tool and its words.

    any_order: Java prints in the order of a hash table; lines and the texts between commas and tabs are sorted.
    exits: the exit codes, theirs and ours, if they differ on purpose.
    """

    tool: str
    words: str
    any_order: bool = False
    exits: tuple[int, int] | None = None


def compare(
    host: ToolHost,
    comparison: Comparison,
    bootstrap: str,
    directory: Path,
    bootstrap_controllers: str = "",
    run: Callable[..., Done] = run_ours,
) -> None:
    """Runs both tools, ours by `run`. Raises AssertionError with their output if it differs."""
    places = (bootstrap, bootstrap_controllers, directory)
    theirs = host.run(comparison.tool, *_words(comparison, THEIRS, *places))
    ours = run(comparison.tool, *_words(comparison, OURS, *places))
    shown = f"{comparison.tool} {comparison.words}\n--- theirs\n{theirs}\n--- ours\n{ours}"
    assert (theirs.code, ours.code) == (comparison.exits or (ours.code, ours.code)), shown
    assert _normal(theirs, comparison) == _normal(ours, comparison), shown
    assert "Traceback" not in ours.err, shown


def _words(comparison: Comparison, me: str, bootstrap: str, bootstrap_controllers: str, directory: Path) -> list[str]:
    words: list[str] = []
    for word in comparison.words.split():
        if word == "@":
            words += ["--bootstrap-server", bootstrap]
        elif word == "%":
            words += ["--bootstrap-controller", bootstrap_controllers]
        else:
            word = re.sub(r"\{file:([^}]+)\}", lambda match: str(directory / me / match[1]), word)
            words.append(word.replace("{me}", me))
    return words


def _normal(done: Done, comparison: Comparison) -> tuple[list[str], str]:
    """Returns the lines of standard output, and the first line of standard error if there are none."""
    out = _anybody(done.out)
    for pattern, instead in _VARYING:
        out = pattern.sub(instead, out)
    lines = out.split("\n")
    first = _anybody(done.err).replace("[[", "[").replace("]]", "]").split("\n")[0] if not done.out else ""
    if comparison.any_order:
        return sorted(" ".join(sorted(re.split(r"[\t, ]", line))) for line in lines), " ".join(
            sorted(re.sub('[,"]', "", first).split())
        )
    return lines, first


def _anybody(text: str) -> str:
    return text.replace(THEIRS, "{me}").replace(OURS, "{me}")
