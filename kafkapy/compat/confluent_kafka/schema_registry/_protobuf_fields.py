"""The fields of Protobuf messages, to which rules with tags are applied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafkapy.compat.confluent_kafka.schema_registry._model import RuleKind
from kafkapy.compat.confluent_kafka.schema_registry._rules import (
    FieldTransform,
    FieldType,
    RuleConditionError,
    RuleContext,
)

# The extension of a field's options that holds Confluent's description of the field, and the tags within it.
_DESCRIPTION, _TAGS = 1088, 3
_LENGTH_DELIMITED = 2
_TYPES: dict[str, FieldType] = {
    **dict.fromkeys(("INT32", "UINT32", "SINT32", "FIXED32", "SFIXED32"), FieldType.INT),
    **dict.fromkeys(("INT64", "UINT64", "SINT64", "FIXED64", "SFIXED64"), FieldType.LONG),
    **dict.fromkeys(("MESSAGE", "GROUP"), FieldType.RECORD),
    "FLOAT": FieldType.FLOAT,
    "DOUBLE": FieldType.DOUBLE,
    "BOOL": FieldType.BOOLEAN,
    "STRING": FieldType.STRING,
    "BYTES": FieldType.BYTES,
    "ENUM": FieldType.ENUM,
}


def get_type(fd: Any) -> FieldType:
    """Returns the type of the field with the descriptor `fd`."""
    if is_map_field(fd):
        return FieldType.MAP
    found = next((name for name in _TYPES if getattr(fd, f"TYPE_{name}") == fd.type), None)
    return FieldType.NULL if found is None else _TYPES[found]


def is_map_field(fd: Any) -> bool:
    """Returns whether a field is a map."""
    kind = fd.message_type
    return kind is not None and kind.has_options and bool(kind.GetOptions().map_entry)


def get_inline_tags(fd: Any) -> set[str]:
    """Returns the tags of a field, read from Confluent's extension of the field's options."""
    options = fd.GetOptions()
    known = [value for extension, value in options.ListFields() if extension.number == _DESCRIPTION]
    if known:  # the program has imported the definition of the extension
        return set(known[0].tags)
    found: set[str] = set()
    for number, data in _delimited_fields(options.SerializeToString()):
        if number == _DESCRIPTION:
            found.update(tag.decode() for part, tag in _delimited_fields(data) if part == _TAGS)
    return found


def _delimited_fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields (field number, bytes) for each length-delimited field of an encoded Protobuf message.

    The message's descriptor is not needed.
    """
    from google.protobuf.empty_pb2 import Empty
    from google.protobuf.unknown_fields import UnknownFieldSet

    for each in UnknownFieldSet(Empty.FromString(data)):
        if each.wire_type == _LENGTH_DELIMITED:
            yield each.field_number, each.data


def transform(ctx: RuleContext, descriptor: Any, message: Any, field_transform: FieldTransform) -> Any:
    """Applies `field_transform` to each field of a Protobuf message that has a tag of the rule; returns the message.

    Changes the message in place. `descriptor` is the message's descriptor in the schema, which has the names and the
    tags; its fields are found by their numbers. Raises RuleConditionError if the rule is a condition that a field does
    not fulfil.
    """
    if message is None or descriptor is None:
        return message
    if isinstance(message, list):
        return [transform(ctx, descriptor, each, field_transform) for each in message]
    if isinstance(message, dict):
        return {key: transform(ctx, descriptor, each, field_transform) for key, each in message.items()}
    if hasattr(message, "DESCRIPTOR"):
        for own in message.DESCRIPTOR.fields:
            field = descriptor.fields_by_number.get(own.number)
            if field is not None and not (own.has_presence and not message.HasField(own.name)):
                _transform_field(ctx, own, field, message, field_transform)
        return message
    field = ctx.current_field()
    return field_transform(ctx, field, message) if field is not None and ctx.applies_to(field) else message


def _transform_field(ctx: RuleContext, own: Any, field: Any, message: Any, change: FieldTransform) -> None:
    ctx.enter_field(message, field.full_name, field.name, get_type(own), get_inline_tags(field), own)
    try:
        value = getattr(message, own.name)
        is_map, is_list = is_map_field(own), own.is_repeated
        if is_map:
            value = {key: value[key] for key in value}
        elif is_list:
            value = list(value)
        kind = field.message_type
        if is_map and kind is not None:
            kind = kind.fields_by_name["value"].message_type
        result = transform(ctx, kind if kind is not None else field.containing_type, value, change)
        if ctx.rule.kind == RuleKind.CONDITION:
            if result is False:
                raise RuleConditionError(ctx.rule)
        elif own.message_type is None or (is_map and own.message_type.fields_by_name["value"].message_type is None):
            _set(message, own.name, result)
    finally:
        ctx.exit_field()


def _set(message: Any, name: str, value: Any) -> None:
    """Sets the field `name` of a message to a list (repeated field), a dict (map field) or a single value.

    Accepts no messages as values or elements; a message within a message is changed in place instead.
    """
    if isinstance(value, list):
        message.ClearField(name)
        getattr(message, name).extend(value)
    elif isinstance(value, dict):
        message.ClearField(name)
        getattr(message, name).update(value)
    else:
        setattr(message, name, value)
