"""Version 2 of the REST API: topics, produce requests in every form, consumer instances, errors."""

from __future__ import annotations

import base64
import itertools
import json

import pytest

from kafkapy.client import Consumer
from tests.http_process import RestProcess

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
    }
)
_numbers = itertools.count()


@pytest.fixture(scope="module")
def rest(broker, registry, tmp_path_factory):
    arguments = ("--property", f"schema.registry.url={registry.url}", "--property", "consumer.instances.max=5")
    with RestProcess(tmp_path_factory.mktemp("rest"), broker.bootstrap, *arguments) as running:
        yield running


@pytest.fixture
def topic(rest):
    """Returns a new topic with two partitions."""
    name = f"rest-{next(_numbers)}"
    cluster = rest.request("GET", "/v3/clusters")[1]["data"][0]["cluster_id"]
    body = {"topic_name": name, "partitions_count": 2, "replication_factor": 1}
    assert rest.request("POST", f"/v3/clusters/{cluster}/topics", body)[0] == 201
    return name


def produce(rest, topic, form, *records, **more):
    headers = {"content-type": f"application/vnd.kafka.{form}.v2+json"}
    return rest.request("POST", f"/topics/{topic}", {"records": list(records), **more}, headers)


@pytest.fixture
def consume(rest):
    """Returns a function that makes an instance, assigns a partition from its beginning, and returns its path."""
    made = []

    def make(topic, form="json", **settings):
        group = f"group-{next(_numbers)}"
        body = {"format": form, "auto.offset.reset": "earliest", "auto.commit.enable": "false", **settings}
        status, answer = rest.request("POST", f"/consumers/{group}", body)
        assert status == 200, answer
        path = f"/consumers/{group}/instances/{answer['instance_id']}"
        assert answer["base_uri"] == rest.url + path
        made.append(path)
        partitions = {"partitions": [{"topic": topic, "partition": 0}]}
        assert rest.request("POST", f"{path}/assignments", partitions) == (204, None)
        return path

    yield make
    for path in made:
        rest.request("DELETE", path)


def read(rest, path, count, form="json"):
    found = []
    for _ in range(20):
        accept = {"accept": f"application/vnd.kafka.{form}.v2+json"}
        status, answer = rest.request("GET", f"{path}/records?timeout=1000", headers=accept)
        assert status == 200, answer
        found += answer
        if len(found) >= count:
            return found
    raise AssertionError(found)


def test_topics_and_partitions_are_described(rest, topic):
    assert topic in rest.request("GET", "/topics")[1]
    status, answer = rest.request("GET", f"/topics/{topic}")
    partition = {"partition": 0, "leader": 1, "replicas": [{"broker": 1, "leader": True, "in_sync": True}]}
    assert (status, answer["name"]) == (200, topic)
    assert answer["configs"]["cleanup.policy"] == "delete"
    assert answer["partitions"][0] == partition
    assert rest.request("GET", f"/topics/{topic}/partitions/0") == (200, partition)
    assert len(rest.request("GET", f"/topics/{topic}/partitions")[1]) == 2
    assert rest.request("GET", f"/topics/{topic}/partitions/0/offsets")[1] == {"beginning_offset": 0, "end_offset": 0}
    assert rest.request("GET", "/brokers") == (200, {"brokers": [1]})


def test_json_records_are_produced_and_consumed(rest, topic, consume):
    status, answer = produce(
        rest, topic, "json", {"key": "k", "value": {"a": [1, None]}, "partition": 0}, {"value": "ü", "partition": 0}
    )
    assert status == 200
    assert answer == {
        "offsets": [
            {"partition": 0, "offset": 0, "error_code": None, "error": None},
            {"partition": 0, "offset": 1, "error_code": None, "error": None},
        ],
        "key_schema_id": None,
        "value_schema_id": None,
    }
    assert read(rest, consume(topic), 2) == [
        {"topic": topic, "key": "k", "value": {"a": [1, None]}, "partition": 0, "offset": 0},
        {"topic": topic, "key": None, "value": "ü", "partition": 0, "offset": 1},
    ]


def test_binary_records_are_base64(rest, topic, consume):
    record = {"key": base64.b64encode(b"\0k").decode(), "value": base64.b64encode(b"\xff").decode()}
    headers = {"content-type": "application/vnd.kafka.binary.v2+json"}
    assert rest.request("POST", f"/topics/{topic}/partitions/0", {"records": [record]}, headers)[0] == 200
    found = read(rest, consume(topic, "binary"), 1, "binary")[0]
    assert (found["key"], found["value"]) == (record["key"], record["value"])


