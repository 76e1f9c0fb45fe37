"""The same program with confluent-kafka's registry module and with ours, against our registry."""

from __future__ import annotations

import importlib
import json

import pytest
from google.rpc.error_details_pb2 import BadRequest

ORIGINAL, OURS = "confluent_kafka", "kafkapy.compat.confluent_kafka"
AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
JSON = '{"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}'
MODULES = ("schema_registry", "schema_registry.avro", "schema_registry.json_schema", "schema_registry.protobuf")


class Library:
    """The modules of confluent-kafka, or of kafkapy's package that replaces it, and a registry client for `url`."""

    def __init__(self, name, url):
        self.registry, self.avro, self.json, self.protobuf = (
            importlib.import_module(f"{name}.{module}") for module in MODULES
        )
        self.serialization = importlib.import_module(f"{name}.serialization")
        self.client = self.registry.SchemaRegistryClient({"url": url})

    def context(self, topic, field="VALUE", headers=None):
        part = self.serialization.MessageField[field]
        return self.serialization.SerializationContext(topic, part, headers)


@pytest.fixture(scope="module", params=[ORIGINAL, OURS])
def library(request, registry):
    return Library(request.param, registry.url)


@pytest.fixture(scope="module")
def other(registry):
    return Library(ORIGINAL, registry.url)


def test_avro(library, other):
    serialize = library.avro.AvroSerializer(library.client, AVRO, lambda value, ctx: {"id": value})
    data = serialize(7, library.context("compat-avro"))
    assert data == other.avro.AvroSerializer(other.client, AVRO)({"id": 7}, other.context("compat-avro"))
    deserialize = library.avro.AvroDeserializer(library.client, AVRO, lambda value, ctx: value["id"])
    assert deserialize(data, library.context("compat-avro")) == 7
    assert serialize(None, library.context("compat-avro")) is None
    serialize(7, library.context("compat-avro", "KEY"))
    assert library.client.get_versions("compat-avro-key") == [1]
    with pytest.raises((TypeError, library.serialization.SerializationError)):
        library.avro.AvroSerializer(library.client, AVRO)({"id": "text"}, library.context("compat-avro"))
    with pytest.raises(library.serialization.SerializationError):
        deserialize(b"text", library.context("compat-avro"))


def test_json(library):
    serialize = library.json.JSONSerializer(JSON, library.client)
    data = serialize({"id": 1}, library.context("compat-json"))
    assert library.json.JSONDeserializer(JSON)(data, library.context("compat-json")) == {"id": 1}
    with pytest.raises(library.serialization.SerializationError):
        serialize({"id": "text"}, library.context("compat-json"))


def test_protobuf(library):
    kind = BadRequest.FieldViolation
    data = library.protobuf.ProtobufSerializer(kind, library.client)(kind(field="a"), library.context("compat-proto"))
    deserialize = library.protobuf.ProtobufDeserializer(kind, {}, library.client)
    assert deserialize(data, library.context("compat-proto")) == kind(field="a")


@pytest.mark.parametrize(
    "conf",
    [
        {"colour": "red"},
        {"auto.register.schemas": "yes"},
        {"auto.register.schemas": True, "use.latest.version": True},
        {"subject.name.strategy": "topic"},
    ],
)
def test_a_wrong_configuration_is_a_value_error(library, conf):
    with pytest.raises(ValueError, match=r"must be|cannot enable|Unrecognized"):
        library.avro.AvroSerializer(library.client, AVRO, conf=conf)


def test_options_of_serializers(library):
    strategy = library.registry.topic_record_subject_name_strategy
    conf = {"subject.name.strategy": strategy}
    library.avro.AvroSerializer(library.client, AVRO, conf=conf)({"id": 1}, library.context("compat-named"))
    assert library.client.get_versions("compat-named-Order") == [1]
    latest = {"auto.register.schemas": False, "use.latest.version": True, **conf}
    data = library.avro.AvroSerializer(library.client, AVRO, conf=latest)({"id": 1}, library.context("compat-named"))
    assert data[5:] == b"\2"
    unregistered = {"auto.register.schemas": False}
    with pytest.raises(library.registry.SchemaRegistryError) as refused:
        library.avro.AvroSerializer(library.client, AVRO, conf=unregistered)({"id": 1}, library.context("compat-none"))
    assert (refused.value.http_status_code, refused.value.error_code) == (404, 40401)


