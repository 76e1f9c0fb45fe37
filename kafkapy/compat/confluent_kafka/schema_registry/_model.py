"""The classes of the arguments and results of confluent-kafka's registry client: schemas, rules, versions, settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Self

from kafkapy.client.schema import model


class _Text(str, Enum):  # noqa: UP042 - the text of a member is its value, also in a format string
    def __str__(self) -> str:
        return str(self.value)


class ConfigCompatibilityLevel(_Text):
    """The compatibility levels. The level of a subject determines which changes of its schema the registry accepts."""

    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"
    NONE = "NONE"


class RuleKind(_Text):
    """The kinds of rules: a condition checks a value, a transform replaces it."""

    CONDITION = "CONDITION"
    TRANSFORM = "TRANSFORM"


class RuleMode(_Text):
    """The operations in which a rule is executed.

    WRITE is the serialization of a value and READ its deserialization. UPGRADE converts a value to a later version of
    its schema, DOWNGRADE to an earlier one. WRITEREAD means WRITE and READ, and UPDOWN means UPGRADE and DOWNGRADE.
    """

    UPGRADE = "UPGRADE"
    DOWNGRADE = "DOWNGRADE"
    UPDOWN = "UPDOWN"
    READ = "READ"
    WRITE = "WRITE"
    WRITEREAD = "WRITEREAD"


class Fields:
    """The base of dataclasses that are converted to and from JSON objects of the registry's API.

    A field whose value is None is not in the JSON object.
    """

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as the JSON object that the registry's API has for them."""
        values = ((_camel(each.name), getattr(self, each.name)) for each in fields(self))  # type: ignore[arg-type]
        return {name: _plain(value) for name, value in values if value is not None}

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Returns the object that a JSON object of the registry's API describes."""
        names = [each.name for each in fields(cls)]  # type: ignore[arg-type]
        return cls(**{name: _made(name, src_dict.get(_camel(name))) for name in names})


