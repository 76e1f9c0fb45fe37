"""The serializer and the deserializer of JSON, which validate it by the library jsonschema and the schemas of a
registry.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from kafkapy.client.schema.errors import LibraryMissing, SchemaMismatch
from kafkapy.client.schema.model import JSON, Schema
from kafkapy.client.schema.registry_client import RegistryClient
from kafkapy.client.schema.serde import SchemaDeserializer, SchemaSerializer
from kafkapy.client.schema.wire_format import Frame

# Raises SchemaMismatch for a value that is not valid.
Validate = Callable[[Any], None]


def referred_resources(registry: RegistryClient, schema: Schema) -> Any:
    """Returns the schemas that a schema refers to, as the Registry object of the library referencing.

    With this object the library jsonschema does not fetch remote schemas. Raises ValueError for a text that is not
    JSON.
    """
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT7

    referred = registry.referred(schema) if schema.references else {}
    found: Any = Registry()
    return found.with_resources(
        (name, Resource.from_contents(json.loads(each.text), default_specification=DRAFT7))
        for name, each in referred.items()
    )


def resolver_of(registry: Any, root: Any) -> Any:
    """Returns an object of the library referencing that finds the targets of the references within the schema `root`.

    `registry` is the result of `referred_resources`, with the other schemas that `root` refers to.
    """
    from referencing import Resource
    from referencing.jsonschema import DRAFT7

    return registry.resolver_with_root(Resource.from_contents(root, default_specification=DRAFT7))


def fits(schema: Any, registry: Any, resolver: Any, value: Any) -> bool:
    """Returns whether a value is valid by `schema`, which may be a part of a larger schema; False for an unknown
    reference.

    `resolver` finds the targets of the references in `schema`, and `registry` is the result of `referred_resources`.
    """
    from jsonschema.validators import Draft7Validator, validator_for
    from referencing.exceptions import Unresolvable

    try:
        kind = validator_for(schema, Draft7Validator)
        return bool(kind(schema, registry=registry, _resolver=resolver).is_valid(value))
    except Unresolvable:
        return False


def make_validator(registry: RegistryClient, schema: Schema) -> Validate:
    """Returns a function that validates a value by a schema: it raises SchemaMismatch if the schema does not accept the
    value.

    Raises SchemaMismatch for an invalid schema.
    """
    try:
        from jsonschema.exceptions import SchemaError, ValidationError
        from jsonschema.validators import Draft7Validator, validator_for
        from referencing.exceptions import Unresolvable
    except ImportError:
        raise LibraryMissing("jsonschema") from None
    try:
        root = json.loads(schema.text)
        resources = referred_resources(registry, schema)
        kind = validator_for(root, Draft7Validator)
        kind.check_schema(root)
    except RecursionError as error:
        raise SchemaMismatch("the JSON Schema is nested too deeply") from error
    except (ValueError, SchemaError) as error:
        reason = error.message if isinstance(error, SchemaError) else str(error)
        raise SchemaMismatch(f"the JSON Schema is invalid: {reason}") from error
    validator = kind(root, registry=resources)

    def validate(value: Any) -> None:
        try:
            validator.validate(value)
        except ValidationError as error:
            place = "/".join(map(str, error.absolute_path))
            raise SchemaMismatch(f"the value does not fit the JSON Schema at /{place}: {error.message}") from error
        except RecursionError as error:
            raise SchemaMismatch("the value is nested too deeply for its JSON Schema") from error
        except Unresolvable as error:
            raise SchemaMismatch(f"a $ref of the JSON Schema cannot be resolved: {error}") from error

    return validate


def encode_json(value: Any) -> bytes:
    """Encodes a value as JSON. Raises SchemaMismatch if JSON cannot represent the value."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise SchemaMismatch(f"the value cannot be represented in JSON: {error}") from error


def decode_json(data: bytes) -> Any:
    """Decodes JSON. Raises SchemaMismatch if `data` are not JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SchemaMismatch(f"the data are not JSON: {error}") from error


class JsonSerializer(SchemaSerializer):
    """Serializes values as JSON that a JSON Schema accepts.

    `schema` is the text of the schema, or a Schema with references. It may be None if `use_latest` or `schema_id` is
    given. Without any of these three, each call raises SchemaMismatch. `to_value(value)` converts an application's
    object to a value of JSON. If `validates` is False, the values are not validated. `encode(value)` replaces the
    function that converts a value to the text or bytes of JSON. `options` are the keyword arguments of
    SchemaSerializer, such as `auto_register` and `subject_name`.
    """

    schema_type = JSON

    def __init__(
        self,
        registry: RegistryClient,
        schema: str | Schema | None = None,
        *,
        to_value: Callable[[Any], Any] | None = None,
        validates: bool = True,
        encode: Callable[[Any], str | bytes] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(registry, **options)
        self._given = Schema(schema, JSON) if isinstance(schema, str) else schema
        self._to_value = to_value
        self._validates = validates
        self._encode = encode or encode_json
        self._own_validator = None
        if self._given is not None and validates:
            self._own_validator = make_validator(registry, self._given)

    def own_schema(self) -> Schema:
        if self._given is None:
            raise SchemaMismatch("a JsonSerializer without a schema needs use_latest or schema_id")
        return self._given

    def record_name(self) -> str:
        root = json.loads(self._given.text) if self._given is not None else None
        return str(root.get("title", "")) if isinstance(root, dict) else ""

    def serialize(self, value: Any, schema: Schema) -> bytes:
        if self._to_value is not None:
            value = self._to_value(value)
        if self._validates:
            validate = self._own_validator
            if validate is None or schema is not self._given:
                validate = self._made_of(schema, lambda: make_validator(self._registry, schema))
            validate(value)
        encoded = self._encode(value)
        return encoded.encode() if isinstance(encoded, str) else encoded


class JsonDeserializer(SchemaDeserializer):
    """Deserializes JSON and validates it by the schema that the data name.

    `from_value` turns each value into an application's object. `validates` is False to skip the validation, which then
    needs neither the registry nor the library.
    """

    def __init__(
        self,
        registry: RegistryClient,
        *,
        from_value: Callable[[Any], Any] | None = None,
        validates: bool = True,
        is_key: bool = False,
    ) -> None:
        super().__init__(registry, is_key=is_key)
        self._from_value = from_value
        self._validates = validates

    def parse(self, schema: Schema) -> Validate:
        return make_validator(self._registry, schema) if self._validates else lambda value: None

    def schema_of(self, frame: Frame) -> Schema:
        return super().schema_of(frame) if self._validates else Schema("true", JSON)

    def deserialize(self, data: bytes, frame: Frame, parsed: Validate) -> Any:
        value = decode_json(memoryview(data)[frame.start :].tobytes())
        parsed(value)
        return value if self._from_value is None else self._from_value(value)
