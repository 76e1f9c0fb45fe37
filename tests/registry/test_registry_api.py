"""The registry's HTTP API: subjects, versions, ids, deletion, settings, references, contexts and errors."""

from __future__ import annotations

import json
import socket
import urllib.request

import pytest

from kafkapy.client import Consumer
from kafkapy.types import TopicPartition
from tests.http_process import avro

RECORD = {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "long"}]}


def with_field(*fields):
    return {**RECORD, "fields": [*RECORD["fields"], *fields]}


def register(registry, subject, schema=RECORD, **more):
    return registry.request("POST", f"/subjects/{subject}/versions", {**avro(schema), **more})


def test_a_schema_is_registered_once_and_found_by_id_version_and_content(registry):
    status, first = register(registry, "once-value")
    assert status == 200
    assert register(registry, "once-value")[1]["id"] == first["id"]
    assert register(registry, "once-other")[1]["id"] == first["id"], "the same schema has one id in all subjects"
    text = json.dumps(RECORD, separators=(",", ":"))
    found = {"subject": "once-value", "version": 1, "id": first["id"], "guid": first["guid"], "schema": text}
    assert registry.request("GET", "/subjects/once-value/versions") == (200, [1])
    assert registry.request("GET", "/subjects/once-value/versions/1") == (200, found)
    assert registry.request("GET", "/subjects/once-value/versions/latest") == (200, found)
    assert registry.request("GET", "/subjects/once-value/versions/latest/schema") == (200, RECORD)
    assert registry.request("POST", "/subjects/once-value", avro(RECORD)) == (200, found)
    assert registry.request("GET", f"/schemas/ids/{first['id']}")[1]["schema"] == text
    assert registry.request("GET", f"/schemas/ids/{first['id']}/schema") == (200, RECORD)
    assert registry.request("GET", f"/schemas/guids/{first['guid']}")[1]["schema"] == text
    versions = registry.request("GET", f"/schemas/ids/{first['id']}/versions")[1]
    assert {"subject": "once-value", "version": 1} in versions
    assert "once-other" in registry.request("GET", f"/schemas/ids/{first['id']}/subjects")[1]
    assert "once-value" in registry.request("GET", "/subjects")[1]
    assert registry.request("GET", "/subjects?subjectPrefix=once-v")[1] == ["once-value"]
    assert [each["subject"] for each in registry.request("GET", "/schemas?subjectPrefix=once-")[1]] == [
        "once-other",
        "once-value",
    ]


def test_an_incompatible_schema_is_refused_with_the_reason(registry):
    register(registry, "strict-value")
    status, answer = register(registry, "strict-value", with_field({"name": "amount", "type": "double"}))
    assert (status, answer["error_code"]) == (409, 409)
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in answer["message"]
    assert "{compatibility: 'BACKWARD'}" in answer["message"]
    path = "/compatibility/subjects/strict-value/versions"
    changed = avro(with_field({"name": "amount", "type": "double"}))
    assert registry.request("POST", f"{path}/latest", changed) == (200, {"is_compatible": False})
    assert registry.request("POST", f"{path}?verbose=true", changed)[1]["messages"]
    changed = avro(with_field({"name": "amount", "type": "double", "default": 0}))
    assert registry.request("POST", f"{path}/1", changed) == (200, {"is_compatible": True})
    assert register(registry, "strict-value", with_field({"name": "amount", "type": "double", "default": 0}))[0] == 200


