"""The rules of data contracts and the options of serializers, with confluent-kafka's registry module and with ours."""

from __future__ import annotations

import importlib
import json
from types import SimpleNamespace

import pytest
from google.protobuf.descriptor_pb2 import FieldOptions
from google.protobuf.empty_pb2 import Empty
from google.rpc.error_details_pb2 import BadRequest

MODULES = ("schema_registry", "schema_registry.avro", "schema_registry.json_schema", "schema_registry.protobuf")
PERSON = {
    "type": "record",
    "name": "Person",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "confluent:tags": ["PII"]},
        {"name": "mails", "type": {"type": "array", "items": "string"}, "confluent:tags": ["PII"], "default": []},
        {
            "name": "address",
            "default": None,
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Address",
                    "fields": [{"name": "street", "type": "string", "confluent:tags": ["PII"]}],
                },
            ],
        },
    ],
}
JSON_PERSON = {
    "title": "Person",
    "type": "object",
    "definitions": {
        "address": {"type": "object", "properties": {"street": {"type": "string", "confluent:tags": ["PII"]}}}
    },
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["null", "string"], "confluent:tags": ["PII"]},
        "mails": {"type": "array", "items": {"type": "string"}, "confluent:tags": ["PII"]},
        "address": {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/address"}]},
    },
}
ANN = {"id": 1, "name": "ann", "mails": ["a@b", "c@d"], "address": {"street": "main"}}
HIDDEN = {"id": 1, "name": "nna", "mails": ["b@a", "d@c"], "address": {"street": "niam"}}
LATEST = {"auto.register.schemas": False, "use.latest.version": True}


class Library:
    """The modules of one library, with a registry of rules whose executors and actions write what they did."""

    def __init__(self, name, url):
        self.name = name
        self.registry, self.avro, self.json, self.protobuf = (
            importlib.import_module(f"{name}.{module}") for module in MODULES
        )
        self.serialization = importlib.import_module(f"{name}.serialization")
        self.serde = importlib.import_module(f"{name}.schema_registry.serde")
        self.rules_module = importlib.import_module(f"{name}.schema_registry.rule_registry")
        self.client = self.registry.SchemaRegistryClient({"url": url})
        self.seen: list[object] = []
        self.rules = self.rules_module.RuleRegistry()
        for each in self._executors():
            self.rules.register_executor(each)
        self.rules.register_action(self._action())

    def _executors(self):
        serde = self.serde

        class Reverse(serde.FieldRuleExecutor):
            def type(self):
                return "REVERSE"

            def new_transform(self, ctx):
                return lambda ctx, field, value: value[::-1] if isinstance(value, str) else value

        class Function(serde.RuleExecutor):
            def __init__(self, name, function):
                self.name, self.function = name, function

            def type(self):
                return self.name

            def transform(self, ctx, message):
                return self.function(ctx, message)

        def fail(ctx, message):
            raise ZeroDivisionError("the rule has failed")

        yield Reverse()
        yield Function("BACKWARDS", lambda ctx, message: message[::-1])
        yield Function("CHECK", lambda ctx, message: message["id"] > int(ctx.get_parameter("above")))
        yield Function("ADD", lambda ctx, message: {**message, "id": message["id"] + int(ctx.get_parameter("n"))})
        yield Function("NOTHING", lambda ctx, message: None)
        yield Function("FAIL", fail)

    def _action(self):
        seen = self.seen

        class Note(self.serde.RuleAction):
            def type(self):
                return "NOTE"

            def run(self, ctx, message, ex):
                seen.append((ctx.rule.name, ctx.rule_mode.value, ctx.original_key, type(ex).__name__))

        return Note()

    def context(self, topic, field="VALUE", headers=None):
        return self.serialization.SerializationContext(topic, self.serialization.MessageField[field], headers)

    def rule(self, kind, type, mode="WRITEREAD", **values):
        module = self.registry
        params = values.pop("params", None)
        names = ("name", "doc", "tags", "expr", "on_success", "on_failure", "disabled")
        given = {"name": "rule", **dict.fromkeys(names[1:]), **values}
        return module.Rule(
            kind=module.RuleKind[kind],
            mode=module.RuleMode[mode],
            type=type,
            params=None if params is None else module.RuleParams(params),
            **given,
        )

    def register(self, topic, schema, *, kind="AVRO", domain=None, encoding=None, migration=None, metadata=None):
        module = self.registry
        rules = module.RuleSet(migration, domain, encoding)
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return self.client.register_schema(f"{topic}-value", module.Schema(text, kind, [], metadata, rules))

    def avro_serdes(self, conf=LATEST, read_conf=None):
        arguments = {"rule_registry": self.rules}
        return (
            self.avro.AvroSerializer(self.client, conf=conf, **arguments),
            self.avro.AvroDeserializer(self.client, conf=read_conf, **arguments),
        )


