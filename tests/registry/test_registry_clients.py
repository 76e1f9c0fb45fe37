"""Confluent's client and serializers against our registry, and ours with theirs, in both directions."""

from __future__ import annotations

import json

import pytest
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    ServerConfig,
)
from confluent_kafka.schema_registry import SchemaRegistryError as Refused
from confluent_kafka.schema_registry import avro as their_avro
from confluent_kafka.schema_registry import json_schema as their_json
from confluent_kafka.schema_registry import protobuf as their_protobuf
from confluent_kafka.serialization import MessageField, SerializationContext
from google.rpc.error_details_pb2 import BadRequest, RetryInfo

from kafkapy.client import Consumer, Producer
from kafkapy.client.schema import (
    AvroDeserializer,
    AvroSerializer,
    JsonDeserializer,
    JsonSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    RegistryClient,
    RegistryFailure,
    SchemaMismatch,
    WrongFrame,
)

AVRO = json.dumps(
    {
        "type": "record",
        "name": "shop.Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
    }
)
JSON = '{"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}'
ORDER = {"id": 7, "note": "two"}


@pytest.fixture(scope="module")
def theirs(registry):
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


@pytest.fixture(scope="module")
def ours(registry):
    client = RegistryClient(registry.url)
    yield client
    client.close()


def value_of(topic):
    return SerializationContext(topic, MessageField.VALUE)


def test_avro_goes_both_ways(theirs, ours):
    data = their_avro.AvroSerializer(theirs, AVRO)(ORDER, value_of("avro"))
    assert AvroSerializer(ours, AVRO)("avro", ORDER) == data
    assert AvroDeserializer(ours)("avro", data) == ORDER
    assert their_avro.AvroDeserializer(theirs)(data, value_of("avro")) == ORDER


def test_json_goes_both_ways(theirs, ours):
    data = their_json.JSONSerializer(JSON, theirs)({"id": 7}, value_of("json"))
    assert JsonDeserializer(ours)("json", data) == {"id": 7}
    written = JsonSerializer(ours, JSON)("json", {"id": 8})
    assert written[:5] == data[:5]
    assert their_json.JSONDeserializer(JSON, schema_registry_client=theirs)(written, value_of("json")) == {"id": 8}


@pytest.mark.parametrize(
    "message",
    [
        BadRequest.FieldViolation(field="a", description="b"),
        BadRequest(field_violations=[BadRequest.FieldViolation(field="a")]),
        RetryInfo(),
    ],
)
def test_protobuf_goes_both_ways(theirs, ours, message):
    kind = type(message)
    data = their_protobuf.ProtobufSerializer(kind, theirs)(message, value_of("protobuf"))
    assert ProtobufSerializer(ours, kind)("protobuf", message) == data
    assert ProtobufDeserializer(ours, kind)("protobuf", data) == message
    assert str(ProtobufDeserializer(ours)("protobuf", data)) == str(message), "the class is made from the schema"
    assert their_protobuf.ProtobufDeserializer(kind, {}, theirs)(data, value_of("protobuf")) == message


def test_a_guid_in_a_header_names_the_schema(theirs, ours):
    data, headers = AvroSerializer(ours, AVRO).encode("header", ORDER)
    assert AvroDeserializer(ours).decode("header", data, headers) == ORDER
    context = SerializationContext("header", MessageField.VALUE, headers)
    assert their_avro.AvroDeserializer(theirs)(data, context) == ORDER


def test_records_go_through_a_topic(broker, ours):
    with Producer(bootstrap_servers=broker.bootstrap, value_serializer=AvroSerializer(ours, AVRO)) as producer:
        producer.send("through", ORDER).result(30)
    reader = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
    with Consumer(bootstrap_servers=broker.bootstrap, value_deserializer=AvroDeserializer(ours, reader)) as consumer:
        consumer.assign([("through", 0)])
        consumer.seek_to_beginning()
        assert next(iter(consumer)).value == {"id": 7}


def test_references_are_resolved(theirs, ours):
    part = '{"type": "record", "name": "Part", "fields": [{"name": "n", "type": "int"}]}'
    whole = '{"type": "record", "name": "Whole", "fields": [{"name": "part", "type": "Part"}]}'
    theirs.register_schema("part", Schema(part, "AVRO"))
    schema = Schema(whole, "AVRO", [SchemaReference("Part", "part", 1)])
    value = {"part": {"n": 1}}
    data = their_avro.AvroSerializer(theirs, schema)(value, value_of("whole"))
    assert AvroDeserializer(ours)("whole", data) == value


