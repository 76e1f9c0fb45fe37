"""Bodies that are valid JSON and that no record or request can carry are refused, and no response fails by its text."""

from __future__ import annotations

import json
import math
import struct
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kafkapy.client.admin import TopicDescription
from kafkapy.client.schema import RegistryClient, Schema
from kafkapy.http.json_api import with_raw_paths
from kafkapy.rest.consumers import ConsumerInstance, ConsumerInstances
from kafkapy.rest.formats import AvroJsonDeserializer, Formats, decode_binary, decode_json
from kafkapy.rest.version_2 import JSON_RESPONSES, VersionTwo
from kafkapy.rest.version_3 import VersionThree
from tests.unit.rest.test_consumers import Consumer, Record

HALF = b"\\ud800"  # half of a surrogate pair, as JSON escapes it
JSON_V2 = "application/vnd.kafka.json.v2+json"
BINARY_V2 = "application/vnd.kafka.binary.v2+json"
CLUSTER = "/v3/clusters/c"
WHOLE = SimpleNamespace(start=0)  # the frame of data without a prefix


class Clients:
    """The clients of a cluster `c`, whose topics exist, and in which nothing can be written."""

    admin = None

    async def run(self, operation):
        return operation()

    async def run_consumer(self, operation):
        return operation()

    async def describe(self, topic, *, is_fresh=False):
        return TopicDescription(topic, b"", False, ())

    async def produce(self, topic, records):
        raise AssertionError("nothing must be produced")


@pytest.fixture
def consumers():
    return ConsumerInstances({"bootstrap.servers": "localhost:1"}, Formats(None), most=5, idle_s=60)


@pytest.fixture
def client(consumers):
    clients, formats = Clients(), Formats(None)
    version_3 = VersionThree(clients, formats)
    version_3._cluster_id = "c"
    routes = [*VersionTwo(clients, formats, consumers, largest_response=1 << 20).routes(), *version_3.routes()]
    app = Starlette(routes=routes, exception_handlers=JSON_RESPONSES.handlers())
    return TestClient(with_raw_paths(app), raise_server_exceptions=False)


@pytest.mark.parametrize(
    ("path", "content_type", "body"),
    [
        ("/topics/t", JSON_V2, b'{"records":[{"value":"%s"}]}' % HALF),
        ("/topics/t", JSON_V2, b'{"records":[{"value":NaN}]}'),
        ("/topics/t", JSON_V2, b'{"records":[{"value":1e999}]}'),
        ("/topics/t", JSON_V2, b'{"records":[{"value":"\xed\xa0\x80"}]}'),
        (f"{CLUSTER}/topics/t/records", "", b'{"value":{"type":"JSON","data":1e999}}'),
        (f"{CLUSTER}/topics/t/records", "", b'{"value":{"type":"JSON","data":-Infinity}}'),
        ("/topics/t", BINARY_V2, '{"records":[{"value":"é"}]}'.encode()),
        ("/consumers/g/instances/i/assignments", "", b'{"partitions":[{"topic":"t","partition":2147483648}]}'),
        ("/consumers/g/instances/i/assignments", "", b'{"partitions":[{"topic":"t","partition":true}]}'),
        ("/consumers/g/instances/i/assignments", "", b'{"partitions":[{"topic":"%s","partition":0}]}' % HALF),
        (
            "/consumers/g/instances/i/positions",
            "",
            b'{"offsets":[{"topic":"t","partition":0,"offset":1%s}]}' % (b"0" * 30),
        ),
        (
            "/consumers/g/instances/i/offsets",
            "",
            b'{"offsets":[{"topic":"t","partition":0,"offset":9223372036854775807}]}',
        ),
        (f"{CLUSTER}/topics", "", b'{"topic_name":"t","partitions_count":1%s}' % (b"0" * 30)),
        (f"{CLUSTER}/topics", "", b'{"topic_name":"t","replication_factor":40000}'),
        (f"{CLUSTER}/topics", "", b'{"topic_name":"t","configs":[{"name":"retention.ms","value":[1]}]}'),
        (f"{CLUSTER}/topics/t/records", "", b'{"value":{"type":"STRING","data":"%s"}}' % HALF),
        (f"{CLUSTER}/topics/t/records", "", '{"value":{"type":"BINARY","data":"é"}}'.encode()),
        (f"{CLUSTER}/topics/t/records", "", b'{"headers":[{"name":5}]}'),
        (f"{CLUSTER}/topics/t/records", "", '{"headers":[{"name":"h","value":"é"}]}'.encode()),
    ],
)
def test_a_body_that_nothing_can_carry_is_refused_with_a_reason(client, consumers, path, content_type, body):
    consumers._instances["g", "i"] = ConsumerInstance(
        None, "json", (decode_json, decode_json), commits=True, settings={}
    )
    reply = client.post(path, content=body, headers={"content-type": content_type or "application/json"})
    assert reply.status_code in (400, 422), reply.text


