"""The fields of Avro values, to which rules with tags and validation rules are applied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

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

_TAGS = "confluent:tags"
_TYPES = {each.value.lower(): each for each in FieldType if each is not FieldType.COMBINED}
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float, int),
    "double": (float, int),
    "string": (str,),
    "enum": (str,),
    "bytes": (bytes, bytearray),
    "fixed": (bytes, bytearray),
    "array": (list, tuple),
    "map": (dict,),
    "record": (dict,),
    "error": (dict,),
}


def _kind(schema: Any) -> str:
    """Returns the name of an Avro schema's type, such as "record" or "string"; "union" for a list.

    If a schema refers to a defined type by its name, returns the name of the defined type.
    """
    if isinstance(schema, list):
        return "union"
    found = schema.get("type") if isinstance(schema, dict) else schema
    return _kind(found) if isinstance(found, dict | list) else str(found)


def get_type(schema: Any) -> FieldType:
    """Returns the FieldType of a field whose Avro schema is `schema`; COMBINED for a union."""
    kind = _kind(schema)
    return FieldType.COMBINED if kind == "union" else _TYPES.get(kind, FieldType.NULL)


def get_inline_tags(schema: Any) -> dict[str, set[str]]:
    """Returns the tags of a schema's fields by their full names, which are `record.field`."""
    found: dict[str, set[str]] = defaultdict(set)
    _add_tags(schema, "", found)
    return found


def _add_tags(schema: Any, namespace: str, found: dict[str, set[str]]) -> None:
    if isinstance(schema, list):
        for each in schema:
            _add_tags(each, namespace, found)
    if not isinstance(schema, dict):
        return
    if schema.get("type") in ("record", "error"):
        name = _full_name(schema, namespace)
        for field in schema["fields"]:
            if field.get(_TAGS):
                found[f"{name}.{field['name']}"].update(field[_TAGS])
            _add_tags(field["type"], name.rpartition(".")[0], found)
    for part in ("items", "values"):
        _add_tags(schema.get(part), namespace, found)
    if isinstance(schema.get("type"), dict | list):
        _add_tags(schema["type"], namespace, found)


def _full_name(schema: dict[str, Any], namespace: str) -> str:
    name = str(schema["name"])
    space = schema.get("namespace", namespace)
    return name if "." in name or not space else f"{space}.{name}"


def transform(ctx: RuleContext, schema: Any, message: Any, field_transform: FieldTransform) -> Any:
    """Returns the value `message` after `field_transform` was applied to each field that has a tag of the rule.

    Records are changed in place. Raises RuleConditionError if the rule is a condition that a field does not fulfil.
    """
    field = ctx.current_field()
    if field is not None:
        field.field_type = get_type(schema)
    kind = _kind(schema)
    if kind == "union":
        branch, value = _branch(schema, message)
        if branch is None:
            return message
        result = transform(ctx, branch, value, field_transform)
        return (message[0], result) if isinstance(message, tuple) and _fits(branch, result) else result
    if kind == "array" and isinstance(message, list | tuple):
        return [transform(ctx, schema["items"], each, field_transform) for each in message]
    if kind == "map" and isinstance(message, dict):
        return {key: transform(ctx, schema["values"], each, field_transform) for key, each in message.items()}
    if kind in ("record", "error") and isinstance(message, dict):
        for part in schema["fields"]:
            if part["name"] in message:
                _transform_field(ctx, schema, part, message, field_transform)
        return message
    return field_transform(ctx, field, message) if field is not None and ctx.applies_to(field) else message


def _transform_field(
    ctx: RuleContext, schema: dict[str, Any], part: dict[str, Any], message: dict[str, Any], change: FieldTransform
) -> None:
    name = part["name"]
    ctx.enter_field(message, f"{schema['name']}.{name}", name, get_type(part["type"]), None)
    try:
        result = transform(ctx, part["type"], message[name], change)
        if ctx.rule.kind == RuleKind.CONDITION:
            if result is False:
                raise RuleConditionError(ctx.rule)
        else:
            message[name] = result
    finally:
        ctx.exit_field()