@pytest.fixture(params=["confluent_kafka", "kafkapy.compat.confluent_kafka"])
def library(request, registry):
    return Library(request.param, registry.url)


@pytest.fixture
def topic(library, request):
    return f"{request.node.originalname}-{library.name}"


def test_a_rule_for_tagged_fields_of_avro(library, topic):
    hide = library.rule("TRANSFORM", "REVERSE", tags=["PII"])
    library.register(topic, PERSON, domain=[hide])
    write, read = library.avro_serdes()
    data = write(json.loads(json.dumps(ANN)), library.context(topic))
    plain = library.avro.AvroDeserializer(library.client, rule_registry=library.rules_module.RuleRegistry())
    library.rules.register_override(library.rules_module.RuleOverride("REVERSE", None, None, True))
    assert read(data, library.context(topic)) == HIDDEN
    library.rules.register_override(library.rules_module.RuleOverride("REVERSE", None, None, False))
    assert read(data, library.context(topic)) == ANN
    with pytest.raises(library.serialization.SerializationError):
        plain(data, library.context(topic))


def test_a_rule_for_tagged_properties_of_json(library, topic):
    hide = library.rule("TRANSFORM", "REVERSE", "WRITE", tags=["PII"])
    library.register(topic, JSON_PERSON, kind="JSON", domain=[hide])
    write = library.json.JSONSerializer(None, library.client, conf=LATEST, rule_registry=library.rules)
    read = library.json.JSONDeserializer(None, schema_registry_client=library.client, rule_registry=library.rules)
    data = write(json.loads(json.dumps(ANN)), library.context(topic))
    assert read(data, library.context(topic)) == HIDDEN


def test_a_rule_for_fields_of_protobuf_that_the_metadata_tag(library, topic):
    module, kind = library.registry, BadRequest
    first = library.protobuf.ProtobufSerializer(kind, library.client)
    first(kind(), library.context(topic))
    known = library.client.get_latest_version(f"{topic}-value").schema
    metadata = module.Metadata(module.MetadataTags({"**.description": ["PII"]}), None, None)
    hide = library.rule("TRANSFORM", "REVERSE", tags=["PII"])
    library.register(topic, known.schema_str, kind="PROTOBUF", domain=[hide], metadata=metadata)
    library.client.clear_caches()
    write = library.protobuf.ProtobufSerializer(kind, library.client, LATEST, rule_registry=library.rules)
    read = library.protobuf.ProtobufDeserializer(kind, {}, library.client, rule_registry=library.rules)
    violation = kind.FieldViolation(field="abc", description="xyz")
    data = write(kind(field_violations=[violation]), library.context(topic))
    assert b"zyx" in data and b"abc" in data
    assert read(data, library.context(topic)) == kind(
        field_violations=[kind.FieldViolation(field="abc", description="xyz")]
    )


def test_conditions_and_actions(library, topic):
    check = {"name": "check", "params": {"above": "5"}, "doc": "the id is too small"}
    rules = [
        library.rule("CONDITION", "CHECK", "WRITE", on_success="NOTE", **check),
        library.rule("TRANSFORM", "FAIL", "READ", name="fails", on_failure="NOTE"),
        library.rule("TRANSFORM", "ADD", "READ", name="adds", params={"n": "10"}),
        library.rule("TRANSFORM", "FAIL", name="off", disabled=True),
    ]
    library.register(topic, PERSON, domain=rules)
    write, read = library.avro_serdes()
    with pytest.raises(library.serialization.SerializationError):
        write({**ANN, "id": 5}, library.context(topic))
    key = library.avro.AvroSerializer(library.client, '"string"', rule_registry=library.rules)
    key("k", library.context(topic, "KEY"))
    data = write({**ANN, "id": 6}, library.context(topic))
    assert library.seen == [("check", "WRITE", "k", "NoneType")]
    assert read(data, library.context(topic))["id"] == 16
    assert library.seen[1:] == [("fails", "READ", None, "ZeroDivisionError")]


@pytest.mark.parametrize("action", [None, "ERROR", "NONE", "UNKNOWN"])
def test_a_rule_without_an_executor(library, topic, action):
    library.register(f"{topic}-{action}", PERSON, domain=[library.rule("TRANSFORM", "OTHER", on_failure=action)])
    write, _ = library.avro_serdes()
    context = library.context(f"{topic}-{action}")
    if action == "NONE":
        assert write(ANN, context) is not None
    else:
        with pytest.raises((library.serialization.SerializationError, library.serde.RuleError)):
            write(ANN, context)


