"""Protobuf schemas: stored as they are given, and compared if the library `protobuf` can read both.

A schema is a `.proto` text, or a FileDescriptorProto in base64, which is what Confluent's clients for Python, Go and C#
send. Descriptors are compared with the extra `protobuf`. A text would need protoc: it is stored and served, and a
comparison with it is refused.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from kafkapy.registry.errors import InvalidSchema
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
    """A Protobuf schema. Immutable. `descriptor` is None if the schema is a `.proto` text, or if the library
    protobuf is not installed.
    """

    def __init__(self, text: str, referred: Mapping[str, str] | None = None) -> None:
        """Reads `text`: a FileDescriptorProto in base64, or a `.proto` definition, which is stored without parsing it.
        `referred` is not used; it exists because the other types of schemas have this parameter.

        Raises InvalidSchema for a text that is neither a descriptor nor contains a word of a definition, such as
        "message".
        """
        self.canonical = text.strip()
        data = _decoded(self.canonical)
        self.descriptor = None if data is None else _descriptor(data)
        if data is None and not any(word in self.canonical for word in ("message", "enum", "syntax", "edition")):
            raise InvalidSchema("neither a Protobuf definition nor a FileDescriptorProto in base64")


def differences(reader: ProtobufSchema, writer: ProtobufSchema) -> list[Difference]:
    """Returns the reasons why data written with the schema `writer` cannot be read with the schema `reader`; an empty
    list if all of it can.

    Raises InvalidSchema if the schemas differ and cannot be compared, because one of them has no descriptor.
    """
    if reader.canonical == writer.canonical:
        return []
    if reader.descriptor is None or writer.descriptor is None:
        raise InvalidSchema(
            "the compatibility of Protobuf schemas is checked only between descriptors in base64, with the package "
            "protobuf installed; set the compatibility of this subject to NONE to register the schema unchecked"
        )
    if reader.descriptor.package != writer.descriptor.package:
        detail = f"the package {writer.descriptor.package} has become {reader.descriptor.package}"
        return [Difference("PACKAGE_CHANGED", "#/", detail)]
    return _compare_messages(reader.descriptor.message_type, writer.descriptor.message_type, "#")


def _compare_messages(reader: Any, writer: Any, path: str) -> list[Difference]:
    found: list[Difference] = []
    read = {each.name: each for each in reader}
    for each in writer:
        place = f"{path}/{each.name}"
        if each.name not in read:
            found.append(Difference("MESSAGE_REMOVED", place, f"the reader lacks the message {each.name}"))
            continue
        other = read[each.name]
        found += _compare_fields(other, each, place)
        found += _compare_messages(other.nested_type, each.nested_type, place)
    return found


def _compare_fields(reader: Any, writer: Any, path: str) -> list[Difference]:
    found: list[Difference] = []
    read, written = {each.number: each for each in reader.field}, {each.number: each for each in writer.field}
    for number, each in written.items():
        place = f"{path}/{number}"
        other = read.get(number)
        if other is None:
            if each.label == _REQUIRED:
                detail = f"the reader lacks the required field {each.name}"
                found.append(Difference("REQUIRED_FIELD_REMOVED", place, detail))
            continue
        if not _is_same_kind(other, each):
            detail = f"the type of the field {each.name} has changed"
            found.append(Difference("FIELD_SCALAR_KIND_CHANGED", place, detail))
        elif (other.label == _REPEATED) != (each.label == _REPEATED) and other.type not in (9, 11, 12):
            detail = f"the field {each.name} has become repeated, or is no longer so"
            found.append(Difference("FIELD_NUMERIC_LABEL_CHANGED", place, detail))
    for number, each in read.items():
        if each.label == _REQUIRED and number not in written:
            detail = f"the reader requires the field {each.name}, which the writer does not have"
            found.append(Difference("REQUIRED_FIELD_ADDED", f"{path}/{number}", detail))
    return found + _moved_into_oneof(read, written, reader, path)


def _is_same_kind(reader: Any, writer: Any) -> bool:
    if reader.type == writer.type:
        return reader.type not in _NESTED_TYPES or reader.type_name == writer.type_name
    return any(reader.type in group and writer.type in group for group in _INTERCHANGEABLE)


def _moved_into_oneof(read: dict[int, Any], written: dict[int, Any], reader: Any, path: str) -> list[Difference]:
    """Returns a difference for each oneof into which the reader's message has moved several of the writer's fields.

    `read` and `written` are the fields of the message in the reader's and the writer's schema, by their numbers;
    `reader` is the reader's descriptor of the message.
    """
    moved: dict[int, list[str]] = {}
    for number, each in read.items():
        old = written.get(number)
        is_in_oneof = each.HasField("oneof_index") and not each.proto3_optional
        if is_in_oneof and old is not None and not old.HasField("oneof_index"):
            moved.setdefault(each.oneof_index, []).append(each.name)
    return [
        Difference(
            "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
            f"{path}/{reader.oneof_decl[index].name}",
            f"the fields {', '.join(names)} have moved into one oneof",
        )
        for index, names in moved.items()
        if len(names) > 1
    ]


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _descriptor(data: bytes) -> Any:
    """Parses `data` as a FileDescriptorProto; returns None if the library protobuf is not installed.

    Raises InvalidSchema if the bytes are not a FileDescriptorProto.
    """
    try:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto
        from google.protobuf.message import DecodeError
    except ImportError:
        return None
    try:
        return FileDescriptorProto.FromString(data)
    except DecodeError as error:
        raise InvalidSchema(f"the base64 text is not a FileDescriptorProto: {error}") from None