def test_avro_records_use_the_registry(broker, rest, registry, topic, consume):
    value = {"id": 7, "note": {"string": "two"}}
    status, answer = produce(rest, topic, "avro", {"value": value, "partition": 0}, value_schema=SCHEMA)
    assert status == 200, answer
    assert registry.request("GET", f"/schemas/ids/{answer['value_schema_id']}")[0] == 200
    again = produce(rest, topic, "avro", {"value": value, "partition": 0}, value_schema_id=answer["value_schema_id"])
    assert again[1]["offsets"][0]["offset"] == 1
    assert [each["value"] for each in read(rest, consume(topic, "avro"), 2, "avro")] == [value, value]
    assert produce(rest, topic, "avro", {"value": {"id": "x"}}, value_schema=SCHEMA)[1]["error_code"] == 42203
    assert produce(rest, topic, "avro", {"value": value})[1]["error_code"] == 42202
    assert produce(rest, topic, "avro", {"value": value}, value_schema='{"type": "what"}')[1]["error_code"] == 42205


def test_json_records_with_a_schema_are_validated(rest, topic, consume):
    schema = json.dumps({"type": "object", "properties": {"id": {"type": "integer"}}})
    assert produce(rest, topic, "jsonschema", {"value": {"id": 1}, "partition": 0}, value_schema=schema)[0] == 200
    assert produce(rest, topic, "jsonschema", {"value": {"id": "1"}}, value_schema=schema)[1]["error_code"] == 42203
    assert read(rest, consume(topic, "jsonschema"), 1, "jsonschema")[0]["value"] == {"id": 1}


def test_only_received_records_are_committed(broker, rest, topic, consume):
    produce(rest, topic, "json", *({"value": number, "partition": 0} for number in range(5)))
    path = consume(topic)
    status, first = rest.request("GET", f"{path}/records?timeout=5000&max_bytes=1")
    assert (status, [each["value"] for each in first]) == (200, [0])
    assert rest.request("POST", f"{path}/offsets") == (204, None)
    partitions = {"partitions": [{"topic": topic, "partition": 0}]}
    committed = {"offsets": [{"topic": topic, "partition": 0, "offset": 1, "metadata": ""}]}
    assert rest.request("GET", f"{path}/offsets", partitions) == (200, committed)
    body = {"offsets": [{"topic": topic, "partition": 0, "offset": 3}]}
    assert rest.request("POST", f"{path}/offsets", body) == (204, None)
    with Consumer(bootstrap_servers=broker.bootstrap, group_id=path.split("/")[2]) as consumer:
        assert consumer.committed([(topic, 0)])[topic, 0].offset == 4, "the request names the last processed record"


def test_positions_are_set(rest, topic, consume):
    produce(rest, topic, "json", *({"value": number, "partition": 0} for number in range(3)))
    path = consume(topic)
    assert len(read(rest, path, 3)) == 3
    body = {"offsets": [{"topic": topic, "partition": 0, "offset": 2}]}
    assert rest.request("POST", f"{path}/positions", body) == (204, None)
    assert [each["offset"] for each in read(rest, path, 1)] == [2]
    partitions = {"partitions": [{"topic": topic, "partition": 0}]}
    assert rest.request("POST", f"{path}/positions/beginning", partitions) == (204, None)
    assert [each["offset"] for each in read(rest, path, 3)] == [0, 1, 2]
    assert rest.request("POST", f"{path}/positions/end", partitions) == (204, None)
    assert rest.request("GET", f"{path}/records?timeout=100") == (200, [])
    assert rest.request("GET", f"{path}/assignments") == (200, partitions)


def test_the_positions_of_a_partition_that_is_not_assigned_are_refused(rest, topic, consume):
    path = consume(topic)
    offsets = {"offsets": [{"topic": topic, "partition": 7, "offset": 2}]}
    partitions = {"partitions": [{"topic": topic, "partition": 7}]}
    refusal = {"error_code": 40903, "message": f"No current assignment for partition {topic}-7"}
    assert rest.request("POST", f"{path}/positions", offsets) == (409, refusal)
    assert rest.request("POST", f"{path}/positions/beginning", partitions) == (409, refusal)
    assert rest.request("POST", f"{path}/positions/end", partitions) == (409, refusal)


