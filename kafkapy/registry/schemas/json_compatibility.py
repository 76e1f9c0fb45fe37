"""Compares two JSON Schemas: does the reader's schema accept every document that the writer's schema accepts?

The comparison may report an incompatibility where there is none. If the reader's schema adds a keyword or makes a
keyword stricter, the schemas are reported as incompatible, even if the writer's schema already refuses, by another
keyword, all documents that the reader's keyword refuses.

If the schema of an object has no `additionalProperties`, the object may have any further properties, as in Confluent's
registry. If the reader's schema adds a property to such an object, the schemas are incompatible, because the writer's
documents may have this property with any value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from kafkapy.registry.schemas.difference import Difference
from kafkapy.registry.schemas.json_schema import JsonSchema

_ALL_TYPES = frozenset(("null", "boolean", "integer", "number", "string", "array", "object"))
_ANNOTATIONS = {
    *("$schema", "$id", "id", "$comment", "$anchor", "title", "description", "default", "examples", "deprecated"),
    *("readOnly", "writeOnly", "definitions", "$defs", "format", "contentEncoding", "contentMediaType"),
}
# Keywords of an upper and of a lower limit, with the start of the names of their differences.
_UPPER = {
    "maximum": "MAXIMUM",
    "exclusiveMaximum": "EXCLUSIVE_MAXIMUM",
    "maxLength": "MAX_LENGTH",
    "maxItems": "MAX_ITEMS",
    "maxProperties": "MAX_PROPERTIES",
}
_LOWER = {
    "minimum": "MINIMUM",
    "exclusiveMinimum": "EXCLUSIVE_MINIMUM",
    "minLength": "MIN_LENGTH",
    "minItems": "MIN_ITEMS",
    "minProperties": "MIN_PROPERTIES",
}
# Patterns that are matched with the names of properties.
_LITERAL = re.compile(r"\^([\w\-:/@ ]*)(\$?)")
# Limits that have no effect at zero.
_SIZES = ("minLength", "minItems", "minProperties")
_ALTERNATIVES = ("anyOf", "oneOf")
Found = list[Difference]


def differences(reader: JsonSchema, writer: JsonSchema) -> list[Difference]:
    """Returns the reasons why a document that is valid by the schema `writer` may be invalid by the schema `reader`; an
    empty list if every such document is valid.
    """
    return _Comparison(reader, writer).compare(reader.root, writer.root, "#")


def _is_open(schema: Any) -> bool:
    """Returns True if the schema accepts every value: it is `true`, or an object that contains only annotations."""
    return schema is True or (isinstance(schema, dict) and not set(schema) - _ANNOTATIONS)


class _Comparison:
    def __init__(self, reader: JsonSchema, writer: JsonSchema) -> None:
        self._reader = reader
        self._writer = writer
        self._done: dict[tuple[int, int], Found] = {}
        self._kept: list[Any] = []  # objects whose ids are keys of `_done`

    def compare(self, reader: Any, writer: Any, path: str) -> Found:
        reader, writer = _resolved(self._reader, reader), _resolved(self._writer, writer)
        if _is_open(reader) or writer is False:
            return []
        if reader is None or writer is None:
            return [Difference("REFERENCE_NOT_FOUND", path, "a $ref points to an unknown schema")]
        if reader is False or _is_open(writer):
            return [Difference("TYPE_NARROWED", path, "the reader does not accept every value, as the writer does")]
        pair = (id(reader), id(writer))
        if pair not in self._done:
            self._kept += [reader, writer]
            self._done[pair] = []
            self._done[pair] = self._compare(reader, writer, path)
        return self._done[pair]

    def _compare(self, reader: dict[str, Any], writer: dict[str, Any], path: str) -> Found:
        alternatives = next((each for each in _ALTERNATIVES if each in writer), None)
        if alternatives is not None and not any(each in reader for each in _ALTERNATIVES):
            rest = {key: value for key, value in writer.items() if key != alternatives}
            return [
                each
                for position, branch in enumerate(writer[alternatives])
                for each in self.compare(reader, _merged(rest, branch), f"{path}/{alternatives}/{position}")
            ]
        found = self._combined(reader, writer, path)
        plain = {key: value for key, value in reader.items() if key not in (*_ALTERNATIVES, "allOf", "not")}
        checks: tuple[Callable[[dict[str, Any], dict[str, Any], str], Found], ...] = (
            _types,
            _values,
            _limits,
            self._arrays,
            self._objects,
        )
        for check in checks if not _is_open(plain) else ():
            found += check(plain, writer, path)
        return found

    def _combined(self, reader: dict[str, Any], writer: dict[str, Any], path: str) -> Found:
        found: Found = []
        for keyword in _ALTERNATIVES:
            if keyword not in reader:
                continue
            written = next((writer[each] for each in _ALTERNATIVES if each in writer), [writer])
            for position, branch in enumerate(written):
                if all(self.compare(each, branch, path) for each in reader[keyword]):
                    detail = f"no branch of the reader's {keyword} accepts the writer's branch {position}"
                    found.append(Difference("SUM_TYPE_NARROWED", f"{path}/{keyword}", detail))
        for position, each in enumerate(reader.get("allOf", ())):
            written = [writer, *writer.get("allOf", ())]
            if all(self.compare(each, other, path) for other in written):
                detail = f"the writer does not ensure part {position} of the reader's allOf"
                found.append(Difference("PRODUCT_TYPE_EXTENDED", f"{path}/allOf/{position}", detail))
        if "not" in reader and ("not" not in writer or self._swapped(writer["not"], reader["not"], path)):
            found.append(Difference("NOT_TYPE_EXTENDED", f"{path}/not", "the reader excludes more than the writer"))
        return found

    def _swapped(self, reader: Any, writer: Any, path: str) -> Found:
        return _Comparison(self._writer, self._reader).compare(reader, writer, path)

    def _arrays(self, reader: dict[str, Any], writer: dict[str, Any], path: str) -> Found:
        found: Found = []
        if reader.get("uniqueItems") and not writer.get("uniqueItems"):
            found.append(Difference("UNIQUE_ITEMS_ADDED", f"{path}/uniqueItems", "the reader adds uniqueItems"))
        if "contains" in reader and reader["contains"] != writer.get("contains"):
            found.append(Difference("CONTAINS_ADDED", f"{path}/contains", "the reader adds or changes contains"))
        read, rest_read = _items(reader)
        written, rest_written = _items(writer)
        for position in range(max(len(read), len(written))):
            to_read = read[position] if position < len(read) else rest_read
            to_write = written[position] if position < len(written) else rest_written
            found += self.compare(to_read, to_write, f"{path}/items/{position}")
        if not _accepts(writer, "array"):
            return []
        return found + self.compare(rest_read, rest_written, f"{path}/items")

    def _objects(self, reader: dict[str, Any], writer: dict[str, Any], path: str) -> Found:
        if not _accepts(writer, "object"):
            return []
        found: Found = []
        read, written = reader.get("properties", {}), writer.get("properties", {})
        required = set(writer.get("required", ()))
        for name in reader.get("required", ()):
            if name not in required and not _has_default(self._reader, read.get(name)):
                detail = f"the reader requires {name}, which has no default and which the writer does not require"
                found.append(Difference("REQUIRED_ATTRIBUTE_ADDED", f"{path}/required", detail))
        for name in written:
            found += self._property(name, _covering(reader, name), written[name], path)
        for name in read:
            if name not in written:
                found += self._added_property(name, read[name], _covering(writer, name), path)
        for pattern, schema in reader.get("patternProperties", {}).items():
            other = writer.get("patternProperties", {}).get(pattern, _covering(writer, None))
            found += self.compare(schema, other, f"{path}/patternProperties/{pattern}")
        rest_read, rest_written = _covering(reader, None), _covering(writer, None)
        differing = self.compare(rest_read, rest_written, f"{path}/additionalProperties")
        if differing and rest_read is False:
            detail = "the reader does not accept additional properties, as the writer does"
            differing = [Difference("ADDITIONAL_PROPERTIES_REMOVED", f"{path}/additionalProperties", detail)]
        found += differing
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas", "propertyNames"):
            if keyword in reader and reader[keyword] != writer.get(keyword):
                detail = f"the reader adds or changes {keyword}"
                found.append(Difference("DEPENDENCY_ADDED", f"{path}/{keyword}", detail))
        return found

    def _property(self, name: str, reader: Any, writer: Any, path: str) -> Found:
        place = f"{path}/properties/{name}"
        if reader is False and writer is not False:
            detail = f"the reader does not accept the writer's property {name}"
            return [Difference("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", place, detail)]
        return self.compare(reader, writer, place)

    def _added_property(self, name: str, reader: Any, writer: Any, path: str) -> Found:
        place = f"{path}/properties/{name}"
        if _is_open(writer) and not _is_open(_resolved(self._reader, reader)):
            detail = f"the reader restricts the property {name}, which the writer accepts with any value"
            return [Difference("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", place, detail)]
        return self.compare(reader, writer, place)


def _resolved(owner: JsonSchema, schema: Any) -> Any:
    """Returns `schema`, or the schema to which its `$ref` leads, possibly through several references.

    `owner` is the whole schema in which references are looked up. Returns None if a reference is unknown or leads back
    to itself.
    """
    seen: set[str] = set()
    while isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        reference = schema["$ref"]
        if reference in seen:
            return None
        seen.add(reference)
        schema = owner.resolve(reference)
    return schema


def _merged(rest: dict[str, Any], branch: Any) -> Any:
    if not isinstance(branch, dict) or not set(rest) - _ANNOTATIONS:
        return branch
    return {**rest, **branch} if "$ref" not in branch else {"allOf": [rest, branch]}


def _type_set(schema: Mapping[str, Any]) -> frozenset[str]:
    """Returns the types that a schema accepts, according to `type`, `const` and `enum`."""
    given = schema.get("type")
    if given is None:
        values = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
        if values is None:
            return _ALL_TYPES
        return frozenset(_type_of(each) for each in values)
    types = {given} if isinstance(given, str) else set(given)
    return frozenset(types | {"integer"} if "number" in types else types)


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def _accepts(schema: Mapping[str, Any], name: str) -> bool:
    return name in _type_set(schema)


def _types(reader: dict[str, Any], writer: dict[str, Any], path: str) -> Found:
    missing = _type_set(writer) - _type_set(reader)
    if not missing:
        return []
    kind = "TYPE_NARROWED" if _type_set(writer) & _type_set(reader) else "TYPE_CHANGED"
    return [Difference(kind, f"{path}/type", f"the reader does not accept {', '.join(sorted(missing))}")]


def _values(reader: dict[str, Any], writer: dict[str, Any], path: str) -> Found:
    found: Found = []
    accepted = [reader["const"]] if "const" in reader else reader.get("enum")
    if accepted is not None:
        given = [writer["const"]] if "const" in writer else writer.get("enum")
        shown = {json.dumps(each, sort_keys=True) for each in accepted}
        if given is None or any(json.dumps(each, sort_keys=True) not in shown for each in given):
            detail = "the reader accepts fewer values than the writer"
            found.append(Difference("ENUM_ARRAY_NARROWED", f"{path}/enum", detail))
    if "pattern" in reader and reader["pattern"] != writer.get("pattern") and _accepts(writer, "string"):
        kind = "PATTERN_CHANGED" if "pattern" in writer else "PATTERN_ADDED"
        found.append(Difference(kind, f"{path}/pattern", "the reader adds or changes the pattern"))
    divisor, written = reader.get("multipleOf"), writer.get("multipleOf")
    if divisor is not None and (written is None or written % divisor != 0):
        kind = "MULTIPLE_OF_ADDED" if written is None else "MULTIPLE_OF_CHANGED"
        found.append(Difference(kind, f"{path}/multipleOf", f"the reader accepts multiples of {divisor} only"))
    return found


def _limits(reader: dict[str, Any], writer: dict[str, Any], path: str) -> Found:
    found: Found = []
    for keyword, name in (_UPPER | _LOWER).items():
        limit, written = reader.get(keyword), writer.get(keyword)
        if not isinstance(limit, int | float) or isinstance(limit, bool):
            continue
        if keyword in _SIZES and limit <= 0:
            continue
        is_upper = keyword in _UPPER
        if not isinstance(written, int | float) or isinstance(written, bool):
            found.append(Difference(f"{name}_ADDED", f"{path}/{keyword}", f"the reader adds {keyword} {limit}"))
        elif limit < written if is_upper else limit > written:
            kind = f"{name}_{'DECREASED' if is_upper else 'INCREASED'}"
            detail = f"the reader's {keyword} is {limit}, the writer's {written}"
            found.append(Difference(kind, f"{path}/{keyword}", detail))
    return found


def _items(schema: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """Returns (first, rest) for the items of an array whose schema is `schema`.

    `first` is a list with a schema for each of the first items, or empty if `schema` does not list any. `rest` is the
    schema of all further items.
    """
    items = schema.get("items", True)
    if isinstance(items, list):
        return items, schema.get("additionalItems", True)
    return schema.get("prefixItems", []), items


def _covering(schema: Mapping[str, Any], name: str | None) -> Any:
    """Returns the subschema that `schema`, the schema of an object, applies to the value of the property `name`.

    `name` None stands for a property that neither `properties` nor `patternProperties` mention. Returns True, the
    schema that accepts everything, if no subschema applies.
    """
    if name is not None:
        properties = schema.get("properties", {})
        if name in properties:
            return properties[name]
        for pattern, each in schema.get("patternProperties", {}).items():
            if _matches(pattern, name):
                return each
    return schema.get("additionalProperties", True)


def _matches(pattern: str, name: str) -> bool:
    """Returns whether a pattern of the form `^literal` or `^literal$` matches a name.

    Returns False for every other pattern: a client sends the pattern, and Python's `re` may need exponential time for
    it.
    """
    literal = _LITERAL.fullmatch(pattern)
    if literal is None:
        return False
    text, is_whole = literal.groups()
    return name == text if is_whole else name.startswith(text)


def _has_default(owner: JsonSchema, schema: Any) -> bool:
    found = _resolved(owner, schema)
    return isinstance(found, dict) and "default" in found
