"""The parts of the API's requests: content type, JSON bodies, flags and numbers of the query, subjects and versions."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from starlette.requests import Request

from kafkapy.client.schema.model import AVRO, Schema, SchemaReference
from kafkapy.config.row import INT_MAX
from kafkapy.decimal_text import is_number
from kafkapy.http.json_api import json_body
from kafkapy.registry import errors
from kafkapy.registry.model import LATEST_NUMBER, normalized_subject, qualified_subject

JSON_TYPES = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
    "application/octet-stream",
)
LONGEST_ID = 20  # digits


async def body_object(request: Request) -> dict[str, Any]:
    """Returns the JSON object of a request's body. Raises RequestRefused for another body or content type."""
    return await json_body(request, JSON_TYPES, JSON_TYPES[0])


def flag(request: Request, name: str) -> bool:
    """Returns True if the parameter `name` of the query is "true" in upper or lower case, False for any other value or
    none.
    """
    return request.query_params.get(name, "false").lower() == "true"


def number(request: Request, name: str, default: int) -> int:
    """Returns the parameter `name` of the query as a whole number, or `default` if it is absent.

    Raises RegistryError if it is not a number.
    """
    text = request.query_params.get(name, str(default))
    try:
        return int(text)
    except ValueError:
        raise errors.RegistryError(404, f"{name} is not a number: {text}") from None


def subject_of(request: Request) -> str | None:
    """Returns the subject of the path, qualified by its context; None if the path has no subject."""
    context = request.path_params.get("context")
    subject = request.path_params.get("subject")
    if subject is None:
        return None
    return qualified_subject(None if context is None else unquote(context), unquote(subject))


def required_subject(request: Request) -> str:
    """Returns the subject of the path, qualified by its context.

    Called only for requests whose route has a subject in its path.
    """
    subject = subject_of(request)
    assert subject is not None
    return subject


def subject_of_query(request: Request) -> str:
    """Returns the parameter `subject` of the query, "" if it is absent.

    Schemas of different contexts may have the same id; the context of this subject selects one of them.
    """
    return normalized_subject(request.query_params.get("subject", ""))


def version_of(request: Request) -> int:
    """Returns the version of the path; `latest` and -1 are LATEST_NUMBER. Raises RegistryError for another text."""
    text = request.path_params["version"]
    if text == "latest":
        return LATEST_NUMBER
    try:
        found = int(text)
    except ValueError:
        raise errors.invalid_version(text) from None
    if found != LATEST_NUMBER and not 1 <= found <= INT_MAX:
        raise errors.invalid_version(text)
    return found


def id_of(request: Request) -> int:
    """Returns the id of the path. Raises RegistryError for a text that is not a number."""
    text = request.path_params["id"]
    if not is_number(text) or len(text) > LONGEST_ID:
        raise errors.RegistryError(404, "HTTP 404 Not Found")
    return int(text)


def schema_of(body: dict[str, Any]) -> Schema:
    """Returns the schema that the body of a request contains, with its type, references, metadata and rules.

    Raises RegistryError for a missing field or one of the wrong type.
    """
    text = body.get("schema")
    if not isinstance(text, str) or not text.strip():
        raise errors.invalid_schema("the field `schema` is missing or empty")
    kind = body.get("schemaType") or AVRO
    metadata, rule_set = body.get("metadata"), body.get("ruleSet")
    references = body.get("references") or []
    if not isinstance(kind, str) or not isinstance(references, list):
        raise errors.unprocessable("schemaType must be a string, and references an array")
    for name, value in (("metadata", metadata), ("ruleSet", rule_set)):
        if not isinstance(value, dict | None):
            raise errors.unprocessable(f"{name} must be an object")
    if metadata is not None and not isinstance(metadata.get("properties"), dict | None):
        raise errors.unprocessable("metadata.properties must be an object")
    return Schema(text, kind.upper(), tuple(map(_reference, references)), metadata, rule_set)


def _reference(value: Any) -> SchemaReference:
    if isinstance(value, dict):
        name, subject, version = value.get("name"), value.get("subject"), value.get("version")
        if isinstance(name, str) and isinstance(subject, str) and type(version) is int:
            return SchemaReference(name, subject, version)
    raise errors.unprocessable("a reference has `name`, `subject` and the number `version`")


def optional_number(body: dict[str, Any], name: str) -> int | None:
    """Returns the field `name` of a body, a positive number; None if it is absent, 0 or -1.

    Raises RegistryError for any other value.
    """
    value = body.get(name)
    if value in (None, 0, -1):
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= INT_MAX:
        raise errors.unprocessable(f"{name} must be a number from 1 to {INT_MAX}")
    return value
