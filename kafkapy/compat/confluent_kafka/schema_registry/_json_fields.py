"""The fields of JSON values, to which rules with tags and validation rules are applied."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from kafkapy.client.schema.json_schema import fits
from kafkapy.compat.confluent_kafka.schema_registry._model import RuleKind
from kafkapy.compat.confluent_kafka.schema_registry._rules import (
    FieldTransform,
    FieldType,
    RuleConditionError,
    RuleContext,
)
from kafkapy.compat.confluent_kafka.schema_registry._validation import (
    ValidationRuleError,
    ValidationRuleExecutor,
    collected,
    rule_errors,
)

_TYPES = {
    "object": FieldType.RECORD,
    "array": FieldType.ARRAY,
    "string": FieldType.STRING,
    "integer": FieldType.INT,
    "number": FieldType.DOUBLE,
    "boolean": FieldType.BOOLEAN,
    "null": FieldType.NULL,
}
_COMBINED = ("allOf", "oneOf", "anyOf")
_LEAVES = (FieldType.ENUM, FieldType.STRING, FieldType.INT, FieldType.DOUBLE, FieldType.BOOLEAN)


def get_type(schema: Any) -> FieldType:
    """Returns the FieldType of a property whose JSON schema is `schema`."""
    if not isinstance(schema, dict):
        return FieldType.NULL
    kind = schema.get("type")
    if isinstance(kind, list) or any(name in schema for name in _COMBINED):
        return FieldType.COMBINED
    if "const" in schema or "enum" in schema:
        return FieldType.ENUM
    if kind is None and ("properties" in schema or "$ref" in schema):
        return FieldType.RECORD
    if kind == "object" and not schema.get("properties") and "additionalProperties" in schema:
        return FieldType.MAP
    return _TYPES.get(str(kind), FieldType.NULL)


def get_inline_tags(schema: Any) -> set[str]:
    """Returns the tags of a property: the elements of `confluent:tags` in `schema`, the property's schema."""
    return set(schema.get("confluent:tags") or ()) if isinstance(schema, dict) else set()


def transform(
    ctx: RuleContext,
    schema: Any,
    ref_registry: Any,
    ref_resolver: Any,
    path: str,
    message: Any,
    field_transform: FieldTransform,
) -> Any:
    """Returns the value `message` after `field_transform` was applied to each property that has a tag of the rule.

    Changes objects in place. `ref_registry` and `ref_resolver` (objects of the library `referencing`) have the schemas
    that are referred to. `path` is the path of the value in the whole message, such as `$.order.id`. Raises
    RuleConditionError if the rule is a condition that a property does not fulfil.
    """
    if message is None or not isinstance(schema, dict):
        return message
    field = ctx.current_field()
    if field is not None:
        field.field_type = get_type(schema)
    for part, resolver in _parts(schema, ref_registry, ref_resolver, message):
        message = transform(ctx, part, ref_registry, resolver, path, message, field_transform)
    if _is_whole(schema):
        return message
    items = schema.get("items")
    if items is not None and isinstance(message, list):
        return [transform(ctx, items, ref_registry, ref_resolver, path, each, field_transform) for each in message]
    if isinstance(message, dict):
        for name, part in _properties(schema, message):
            place = f"{path}.{name}"
            ctx.enter_field(message, place, name, get_type(part), get_inline_tags(part))
            try:
                result = transform(ctx, part, ref_registry, ref_resolver, place, message[name], field_transform)
                if ctx.rule.kind != RuleKind.CONDITION:
                    message[name] = result
                elif result is False:
                    raise RuleConditionError(ctx.rule)
            finally:
                ctx.exit_field()
        return message
    is_leaf = field is not None and get_type(schema) in _LEAVES and ctx.applies_to(field)
    return field_transform(ctx, field, message) if is_leaf and field is not None else message


def _is_whole(schema: dict[str, Any]) -> bool:
    """Returns whether the subschemas that `_parts` yields replace `schema`.

    If so, the caller visits the subschemas, but not the items and properties of `schema` itself. This is the case if
    `type` is a list, or if the schema has `$ref` and none of allOf, oneOf and anyOf.
    """
    is_reference = "$ref" in schema and not any(name in schema for name in _COMBINED)
    return is_reference or isinstance(schema.get("type"), list)


def _properties(schema: dict[str, Any], message: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields (name, schema) for each property of a JSON schema that is present in `message` and not null."""
    for name, part in (schema.get("properties") or {}).items():
        if isinstance(part, dict) and message.get(name) is not None:
            yield name, part


def _parts(schema: dict[str, Any], registry: Any, resolver: Any, message: Any) -> Iterator[tuple[Any, Any]]:
    """Yields (subschema, resolver) for each subschema of `schema` that applies to the value `message` as a whole.

    If `type` is a list, this is the schema with the first type that fits; for allOf, all subschemas; for oneOf, the
    first one that fits; for anyOf, all that fit; otherwise the schema that `$ref` names, if any. `resolver` resolves
    the references of the subschema.
    """
    if isinstance(schema.get("type"), list):
        narrowed = ({**schema, "type": each} for each in schema["type"])
        fitting = (each for each in narrowed if fits(each, registry, resolver, message))
        yield from ((each, resolver) for each in islice(fitting, 1))
    elif "allOf" in schema:
        yield from ((each, resolver) for each in schema["allOf"])
    elif "oneOf" in schema:
        fitting = (each for each in schema["oneOf"] if fits(each, registry, resolver, message))
        yield from ((each, resolver) for each in islice(fitting, 1))
    elif "anyOf" in schema:
        yield from ((each, resolver) for each in schema["anyOf"] if fits(each, registry, resolver, message))
    elif "$ref" in schema:
        found = resolver.lookup(schema["$ref"])
        yield found.contents, found.resolver


def validate_message(
    executor: ValidationRuleExecutor | None,
    schema: Any,
    ref_registry: Any,
    ref_resolver: Any,
    message: Any,
    fail_fast: bool = False,
) -> list[ValidationRuleError]:
    """Returns the violations of the validation rules that a JSON schema has for its value `message`.

    `ref_registry` and `ref_resolver` (objects of the library `referencing`) have the schemas that are referred to. If
    `fail_fast`, returns at most the first violation.
    """
    if executor is None or schema is None or message is None:
        return []
    return collected(_violations(executor, schema, ref_registry, ref_resolver, "$", message), fail_fast)


def _violations(
    executor: ValidationRuleExecutor, schema: Any, registry: Any, resolver: Any, path: str, message: Any
) -> Iterator[ValidationRuleError]:
    if message is None or not isinstance(schema, dict):
        return
    for part, own_resolver in _parts(schema, registry, resolver, message):
        yield from _violations(executor, part, registry, own_resolver, path, message)
    if _is_whole(schema):
        return
    if isinstance(message, list):
        for index, each in enumerate(message if "items" in schema else ()):
            yield from _violations(executor, schema["items"], registry, resolver, f"{path}[{index}]", each)
    elif isinstance(message, dict):
        yield from rule_errors(executor, schema, schema, message, path)
        for name, part in _properties(schema, message):
            place = f"{path}.{name}"
            if not isinstance(message[name], dict) or _is_whole(part):  # otherwise the rules are those of the object
                yield from rule_errors(executor, part, part, message[name], place)
            yield from _violations(executor, part, registry, resolver, place, message[name])
