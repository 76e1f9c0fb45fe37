"""Prints results as tables, JSON or YAML. Tables are aligned and coloured on a terminal, and plain otherwise."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.json_output import print_json
from kafkapy.tools.short.yaml_text import yaml_text
from kafkapy.tools.terminal import BOLD, RED, has_colours, is_terminal, painted

_BETWEEN_COLUMNS = "  "
_CONTROLS = {number: f"\\x{number:02x}" for number in (*range(32), *range(127, 160))}


class Problem(NamedTuple):
    """A value of a table that the reader should notice; red on a terminal."""

    value: Any


class Table(NamedTuple):
    """A table: the names of its columns, and for each row the values in the order of the columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def as_dicts(self) -> list[dict[str, Any]]:
        """Returns each row as a dict, whose keys are the names of the columns in lower camel case."""
        names = [_camel_case(column) for column in self.columns]
        return [dict(zip(names, map(_plain, row), strict=True)) for row in self.rows]


def print_document(value: Any, output: str) -> None:
    """Prints a value in the format "json" or "yaml"."""
    if output == "yaml":
        sys.stdout.write(yaml_text(value))
    else:
        print_json(value)


def print_table(table: Table, output: str | None = None) -> None:
    """Prints a table. `output` is the value of -o, which selects the format: "table", "json" or "yaml".

    If `output` is None, the columns are aligned on a terminal, and separated by tabs otherwise; "table" always aligns
    them.
    """
    if output in ("json", "yaml"):
        print_document(table.as_dicts(), output)
        return
    for line in table_lines(table, is_aligned=output == "table" or is_terminal(), has_colours=has_colours()):
        print(line)


def table_lines(table: Table, *, is_aligned: bool, has_colours: bool) -> list[str]:
    """Returns the lines of a table. The first line has the names of the columns.

    If `is_aligned` is set, columns are padded with spaces, numbers on the left; otherwise cells are separated by tabs.
    If `has_colours` is set as well, the names are bold and values of class Problem red.
    """
    cells = [[_text(value) for value in row] for row in table.rows]
    if not is_aligned:
        return ["\t".join(line) for line in (list(table.columns), *cells)]
    widths = [max([len(name), *(len(row[index]) for row in cells)]) for index, name in enumerate(table.columns)]
    is_number = [
        bool(table.rows) and all(_is_number(_plain(row[index])) for row in table.rows) for index in range(len(widths))
    ]
    lines = [
        _BETWEEN_COLUMNS.join(
            _padded(name, widths, is_number, index) for index, name in enumerate(table.columns)
        ).rstrip()
    ]
    if has_colours:
        lines[0] = painted(lines[0], BOLD)
    for row, texts in zip(table.rows, cells, strict=True):
        padded = [_padded(text, widths, is_number, index) for index, text in enumerate(texts)]
        padded[-1] = padded[-1].rstrip()
        if has_colours:
            padded = [
                painted(text, RED) if isinstance(value, Problem) else text
                for text, value in zip(padded, row, strict=True)
            ]
        lines.append(_BETWEEN_COLUMNS.join(padded).rstrip())
    return lines


def print_fields(fields: Mapping[str, Any], output: str | None = None) -> None:
    """Prints names and values, one pair per line.

    `output` is the value of -o. If it is "table", or if standard output is a terminal, the values are aligned in a
    column; otherwise a single space separates each name from its value.
    """
    width = max(map(len, fields), default=0) + 1 if output == "table" or is_terminal() else 0
    for name, value in fields.items():
        label = f"{name}:"
        padded = f"{label:<{width}}"
        print(f"{painted(padded, BOLD) if has_colours() else padded} {_text(value)}")


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _padded(text: str, widths: Sequence[int], is_number: Sequence[bool], index: int) -> str:
    return f"{text:>{widths[index]}}" if is_number[index] else f"{text:<{widths[index]}}"


def _plain(value: Any) -> Any:
    """Returns the value that a Problem contains if `value` is a Problem; returns any other `value` as it is."""
    return value.value if isinstance(value, Problem) else value


def _text(value: Any) -> str:
    plain = _plain(value)
    if plain is None:
        return "-"
    if isinstance(plain, bool):
        return "yes" if plain else "no"
    if isinstance(plain, list | tuple):
        return ",".join(map(str, plain)) or "-"
    return visible(str(plain))


def visible(text: str) -> str:
    """Returns a text in which control characters, which could move the cursor, are written as \\xNN."""
    return text.translate(_CONTROLS)


def _camel_case(name: str) -> str:
    first, *others = name.lower().replace("-", " ").split()
    return first + "".join(word.capitalize() for word in others)
