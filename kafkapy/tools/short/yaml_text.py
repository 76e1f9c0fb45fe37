"""Writes plain values as YAML 1.2."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

# Texts that need no quotes: every version of YAML reads them as texts, except those of `_OTHER_MEANING`.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_OTHER_MEANING = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))


def yaml_text(value: Any) -> str:
    """Returns `value` as a YAML document, which ends with a line feed.

    `value` may consist of dicts, lists, texts, numbers, booleans and None.
    """
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Any) -> Iterator[str]:
    """Yields the lines of a value in block style, without indentation."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _entry(f"{_scalar(str(key))}:", each)
    elif isinstance(value, list | tuple) and value:
        for each in value:
            inner = _lines(each)
            yield f"- {next(inner)}"
            for line in inner:
                yield f"  {line}"
    else:
        yield _scalar(value)


def _entry(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict | list | tuple) and value:
        yield key
        for line in _lines(value):
            yield f"  {line}"
    else:
        yield f"{key} {_scalar(value)}"


def _scalar(value: Any) -> str:
    """Returns a value on one line. Texts that need quotes are JSON strings, which YAML accepts."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _OTHER_MEANING:
        return value
    if isinstance(value, tuple):
        return json.dumps(list(value))
    return json.dumps(value, ensure_ascii=False)
