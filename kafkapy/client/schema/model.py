"""The values that a registry stores: schemas, references to other schemas, versions of subjects."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from typing import Any

from kafkapy.client.schema.proto_text import significant_text
from kafkapy.named_tuple import NamedTuple

# The limits of the schemas to which a schema refers, in all and in a chain.
MOST_REFERENCES = 1000
DEEPEST_REFERENCE = 100
AVRO, JSON, PROTOBUF = SCHEMA_TYPES = ("AVRO", "JSON", "PROTOBUF")


class SchemaReference(NamedTuple):
    """The name by which a schema refers to another one, and the subject and version of that schema."""

    name: str
    subject: str
    version: int

    def as_json(self) -> dict[str, Any]:
        """Returns the reference as the JSON object that the registry's API uses."""
        return {"name": self.name, "subject": self.subject, "version": self.version}


class Schema(NamedTuple):
    """A schema: text and type, references, metadata and rules.

    `metadata` and `rule_set` are JSON objects, or None; registries store and compare them.
    """

    text: str
    type: str = AVRO
    references: tuple[SchemaReference, ...] = ()
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = None

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Schema:
        """Returns the schema that the fields of an API's response, or of a registry's stored record, describe.

        Raises KeyError or TypeError if a field is missing or has a wrong type.
        """
        references = fields.get("references") or ()
        return cls(
            fields["schema"],
            fields.get("schemaType") or AVRO,
            tuple(SchemaReference(each["name"], each["subject"], int(each["version"])) for each in references),
            fields.get("metadata"),
            fields.get("ruleSet"),
        )

    def as_json(self) -> dict[str, Any]:
        """Returns the schema as the fields that the registry's API uses.

        Fields that have their default are left out, as in Confluent's registry.
        """
        fields: dict[str, Any] = {}
        if self.type != AVRO:
            fields["schemaType"] = self.type
        if self.references:
            fields["references"] = [each.as_json() for each in self.references]
        if self.metadata:
            fields["metadata"] = self.metadata
        if self.rule_set:
            fields["ruleSet"] = self.rule_set
        fields["schema"] = self.text
        return fields

    @property
    def content_key(self) -> str:
        """A digest that is equal for equal schemas. Empty parts of metadata and rules are equal to absent ones."""
        return self._digest(self.text)

    @property
    def identity_key(self) -> str:
        """A digest that is equal for schemas with the same id in a registry.

        It is the `content_key`, except that comments and white space of a `.proto` text have no effect on it.
        """
        return self._digest(significant_text(self.text)) if self.type == PROTOBUF else self.content_key

    def _digest(self, text: str) -> str:
        content = (self.type, text, self.references, _without_empty(self.metadata), _without_empty(self.rule_set))
        return hashlib.md5(json.dumps(content, sort_keys=True).encode(), usedforsecurity=False).hexdigest()

    @property
    def guid(self) -> str:
        """The identifier that kafkapy's registry gives the schema, which does not depend on the registry."""
        return str(uuid.UUID(hex=self.content_key))


def _without_empty(fields: dict[str, Any] | None) -> dict[str, Any] | None:
    """Returns the fields whose value is not empty, or None if there are none."""
    return {name: value for name, value in (fields or {}).items() if value or value is False} or None


class RegisteredSchema(NamedTuple):
    """A registered schema, its id, and the subject and version by which it was found.

    If it was found by its id alone, `subject` is "" and `version` is 0.
    """

    schema: Schema
    id: int
    subject: str = ""
    version: int = 0
    guid: str = ""
