"""The definitions agree with Kafka's releases: every message, field, version, tag, null and default."""

from typing import Any

import pytest

from kafkapy.protocol.generator import DEFINITIONS
from kafkapy.protocol.generator_notation import Field, Message, Struct, all_messages, read_definitions
from tests.reference.wire import facts, message_versions, versions_of

MESSAGES = all_messages(read_definitions(DEFINITIONS))


def normal_default(value: Any) -> str | None:
    """Returns a default of the facts, which write it as JSON or as text, as text; None for null, which means no
    default."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return '""' if value == "" else str(value)


def described(field: Field, parent: frozenset[int]) -> dict[str, Any]:
    versions = field.versions & parent
    return {
        "name": field.name,
        "type": ("[]" if field.is_array else "") + field.type,
        "versions": versions,
        "nullable": field.nullable & versions,
        "tag": field.tag,
        "tagged": field.tagged & versions,
        "default": field.default,
        "map_key": field.is_key,
        "ignorable": field.ignorable,
        "zero_copy": field.zero_copy,
        "rigid": field.rigid,
        "entity": field.entity,
        "fields": described_struct(field.struct, versions) if field.struct else [],
    }


def described_struct(struct: Struct, parent: frozenset[int]) -> list[dict[str, Any]]:
    return [described(field, parent) for field in struct.fields if field.versions & parent]


def expected(field: dict[str, Any], parent: frozenset[int]) -> dict[str, Any]:
    last = max(parent)
    versions = versions_of(field["versions"], last) & parent
    return {
        "name": field["name"],
        "type": field["type"],
        "versions": versions,
        "nullable": versions_of(field.get("nullable_versions"), last) & versions,
        "tag": field.get("tag", -1),
        "tagged": versions_of(field.get("tagged_versions"), last) & versions,
        "default": normal_default(field.get("default")),
        "map_key": field.get("map_key", False),
        "ignorable": field.get("ignorable", False),
        "zero_copy": field.get("zero_copy", False),
        "rigid": field.get("flexible_versions") == "none",
        "entity": field.get("entity_type"),
        "fields": [expected(inner, versions) for inner in field.get("fields", [])],
    }


def described_header(message: Message) -> dict[str, Any]:
    return {
        "kind": message.kind,
        "api_key": message.key,
        "versions": sorted(message.versions),
        "flexible": message.flexible,
        "listeners": message.listeners,
        "module": message.module,
        "unstable": message.unstable,
        "served": message.served,
    }


def expected_header(message: dict[str, Any]) -> dict[str, Any]:
    versions = message_versions(message)
    return {
        "kind": message["kind"],
        "api_key": message.get("api_key"),
        "versions": versions,
        "flexible": versions_of(message["flexible_versions"], versions[-1]) & frozenset(versions),
        "listeners": message.get("listeners", []),
        "module": message["module"],
        "unstable": message.get("latest_version_unstable", False),
        "served": {release: versions_of(text, versions[-1]) for release, text in message["served_by"].items()},
    }


def test_every_message_of_kafka_is_defined():
    assert sorted(MESSAGES) == sorted(facts())
    assert len(MESSAGES) == 283


@pytest.mark.parametrize("name", sorted(facts()))
def test_definition_agrees_with_the_facts(name):
    message, fact = MESSAGES[name], facts()[name]
    assert described_header(message) == expected_header(fact)
    versions = frozenset(message_versions(fact))
    assert described_struct(message.root, versions) == [expected(field, versions) for field in fact["fields"]]
