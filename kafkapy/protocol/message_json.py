"""Messages as JSON, in the form of Apache Kafka's own converters: for tools that show the content of records.

Fields are in the order of their definition, without those that the version lacks. A tagged field with its default value
is left out. Bytes are base64, uuids have Kafka's short form.
"""

import base64
import json
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy.types import uuid_to_string


def message_json(message: Message, version: int) -> dict[str, Any]:
    """Returns the JSON object of `message`, which was read in `version`.

    Only messages that are stored in records have a JSON form.
    """
    fresh = type(message)()
    shown: dict[str, Any] = {}
    for name, attribute, versions, tagged, kind in type(message).JSON_FIELDS:  # type: ignore[attr-defined]
        if version not in versions:
            continue
        value = getattr(message, attribute)
        if version in tagged and _is_default(value, getattr(fresh, attribute)):
            continue
        shown[name] = _json_value(value, kind, version)
    return shown


def _is_default(value: Any, default: Any) -> bool:
    return bool(value == default) or (value is None and isinstance(default, Message))


def _json_value(value: Any, kind: str, version: int) -> Any:
    if isinstance(value, Message):
        return message_json(value, version)
    if isinstance(value, list | tuple):
        return [_json_value(each, kind, version) for each in value]
    if isinstance(value, bytes | memoryview):
        return uuid_to_string(bytes(value)) if kind == "uuid" else base64.b64encode(value).decode()
    return value


def json_text(value: Any) -> str:
    """Returns a value as JSON text without spaces between tokens; non-ASCII characters are not escaped."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