def test_a_transform_without_a_result_is_a_failure(library, topic):
    library.register(topic, PERSON, domain=[library.rule("TRANSFORM", "NOTHING", "WRITE")])
    write, _ = library.avro_serdes()
    with pytest.raises(library.serialization.SerializationError):
        write(ANN, library.context(topic))


def test_a_record_of_a_dead_letter_queue_does_not_fail_again(library, topic):
    library.register(topic, PERSON, domain=[library.rule("TRANSFORM", "FAIL", "READ", name="fails")])
    write, read = library.avro_serdes()
    data = write(ANN, library.context(topic))
    with pytest.raises(library.serialization.SerializationError):
        read(data, library.context(topic, headers=[("__rule.name", b"other")]))
    assert read(data, library.context(topic, headers=[("__rule.name", b"fails")])) == ANN


def test_rules_for_the_encoded_data(library, topic):
    library.register(topic, PERSON, encoding=[library.rule("TRANSFORM", "BACKWARDS", "WRITE")])
    write, _ = library.avro_serdes()
    plain = library.avro.AvroSerializer(library.client, json.dumps(PERSON))
    data, other = write(ANN, library.context(topic)), plain(ANN, library.context(f"{topic}-plain"))
    assert data[5:] == other[5:][::-1]


def test_migrations_between_versions(library, topic):
    library.client.set_config(
        f"{topic}-value", library.registry.ServerConfig(compatibility=library.registry.ConfigCompatibilityLevel.NONE)
    )
    field = {"type": "record", "name": "N", "fields": [{"name": "id", "type": "long"}]}
    for number in range(1, 4):
        rules = [
            library.rule("TRANSFORM", "ADD", "UPGRADE", name="up", params={"n": str(10**number)}),
            library.rule("TRANSFORM", "ADD", "DOWNGRADE", name="down", params={"n": str(-(10**number))}),
        ]
        library.register(topic, {**field, "doc": f"version {number}"}, migration=rules)
    ids = [library.client.get_version(f"{topic}-value", number).schema_id for number in (1, 2, 3)]
    fixed = {"auto.register.schemas": False}
    written = [
        library.avro.AvroSerializer(library.client, conf={**fixed, "use.schema.id": each})(
            {"id": 0}, library.context(topic)
        )
        for each in ids
    ]
    read = library.avro.AvroDeserializer(library.client, conf={"use.latest.version": True}, rule_registry=library.rules)
    assert [read(each, library.context(topic))["id"] for each in written] == [1100, 1000, 0]


def test_the_latest_version_with_metadata(library, topic):
    module = library.registry
    metadata = module.Metadata(None, module.MetadataProperties({"major": "1"}), None)
    first = library.register(topic, PERSON, metadata=metadata)
    library.client.set_config(f"{topic}-value", module.ServerConfig(compatibility=module.ConfigCompatibilityLevel.NONE))
    library.register(topic, '"string"')
    conf = {"auto.register.schemas": False, "use.latest.with.metadata": {"major": "1"}}
    data = library.avro.AvroSerializer(library.client, conf=conf)(ANN, library.context(topic))
    assert int.from_bytes(data[1:5], "big") == first
    read = library.avro.AvroDeserializer(library.client, conf={"use.latest.with.metadata": {"major": "1"}})
    assert read(data, library.context(topic)) == ANN


@pytest.mark.parametrize("kind", [list, dict])
def test_the_guid_of_the_schema_is_in_a_header(library, topic, kind):
    headers = kind()
    conf = {"schema.id.serializer": library.registry.header_schema_id_serializer}
    write = library.avro.AvroSerializer(library.client, json.dumps(PERSON), conf=conf)
    context = library.context(topic, headers=headers)
    data = write(ANN, context)
    ((name, value),) = headers.items() if isinstance(headers, dict) else headers
    guid = library.client.lookup_schema(f"{topic}-value", library.registry.Schema(json.dumps(PERSON))).guid
    assert (name, value[0], value[1:].hex()) == ("__value_schema_id", 1, guid.replace("-", ""))
    assert library.avro.AvroDeserializer(library.client)(data, context) == ANN
    conf = {"schema.id.deserializer": library.registry.prefix_schema_id_deserializer}
    with pytest.raises(library.serialization.SerializationError):
        library.avro.AvroDeserializer(library.client, conf=conf)(b"\7" + data, context)
    with pytest.raises(library.serialization.SerializationError):
        write(ANN, library.context(topic))


