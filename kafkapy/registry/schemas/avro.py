"""Avro schemas: parsing with the rules of the specification, and the text that Avro's Java library prints for them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafkapy.registry.errors import InvalidSchema

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMED = ("record", "error", "enum", "fixed")
DEEPEST = 200  # levels of nested types; deeper schemas are refused
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ORDERS = ("ascending", "descending", "ignore")
# The attributes of each kind that are not additional properties.
_RESERVED = frozenset(
    ("type", "name", "namespace", "doc", "aliases", "fields", "symbols", "default", "items", "values", "size")
)
_FIELD_RESERVED = frozenset(("name", "type", "doc", "default", "order", "aliases"))
_INT, _LONG = range(-(2**31), 2**31), range(-(2**63), 2**63)
MISSING: Any = object()  # for a default that is absent, since null is a value


@dataclass(eq=False)
class Field:
    """A field of a record. `default` is the JSON value of its default, or the object MISSING if the field has no
    default.
    """

    name: str
    type: Node
    default: Any = MISSING
    doc: str | None = None
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Node:
    """An Avro type. `kind` is a primitive's name, or record, error, enum, fixed, array, map or union.

    name: the full name, with the namespace, of a named type.
    children: the items of an array, the values of a map, the branches of a union.
    default: an enum's default symbol; None without one.
    """

    kind: str
    name: str = ""
    fields: list[Field] = field(default_factory=list)
    symbols: tuple[str, ...] = ()
    size: int = 0
    children: list[Node] = field(default_factory=list)
    default: str | None = None
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    properties: dict[str, Any] = field(default_factory=dict)

    @property
    def simple_name(self) -> str:
        """The name without the namespace."""
        return self.name.rpartition(".")[2]

    @property
    def namespace(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def branch_name(self) -> str:
        """The name that distinguishes this type in a union: the full name of a named type, otherwise the kind, such as
        "string".
        """
        return self.name if self.kind in NAMED else self.kind


class _Parser:
    """Parses JSON to nodes. `names` has the named types that were defined so far."""

    def __init__(self, *, checks_defaults: bool) -> None:
        self.names: dict[str, Node] = {}
        self._checks_defaults = checks_defaults
        self._to_check: list[tuple[Node, Any, str]] = []

    def parse(self, definition: Any, namespace: str = "", depth: int = 0) -> Node:
        if depth > DEEPEST:
            raise InvalidSchema(f"types are nested deeper than {DEEPEST} levels")
        if isinstance(definition, str):
            return self._named(definition, namespace)
        if isinstance(definition, list):
            return self._union(definition, namespace, depth)
        if not isinstance(definition, dict):
            raise InvalidSchema(f"{_shown(definition)} is not a type")
        kind = definition.get("type")
        if isinstance(kind, dict | list):  # {"type": {"type": ...}}
            return self.parse(kind, namespace, depth + 1)
        if not isinstance(kind, str):
            raise InvalidSchema(f"{_shown(definition)} has no type")
        properties = {key: value for key, value in definition.items() if key not in _RESERVED}
        if kind in PRIMITIVES:
            return Node(kind, properties=properties)
        if kind in NAMED:
            return self._definition(kind, definition, namespace, properties, depth)
        if kind in ("array", "map"):
            attribute = "items" if kind == "array" else "values"
            if attribute not in definition:
                raise InvalidSchema(f"{kind} without {attribute}: {_shown(definition)}")
            child = self.parse(definition[attribute], namespace, depth + 1)
            return Node(kind, children=[child], properties=properties)
        return self._named(kind, namespace)

    def check_defaults(self) -> None:
        """Raises InvalidSchema for a field whose default does not have the type of the field."""
        for node, default, owner in self._to_check if self._checks_defaults else ():
            if not is_default(node, default):
                raise InvalidSchema(f"Invalid default for field {owner}: {_shown(default)} is not a {node.branch_name}")

    def _named(self, name: str, namespace: str) -> Node:
        if name in PRIMITIVES:
            return Node(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self.names.get(full) or self.names.get(name)
        if found is None:
            raise InvalidSchema(f"Undefined name: {_shown(full)}")
        return found

    def _union(self, branches: list[Any], namespace: str, depth: int) -> Node:
        children: list[Node] = []
        for each in branches:
            child = self.parse(each, namespace, depth + 1)
            if child.kind == "union":
                raise InvalidSchema(f"Nested union: {_shown(branches)}")
            if any(child.branch_name == other.branch_name for other in children):
                raise InvalidSchema(f"Duplicate in union: {child.branch_name}")
            children.append(child)
        return Node("union", children=children)

    def _definition(
        self, kind: str, definition: dict[str, Any], namespace: str, properties: dict[str, Any], depth: int
    ) -> Node:
        name = _full_name(definition, namespace)
        if name in self.names:
            raise InvalidSchema(f"Can't redefine: {name}")
        node = Node(kind, name, doc=_text_or_none(definition, "doc"), properties=properties)
        node.aliases = tuple(_qualified(each, node.namespace) for each in _texts(definition, "aliases"))
        self.names[name] = node
        if kind == "fixed":
            node.size = definition.get("size", -1)
            if not isinstance(node.size, int) or isinstance(node.size, bool) or node.size < 0:
                raise InvalidSchema(f"Invalid or no size: {_shown(definition)}")
        elif kind == "enum":
            self._add_symbols(node, definition)
        else:
            self._add_fields(node, definition, depth)
        return node

    def _add_symbols(self, node: Node, definition: dict[str, Any]) -> None:
        if "symbols" not in definition:
            raise InvalidSchema(f"Enum has no symbols: {node.name}")
        node.symbols = tuple(_texts(definition, "symbols"))
        for symbol in node.symbols:
            _check_name(symbol)
        if len(set(node.symbols)) != len(node.symbols):
            raise InvalidSchema(f"Duplicate enum symbol in {node.name}")
        node.default = _text_or_none(definition, "default")
        if node.default is not None and node.default not in node.symbols:
            raise InvalidSchema(f"The Enum Default: {node.default} is not in the enum symbol set of {node.name}")

    def _add_fields(self, node: Node, definition: dict[str, Any], depth: int) -> None:
        fields = definition.get("fields")
        if not isinstance(fields, list):
            raise InvalidSchema(f"Record has no fields: {node.name}")
        seen: set[str] = set()
        for each in fields:
            if not isinstance(each, dict) or not isinstance(each.get("name"), str):
                raise InvalidSchema(f"No field name in {node.name}: {_shown(each)}")
            name = each["name"]
            _check_name(name)
            if name in seen:
                raise InvalidSchema(f"Duplicate field {name} in record {node.name}")
            seen.add(name)
            if "type" not in each:
                raise InvalidSchema(f"No field type: {node.name}.{name}")
            order = each.get("order", "ascending")
            if not isinstance(order, str) or order.lower() not in _ORDERS:
                raise InvalidSchema(f"Invalid order of field {node.name}.{name}: {_shown(order)}")
            added = Field(
                name,
                self.parse(each["type"], node.namespace, depth + 1),
                each.get("default", MISSING),
                _text_or_none(each, "doc"),
                order.lower(),
                tuple(_texts(each, "aliases")),
                {key: value for key, value in each.items() if key not in _FIELD_RESERVED},
            )
            if added.default is not MISSING:
                self._to_check.append((added.type, added.default, f"{node.name}.{name}"))
            node.fields.append(added)


class AvroSchema:
    """A parsed Avro schema. The object does not change after its construction. `canonical` is its text as Avro's Java
    library prints it.
    """

    def __init__(self, text: str, referred: Iterable[str] = (), *, is_new: bool = True) -> None:
        """Parses `text`. `referred` has the texts of all schemas that it refers to, directly or through other schemas,
        in an order in which each text comes after the texts that it refers to. The default values of fields are checked
        only if `is_new`.

        Raises InvalidSchema.
        """
        parser = _Parser(checks_defaults=is_new)
        try:
            for each in referred:
                parser.parse(_load(each))
            known = set(parser.names)
            self.root = parser.parse(_load(text))
            parser.check_defaults()
        except RecursionError:
            raise InvalidSchema("the schema is nested too deeply") from None
        self.canonical = json.dumps(_Printer(known).print(self.root), separators=(",", ":"), ensure_ascii=False)


class _Printer:
    """Converts parsed types to the JSON value of a schema. A named type is written in full the first time, and by its
    name afterwards.
    """

    def __init__(self, known: set[str]) -> None:
        self._printed = set(known)

    def print(self, node: Node, namespace: str = "") -> Any:
        if node.kind in PRIMITIVES:
            return {"type": node.kind, **node.properties} if node.properties else node.kind
        if node.kind == "union":
            return [self.print(each, namespace) for each in node.children]
        if node.kind in ("array", "map"):
            attribute = "items" if node.kind == "array" else "values"
            return {"type": node.kind, attribute: self.print(node.children[0], namespace), **node.properties}
        if node.name in self._printed:
            return node.simple_name if node.namespace == namespace else node.name
        self._printed.add(node.name)
        found: dict[str, Any] = {"type": node.kind, "name": node.simple_name}
        if node.namespace != namespace:
            found["namespace"] = node.namespace
        if node.doc is not None:
            found["doc"] = node.doc
        if node.kind == "enum":
            found["symbols"] = list(node.symbols)
            if node.default is not None:
                found["default"] = node.default
        elif node.kind == "fixed":
            found["size"] = node.size
        else:
            found["fields"] = [self._field(each, node.namespace) for each in node.fields]
        found.update(node.properties)
        if node.aliases:
            found["aliases"] = [_relative(each, node.namespace) for each in node.aliases]
        return found

    def _field(self, each: Field, namespace: str) -> dict[str, Any]:
        found: dict[str, Any] = {"name": each.name, "type": self.print(each.type, namespace)}
        if each.doc is not None:
            found["doc"] = each.doc
        if each.default is not MISSING:
            found["default"] = each.default
        if each.order != "ascending":
            found["order"] = each.order
        if each.aliases:
            found["aliases"] = list(each.aliases)
        return {**found, **each.properties}


def is_default(node: Node, value: Any) -> bool:
    """Returns whether a JSON value may be the default of a field of the type `node`.

    The default of a field whose type is a union may have the type of any of its branches.
    """
    kind = node.kind
    if kind == "union":
        return any(is_default(each, value) for each in node.children)
    if kind in ("int", "long"):
        limits = _INT if kind == "int" else _LONG
        return isinstance(value, int) and not isinstance(value, bool) and value in limits
    if kind in ("float", "double"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "array":
        return isinstance(value, list) and all(is_default(node.children[0], each) for each in value)
    if kind == "map":
        return isinstance(value, dict) and all(is_default(node.children[0], each) for each in value.values())
    if kind in ("record", "error"):
        return isinstance(value, dict) and all(
            is_default(each.type, value.get(each.name, each.default)) for each in node.fields
        )
    types = {"null": type(None), "boolean": bool}
    return isinstance(value, types.get(kind, str))


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        if re.fullmatch(r"\s*[A-Za-z_][\w.]*\s*", text):  # Avro's Java library accepts the bare name of a type
            return text.strip()
        raise InvalidSchema(f"the schema is not JSON: {error}") from None


def _full_name(definition: Mapping[str, Any], namespace: str) -> str:
    name = definition.get("name")
    if not isinstance(name, str):
        raise InvalidSchema(f"No name in schema: {_shown(definition)}")
    given = definition.get("namespace")
    if "." in name:
        full = name
    else:
        space = given if isinstance(given, str) else namespace
        full = f"{space}.{name}" if space else name
    for part in full.split("."):
        _check_name(part)
    if full in PRIMITIVES:
        raise InvalidSchema(f"Schemas may not be named after primitives: {full}")
    return full


def _qualified(alias: str, namespace: str) -> str:
    return alias if "." in alias or not namespace else f"{namespace}.{alias}"


def _relative(alias: str, namespace: str) -> str:
    space, _, name = alias.rpartition(".")
    return name if space == namespace else alias


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidSchema(f"Illegal initial character or character in name: {_shown(name)}")


def _texts(definition: Mapping[str, Any], key: str) -> Iterator[str]:
    values = definition.get(key, [])
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise InvalidSchema(f"{key} is not an array of strings: {_shown(values)}")
    yield from values


def _text_or_none(definition: Mapping[str, Any], key: str) -> str | None:
    value = definition.get(key)
    return value if isinstance(value, str) else None


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 200 else text[:200] + "..."