def test_a_record_with_half_of_a_surrogate_pair_is_returned(client, consumers):
    class Half(Record):
        value = b'{"text":"%s"}' % HALF

    settings = {"timeout_ms": 1, "least_bytes": 0}
    instance = ConsumerInstance(
        Consumer([[Half(3)]]), "json", (decode_binary, decode_json), commits=False, settings=settings
    )
    consumers._instances["g", "i"] = instance
    reply = client.get("/consumers/g/instances/i/records", headers={"accept": JSON_V2})
    assert reply.status_code == 200
    assert json.loads(reply.content)[0]["value"] == {"text": "\ud800"}


def test_a_record_that_is_no_json_does_not_make_a_response_without_json(client, consumers):
    class NoNumber(Record):
        value = b"NaN"

    settings = {"timeout_ms": 1, "least_bytes": 0}
    decoders = (decode_binary, decode_json)
    consumer = Consumer([])
    polled = iter([[NoNumber(3)]])
    consumer.poll = lambda timeout: next(polled, [])
    instance = ConsumerInstance(consumer, "json", decoders, commits=False, settings=settings)
    consumers._instances["g", "i"] = instance
    path, accepted = "/consumers/g/instances/i/records", {"accept": JSON_V2}
    reply = client.get(path, headers=accepted)
    assert (reply.status_code, reply.json()["error_code"]) == (500, 50002)
    assert client.get(path, headers=accepted).json() == []


def test_head_takes_no_records_of_an_instance(client, consumers):
    settings = {"timeout_ms": 1, "least_bytes": 0}
    decoders = (decode_binary, decode_binary)
    instance = ConsumerInstance(Consumer([[Record(3)]]), "binary", decoders, commits=False, settings=settings)
    consumers._instances["g", "i"] = instance
    path = "/consumers/g/instances/i/records"
    assert client.head(path).status_code == 405
    assert [each["offset"] for each in client.get(path, headers={"accept": BINARY_V2}).json()] == [3]


def test_a_number_of_avro_that_json_does_not_have_becomes_a_text():
    decoder = AvroJsonDeserializer(RegistryClient("http://localhost:1"), is_key=False)
    parsed = decoder.parse(Schema('"double"'))
    shown = [decoder.deserialize(struct.pack("<d", each), WHOLE, parsed) for each in (1.5, math.nan, -math.inf)]
    assert shown == [1.5, "NaN", "-Infinity"]


@pytest.mark.parametrize("namespace", ["", "shop"])
def test_the_branch_of_a_union_is_the_one_that_was_written(namespace):
    prefix = f"{namespace}." if namespace else ""
    field = {"name": "x", "type": "int"}
    union = [{"type": "record", "name": prefix + name, "fields": [field]} for name in ("A", "B")]
    decoder = AvroJsonDeserializer(RegistryClient("http://localhost:1"), is_key=False)
    schema = {"type": "record", "name": "R", "fields": [{"name": "u", "type": ["null", *union]}]}
    parsed = decoder.parse(Schema(json.dumps(schema)))
    assert decoder.deserialize(b"\x04\x0a", WHOLE, parsed) == {"u": {f"{prefix}B": {"x": 5}}}


def test_the_uri_of_an_instance_leads_to_the_instance(client, consumers):
    name = "a/b c"
    reply = client.post("/consumers/g%2Fh/", json={"name": name, "format": "json"})
    uri = reply.json()["base_uri"]
    try:
        assert uri.endswith("/consumers/g%2Fh/instances/a%2Fb%20c")
        assert client.get(f"{uri}/subscription").json() == {"topics": []}
    finally:
        consumers.close()