def _branch(union: list[Any], message: Any) -> tuple[Any, Any]:
    """Returns (branch, value): the schema in `union` that the value `message` has, and the value itself.

    The branch is None if no schema fits. If `message` is a pair (name of a schema, value), the name selects the branch
    and the second element is returned as the value. If `message` is a dictionary with the key "-type", the value of
    this key is the name of the branch.
    """
    name, value = None, message
    if isinstance(message, tuple) and len(message) == 2:
        name, value = message
    elif isinstance(message, dict) and "-type" in message:
        name = message["-type"]
    if name is None:
        return next((each for each in union if _fits(each, value)), None), value
    names = [(each.get("name", each.get("type")) if isinstance(each, dict) else each) for each in union]
    exact = [each for each, own in zip(union, names, strict=True) if own == name]
    simple = [each for each, own in zip(union, names, strict=True) if own == str(name).rpartition(".")[2]]
    return next(iter(exact + simple), None), value


def _fits(schema: Any, value: Any) -> bool:
    """Returns whether `value` can be a value of the Avro schema `schema`; used to choose the branch of a union."""
    kind = _kind(schema)
    if kind == "union":
        return any(_fits(each, value) for each in schema)
    if isinstance(schema, dict) and schema.get("logicalType"):
        return value is not None and not isinstance(value, dict | list | bool)
    types = _PYTHON_TYPES.get(kind)
    if types is None:  # a type that is only named: it is defined by a record that contains it
        return isinstance(value, dict)
    if not isinstance(value, types) or (isinstance(value, bool) and kind != "boolean"):
        return False
    return _has_parts_that_fit(kind, schema, value)


def _has_parts_that_fit(kind: str, schema: Any, value: Any) -> bool:
    if kind == "enum":
        return value in schema["symbols"]
    if kind == "fixed":
        return len(value) == int(schema["size"])
    if kind == "array":
        return all(_fits(schema["items"], each) for each in value)
    if kind == "map":
        return all(_fits(schema["values"], each) for each in value.values())
    if kind in ("record", "error"):
        fields = [(each, each["name"]) for each in schema["fields"]]
        return all(_fits(each["type"], value[name]) if name in value else "default" in each for each, name in fields)
    return True


def validate_message(
    executor: ValidationRuleExecutor | None, schema: Any, message: Any, fail_fast: bool = False
) -> list[ValidationRuleError]:
    """Returns the violations of the validation rules that an Avro schema has for its value `message`.

    If `fail_fast`, returns at most the first one. Returns an empty list if an argument is None.
    """
    if executor is None or schema is None or message is None:
        return []
    return collected(_violations(executor, schema, message, ""), fail_fast)


def _violations(
    executor: ValidationRuleExecutor, schema: Any, message: Any, path: str
) -> Iterator[ValidationRuleError]:
    kind = _kind(schema)
    if message is None:
        return
    if kind == "union":
        branch, value = _branch(schema, message)
        if branch is not None:
            yield from _violations(executor, branch, value, path)
    elif kind == "array" and isinstance(message, list | tuple):
        for index, each in enumerate(message):
            yield from _violations(executor, schema["items"], each, f"{path}[{index}]")
    elif kind == "map" and isinstance(message, dict):
        for key, each in message.items():
            yield from _violations(executor, schema["values"], each, f'{path}["{key}"]')
    elif kind in ("record", "error") and isinstance(message, dict):
        yield from rule_errors(executor, schema, schema, message, path)
        for part in schema["fields"]:
            value = message.get(part["name"])
            place = f"{path}.{part['name']}" if path else part["name"]
            if value is not None:
                yield from rule_errors(executor, part, part["type"], value, place)
                yield from _violations(executor, part["type"], value, place)
