"""Avro's schema resolution: whether data written with one schema can be read with another one.

The rules are those of the section Schema Resolution in Avro's specification, as Avro's Java library applies them: names
of records, enums and fixed types are compared without their namespaces, and aliases of the reader count.
"""

from __future__ import annotations

from kafkapy.registry.schemas.avro import MISSING, AvroSchema, Field, Node
from kafkapy.registry.schemas.difference import Difference

# The types of a writer that a reader's primitive type accepts in addition to its own.
_PROMOTIONS = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
_RECORDS = ("record", "error")


def differences(reader: AvroSchema, writer: AvroSchema) -> list[Difference]:
    """Returns the reasons why data written with the schema `writer` cannot be read with the schema `reader`; an empty
    list if all of it can.
    """
    return _Comparison().compare(reader.root, writer.root, "")


class _Comparison:
    """A comparison of two schemas. It remembers the pairs of types that it has compared or is comparing, and compares
    each pair once, so that the comparison of recursive types ends.
    """

    def __init__(self) -> None:
        self._done: dict[tuple[int, int], list[Difference]] = {}

    def compare(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        pair = (id(reader), id(writer))
        if pair not in self._done:
            self._done[pair] = []  # a recursive type is compatible with itself
            self._done[pair] = self._compare(reader, writer, path)
        return self._done[pair]

    def _compare(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        if writer.kind == "union":
            return self._from_union(reader, writer, path)
        if reader.kind == "union":
            if any(not self.compare(each, writer, path) for each in reader.children):
                return []
            return [self._missing_branch(writer, path)]
        if reader.kind != writer.kind:
            if writer.kind in _PROMOTIONS.get(reader.kind, ()):
                return []
            detail = f"the reader's type {reader.branch_name} cannot read the writer's type {writer.branch_name}"
            return [Difference("TYPE_MISMATCH", path or "/", detail)]
        if reader.kind in ("array", "map"):
            part = "items" if reader.kind == "array" else "values"
            return self.compare(reader.children[0], writer.children[0], f"{path}/{part}")
        if reader.kind == "enum":
            return self._name(reader, writer, path) + self._symbols(reader, writer, path)
        if reader.kind == "fixed":
            return self._name(reader, writer, path) + self._size(reader, writer, path)
        if reader.kind in _RECORDS:
            return self._name(reader, writer, path) + self._fields(reader, writer, path)
        return []

    def _from_union(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        found: list[Difference] = []
        for position, branch in enumerate(writer.children):
            place = f"{path}/{position}"
            if reader.kind == "union":
                if all(self.compare(each, branch, place) for each in reader.children):
                    found.append(self._missing_branch(branch, place))
            else:
                found += self.compare(reader, branch, place)
        return found

    @staticmethod
    def _missing_branch(writer: Node, path: str) -> Difference:
        detail = f"no branch of the reader's union can read the writer's type {writer.branch_name}"
        return Difference("MISSING_UNION_BRANCH", path or "/", detail)

    @staticmethod
    def _name(reader: Node, writer: Node, path: str) -> list[Difference]:
        if reader.simple_name == writer.simple_name or writer.name in reader.aliases:
            return []
        return [Difference("NAME_MISMATCH", f"{path}/name", f"the name {writer.name} has become {reader.name}")]

    @staticmethod
    def _symbols(reader: Node, writer: Node, path: str) -> list[Difference]:
        missing = [each for each in writer.symbols if each not in reader.symbols]
        if not missing or reader.default is not None:
            return []
        detail = f"the reader's enum lacks {', '.join(missing)} of the writer and has no default"
        return [Difference("MISSING_ENUM_SYMBOLS", f"{path}/symbols", detail)]

    @staticmethod
    def _size(reader: Node, writer: Node, path: str) -> list[Difference]:
        if reader.size == writer.size:
            return []
        detail = f"the reader's size {reader.size} differs from the writer's {writer.size}"
        return [Difference("FIXED_SIZE_MISMATCH", f"{path}/size", detail)]

    def _fields(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        found: list[Difference] = []
        by_name = {each.name: each for each in writer.fields}
        for position, each in enumerate(reader.fields):
            place = f"{path}/fields/{position}"
            written = _written(each, by_name)
            if written is not None:
                found += self.compare(each.type, written.type, f"{place}/type")
            elif each.default is MISSING and not (each.type.kind == "enum" and each.type.default is not None):
                detail = f"the reader's field {each.name} has no default and the writer does not have it"
                found.append(Difference("READER_FIELD_MISSING_DEFAULT_VALUE", place, detail))
        return found


def _written(field: Field, by_name: dict[str, Field]) -> Field | None:
    """Returns the writer's field that the reader's `field` reads, None if the writer has none.

    `by_name` has the writer's fields; one of them is found by the name of `field` or by one of its aliases.
    """
    names = (field.name, *field.aliases)
    return next((by_name[name] for name in names if name in by_name), None)
