"""JSON data of a hostile producer."""

from __future__ import annotations

import json

import pytest

from kafkapy.client.schema import JsonDeserializer, RegistryClient
from kafkapy.client.schema.errors import SchemaMismatch
from kafkapy.client.schema.model import Schema

FRAME = b"\0\0\0\0\1"
NESTED = {"type": "object", "properties": {"next": {"$ref": "#"}}}


class Client(RegistryClient):
    """A client of a registry that has one schema, with the id 1."""

    def __init__(self, schema):
        super().__init__("http://localhost:1")
        self._only = Schema(json.dumps(schema), "JSON")

    def schema(self, schema_id, *, subject="", format=""):
        return self._only


@pytest.mark.parametrize("depth", [900, 100_000])
def test_data_of_endless_depth_are_an_error(depth):
    deserializer = JsonDeserializer(Client(NESTED))
    assert deserializer("t", FRAME + b'{"next": {}}') == {"next": {}}
    with pytest.raises(SchemaMismatch):
        deserializer("t", FRAME + b'{"next":' * depth + b"{}" + b"}" * depth)
