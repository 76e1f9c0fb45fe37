"""JSON files that name partitions to a tool: {"partitions": [{"topic": ..., "partition": ...}, ...]}."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kafkapy.tools.option import ToolError


def read_json_object(path: str) -> dict[str, Any]:
    """Returns the JSON object in a file.

    Raises ToolError if the file cannot be read or does not contain a JSON object.
    """
    try:
        value = json.loads(Path(path).read_text())
    except OSError as error:
        raise ToolError(f"Unable to read file {path}") from error
    except ValueError as error:
        raise ToolError("The input string is not a valid JSON") from error
    if not isinstance(value, dict):
        raise ToolError("The input string is not a valid JSON")
    return value


def field(entry: Any, name: str, kind: type) -> Any:
    """Returns a field of an entry. Raises ToolError if the field is missing or not of the type `kind`."""
    value = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ToolError(f"Missing or wrong field {name} in {json.dumps(entry)}")
    return value
