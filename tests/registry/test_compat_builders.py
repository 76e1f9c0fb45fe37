"""The builders and the coroutines of serializers, with confluent-kafka's modules and with ours."""

from __future__ import annotations

import asyncio
import importlib

import pytest
from google.rpc.error_details_pb2 import BadRequest

ORIGINAL, OURS = "confluent_kafka", "kafkapy.compat.confluent_kafka"
AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
JSON = '{"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}'
VIOLATION = BadRequest.FieldViolation
LANGUAGES = {
    "avro": ("Avro", AVRO, {"id": 1}),
    "json_schema": ("JSON", JSON, {"id": 1}),
    "protobuf": ("Protobuf", VIOLATION, VIOLATION(field="a")),
}


@pytest.fixture(params=[ORIGINAL, OURS])
def library(request):
    return request.param


@pytest.fixture(params=list(LANGUAGES))
def language(request, library):
    """Returns the names that differ between the schema languages, with a schema and a value.

    The elements are the module, the prefix of its classes' names, the schema or message class, and the value.
    """
    return importlib.import_module(f"{library}.schema_registry.{request.param}"), *LANGUAGES[request.param]


def context(library, topic):
    module = importlib.import_module(f"{library}.serialization")
    return module.SerializationContext(topic, module.MessageField.VALUE)


def builder(module, name, kind):
    found = getattr(module, name)()
    return found.set_message_type(kind) if kind is VIOLATION else found.set_schema(kind)


def test_builders_make_a_serde_and_its_client(library, language, registry):
    module, name, kind, value = language
    conf, made = {"client.id": "c"}, []
    build = builder(module, f"{name}SerializerBuilder", kind).set_schema_registry_config({"url": registry.url})
    build.set_serializer_config({"normalize.schemas": True}).set_serializer_init(made.append)
    write, left = build.build(conf, False)
    assert (left, made) == (conf, [write])
    build = builder(module, f"{name}DeserializerBuilder", kind).set_schema_registry_config({"url": registry.url})
    read, _ = build.set_deserializer_init(made.append).build(conf, False)
    place = context(library, f"builders-{name}")
    assert read(write(value, place), place) == value
    write.close()
    read.close()
    read.close()


def test_builders_refuse_two_clients_and_unknown_arguments(library, language, registry):
    module, name, kind, _ = language
    registry_module = importlib.import_module(f"{library}.schema_registry")
    client = registry_module.SchemaRegistryClient({"url": registry.url})
    build = builder(module, f"{name}SerializerBuilder", kind).set_schema_registry_client(client)
    with pytest.raises(ValueError, match="both"):
        build.set_schema_registry_config({"url": registry.url}).build({}, False)
    with pytest.raises(TypeError):
        getattr(module, f"{name}SerializerBuilder")(colour="red")


def test_a_serde_whose_function_fails_is_closed(library, language, registry):
    module, name, kind, _ = language
    serde = importlib.import_module(f"{library}.schema_registry.serde")
    rules = importlib.import_module(f"{library}.schema_registry.rule_registry").RuleRegistry()
    closed = []

    class Noted(serde.NoneAction):
        def type(self):
            return "NOTED"

        def close(self):
            closed.append(self.type())

    def fail(made):
        raise ZeroDivisionError

    rules.register_action(Noted())
    build = builder(module, f"{name}SerializerBuilder", kind).set_schema_registry_config({"url": registry.url})
    with pytest.raises(ZeroDivisionError):
        build.set_rule_registry(rules).set_rule_config({}).set_serializer_init(fail).build({}, False)
    assert closed == ["NOTED"]


def test_coroutines_have_the_same_results(library, language, registry):
    module, name, kind, value = language
    registry_module = importlib.import_module(f"{library}.schema_registry")
    place = context(library, f"coroutines-{name}")

    async def main():
        client = registry_module.AsyncSchemaRegistryClient({"url": registry.url})
        first = (client, kind) if name == "Avro" else (kind, client)
        write = await getattr(module, f"Async{name}Serializer")(*first)
        data = await write(value, place)
        assert await write(None, place) is None
        assert await asyncio.gather(*(write(value, place) for _ in range(3))) == [data] * 3
        if name == "Avro":
            read = await module.AsyncAvroDeserializer(client)
        else:
            read = await getattr(module, f"Async{name}Deserializer")(kind, schema_registry_client=client)
        assert await read(data, place) == value
        assert await read(None, place) is None
        with pytest.raises(importlib.import_module(f"{library}.serialization").SerializationError):
            await read(b"\7wrong data", place)
        await write.aclose()
        await client.aclose()

    asyncio.run(main())


def test_asynchronous_clients_use_asynchronous_builders(library, broker, registry):
    aio = importlib.import_module(f"{library}.aio")
    avro = importlib.import_module(f"{library}.schema_registry.avro")
    topic = f"aio-builders-{library}"
    conf = {"bootstrap.servers": broker.bootstrap}
    registry_conf = {"url": registry.url}

    async def main():
        writing = avro.AsyncAvroSerializerBuilder(registry_conf, schema=AVRO)
        producer = await aio.AsyncSerializingProducer({**conf, "value.serializer.builder": writing})
        delivered = await producer.produce(topic, value={"id": 7})
        await producer.flush()
        assert (await delivered).value()[:1] == b"\0"
        await producer.close()
        reading = avro.AsyncAvroDeserializerBuilder(registry_conf)
        settings = {**conf, "group.id": topic, "auto.offset.reset": "earliest", "value.deserializer.builder": reading}
        consumer = await aio.AsyncDeserializingConsumer(settings)
        await consumer.subscribe([topic])
        message = None
        while message is None:
            message = await consumer.poll(1)
        assert message.value() == {"id": 7}
        await consumer.close()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_what_was_not_awaited_says_so(registry):
    module = importlib.import_module(f"{OURS}.schema_registry")
    avro = importlib.import_module(f"{OURS}.schema_registry.avro")
    client = module.AsyncSchemaRegistryClient({"url": registry.url})
    write = avro.AsyncAvroSerializer(client, AVRO)
    with pytest.raises(RuntimeError, match="awaited once"):
        asyncio.run(write({"id": 1}))
    with pytest.raises(RuntimeError, match="awaited once"):
        write.configure_validation_rules({})
