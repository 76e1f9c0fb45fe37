"""Version 3 of the REST API: clusters, topics, configurations, records."""

from __future__ import annotations

import base64
import json

import pytest

from kafkapy.client import Consumer
from tests.http_process import RestProcess


@pytest.fixture(scope="module")
def rest(broker, tmp_path_factory):
    with RestProcess(tmp_path_factory.mktemp("rest"), broker.bootstrap) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(rest):
    status, answer = rest.request("GET", "/v3/clusters")
    assert (status, answer["kind"]) == (200, "KafkaClusterList")
    return "/v3/clusters/" + answer["data"][0]["cluster_id"]


def create(rest, cluster, name, **more):
    return rest.request("POST", f"{cluster}/topics", {"topic_name": name, "replication_factor": 1, **more})


def test_the_cluster_and_its_brokers_are_described(rest, cluster):
    status, answer = rest.request("GET", cluster)
    assert (status, answer["kind"]) == (200, "KafkaCluster")
    assert answer["metadata"]["self"] == rest.url + cluster
    assert rest.request("GET", f"{cluster}/brokers")[1]["data"][0]["broker_id"] == 1
    assert rest.request("GET", f"{cluster}/brokers/1")[1]["port"]
    assert rest.request("GET", "/v3/clusters/other/topics")[1]["error_code"] == 404


def test_a_topic_is_created_described_and_deleted(rest, cluster):
    configs = [{"name": "cleanup.policy", "value": "compact"}]
    status, answer = create(rest, cluster, "made", partitions_count=3, configs=configs)
    assert status == 201
    assert (answer["kind"], answer["partitions_count"], answer["replication_factor"]) == ("KafkaTopic", 3, 1)
    assert answer["metadata"]["resource_name"].endswith("/topic=made")
    assert create(rest, cluster, "made")[1]["error_code"] == 40002
    assert "made" in [each["topic_name"] for each in rest.request("GET", f"{cluster}/topics")[1]["data"]]
    assert len(rest.request("GET", f"{cluster}/topics/made/partitions")[1]["data"]) == 3
    assert rest.request("GET", f"{cluster}/topics/made/partitions/2")[1]["partition_id"] == 2
    assert rest.request("DELETE", f"{cluster}/topics/made") == (204, None)
    assert rest.request("GET", f"{cluster}/topics/made")[1]["error_code"] == 40403
    assert create(rest, cluster, "bad/name")[1]["error_code"] == 40002
    assert rest.request("POST", f"{cluster}/topics", {})[1]["error_code"] == 422


def test_configurations_are_changed(rest, cluster):
    create(rest, cluster, "configured", partitions_count=1)
    path = f"{cluster}/topics/configured/configs"
    assert rest.request("PUT", f"{path}/retention.ms", {"value": "1000"}) == (204, None)
    found = rest.request("GET", f"{path}/retention.ms")[1]
    assert (found["value"], found["is_default"], found["source"]) == ("1000", False, "DYNAMIC_TOPIC_CONFIG")
    changes = {"data": [{"name": "retention.ms", "operation": "DELETE"}, {"name": "segment.bytes", "value": "2000000"}]}
    assert rest.request("POST", f"{path}:alter", changes) == (204, None)
    values = {each["name"]: each for each in rest.request("GET", path)[1]["data"]}
    assert values["segment.bytes"]["value"] == "2000000"
    assert values["retention.ms"]["source"] == "DEFAULT_CONFIG"
    assert rest.request("DELETE", f"{path}/segment.bytes") == (204, None)
    assert rest.request("GET", f"{path}/colour")[1]["error_code"] == 404


def test_records_are_produced(broker, rest, cluster):
    create(rest, cluster, "records", partitions_count=2)
    record = {
        "partition_id": 1,
        "headers": [{"name": "h", "value": base64.b64encode(b"x").decode()}],
        "key": {"type": "STRING", "data": "k"},
        "value": {"type": "JSON", "data": {"a": 1}},
        "timestamp": "2026-01-02T03:04:05.678Z",
    }
    status, answer = rest.request("POST", f"{cluster}/topics/records/records", record)
    assert status == 200
    assert (answer["error_code"], answer["partition_id"], answer["offset"]) == (200, 1, 0)
    assert answer["timestamp"] == "2026-01-02T03:04:05.678Z"
    assert answer["value"] == {"type": "JSON", "size": 7}
    with Consumer(bootstrap_servers=broker.bootstrap) as consumer:
        consumer.assign([("records", 1)])
        consumer.seek_to_beginning()
        found = next(iter(consumer))
    assert (found.key, found.value, found.timestamp) == (b"k", b'{"a":1}', 1767323045678)
    assert list(found.headers) == [("h", b"x")]


def test_a_body_of_several_records_has_a_line_for_each(rest, cluster):
    create(rest, cluster, "several", partitions_count=1)
    records = [
        {"value": {"type": "BINARY", "data": "AA=="}},
        {"partition_id": 7, "value": {"type": "BINARY", "data": "AA=="}},
        {"value": {"type": "STRING", "data": "last"}},
    ]
    body = "\n".join(map(json.dumps, [*records, None])) + "{"
    status, content = rest.exchange("POST", f"{cluster}/topics/several/records", body.encode())
    lines = [json.loads(line) for line in content.splitlines()]
    assert (status, [each["error_code"] for each in lines]) == (200, [200, 404, 200, 400, 400])
    assert [each.get("offset") for each in lines] == [0, None, 1, None, None]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "no record"),
        (b"{", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b"[]", "JSON object"),
        (b"null", "JSON object"),
        ({"value": {"type": "BINARY", "data": "?"}}, "not base64"),
        ({"value": {"type": "XML", "data": "x"}}, "accepted are BINARY"),
        ({"value": {"type": "AVRO", "data": 1, "schema": '"int"'}}, "need a registry"),
        ({"value": {"type": "STRING", "data": "x"}, "timestamp": "today"}, "RFC 3339"),
        ({"value": {"type": "STRING", "data": "x"}, "headers": [{"value": "x"}]}, "a header has"),
    ],
)
def test_a_bad_record_is_refused_with_the_reason(rest, cluster, body, reason):
    create(rest, cluster, "bad", partitions_count=1)
    status, answer = rest.request("POST", f"{cluster}/topics/bad/records", body)
    assert status == answer["error_code"] >= 400
    assert reason in answer["message"]
