"""JSON Schemas: parsing, the check against the metaschema, and the resolution of `$ref`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urldefrag

from kafkapy.decimal_text import is_number
from kafkapy.registry.errors import InvalidSchema
from kafkapy.registry.schemas.avro import DEEPEST


class JsonSchema:
    """A parsed JSON Schema. The object does not change after its construction. `canonical` is its text without
    insignificant blanks.
    """

    def __init__(self, text: str, referred: Mapping[str, str] | None = None, *, is_new: bool = True) -> None:
        """Parses `text`. `referred` maps the name of each of its references to the text of the schema that is referred
        to.

        The schema is checked against its metaschema only if `is_new`. Raises InvalidSchema.
        """
        self.root = _load(text)
        self._referred = {name: _load(each) for name, each in (referred or {}).items()}
        if is_new:
            _check(self.root)
        self.canonical = json.dumps(self.root, separators=(",", ":"), ensure_ascii=False)

    def resolve(self, reference: str) -> Any:
        """Returns the schema to which a `$ref` points; None if it is unknown."""
        name, pointer = urldefrag(reference)
        own = self.root.get("$id", self.root.get("id")) if isinstance(self.root, dict) else None
        found = self.root if not name or name == own else self._referred.get(name)
        for part in pointer.split("/")[1:] if pointer.startswith("/") else ():
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict):
                found = found.get(key)
            elif isinstance(found, list) and is_number(key) and int(key) < len(found):
                found = found[int(key)]
            else:
                return None
        if pointer and not pointer.startswith("/"):
            return _with_anchor(found, pointer)
        return found


def _load(text: str) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"the schema is not JSON: {error}") from None
    if not isinstance(found, dict | bool):
        raise InvalidSchema("a JSON Schema is an object, true or false")
    if _depth_exceeds(found, DEEPEST):
        raise InvalidSchema(f"the schema is nested deeper than {DEEPEST} levels")
    return found


def _depth_exceeds(value: Any, limit: int) -> bool:
    layer = [value]
    for _ in range(limit):
        layer = [
            child
            for each in layer
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not layer:
            return False
    return True


def _check(schema: Any) -> None:
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft7Validator, validator_for

    try:
        validator_for(schema, Draft7Validator).check_schema(schema)
    except SchemaError as error:
        place = "/".join(map(str, error.absolute_path))
        raise InvalidSchema(f"at /{place}: {error.message}") from None


def _with_anchor(schema: Any, anchor: str) -> Any:
    """Returns the subschema of `schema` whose `$anchor` is `anchor`; None if there is none.

    Older drafts write `"$id": "#anchor"` instead of `$anchor`.
    """
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            if each.get("$anchor") == anchor or each.get("$id") == f"#{anchor}":
                return each
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return None
