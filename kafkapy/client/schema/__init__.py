"""Serializers and deserializers that use a schema registry, for Avro, JSON Schema and Protobuf.

    from kafkapy.client import Producer
    from kafkapy.client.schema import AvroSerializer, RegistryClient

    registry = RegistryClient("http://localhost:8081")
    with Producer(bootstrap_servers="localhost:9092", value_serializer=AvroSerializer(registry, schema)) as producer:
        producer.send("orders", {"id": 1, "amount": 9.5})

The bytes have the form of Confluent's serializers. Each language needs the library of the extra `schemas`: fastavro,
jsonschema or protobuf, which is imported when the first serializer of its language is made.
"""

from __future__ import annotations

from kafkapy.client.schema.avro import AvroDeserializer, AvroSerializer
from kafkapy.client.schema.errors import RegistryFailure, SchemaMismatch, WrongFrame
from kafkapy.client.schema.json_schema import JsonDeserializer, JsonSerializer
from kafkapy.client.schema.model import RegisteredSchema, Schema, SchemaReference
from kafkapy.client.schema.protobuf import ProtobufDeserializer, ProtobufSerializer
from kafkapy.client.schema.registry_client import RegistryClient
from kafkapy.client.schema.subject_names import record_subject, topic_record_subject, topic_subject

__all__ = [
    "AvroDeserializer",
    "AvroSerializer",
    "JsonDeserializer",
    "JsonSerializer",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "RegisteredSchema",
    "RegistryClient",
    "RegistryFailure",
    "Schema",
    "SchemaMismatch",
    "SchemaReference",
    "WrongFrame",
    "record_subject",
    "topic_record_subject",
    "topic_subject",
]
