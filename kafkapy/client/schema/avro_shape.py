"""Checks for two properties of Avro schemas with which a few bytes of data can harm a process: types that contain
themselves, and arrays whose items take no bytes.

fastavro's compiled functions call themselves for each level of the data and do not limit the depth, so that a few
thousand bytes of a recursive type end the process. Recursive data are therefore read by fastavro's reader in Python,
which raises RecursionError instead. Before a value is written, `check_depth` limits its levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

DEEPEST_VALUE = 500
_LEAST_OF_OTHERS = 1  # every type but null, fixed and record has at least one byte of data


def is_recursive(schema: Any, named: Mapping[str, Any]) -> bool:
    """Returns whether a type of a parsed schema contains itself. `named` maps types' full names to their schemas."""
    return _leads_back(schema, named, frozenset(), set())


def check_arrays(schema: Any, named: Mapping[str, Any]) -> None:
    """Raises ValueError if the schema has an array whose items take no bytes.

    A few bytes of data can announce any number of such items. `named` maps the full names of types to their schemas.
    """
    seen: set[str] = set()
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            if each in named and each not in seen:
                seen.add(each)
                waiting.append(named[each])
            continue
        if isinstance(each, dict) and each["type"] == "array" and not _least_size(each["items"], named, frozenset()):
            raise ValueError("arrays whose items have no content are not supported")
        waiting += _parts(each)


def check_depth(value: Any) -> None:
    """Raises ValueError for a value that is nested more than DEEPEST_VALUE levels deep."""
    waiting = [(value, 0)]
    while waiting:
        each, depth = waiting.pop()
        if depth > DEEPEST_VALUE:
            raise ValueError(f"it is nested more than {DEEPEST_VALUE} levels deep")
        parts = each.values() if isinstance(each, dict) else each if isinstance(each, list | tuple) else ()
        waiting += [(part, depth + 1) for part in parts]


def _parts(schema: Any) -> Iterator[Any]:
    """Yields the schemas of which a schema consists: those of its fields, items, values or alternatives.

    A reference by name is yielded as the name.
    """
    if isinstance(schema, list):
        yield from schema
        return
    if not isinstance(schema, dict):
        return
    for field in schema.get("fields", ()):
        yield field["type"]
    for name in ("items", "values"):
        if name in schema:
            yield schema[name]
    if isinstance(schema["type"], dict | list):
        yield schema["type"]


def _leads_back(schema: Any, named: Mapping[str, Any], above: frozenset[str], done: set[str]) -> bool:
    name = schema if isinstance(schema, str) else str(schema.get("name", "")) if isinstance(schema, dict) else ""
    if name in above:
        return True
    if name in done:
        return False
    if name in named:
        schema, above = named[name], above | {name}
    found = any(_leads_back(part, named, above, done) for part in _parts(schema))
    if name in named:
        done.add(name)
    return found


def _least_size(schema: Any, named: Mapping[str, Any], above: frozenset[str]) -> int:
    """Returns a lower bound of the number of bytes of a schema's data; 0 only if the data can be empty.

    `named` maps the full names of types to their schemas. `above` has the names of the types that contain this schema:
    a reference to one of these counts as at least 1.
    """
    if isinstance(schema, str) and schema in named:
        if schema in above:
            return _LEAST_OF_OTHERS
        return _least_size(named[schema], named, above | {schema})
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "null":
        return 0
    if kind == "fixed":
        return int(schema["size"])
    if kind in ("record", "error"):
        return sum(_least_size(field["type"], named, above) for field in schema["fields"])
    if isinstance(kind, dict):
        return _least_size(kind, named, above)
    return _LEAST_OF_OTHERS