def test_a_level_is_set_for_a_subject_and_deleted(registry):
    register(registry, "level-value")
    assert registry.request("GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})
    assert registry.request("GET", "/config/level-value")[1]["error_code"] == 40408
    assert registry.request("PUT", "/config/level-value", {"compatibility": "forward"}) == (
        200,
        {"compatibility": "FORWARD"},
    )
    assert registry.request("GET", "/config/level-value") == (200, {"compatibilityLevel": "FORWARD"})
    assert register(registry, "level-value", with_field({"name": "amount", "type": "double"}))[0] == 200
    assert registry.request("DELETE", "/config/level-value") == (
        200,
        {"compatibilityLevel": "FORWARD", "compatibility": "FORWARD"},
    )
    assert registry.request("GET", "/config/level-value?defaultToGlobal=true")[1]["compatibilityLevel"] == "BACKWARD"
    assert registry.request("PUT", "/config/level-value", {"compatibility": "SIDEWARD"})[1]["error_code"] == 42203


def test_deletion_is_soft_first_and_permanent_afterwards(registry):
    register(registry, "gone-value")
    register(registry, "gone-value", with_field({"name": "a", "type": ["null", "int"], "default": None}))
    path = "/subjects/gone-value"
    assert registry.request("DELETE", f"{path}/versions/1?permanent=true")[1]["error_code"] == 40407
    assert registry.request("DELETE", f"{path}/versions/1") == (200, 1)
    assert registry.request("DELETE", f"{path}/versions/1")[1]["error_code"] == 40406
    assert registry.request("GET", f"{path}/versions") == (200, [2])
    assert registry.request("GET", f"{path}/versions?deleted=true") == (200, [1, 2])
    assert registry.request("GET", f"{path}/versions/1?deleted=true")[1]["deleted"] is True
    assert registry.request("DELETE", f"{path}?permanent=true")[1]["error_code"] == 40405
    assert registry.request("DELETE", path) == (200, [2])
    assert registry.request("DELETE", path)[1]["error_code"] == 40404
    assert registry.request("GET", f"{path}/versions")[1]["error_code"] == 40401
    assert "gone-value" in registry.request("GET", "/subjects?deleted=true")[1]
    assert registry.request("GET", "/subjects?deletedOnly=true&subjectPrefix=gone")[1] == ["gone-value"]
    assert register(registry, "gone-value")[1]["version"] == 3
    assert registry.request("DELETE", path) == (200, [3])
    assert registry.request("DELETE", f"{path}?permanent=true") == (200, [1, 2, 3])
    assert registry.request("GET", f"{path}/versions?deleted=true")[1]["error_code"] == 40401


def test_a_schema_that_another_one_refers_to_is_not_deleted(registry):
    register(registry, "part", {"type": "record", "name": "Part", "fields": [{"name": "n", "type": "string"}]})
    whole = {"type": "record", "name": "Whole", "fields": [{"name": "part", "type": "Part"}]}
    references = [{"name": "Part", "subject": "part", "version": 1}]
    status, answer = register(registry, "whole", whole, references=references)
    assert status == 200
    assert registry.request("GET", "/subjects/part/versions/1/referencedby") == (200, [answer["id"]])
    assert registry.request("DELETE", "/subjects/part")[1]["error_code"] == 42206
    missing = [{"name": "Part", "subject": "part", "version": 9}]
    status, answer = register(registry, "whole-2", whole, references=missing)
    assert (status, answer["error_code"]) == (422, 42201)
    assert "cannot be resolved" in answer["message"]


def test_modes_forbid_writes_and_allow_imports(registry):
    assert registry.request("GET", "/mode") == (200, {"mode": "READWRITE"})
    assert registry.request("GET", "/mode/mode-value")[1]["error_code"] == 40409
    assert registry.request("PUT", "/mode/mode-value", {"mode": "IMPORT"}) == (200, {"mode": "IMPORT"})
    assert register(registry, "mode-value")[1]["error_code"] == 42205
    status, answer = register(registry, "mode-value", id=7001, version=5)
    assert (status, answer["id"], answer["version"]) == (200, 7001, 5)
    assert registry.request("PUT", "/mode/mode-value", {"mode": "READONLY"})[0] == 200
    assert registry.request("DELETE", "/subjects/mode-value")[1]["error_code"] == 42205
    assert registry.request("DELETE", "/mode/mode-value") == (200, {"mode": "READONLY"})
    assert register(registry, "mode-value", id=7002)[1]["error_code"] == 42205
    assert registry.request("PUT", "/mode", {"mode": "SLEEP"})[1]["error_code"] == 42204


def test_contexts_have_ids_of_their_own(registry):
    register(registry, "in-default")
    status, answer = register(registry, ":.staging:orders", "string")
    assert (status, answer["id"]) == (200, 1)
    assert registry.request("GET", "/contexts") == (200, [".", ".staging"])
    assert registry.request("GET", "/contexts/.staging/subjects") == (200, [":.staging:orders"])
    assert registry.request("GET", "/contexts/.staging/schemas/ids/1")[1]["schema"] == '"string"'
    assert registry.request("GET", "/contexts/.staging/subjects/orders/versions") == (200, [1])
    assert registry.request("GET", "/schemas/ids/1?subject=:.staging:orders")[1]["schema"] == '"string"'


def test_metadata_and_rules_are_kept_and_make_a_schema_another_one(registry):
    metadata = {"properties": {"owner": "shop"}}
    rules = {"domainRules": [{"name": "check", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}]}
    plain = register(registry, "rules-value")[1]
    status, answer = register(registry, "rules-value", metadata=metadata, ruleSet=rules)
    assert status == 200
    assert answer["id"] != plain["id"]
    found = registry.request("GET", "/subjects/rules-value/versions/2")[1]
    assert (found["metadata"], found["ruleSet"]) == (metadata, rules)
    assert registry.request("GET", "/subjects/rules-value/metadata?key=owner&value=shop")[1]["version"] == 2


def test_a_subject_may_contain_a_slash(registry):
    assert register(registry, "a%2Fb%20c")[0] == 200
    assert "a/b c" in registry.request("GET", "/subjects")[1]
    assert registry.request("GET", "/subjects/a%2Fb%20c/versions") == (200, [1])


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/subjects/none/versions", None, 40401),
        ("GET", "/subjects/none/versions/1", None, 40401),
        ("GET", "/subjects/present/versions/9", None, 40402),
        ("GET", "/subjects/present/versions/zero", None, 42202),
        ("GET", "/subjects/present/versions/0", None, 42202),
        ("GET", "/schemas/ids/99999", None, 40403),
        ("GET", "/schemas/guids/none", None, 40403),
        ("POST", "/subjects/none", avro(RECORD), 40401),
        ("POST", "/subjects/present", avro("int"), 40403),
        ("POST", "/subjects/bad/versions", avro({"type": "record", "name": "X"}), 42201),
        ("POST", "/subjects/bad/versions", avro("{"), 42201),
        ("POST", "/subjects/bad/versions", {"schema": "int", "schemaType": "THRIFT"}, 42201),
        ("POST", "/subjects/bad/versions", {"schema": '{"type": "objekt"}', "schemaType": "JSON"}, 42201),
        ("POST", "/subjects/bad/versions", {"schema": "what?", "schemaType": "PROTOBUF"}, 42201),
        ("POST", "/subjects/bad/versions", {}, 42201),
        ("POST", "/subjects/bad/versions", b"{", 400),
        ("POST", "/subjects/bad/versions", b"[]", 422),
        ("POST", "/subjects/bad%07/versions", avro("int"), 42208),
        ("DELETE", "/subjects/none", None, 40401),
        ("PATCH", "/subjects", None, 405),
        ("GET", "/nothing", None, 404),
    ],
)
def test_bad_requests_have_the_numbers_of_confluents_errors(registry, method, path, body, code):
    register(registry, "present")
    status, answer = registry.request(method, path, body)
    assert (status, answer["error_code"]) == (int(str(code)[:3]), code)
    assert answer["message"]


