"""Protobuf schemas: stored as they are given, and compared by their descriptors.

A schema is a `.proto` text, or a FileDescriptorProto in base64, which is what Confluent's clients for Python, Go and C#
send. A descriptor is read by the library `protobuf`. A text is compiled if the package grpcio-tools is installed;
without it, a text is stored and served, and a comparison with it is refused.

Messages are compared by their names and fields by their numbers, as in Confluent's registry. Two texts that differ only
in comments and white space are equal.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from kafkapy.client.schema.proto_text import is_proto_text, significant_text
from kafkapy.registry.errors import InvalidSchema
from kafkapy.registry.schemas import proto_compiler
from kafkapy.registry.schemas.difference import Difference

# Field types that have the same form on the wire, by their numbers in FieldDescriptorProto.
_INTERCHANGEABLE = (
    frozenset((3, 4, 5, 8, 13, 14)),  # int64, uint64, int32, bool, uint32, enum
    frozenset((17, 18)),  # sint32, sint64
    frozenset((9, 12)),  # string, bytes
    frozenset((7, 15)),  # fixed32, sfixed32
    frozenset((6, 16)),  # fixed64, sfixed64
)
_REQUIRED, _REPEATED, _NESTED_TYPES = 2, 3, (10, 11)


class ProtobufSchema:
    """A Protobuf schema. The object does not change after its construction."""

    def __init__(self, text: str, referred: Mapping[str, str] | None = None, *, is_new: bool = False) -> None:
        """Reads `text`: a FileDescriptorProto in base64, or a `.proto` definition.

        `referred` has the texts of the schemas that `text` imports, directly or indirectly, by the names of the
        references. If `is_new`, a definition is compiled, provided that the compiler is installed. Raises InvalidSchema
        if the definition cannot be compiled, if the decoded base64 is not a FileDescriptorProto, or if the text
        contains no word of a definition, such as "message".
        """
        self.canonical = text.strip()
        self._referred = dict(referred or {})
        self._own = None
        if is_proto_text(self.canonical):
            if not any(word in self.canonical for word in ("message", "enum", "syntax", "edition")):
                raise InvalidSchema("the text has no word of a Protobuf definition, such as message")
            if is_new and proto_compiler.can_compile():
                proto_compiler.compiled(self.canonical, self._referred)
        else:
            self._own = _descriptor(self.canonical)

    @property
    def significant(self) -> tuple[str, Mapping[str, str]]:
        """The content without comments and insignificant white space, and the texts of the schemas that it imports."""
        return significant_text(self.canonical), self._referred

    @cached_property
    def files(self) -> list[Any] | None:
        """The descriptors of the imported files, as far as they are known, followed by the descriptor of this schema.

        None if the schema cannot be read because a library is missing. Raises InvalidSchema if it cannot be compiled.
        """
        if self._own is not None:
            return [*_descriptors(self._referred.values()), self._own]
        if not is_proto_text(self.canonical) or not proto_compiler.can_compile():
            return None
        return [*proto_compiler.compiled(self.canonical, self._referred).file]


def differences(reader: ProtobufSchema, writer: ProtobufSchema) -> list[Difference]:
    """Returns the reasons why data written with the schema `writer` cannot be read with the schema `reader`; an empty
    list if all of it can.

    Raises InvalidSchema if the schemas differ and cannot be compared, because a library is missing or one of them
    cannot be compiled.
    """
    if reader.significant == writer.significant:
        return []
    read, written = reader.files, writer.files
    if read is None or written is None:
        raise InvalidSchema(
            "to compare Protobuf schemas, descriptors in base64 need the package protobuf, and .proto texts need "
            "grpcio-tools as well (pip install 'kafkapy[proto]'); without them, set the compatibility of this subject "
            "to NONE to register the schema unchecked"
        )
    if read[-1].package != written[-1].package:
        detail = f"the package {written[-1].package} has become {read[-1].package}"
        return [Difference("PACKAGE_CHANGED", "#/", detail)]
    return _Comparison(read, written).found


class _Comparison:
    """The comparison of two files with the files that they import; `found` has the differences."""

    def __init__(self, read: list[Any], written: list[Any]) -> None:
        self.found: list[Difference] = []
        self._read, self._written = _message_types(read), _message_types(written)
        # The names of messages that are compared where the file that defines them is compared, or were compared before.
        self._compared = _message_types(read[-1:]).keys() & _message_types(written[-1:]).keys()
        self._compare_messages(read[-1].message_type, written[-1].message_type, "#")

    def _add(self, kind: str, place: str, detail: str) -> None:
        self.found.append(Difference(kind, place, detail))

    def _compare_messages(self, reader: Any, writer: Any, path: str) -> None:
        read = {each.name: each for each in reader}
        for each in writer:
            place = f"{path}/{each.name}"
            if each.name in read:
                self._compare_message(read[each.name], each, place)
            else:
                self._add("MESSAGE_REMOVED", place, f"the reader lacks the message {each.name}")

    def _compare_message(self, reader: Any, writer: Any, path: str) -> None:
        read, written = {each.number: each for each in reader.field}, {each.number: each for each in writer.field}
        for number, each in written.items():
            other = read.get(number)
            if other is not None:
                self._compare_field(other, each, f"{path}/{number}")
            elif each.label == _REQUIRED:
                detail = f"the reader lacks the required field {each.name}"
                self._add("REQUIRED_FIELD_REMOVED", f"{path}/{number}", detail)
        for number, each in read.items():
            if each.label == _REQUIRED and number not in written:
                detail = f"the reader requires the field {each.name}, which the writer does not have"
                self._add("REQUIRED_FIELD_ADDED", f"{path}/{number}", detail)
        self._compare_oneofs(reader, writer, path)
        self._compare_messages(reader.nested_type, writer.nested_type, path)

    def _compare_field(self, reader: Any, writer: Any, path: str) -> None:
        if (reader.type in _NESTED_TYPES) != (writer.type in _NESTED_TYPES):
            detail = f"the field {writer.name} has become a message, or is no longer one"
            self._add("FIELD_KIND_CHANGED", path, detail)
        elif reader.type in _NESTED_TYPES:
            self._compare_field_of_message(reader, writer, path)
        elif reader.type != writer.type and not any(
            reader.type in group and writer.type in group for group in _INTERCHANGEABLE
        ):
            self._add("FIELD_SCALAR_KIND_CHANGED", path, f"the type of the field {writer.name} has changed")
        elif (reader.label == _REPEATED) != (writer.label == _REPEATED) and reader.type not in (9, 12):
            detail = f"the field {writer.name} has become repeated, or is no longer so"
            self._add("FIELD_NUMERIC_LABEL_CHANGED", path, detail)

    def _compare_field_of_message(self, reader: Any, writer: Any, path: str) -> None:
        name = writer.type_name
        if reader.type != writer.type or reader.type_name != name:
            detail = f"the type of the field {writer.name} was {name} and is {reader.type_name}"
            self._add("FIELD_NAMED_TYPE_CHANGED", path, detail)
        elif name not in self._compared and name in self._read and name in self._written:
            self._compared |= {name}
            self._compare_message(self._read[name], self._written[name], path)

    def _compare_oneofs(self, reader: Any, writer: Any, path: str) -> None:
        """Adds the differences of fields that have moved into a oneof, or out of a oneof that still exists.

        `reader` and `writer` are the descriptors of one message in the two schemas, and `path` is its location.
        A single field that has moved into a new oneof is compatible and makes no difference.
        """
        read, written = _places_in_oneofs(reader), _places_in_oneofs(writer)
        common = {*read.values()} & {*written.values()}
        moved: dict[str, list[str]] = {}
        for each in writer.field:
            place = f"{path}/{each.number}"
            old, new = written.get(each.number), read.get(each.number)
            if old in common and new is None:
                self._add("ONEOF_FIELD_REMOVED", place, f"the field {each.name} is no longer in the oneof {old}")
            elif old is None and new in common:
                self._add("FIELD_MOVED_TO_EXISTING_ONEOF", place, f"the field {each.name} has moved into {new}")
            elif old is None and new is not None:
                moved.setdefault(new, []).append(each.name)
        for oneof, names in moved.items():
            if len(names) > 1:
                detail = f"the fields {', '.join(names)} have moved into one oneof"
                self._add("MULTIPLE_FIELDS_MOVED_TO_ONEOF", f"{path}/{oneof}", detail)


def _places_in_oneofs(message: Any) -> dict[int, str]:
    """Returns the name of the oneof of each field that is in one, by the field's number."""
    return {
        each.number: message.oneof_decl[each.oneof_index].name
        for each in message.field
        if each.HasField("oneof_index") and not each.proto3_optional
    }