@dataclass(slots=True)
class MetadataTags(Fields):
    """The tags of the fields of a schema, by patterns of the fields' full names (see `wildcard_match`)."""

    tags: dict[str, list[str]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Returns the tags as the JSON object that the registry's API has for them."""
        return dict(self.tags)

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Returns the tags that are described by a JSON object of the registry's API."""
        return cls(dict(src_dict))


@dataclass(slots=True)
class MetadataProperties(Fields):
    """The properties in the metadata of a schema, as texts by name."""

    properties: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Returns the properties as the JSON object that the registry's API has for them."""
        return dict(self.properties)

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Returns the properties that are described by a JSON object of the registry's API."""
        return cls(dict(src_dict))


@dataclass(slots=True)
class Metadata(Fields):
    """The metadata of a schema."""

    tags: MetadataTags | None = None
    properties: MetadataProperties | None = None
    sensitive: list[str] | None = None


@dataclass(slots=True)
class RuleParams(Fields):
    """The parameters of a rule."""

    params: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Returns the parameters as the JSON object that the registry's API has for them."""
        return dict(self.params)

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Returns the parameters that are described by a JSON object of the registry's API."""
        return cls(dict(src_dict))


@dataclass(slots=True)
class Rule(Fields):
    """A rule of a data contract."""

    name: str | None = None
    doc: str | None = None
    kind: RuleKind | None = None
    mode: RuleMode | None = None
    type: str | None = None
    tags: list[str] | None = None
    params: RuleParams | None = None
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool | None = None


@dataclass(slots=True)
class RuleSet(Fields):
    """The rules of a schema."""

    migration_rules: list[Rule] | None = None
    domain_rules: list[Rule] | None = None
    encoding_rules: list[Rule] | None = None
    enable_at: str | None = None


@dataclass(frozen=True, slots=True)
class SchemaReference(Fields):
    """A reference to another schema."""

    name: str | None = None
    subject: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class SchemaVersion(Fields):
    """The name of a subject and the number of one of its versions."""

    subject: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema: its text and type, references, metadata and rules."""

    schema_str: str | None
    schema_type: str | None = "AVRO"
    references: list[SchemaReference] = field(default_factory=list, hash=False)
    metadata: Metadata | None = field(default=None, hash=False)
    rule_set: RuleSet | None = field(default=None, hash=False)

    def to_dict(self) -> dict[str, Any]:
        """Returns the schema as the JSON object that the registry's API has for it."""
        return self.as_model().as_json()

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Schema:
        """Returns the schema that a JSON object of the registry's API describes."""
        return cls.from_model(model.Schema.from_json(src_dict))

    def as_model(self) -> model.Schema:
        """Converts the schema to the form of `kafkapy.client.schema`."""
        references = tuple(
            model.SchemaReference(each.name or "", each.subject or "", each.version or -1)
            for each in self.references or ()
        )
        metadata = None if self.metadata is None else self.metadata.to_dict()
        rule_set = None if self.rule_set is None else self.rule_set.to_dict()
        return model.Schema(self.schema_str or "", self.schema_type or "AVRO", references, metadata, rule_set)

    @classmethod
    def from_model(cls, schema: model.Schema) -> Schema:
        """Converts a schema from the form of `kafkapy.client.schema` to that of confluent-kafka."""
        return cls(
            schema.text,
            schema.type,
            [SchemaReference(each.name, each.subject, each.version) for each in schema.references],
            None if schema.metadata is None else Metadata.from_dict(schema.metadata),
            None if schema.rule_set is None else RuleSet.from_dict(schema.rule_set),
        )


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A version of a subject."""

    subject: str | None
    version: int | None
    schema_id: int | None
    guid: str | None
    schema: Schema = field(hash=False)

    @classmethod
    def from_model(cls, found: model.RegisteredSchema) -> RegisteredSchema:
        """Converts a version of a subject from the form of `kafkapy.client.schema` to that of confluent-kafka."""
        schema = Schema.from_model(found.schema)
        return cls(found.subject or None, found.version or None, found.id, found.guid or None, schema)

    def to_dict(self) -> dict[str, Any]:
        """Returns the version as the JSON object that the registry's API has for it."""
        own = {"id": self.schema_id, "guid": self.guid, "subject": self.subject, "version": self.version}
        return self.schema.to_dict() | {name: value for name, value in own.items() if value is not None}

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> RegisteredSchema:
        """Returns the version of a subject that is described by a JSON object of the registry's API."""
        subject, version, schema_id, guid = (src_dict.get(name) for name in ("subject", "version", "id", "guid"))
        return cls(subject, version, schema_id, guid, Schema.from_dict(src_dict))


@dataclass(slots=True)
class ServerConfig(Fields):
    """The settings of a subject, or the global ones."""

    compatibility: ConfigCompatibilityLevel | None = None
    compatibility_level: ConfigCompatibilityLevel | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each.capitalize() for each in rest)


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Fields | Schema):
        return value.to_dict()
    return [_plain(each) for each in value] if isinstance(value, list) else value


# The field of a value -> what makes it from JSON.
_MAKERS: dict[str, Any] = {
    "properties": MetadataProperties.from_dict,
    "params": RuleParams.from_dict,
    "schema": Schema.from_dict,
    "kind": RuleKind,
    "mode": RuleMode,
    "compatibility": ConfigCompatibilityLevel,
    "compatibility_level": ConfigCompatibilityLevel,
    "default_metadata": Metadata.from_dict,
    "override_metadata": Metadata.from_dict,
    "default_rule_set": RuleSet.from_dict,
    "override_rule_set": RuleSet.from_dict,
    **dict.fromkeys(
        ("migration_rules", "domain_rules", "encoding_rules"), lambda value: [Rule.from_dict(each) for each in value]
    ),
}


def _made(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name == "tags":  # of metadata by paths, of a rule as a list
        return MetadataTags.from_dict(value) if isinstance(value, Mapping) else list(value)
    return _MAKERS[name](value) if name in _MAKERS else value