def test_validation_rules_of_the_schema(library, topic):
    class Positive(library.serde.ValidationRuleExecutor):
        def execute(self, rule, schema, message):
            if rule.expr == "fail":
                raise library.serde.RuleError("no such function")
            return message > 0 if rule.expr == "positive" else "wrong" if rule.expr == "text" else True

    rule = {"name": "p", "expr": "positive", "doc": "must be positive"}
    schema = {
        "type": "record",
        "name": "R",
        "confluent:rules": [{"name": "r", "expr": "text"}],
        "fields": [
            {"name": "n", "type": "long", "confluent:rules": [rule]},
            {"name": "m", "type": ["null", "long"], "confluent:rules": [rule, {"name": "f", "expr": "fail"}]},
        ],
    }
    objects = {
        "title": "R",
        "type": "object",
        "properties": {"n": {"type": "integer", "confluent:rules": [rule]}, "m": {"type": "array"}},
    }
    conf = {"validation.rules.execution": "AFTER_DOMAIN_RULES", "validation.rules.executor": Positive()}
    first = {**conf, "validation.rules.fail.fast": True}
    with pytest.raises(library.serialization.SerializationError) as refused:
        library.avro.AvroSerializer(library.client, json.dumps(schema), conf=conf)(
            {"n": -1, "m": 1}, library.context(topic)
        )
    lines = str(refused.value).splitlines()
    assert [line.strip(" -").partition(":")[0] for line in lines[-3:]] == ["<root>", "n", "m"]
    assert "3 violations" in str(refused.value)
    with pytest.raises(library.serialization.SerializationError, match="1 violation"):
        library.avro.AvroSerializer(library.client, json.dumps(schema), conf=first)(
            {"n": -1, "m": 1}, library.context(topic)
        )
    write = library.json.JSONSerializer(json.dumps(objects), library.client, conf=conf)
    assert write({"n": 1, "m": []}, library.context(f"{topic}-json")) is not None
    with pytest.raises(library.serialization.SerializationError, match=r"\$\.n: p: must be positive"):
        write({"n": 0, "m": []}, library.context(f"{topic}-json"))
    with pytest.raises(ValueError, match="must be"):
        library.avro.AvroSerializer(library.client, json.dumps(schema), conf={**conf, "validation.rules.execution": 1})


def test_bytes_alone_are_written_without_their_length(library, topic):
    write = library.avro.AvroSerializer(library.client, '"bytes"')
    data = write(b"abc", library.context(topic))
    assert data[5:] == b"abc"
    assert library.avro.AvroDeserializer(library.client)(data, library.context(topic)) == b"abc"


def test_strict_values_may_lack_fields_with_a_default(library, topic):
    conf = {"validate.strict.allow.default": True}
    write = library.avro.AvroSerializer(library.client, json.dumps(PERSON), conf=conf)
    assert write({"id": 1, "name": None}, library.context(topic)) is not None
    with pytest.raises((ValueError, library.serialization.SerializationError)):
        write({"id": 1, "name": None, "colour": "red"}, library.context(topic))


def test_functions_for_json_replace_the_library(library, topic):
    write = library.json.JSONSerializer("{}", library.client, json_encode=lambda value: f"<{value}>")
    data = write(7, library.context(topic))
    assert data[5:] == b"<7>"
    read = library.json.JSONDeserializer("{}", json_decode=lambda text: text.strip(b"<>").decode())
    assert read(data, library.context(topic)) == "7"


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("alice.bob.eve", "a*.bob.eve", True),
        ("alice.bob.eve", "a*.bob.e*", True),
        ("alice.bob.eve", "a*", False),
        ("alice.bob.eve", "a**", True),
        ("alice.bob.eve", "alice.bob*", False),
        ("alice.bob.eve", "alice.bob**", True),
        ("alice.bob.eve", "**.eve", True),
        ("alice.bob.eve", "alice.b?b.eve", True),
        ("alice.bob.eve", "alice?bob.eve", False),
        ("a+b", "a+b", True),
    ],
)
def test_names_of_fields_match_wildcards(library, text, pattern, expected):
    module = importlib.import_module(f"{library.name}.schema_registry.wildcard_matcher")
    assert module.wildcard_match(text, pattern) is expected


@pytest.mark.parametrize("options", [FieldOptions, Empty], ids=["known or not", "unknown"])
def test_the_tags_of_a_protobuf_field_are_in_its_options(options):
    tags = b"\x1a\x03PII\x1a\x04KEPT"
    data = b"\x0a\x00" * (options is Empty) + b"\x82\x44" + bytes([len(tags)]) + tags
    field = SimpleNamespace(GetOptions=lambda: options.FromString(data))
    module = importlib.import_module("kafkapy.compat.confluent_kafka.schema_registry.protobuf")
    assert module.get_inline_tags(field) == {"PII", "KEPT"}
