"""The client of a registry: the schemas that a schema refers to, from a registry that may be wrong."""

from __future__ import annotations

import pytest

from kafkapy.client.schema import RegistryClient
from kafkapy.client.schema.errors import RegistryFailure
from kafkapy.client.schema.model import (
    DEEPEST_REFERENCE,
    MOST_REFERENCES,
    RegisteredSchema,
    Schema,
    SchemaReference,
)
from kafkapy.client.schema.registry_client import _Address, _parsed


def reference(name):
    return SchemaReference(name, f"subject-{name}", 1)


class Client(RegistryClient):
    """A client of a registry whose schemas are `references`: the names to which each schema refers."""

    def __init__(self, references):
        super().__init__("http://localhost:1")
        self._references = references

    def version(self, subject, version="latest", *, deleted=False, format=""):
        name = subject.removeprefix("subject-")
        return RegisteredSchema(Schema(name, references=tuple(map(reference, self._references(name)))), 1)


def referred(references, *names):
    return list(Client(references).referred(Schema("", references=tuple(map(reference, names)))))


def test_a_schema_follows_those_that_it_refers_to():
    schemas = {"a": ["b", "c"], "b": ["c"], "c": [], "d": ["a"]}
    assert referred(schemas.__getitem__, "d", "b") == ["c", "b", "a", "d"]


@pytest.mark.parametrize("names", [["a"], ["b", "a"]])
def test_schemas_that_refer_to_each_other_in_a_circle_are_refused(names):
    with pytest.raises(RegistryFailure, match="circle"):
        referred({"a": ["b"], "b": ["c"], "c": ["a"]}.__getitem__, *names)


def test_an_endless_chain_of_references_is_refused():
    with pytest.raises(RegistryFailure, match=f"more than {DEEPEST_REFERENCE} "):
        referred(lambda name: [f"{name}x"], "a")


def test_too_many_references_are_refused():
    with pytest.raises(RegistryFailure, match=f"more than {MOST_REFERENCES} "):
        referred(lambda name: [], *map(str, range(MOST_REFERENCES + 1)))


def test_only_a_status_of_success_has_a_result():
    address = _Address("http://localhost:1", "", "")
    assert [_parsed(address, status, b"[1]") for status in (200, 299)] == [[1], [1]]
    assert [_parsed(address, 200, data) for data in (b"", b"null")] == [None, None]
    for status in (199, 300, 404):
        with pytest.raises(RegistryFailure, match=f"status {status}"):
            _parsed(address, status, b"[1]")
    with pytest.raises(RegistryFailure, match="status 200"):
        _parsed(address, 200, b"<html>")
