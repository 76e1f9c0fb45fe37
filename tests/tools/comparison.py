"""Apache Kafka's tool and ours with the same words against one broker: what they write and their exit codes are equal.

A word `{me}` is one name for Apache Kafka's tool and another one, as long, for ours, so that commands which change
something do it twice, each to a thing of its own; in what they write it becomes `{me}` again. `@` is --bootstrap-server
with the broker's address, `{file:x}` a path.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tests.tools.tool_host import Done, ToolHost, run_ours

THEIRS, OURS = "zz-theirs", "zz-ours-x"
# Ids and addresses that are made anew each time; what comes after a class of Java's exceptions is compared.
_VARYING = (
    (re.compile(r"TopicId: \S{22}"), "TopicId: ID"),
    (re.compile(r"\b1[67]\d{11}\b"), "TIME"),
)


class Comparison(NamedTuple):
    """A tool and its words. `any_order`: Java's order is that of a hash table, so that lines, and what
    stands between commas and tabs, are compared sorted.
    `exits`: the exit codes, theirs and ours, where they are meant to differ."""

    tool: str
    words: str
    any_order: bool = False
    exits: tuple[int, int] | None = None


def compare(host: ToolHost, comparison: Comparison, bootstrap: str, directory: Path) -> None:
    """Runs both; AssertionError with what each wrote."""
    theirs = host.run(comparison.tool, *_words(comparison, THEIRS, bootstrap, directory))
    ours = run_ours(comparison.tool, *_words(comparison, OURS, bootstrap, directory))
    shown = f"{comparison.tool} {comparison.words}\n--- theirs\n{theirs}\n--- ours\n{ours}"
    assert (theirs.code, ours.code) == (comparison.exits or (ours.code, ours.code)), shown
    assert _normal(theirs, comparison) == _normal(ours, comparison), shown
    assert "Traceback" not in ours.err, shown


def _words(comparison: Comparison, me: str, bootstrap: str, directory: Path) -> list[str]:
    words: list[str] = []
    for word in comparison.words.split():
        if word == "@":
            words += ["--bootstrap-server", bootstrap]
        else:
            word = re.sub(r"\{file:([^}]+)\}", lambda match: str(directory / me / match[1]), word)
            words.append(word.replace("{me}", me))
    return words


def _normal(done: Done, comparison: Comparison) -> tuple[list[str], str]:
    """Standard output by lines; of standard error the first line, if there is nothing else."""
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
