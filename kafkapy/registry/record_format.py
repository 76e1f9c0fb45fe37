"""The records of the topic `_schemas`, in the form of Confluent's registry, which Karapace reads and writes too.

Keys and values are JSON. The order of a key's fields is part of the format, because compaction compares bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kafkapy.client.schema.model import AVRO, Schema
from kafkapy.named_tuple import NamedTuple
from kafkapy.registry.model import Version

SCHEMA, CONFIG, MODE, NOOP = "SCHEMA", "CONFIG", "MODE", "NOOP"
DELETE_SUBJECT, CLEAR_SUBJECT = "DELETE_SUBJECT", "CLEAR_SUBJECT"
_MAGIC = {SCHEMA: 1, CONFIG: 0, MODE: 0, NOOP: 0, DELETE_SUBJECT: 0, CLEAR_SUBJECT: 0}

# The field of a NOOP record's value that has the greatest id of each context. Confluent's registry and Karapace ignore
# the value of a NOOP record.
_GREATEST_IDS = "greatestIds"

# Key and value of a record without content, which is written after each transaction: Karapace is ready only when it has
# read the last offset of the topic, and it cannot read the marker of a transaction. The key is a NOOP key in other
# bytes, so that compaction keeps the NOOP record with the greatest ids.
END_RECORD = (b'{"keytype": "NOOP", "magic": 0}', b"{}")


class Record(NamedTuple):
    """A decoded record. `subject` is None for a setting of all subjects; `value` is None for a tombstone."""

    kind: str
    subject: str | None
    version: int
    value: dict[str, Any] | None


def encode_key(kind: str, subject: str | None = None, version: int = 0) -> bytes:
    """Returns the key of a record of a kind, such as SCHEMA or CONFIG.

    `subject` None stands for the settings of all subjects. Only keys of the kind SCHEMA contain `version`.
    """
    key: dict[str, Any] = {"keytype": kind}
    if kind != NOOP:
        key["subject"] = subject
    if kind == SCHEMA:
        key["version"] = version
    key["magic"] = _MAGIC[kind]
    return _dump(key)


def encode_version(version: Version) -> bytes:
    """Returns the value of a SCHEMA record."""
    schema = version.schema
    value: dict[str, Any] = {"subject": version.subject, "version": version.number, "id": version.id}
    if schema.type != AVRO:
        value["schemaType"] = schema.type
    if schema.references:
        value["references"] = [each.as_json() for each in schema.references]
    if schema.metadata:
        value["metadata"] = schema.metadata
    if schema.rule_set:
        value["ruleSet"] = schema.rule_set
    value |= {"schema": schema.text, "deleted": version.is_deleted}
    return _dump(value)


def encode_value(value: Mapping[str, Any]) -> bytes:
    """Returns the value of a record of any kind except SCHEMA, with the fields in `value`."""
    return _dump(value)


def encode_greatest_ids(greatest_ids: Mapping[str, int]) -> tuple[bytes, bytes]:
    """Returns key and value of the NOOP record that stores the greatest id of each context.

    The record prevents an id from being assigned again after compaction has removed the schema that had it.
    """
    return encode_key(NOOP), _dump({_GREATEST_IDS: greatest_ids})


def decode_greatest_ids(value: Mapping[str, Any] | None) -> dict[str, int]:
    """Returns the greatest id of each context, from the value of a NOOP record; {} if the value has none.

    Raises ValueError for a value of another form.
    """
    found = (value or {}).get(_GREATEST_IDS, {})
    if not isinstance(found, dict) or any(type(each) is not int for each in found.values()):
        raise ValueError(f"the field {_GREATEST_IDS} is not an object of integers")
    return found


def decode(key: bytes | None, value: bytes | None) -> Record:
    """Decodes the key and the value of a record of the topic. Raises ValueError if they do not have the registry's
    form."""
    fields = _object(key, "key")
    kind = fields.get("keytype")
    if not isinstance(kind, str):
        raise ValueError("the key has no keytype")
    subject, version = fields.get("subject"), fields.get("version", 0)
    if not isinstance(subject, str | None) or not isinstance(version, int):
        raise ValueError("the key's subject or version has the wrong type")
    return Record(kind, subject, version, None if value is None or not value else _object(value, "value"))


def decode_version(value: Mapping[str, Any]) -> Version:
    """Returns the version of a subject in the value of a SCHEMA record. Raises ValueError if a field is missing or
    wrong."""
    try:
        schema = Schema.from_json(value)
        if not isinstance(schema.text, str) or not isinstance(schema.type, str):
            raise ValueError("the schema or its type is not a text")
        if not isinstance(schema.metadata, dict | None) or not isinstance(schema.rule_set, dict | None):
            raise ValueError("the metadata or the rules are not an object")
        return Version(
            str(value["subject"]), int(value["version"]), int(value["id"]), schema, bool(value.get("deleted", False))
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"the value lacks a field: {error}") from None


def _object(data: bytes | None, part: str) -> dict[str, Any]:
    try:
        found = json.loads(data or b"")
    except ValueError as error:
        raise ValueError(f"the {part} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"the {part} is not a JSON object")
    return found


def _dump(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