def _message_types(files: Iterable[Any]) -> dict[str, Any]:
    """Returns the messages that files define, by their full names with a dot before them."""

    def within(prefix: str, messages: Iterable[Any]) -> Iterator[tuple[str, Any]]:
        for each in messages:
            yield f"{prefix}.{each.name}", each
            yield from within(f"{prefix}.{each.name}", each.nested_type)

    found: dict[str, Any] = {}
    for file in files:
        found.update(within(f".{file.package}" if file.package else "", file.message_type))
    return found


def _descriptors(texts: Iterable[str]) -> Iterator[Any]:
    """Yields the descriptor of each text that is a descriptor in base64; skips the other texts."""
    for text in texts:
        if not is_proto_text(text):
            yield _descriptor(text)


def _descriptor(text: str) -> Any:
    """Parses a FileDescriptorProto in base64; returns None if the library protobuf is not installed.

    Raises InvalidSchema if the text is something else.
    """
    try:
        data = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidSchema("neither a Protobuf definition nor a FileDescriptorProto in base64") from None
    try:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto
        from google.protobuf.message import DecodeError
    except ImportError:
        return None
    try:
        return FileDescriptorProto.FromString(data)
    except DecodeError as error:
        raise InvalidSchema(f"the base64 text is not a FileDescriptorProto: {error}") from None
