"""The ids of schemas: an id is never given to another schema, and a schema keeps its id while a version has it."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from kafkapy.client.schema.model import Schema
from kafkapy.registry import record_format
from kafkapy.registry.errors import RegistryError
from kafkapy.registry.model import LATEST_NUMBER, Level
from kafkapy.registry.service import RegistryService
from kafkapy.registry.store import SchemaStore


class Log:
    """The records of the topic, and a service whose store has applied them."""

    def __init__(self, records=()):
        self.records = []
        self.store = SchemaStore()
        self.service = RegistryService(self.store, self.write, Level.NONE)
        self.write(records)

    def write(self, records):
        for key, value in records:
            self.records.append((key, value))
            self.store.apply(key, value)

    def restarted(self):
        """Returns a log that compaction has left, without tombstones, as another instance reads it."""
        return Log([(key, value) for key, value in dict(self.records).items() if value is not None])

    def register(self, subject, name, **more):
        return self.service.register(subject, schema(name), **more).id

    def delete(self, subject):
        for permanent in (False, True):
            self.service.delete_version(subject, LATEST_NUMBER, permanent=permanent)


def schema(name):
    return Schema(json.dumps({"type": "fixed", "name": name, "size": 1}))


def test_the_id_of_a_deleted_schema_is_not_given_out_again_after_compaction():
    log = Log()
    assert [log.register("s", "A"), log.register("t", "B")] == [1, 2]
    log.delete("t")
    assert log.restarted().register("u", "C") == 3


def test_the_ids_of_a_deleted_subject_are_not_given_out_again_after_compaction():
    log = Log()
    log.register(":.other:t", "X")
    for name in ("A", "B", "C"):
        log.register("t", name)
    for permanent in (False, True):
        log.service.delete_subject("t", permanent=permanent)
    log = log.restarted()
    assert (log.register("u", "D"), log.register(":.other:u", "D")) == (4, 2), "each context has ids of its own"


def test_the_id_of_an_imported_version_that_another_one_replaces_is_not_given_out_again():
    log = Log()
    log.service.set_mode("s", "IMPORT")
    assert log.register("s", "A", schema_id=7, number=1) == 7
    assert log.register("s", "B", schema_id=5, number=1) == 5
    assert log.restarted().register("t", "C") == 8


@pytest.mark.parametrize(
    "value", [b"[]", b'{"greatestIds":[]}', b'{"greatestIds":{".":"x"}}', b'{"greatestIds":{".":true}}']
)
def test_other_values_of_a_noop_record_are_ignored(value):
    log = Log([(record_format.encode_key(record_format.NOOP), value)])
    assert log.register("s", "A") == 1


def test_a_schema_keeps_its_id_when_the_version_with_another_id_of_it_is_deleted():
    log = Log()
    for subject, schema_id in (("s", 3), ("t", 9)):
        log.service.set_mode(subject, "IMPORT")
        log.register(subject, "A", schema_id=schema_id, number=1)
    log.service.set_mode("t", "READWRITE")
    log.delete("t")
    assert log.register("u", "A") == 3


def test_a_deleted_schema_is_not_found_by_its_guid():
    log = Log()
    log.register("s", "A")
    log.register("t", "A")
    guid = log.service.version("s", 1).schema.guid
    log.delete("s")
    assert log.store.with_guid(str(UUID(guid)).upper()) is not None, "subject t has it"
    log.delete("t")
    assert log.store.with_guid(guid) is None


@pytest.mark.parametrize("number", [1, 2, 4, 2**31 - 1])
def test_a_version_number_that_is_not_the_next_is_refused_outside_of_an_import(number):
    log = Log()
    log.register("s", "a")
    log.register("s", "b")
    before = log.store.versions("s")
    with pytest.raises(RegistryError, match="not one more than previous") as refused:
        log.register("s", "c", number=number)
    assert refused.value.code == 42201
    assert log.store.versions("s") == before
    log.register("s", "c", number=3)
    assert [each.number for each in log.store.versions("s")] == [1, 2, 3]
    log.service.set_mode("s", "IMPORT", force=True)
    log.register("s", "d", schema_id=77, number=9)
    assert log.store.version("s", 9).id == 77