def test_their_client_manages_subjects(theirs):
    theirs.register_schema("managed", Schema(AVRO, "AVRO"))
    latest = theirs.get_latest_version("managed")
    assert theirs.lookup_schema("managed", Schema(AVRO, "AVRO")).schema_id == latest.schema_id
    assert theirs.get_schema_by_guid(latest.guid).schema_type == "AVRO"
    assert theirs.get_subjects_by_schema_id(latest.schema_id)
    assert not theirs.test_compatibility("managed", Schema('"int"', "AVRO"))
    with pytest.raises(Refused, match="incompatible") as refused:
        theirs.register_schema("managed", Schema('"int"', "AVRO"))
    assert refused.value.error_code == 409
    theirs.set_config("managed", ServerConfig(compatibility=ConfigCompatibilityLevel.NONE))
    assert theirs.get_config("managed").compatibility_level == "NONE"
    metadata = Metadata(None, MetadataProperties({"owner": "shop"}), None)
    theirs.register_schema("managed", Schema('"int"', "AVRO", metadata=metadata))
    assert theirs.get_latest_with_metadata("managed", {"owner": "shop"}).version == 2
    assert theirs.delete_version("managed", 1) == 1
    assert theirs.delete_subject("managed") == [2]
    assert theirs.delete_subject("managed", permanent=True) == [1, 2]


def test_our_client_manages_subjects(ours):
    from kafkapy.client.schema import Schema as OurSchema

    first = ours.register("ours", OurSchema(AVRO))
    assert ours.look_up("ours", OurSchema(AVRO)).id == first.id
    assert ours.version("ours").version == 1
    assert ("ours", 1) in ours.versions_of_id(first.id)
    assert ours.incompatibilities("ours", OurSchema('"int"'))
    ours.set_level("NONE", "ours")
    assert ours.level("ours") == "NONE"
    assert ours.incompatibilities("ours", OurSchema('"int"')) is None
    assert ours.mode() == "READWRITE"
    assert "ours" in ours.subjects(prefix="ou")
    assert ours.delete_subject("ours") == [1]
    with pytest.raises(RegistryFailure) as refused:
        ours.versions("ours")
    assert (refused.value.status, refused.value.code) == (404, 40401)


def test_a_value_that_does_not_fit_is_refused(ours):
    with pytest.raises(SchemaMismatch, match="does not fit the Avro schema"):
        AvroSerializer(ours, AVRO)("bad", {"id": "text"})
    with pytest.raises(SchemaMismatch, match="at /id"):
        JsonSerializer(ours, JSON)("bad-json", {"id": "text"})
    with pytest.raises(SchemaMismatch, match="not a message"):
        ProtobufSerializer(ours, BadRequest)("bad-protobuf", RetryInfo())
    for deserializer in (AvroDeserializer(ours), JsonDeserializer(ours), ProtobufDeserializer(ours)):
        assert deserializer("bad", None) is None
        with pytest.raises(WrongFrame):
            deserializer("bad", b"text")
    prefix = AvroSerializer(ours, AVRO)("fits", ORDER)[:5]
    with pytest.raises(SchemaMismatch):
        AvroDeserializer(ours)("bad", prefix)
    with pytest.raises(RegistryFailure, match="not found"):
        AvroDeserializer(ours)("bad", b"\0\0\xff\xff\xff")


def test_a_schema_is_not_registered_without_leave(ours):
    with pytest.raises(RegistryFailure, match="not found"):
        AvroSerializer(ours, AVRO, auto_register=False)("unregistered", ORDER)
    AvroSerializer(ours, AVRO)("registered", ORDER)
    expected = AvroSerializer(ours, AVRO)("registered", ORDER)
    assert AvroSerializer(ours, AVRO, auto_register=False)("registered", ORDER) == expected
    assert AvroSerializer(ours, use_latest=True)("registered", ORDER) == expected


def test_strategies_name_the_subject(ours):
    for strategy, subject in (("RECORD", "shop.Order"), ("TOPIC_RECORD", "named-shop.Order")):
        AvroSerializer(ours, AVRO, subject_name=strategy)("named", ORDER)
        assert ours.versions(subject) == [1]
    AvroSerializer(ours, AVRO, is_key=True)("named", ORDER)
    assert ours.versions("named-key") == [1]
