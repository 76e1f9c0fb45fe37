"""The schema registry client and serializers of confluent-kafka, on `kafkapy.client.schema`.

The rules of data contracts are stored and served, and not executed; a serializer with a schema that has rules for
writing refuses to serialize, so that no rule is skipped unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.compat.confluent_kafka.schema_registry._associations import (
    Association,
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    AssociationInfo,
    AssociationResponse,
)
from kafkapy.compat.confluent_kafka.schema_registry._async_client import AsyncSchemaRegistryClient
from kafkapy.compat.confluent_kafka.schema_registry._model import (
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    MetadataTags,
    RegisteredSchema,
    Rule,
    RuleKind,
    RuleMode,
    RuleParams,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaVersion,
    ServerConfig,
)
from kafkapy.compat.confluent_kafka.schema_registry.error import SchemaRegistryError
from kafkapy.compat.confluent_kafka.schema_registry.schema_registry_client import SchemaRegistryClient
from kafkapy.compat.confluent_kafka.serialization import SerializationContext

__all__ = [
    "Association",
    "AssociationCreateOrUpdateInfo",
    "AssociationCreateOrUpdateRequest",
    "AssociationInfo",
    "AssociationResponse",
    "AsyncSchemaRegistryClient",
    "ConfigCompatibilityLevel",
    "Metadata",
    "MetadataProperties",
    "MetadataTags",
    "RegisteredSchema",
    "Rule",
    "RuleKind",
    "RuleMode",
    "RuleParams",
    "RuleSet",
    "Schema",
    "SchemaReference",
    "SchemaRegistryClient",
    "SchemaRegistryError",
    "SchemaVersion",
    "ServerConfig",
    "record_subject_name_strategy",
    "topic_record_subject_name_strategy",
    "topic_subject_name_strategy",
]

SubjectNameStrategy = Callable[[SerializationContext | None, str | None], str | None]


def topic_subject_name_strategy(ctx: SerializationContext | None, record_name: str | None) -> str:
    """Returns `topic-key` or `topic-value`. Raises ValueError without a context."""
    context = _required(ctx)
    return f"{context.topic}-{context.field}"


def topic_record_subject_name_strategy(ctx: SerializationContext | None, record_name: str | None) -> str | None:
    """Returns the topic and `record_name`, the full name of the schema's type, with a hyphen between them.

    Returns None if the type has no name. Raises ValueError without a context, which has the topic.
    """
    context = _required(ctx)
    return None if record_name is None else f"{context.topic}-{record_name}"


def record_subject_name_strategy(ctx: SerializationContext | None, record_name: str | None) -> str | None:
    """Returns `record_name`, the full name of the schema's type; None if the type has no name."""
    return record_name


def _required(ctx: SerializationContext | None) -> SerializationContext:
    if ctx is None:
        raise ValueError("SerializationContext is required for this subject name strategy")
    return ctx
