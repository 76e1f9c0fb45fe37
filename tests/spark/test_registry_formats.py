"""Values that name their schema in a registry: as the text of jobs, and as columns."""

from __future__ import annotations

import datetime
import json
from argparse import Namespace

import pytest

from kafkapy.client.schema import AvroSerializer, JsonSerializer, ProtobufSerializer, RegistryClient
from kafkapy.spark import registry_columns
from kafkapy_jobs.arguments import JobParser, RegistryFormat, add_stream
from kafkapy_jobs.preflight import require_registry
from kafkapy_jobs.values import member, with_text
from tests.http_process import RegistryProcess
from tests.spark.topic_records import records, values

AVRO = json.dumps({
    "type": "record", "name": "Search", "fields": [
        {"name": "term", "type": "string"},
        {"name": "raw", "type": "bytes"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    ],
})  # fmt: skip
JSON = json.dumps({"type": "object", "properties": {"term": {"type": "string"}}, "required": ["term"]})


@pytest.fixture(scope="module")
def registry(spark_bootstrap, tmp_path_factory):
    with RegistryProcess(tmp_path_factory.mktemp("registry"), spark_bootstrap) as process:
        yield process.url


def serialized(registry):
    """Returns a good value of each format."""
    from google.protobuf.wrappers_pb2 import StringValue

    client = RegistryClient(registry)
    avro = {"term": "高考", "raw": b"\xff", "day": datetime.date(2017, 5, 1)}
    return {
        "avro": AvroSerializer(client, AVRO)("formats-avro", avro),
        "json-schema": JsonSerializer(client, JSON)("formats-json", {"term": "高考"}),
        "protobuf": ProtobufSerializer(client, StringValue)("formats-protobuf", StringValue(value="高考")),
    }


def assert_text_and_reasons(spark, registry, form, value):
    """Asserts the text of a good value, and that each bad one has a reason."""
    bad = [value[:5], b"\1" + value[1:], b"", b"plain", b"\0\0\0\x7f\xff" + value[5:], None]
    rows = with_text(records(spark, [value, *bad]), RegistryFormat(form, registry)).orderBy("offset").collect()
    assert rows[0]["reason"] is None and "高考" in rows[0]["text"], form
    reasons = values(rows[1:], "reason")
    # An empty Protobuf message has no bytes after its prefix.
    assert all(reasons[1:]), (form, reasons)
    assert "the registry does not have the schema" in reasons[4] and reasons[5] == "null value"


def test_values_become_text_with_a_reason_for_bad_ones(spark, registry):
    """Tests one format; tests/full/test_spark_streams_full.py tests the others."""
    value = serialized(registry)["avro"]
    assert_text_and_reasons(spark, registry, "avro", value)
    rows = with_text(records(spark, [value]), RegistryFormat("avro", registry))
    found = rows.select(*(member("avro", name).alias(name) for name in ("term", "raw", "day"))).first()
    assert tuple(found) == ("高考", "/w==", "2017-05-01")


def test_columns_in_one_call(spark, registry):
    rows = records(spark, [serialized(registry)["avro"], b"plain"])
    found = registry_columns(rows, "term string, day date", registry, "avro").orderBy("offset").collect()
    assert values(found, "term", "day") == [("高考", datetime.date(2017, 5, 1)), (None, None)]
    assert found[0]["error"] is None and found[1]["error"]


def test_the_registry_is_asked_before_a_session_starts(registry, capsys):
    require_registry(Namespace(value_format=RegistryFormat("avro", registry)))
    require_registry(Namespace(value_format="json"))
    with pytest.raises(SystemExit):
        require_registry(Namespace(value_format=RegistryFormat("avro", "http://127.0.0.1:1")))
    error = capsys.readouterr().err
    assert error.startswith("--schema-registry http://127.0.0.1:1: ") and error.count("\n") == 1


def test_the_options_of_a_registry(capsys):
    parser = add_stream(JobParser("A job."), "t")
    with pytest.raises(SystemExit):
        parser.parse_args(["--value-format", "avro"])
    assert "--value-format avro needs --schema-registry" in capsys.readouterr().err
    found = parser.parse_args(["--value-format", "avro", "--schema-registry", "http://h:1"]).value_format
    assert found == "avro" and found.url == "http://h:1"