def test_karapaces_probes_name_the_writer(registry):
    registry.request("POST", "/subjects/probed/versions", avro('"int"'))  # waits for the writer
    assert registry.request("GET", "/master_available") == (200, {"master_available": True})
    status, health = registry.request("GET", "/_health")
    assert (status, health["healthy"]) == (200, True)
    assert health["status"]["schema_registry_is_primary"] is True
    assert health["status"]["schema_registry_primary_url"] == registry.url


def test_another_content_type_is_refused(registry):
    status, answer = registry.request("POST", "/subjects/x/versions", b"{}", {"content-type": "text/plain"})
    assert (status, answer["error_code"]) == (415, 415)


def test_a_body_that_is_too_large_is_refused(registry):
    status, answer = registry.request("POST", "/subjects/x/versions", avro("x" * (11 << 20)))
    assert (status, answer["error_code"]) == (413, 413)


def test_a_request_of_a_page_of_another_origin_is_refused(registry):
    with socket.create_connection(("127.0.0.1", registry.port)) as connection:
        connection.sendall(b"GET /subjects HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("application/json", "application/json"),
        ("text/html, application/json;q=0.9", "application/json"),
        ("application/vnd.schemaregistry.v1+json, application/json", "application/vnd.schemaregistry.v1+json"),
        ("*/*", "application/vnd.schemaregistry.v1+json"),
    ],
)
def test_a_response_has_the_first_accepted_type(registry, accepted, expected):
    with urllib.request.urlopen(
        urllib.request.Request(f"{registry.url}/subjects", headers={"accept": accepted})
    ) as got:
        assert got.headers["content-type"] == expected


def test_the_topic_ends_with_a_record_that_every_registry_reads(broker, registry):
    register(registry, "end-value")
    with Consumer(bootstrap_servers=broker.bootstrap) as consumer:
        partition = TopicPartition("_schemas", 0)
        consumer.assign([partition])
        consumer.seek_to_beginning()
        newest = -1
        # without the record, the last offset is the marker of a transaction, which no client returns
        while newest != consumer.end_offsets([partition])[partition] - 1:
            newest = max([newest, *(each.offset for each in consumer.poll(1))])


def test_a_schema_is_compatible_with_a_subject_without_versions(registry):
    path = "/compatibility/subjects/unborn-value/versions"
    for each in (path, f"{path}/latest"):
        assert registry.request("POST", each, avro('"int"')) == (200, {"is_compatible": True})
    assert registry.request("POST", f"{path}/1", avro('"int"'))[1]["error_code"] == 40402


def test_records_have_the_form_of_confluents_registry(broker, registry):
    register(registry, "form-value", references=[])
    registry.request("PUT", "/config/form-value", {"compatibility": "NONE"})
    registry.request("DELETE", "/subjects/form-value")
    with Consumer(bootstrap_servers=broker.bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([("_schemas", 0)])
        consumer.seek_to_beginning()
        records: dict[bytes, bytes | None] = {}
        key = b'{"keytype":"DELETE_SUBJECT","subject":"form-value","magic":0}'
        while key not in records:
            records.update((each.key, each.value) for each in consumer.poll(5))
    assert records[key] == b'{"subject":"form-value","version":1}'
    assert b'{"keytype":"NOOP","magic":0}' in records
    schema = json.loads(records[b'{"keytype":"SCHEMA","subject":"form-value","version":1,"magic":1}'] or b"")
    assert list(schema) == ["subject", "version", "id", "schema", "deleted"]
    assert b'{"keytype":"CONFIG","subject":"form-value","magic":0}' in records