def test_a_group_of_subscribers(rest, topic):
    produce(rest, topic, "json", {"value": 1, "partition": 0}, {"value": 2, "partition": 1})
    body = {"name": "one", "format": "json", "auto.offset.reset": "earliest"}
    assert rest.request("POST", "/consumers/subscribers", body)[0] == 200
    assert rest.request("POST", "/consumers/subscribers", body)[1]["error_code"] == 40902
    path = "/consumers/subscribers/instances/one"
    assert rest.request("POST", f"{path}/subscription", {"topic_pattern": f"{topic}|none.*"}) == (204, None)
    assert rest.request("GET", f"{path}/subscription") == (200, {"topics": [topic]})
    assert {each["value"] for each in read(rest, path, 2)} == {1, 2}
    wrong = {"partitions": [{"topic": topic, "partition": 0}]}
    assert rest.request("POST", f"{path}/assignments", wrong)[1]["error_code"] == 40903
    assert rest.request("DELETE", f"{path}/subscription") == (204, None)
    assert rest.request("DELETE", path) == (204, None)
    assert rest.request("DELETE", path)[1]["error_code"] == 40403


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/topics/none", None, 40401),
        ("POST", "/topics/none", {"records": [{"value": 1}]}, 40401),
        ("GET", "/topics/TOPIC/partitions/9", None, 40402),
        ("GET", "/topics/TOPIC/partitions/9/offsets", None, 40402),
        ("POST", "/topics/TOPIC/partitions/9", {"records": [{"value": 1}]}, 40402),
        ("POST", "/topics/TOPIC", {"records": []}, 422),
        ("POST", "/topics/TOPIC", {"records": [1]}, 422),
        ("POST", "/topics/TOPIC", {"records": [{"valeu": 1}]}, 422),
        ("POST", "/topics/TOPIC", b"{", 400),
        ("GET", "/consumers/none/instances/none/records", None, 40403),
        ("POST", "/consumers/bad", {"format": "xml"}, 42204),
        ("POST", "/consumers/bad", {"auto.offset.reset": "middle"}, 42204),
        ("POST", "/consumers/bad", {"colour": "red"}, 422),
        ("POST", "/consumers/bad", {"fetch.min.bytes": -10}, 42204),
        ("POST", "/consumers/bad", {"topic.metadata.refresh.interval.ms": "x"}, 42204),
        ("PUT", "/topics", None, 405),
    ],
)
def test_bad_requests_have_the_numbers_of_confluents_errors(rest, topic, method, path, body, code):
    status, answer = rest.request(method, path.replace("TOPIC", topic), body)
    assert (status, answer["error_code"]) == (int(str(code)[:3]), code)
    assert answer["message"]


def test_the_form_of_records_is_that_of_the_instance(rest, topic, consume):
    path = consume(topic, "binary")
    accept = {"accept": "application/vnd.kafka.json.v2+json"}
    assert rest.request("GET", f"{path}/records", headers=accept)[1]["error_code"] == 40601
    assert rest.request("GET", f"{path}/records", headers={"accept": "text/html"})[1]["error_code"] == 406
    headers = {"content-type": "application/vnd.kafka.protobuf.v2+json"}
    assert rest.request("POST", f"/topics/{topic}", {"records": [{"value": 1}]}, headers)[1]["error_code"] == 415


def test_a_slash_at_the_end_of_a_path_is_ignored(rest, topic):
    assert topic in rest.request("GET", "/topics/")[1]
    assert rest.request("GET", f"/topics/{topic}/")[1]["name"] == topic
    assert rest.request("GET", "/")[0] == 200


def test_an_instance_accepts_the_content_type_of_its_records(rest, topic):
    headers = {"content-type": "application/vnd.kafka.binary.v2+json"}
    settings = {"format": "binary", "topic.metadata.refresh.interval.ms": 100}
    status, made = rest.request("POST", "/consumers/typed", settings, headers)
    assert status == 200
    path = f"/consumers/typed/instances/{made['instance_id']}"
    assert rest.request("POST", f"{path}/subscription", {"topics": [topic]}, headers) == (204, None)
    assert rest.request("DELETE", path, headers=headers)[0] == 204


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"value_schema": "5"}, "invalid"),
        ({"value_schema": '{"type": "record", "name": "a", "fields": 5}'}, "invalid"),
        ({"value_schema": {"type": "int"}}, "must be a string"),
        ({"value_schema_id": [1]}, "must be a string"),
    ],
)
def test_a_bad_schema_is_refused_with_the_reason(rest, topic, schema, reason):
    headers = {"content-type": "application/vnd.kafka.avro.v2+json"}
    status, answer = rest.request("POST", f"/topics/{topic}", {**schema, "records": [{"value": 1}]}, headers)
    assert status == 422
    assert reason in answer["message"]


def test_the_id_of_a_schema_may_be_a_text(broker, rest, registry, topic):
    _, made = registry.request("POST", f"/subjects/{topic}-value/versions", {"schema": '"int"'})
    body = {"value_schema_id": str(made["id"]), "records": [{"value": 1}]}
    headers = {"content-type": "application/vnd.kafka.avro.v2+json"}
    status, answer = rest.request("POST", f"/topics/{topic}", body, headers)
    assert (status, answer["value_schema_id"]) == (200, made["id"])


def test_the_number_of_instances_is_limited(rest):
    made = [rest.request("POST", "/consumers/many", {"format": "json"}) for _ in range(6)]
    for status, answer in made:
        if status == 200:
            rest.request("DELETE", f"/consumers/many/instances/{answer['instance_id']}")
    assert [status for status, _ in made].count(200) == 5
    assert made[-1][1]["error_code"] == 50301
