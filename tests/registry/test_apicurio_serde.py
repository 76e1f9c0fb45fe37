"""Apicurio's serializers for Java against our registry, together with Confluent's and ours on the same topic."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry import avro as their_avro
from confluent_kafka.serialization import MessageField, SerializationContext

from kafkapy.client import Producer
from kafkapy.client.schema import AvroDeserializer, AvroSerializer, RegistryClient
from tests.ecosystem.programs import TopicReader, create_topics, maven_jars

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]

PROGRAM = Path(__file__).with_name("ApicurioProgram.java")
SERDE = ("io.apicurio:apicurio-registry-avro-serde-kafka:3.1.7", "org.slf4j:slf4j-nop:2.0.17")
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
    }
)
API = "/apis/registry/v3"


@pytest.fixture(scope="module")
def java(tmp_path_factory, broker, registry):
    """Returns a function that runs the program with its mode, a topic and further arguments, and returns its output."""
    jars = maven_jars("apicurio", *SERDE)
    classes = tmp_path_factory.mktemp("classes")
    compiling = ["javac", "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", str(classes), str(PROGRAM)]
    subprocess.run(compiling, check=True, capture_output=True, timeout=120)
    address = f"apicurio.registry.url={registry.url}{API}"
    command = ["java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{jars}/*", "ApicurioProgram"]

    def run(mode, topic, *arguments, expected=0):
        words = [*command, mode, broker.bootstrap, topic, *map(str, arguments), address]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == expected, done.stdout + done.stderr
        return done.stdout if expected == 0 else done.stderr

    return run


def value_of(topic):
    return SerializationContext(topic, MessageField.VALUE)


def test_records_of_three_libraries_are_read_by_each_of_them(broker, registry, java):
    create_topics(broker.bootstrap, {"mixed": 1})
    java("write", "mixed", AVRO, 1, "apicurio.registry.auto-register=true")
    ours = RegistryClient(registry.url)
    with (
        SchemaRegistryClient({"url": registry.url}) as theirs,
        Producer(bootstrap_servers=broker.bootstrap) as producer,
    ):
        data = their_avro.AvroSerializer(theirs, AVRO)({"id": 2, "note": None}, value_of("mixed"))
        producer.send("mixed", data)
        producer.send("mixed", AvroSerializer(ours, AVRO)("mixed", {"id": 3, "note": None}))
        producer.flush()
        assert java("read", "mixed", 3).splitlines() == [
            '{"id": 1, "note": "from Java"}',
            '{"id": 2, "note": null}',
            '{"id": 3, "note": null}',
        ]
        with TopicReader(broker.bootstrap, "mixed") as topic:
            topic.wait_for(3)
            first = topic.values[0]
        assert AvroDeserializer(ours)("mixed", first) == {"id": 1, "note": "from Java"}
        assert their_avro.AvroDeserializer(theirs)(first, value_of("mixed")) == {"id": 1, "note": "from Java"}
    assert ours.versions("mixed-value") == [1], "each library has registered the same schema"
    ours.close()


def test_a_registered_schema_is_found_without_registering(broker, registry, java):
    create_topics(broker.bootstrap, {"latest": 1})
    java("write", "latest", AVRO, 1, expected=1)  # neither registered nor to be registered
    with SchemaRegistryClient({"url": registry.url}) as theirs:
        theirs.register_schema("latest-value", Schema(AVRO, "AVRO"))
    java("write", "latest", AVRO, 2, "apicurio.registry.find-latest=true")
    java("write", "latest", AVRO, 3)  # the resolver looks the content up
    assert java("read", "latest", 2, "apicurio.registry.use-id=globalId").count("from Java") == 2


def test_an_incompatible_schema_is_refused_with_the_reason(broker, registry, java):
    create_topics(broker.bootstrap, {"refused": 1})
    java("write", "refused", AVRO, 1, "apicurio.registry.auto-register=true")
    other = json.loads(AVRO)
    other["fields"].append({"name": "amount", "type": "int"})
    wrong = java("write", "refused", json.dumps(other), 2, "apicurio.registry.auto-register=true", expected=1)
    assert "incompatible with an earlier schema" in wrong


def created(registry, subject, text, **parameters):
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    body = {"artifactId": subject, "artifactType": "AVRO", "firstVersion": {"content": {"content": text}}}
    return registry.request("POST", f"{API}/groups/default/artifacts?{query}", body)


def test_an_artifact_is_a_subject(registry):
    status, made = created(registry, "artifact", AVRO, ifExists="FAIL")
    assert status == 200
    schema_id = made["version"]["contentId"]
    assert registry.request("GET", "/subjects/artifact/versions/1")[1]["id"] == schema_id
    assert created(registry, "artifact", AVRO, ifExists="FAIL")[0] == 409
    assert created(registry, "artifact", AVRO, ifExists="FIND_OR_CREATE_VERSION")[1]["version"] == made["version"]
    versions = f"{API}/groups/default/artifacts/artifact/versions"
    for each in ("1", "branch=latest"):
        assert registry.request("GET", f"{versions}/{each}")[1] == made["version"]
    whole = {"type": "record", "name": "Whole", "fields": [{"name": "order", "type": "shop.Order"}]}
    references = [{"name": "shop.Order", "groupId": "default", "artifactId": "artifact", "version": "1"}]
    content = {"content": json.dumps(whole), "contentType": "application/json", "references": references}
    body = {"artifactId": "whole", "artifactType": "AVRO", "firstVersion": {"content": content}}
    _, found = registry.request("POST", f"{API}/groups/default/artifacts?ifExists=FAIL", body)
    assert registry.request("GET", f"{versions.replace('/artifact/', '/whole/')}/1/references")[1] == references
    whole_id = found["version"]["globalId"]
    assert registry.request("GET", f"{API}/ids/globalIds/{whole_id}/references")[1] == references
    assert registry.request("GET", f"{API}/ids/contentIds/{whole_id}")[1] == whole
    assert registry.request("GET", f"{versions}/1/content")[1] == json.loads(AVRO)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("GET", "/ids/contentIds/99999", None, 404, "99999"),
        ("GET", "/ids/contentIds/x", None, 404, "404"),
        ("GET", "/groups/other/artifacts/a/versions/1", None, 404, "the group 'default' only"),
        ("GET", "/groups/default/artifacts/absent/versions/1", None, 404, "absent"),
        ("GET", "/groups/default/artifacts/absent/versions/x", None, 404, "x"),
        ("POST", "/groups/default/artifacts", b"{", 400, "not JSON"),
        ("POST", "/groups/default/artifacts", {}, 400, "content"),
        ("POST", "/groups/default/artifacts?ifExists=x", {}, 400, "ifExists"),
        ("POST", "/search/versions?groupId=other", {}, 404, "other"),
    ],
)
def test_bad_requests_are_refused_in_apicurios_form(registry, method, path, body, status, reason):
    found, problem = registry.request(method, API + path, body)
    assert (found, problem["status"]) == (status, status)
    assert reason in problem["detail"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"artifactType": "XSD"}, "artifactType"),
        ({"firstVersion": {"content": {"content": "{"}}}, "Invalid schema"),
        ({"firstVersion": {"content": {"content": AVRO, "references": {}}}}, "references"),
        ({"firstVersion": {"content": {"content": AVRO, "references": [{"name": "a"}]}}}, "a reference has"),
        ({"artifactId": ""}, "artifactId"),
    ],
)
def test_a_bad_artifact_is_refused_with_the_reason(registry, fields, reason):
    body = {"artifactId": "bad", "artifactType": "AVRO", "firstVersion": {"content": {"content": AVRO}}} | fields
    status, problem = registry.request("POST", f"{API}/groups/default/artifacts", body)
    assert status in (400, 422)
    assert reason in problem["detail"]