def test_subjects_are_managed(library):
    module, client = library.registry, library.client
    subject = f"compat-{module.__name__}"
    references = []
    metadata = module.Metadata(None, module.MetadataProperties({"owner": "shop"}), None)
    schema = module.Schema(AVRO, "AVRO", references)
    schema_id = client.register_schema(subject, schema)
    assert client.register_schema_full_response(subject, schema).schema_id == schema_id
    assert json.loads(client.get_schema(schema_id).schema_str) == json.loads(AVRO)
    found = client.lookup_schema(subject, schema)
    assert (found.subject, found.version, found.schema_id) == (subject, 1, schema_id)
    assert client.get_schema_by_guid(found.guid).schema_type == "AVRO"
    assert subject in client.get_subjects(subject_prefix=subject)
    assert subject in client.get_subjects_by_schema_id(schema_id)
    assert module.Schema('"int"', "AVRO") == module.Schema('"int"', "AVRO")
    assert not client.test_compatibility(subject, module.Schema('"int"', "AVRO"))
    level = module.ConfigCompatibilityLevel.NONE
    client.set_config(subject, module.ServerConfig(compatibility=level))
    assert client.get_config(subject).compatibility_level == level
    assert client.get_compatibility(subject) == "NONE"
    client.register_schema(subject, module.Schema('"int"', "AVRO", metadata=metadata))
    assert client.get_latest_with_metadata(subject, {"owner": "shop"}).version == 2
    assert client.get_latest_version(subject).schema.metadata.properties.properties == {"owner": "shop"}
    assert client.update_mode(subject, "READONLY") == "READONLY"
    assert client.get_mode(subject) == "READONLY"
    assert client.delete_mode(subject) == "READONLY"
    assert client.get_global_mode() == "READWRITE"
    assert "." in client.get_contexts()
    assert client.delete_version(subject, 1) == 1
    assert client.delete_subject(subject) == [2]
    assert client.delete_subject(subject, permanent=True) == [1, 2]
    with pytest.raises(module.SchemaRegistryError, match="not found"):
        client.get_versions(subject)
    client.clear_caches()


def test_values_are_converted_to_the_fields_of_the_api(library):
    module = library.registry
    rule = module.Rule(
        "r", None, module.RuleKind.CONDITION, module.RuleMode.READ, "CEL", ["PII"], None, "true", None, None, None
    )
    rules = module.RuleSet(None, [rule])
    shown = {"name": "r", "kind": "CONDITION", "mode": "READ", "type": "CEL", "tags": ["PII"], "expr": "true"}
    assert {key: value for key, value in rule.to_dict().items() if value is not None} == shown
    assert rules.to_dict()["domainRules"][0]["name"] == "r"
    assert module.RuleSet.from_dict({"domainRules": [shown]}).domain_rules[0].kind == module.RuleKind.CONDITION
    config = module.ServerConfig.from_dict({"compatibilityLevel": "FULL"})
    assert config.compatibility_level == module.ConfigCompatibilityLevel.FULL


def test_rules_that_would_be_skipped_are_refused(registry):
    library = Library(OURS, registry.url)
    module = library.registry
    rule = module.Rule(name="encrypt", kind=module.RuleKind.TRANSFORM, mode=module.RuleMode.WRITEREAD, type="ENCRYPT")
    schema = module.Schema(AVRO, "AVRO", rule_set=module.RuleSet(domain_rules=[rule]))
    with pytest.raises(ValueError, match="cannot be executed"):
        library.avro.AvroSerializer(library.client, schema)


@pytest.mark.parametrize("conf", [{}, {"url": "ftp://x"}, {"url": "http://x", "colour": "red"}])
def test_a_wrong_client_is_a_value_error(library, conf):
    with pytest.raises(ValueError, match=r"\w"):
        library.registry.SchemaRegistryClient(conf)
