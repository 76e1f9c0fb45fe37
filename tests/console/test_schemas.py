"""Content with a schema of a registry is shown as JSON, or with the reason why it cannot be."""

from __future__ import annotations

import json

import pytest

from kafkapy.client import Producer
from kafkapy.client.schema import AvroSerializer, RegistryClient, RegistryFailure
from kafkapy.console.decoders import decode, preview
from kafkapy.console.schema_decoder import PAUSE_S, SchemaDecoder, SchemaUnknown
from tests.console_process import ConsoleProcess
from tests.http_process import RegistryProcess

SCHEMA = json.dumps(
    {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "to", "type": "string"}]}
)
ORDER = {"id": 7, "to": "<b>Müller</b>"}


@pytest.fixture(scope="module")
def registry_url(broker, tmp_path_factory):
    with RegistryProcess(tmp_path_factory.mktemp("registry"), broker.bootstrap) as running:
        yield f"http://localhost:{running.port}"


@pytest.fixture(scope="module")
def encoded(registry_url):
    registry = RegistryClient(registry_url)
    data = AvroSerializer(registry, SCHEMA)("orders-avro", ORDER)
    registry.close()
    return data


def test_the_pages_show_avro_with_its_schema(broker, registry_url, encoded, tmp_path):
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for value in (encoded, b"\0\0\0\0\x7f content of an unknown schema", encoded[:7]):
            producer.send("orders-avro", value, key=encoded).result()
    arguments = ("--bootstrap-server", broker.bootstrap, "--name", "test", "--schema-registry", registry_url)
    with ConsoleProcess(tmp_path, *arguments) as console:
        visitor = console.visitor()
        listed = visitor.get("/c/test/topics/orders-avro?from=oldest")
        assert "{&#34;id&#34;: 7, &#34;to&#34;: &#34;&lt;b&gt;Müller&lt;/b&gt;&#34;}" in listed.text
        assert "<b>" not in listed.text
        assert "All records were read." in listed.plain
        shown = visitor.get("/c/test/topics/orders-avro/records/0/0").plain
        assert '"to": "<b>Müller</b>"' in shown
        assert "schema" in shown
        unknown = visitor.get("/c/test/topics/orders-avro/records/0/1").plain
        assert "schema: the schema registry has refused the request" in unknown
        cut = visitor.get("/c/test/topics/orders-avro/records/0/2").plain
        assert "the data do not fit their Avro schema" in cut


def test_a_decoder_without_a_registry_says_so():
    decoded = decode(b"text", "t", "schema")
    assert (decoded.text, decoded.decoder) == ("text", "text")
    assert decoded.failure == "schema: the console knows no schema registry of this cluster; --schema-registry names it"


def test_content_without_the_number_of_a_schema_is_shown_by_other_decoders(registry_url, encoded):
    schemas = SchemaDecoder(registry_url)
    assert decode(b'{"a": 1}', "t", "auto", None, schemas).decoder == "json"
    assert decode(b"\0\1", "t", "auto", None, schemas).decoder == "text"
    assert preview(encoded, "t", "auto", None, 10, schemas).text == '{"id": 7,…'
    assert "does not begin with the number of a schema" in decode(b"text", "t", "schema", None, schemas).failure


def test_a_registry_that_cannot_be_reached_is_asked_again_after_a_pause():
    now_s, asked = [0.0], []

    class Gone:
        def schema(self, number):
            asked.append(number)
            raise RegistryFailure("no route")

    schemas = SchemaDecoder("http://localhost:1", lambda: now_s[0])
    schemas._registry = Gone()
    for now_s[0] in (0.0, 1.0, PAUSE_S - 0.1, PAUSE_S):
        with pytest.raises(SchemaUnknown, match="the schema registry cannot be reached: no route"):
            schemas.decode(b"\0\0\0\0\1x", "t")
    assert asked == [1, 1]


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("localhost:8081", "URL or NAME=URL is expected"),
        ("other=http://localhost:8081", "there is no cluster other"),
    ],
)
def test_a_registry_of_no_cluster_is_refused(tmp_path, word, reason):
    process = ConsoleProcess(tmp_path, "--bootstrap-server", "localhost:1", "--schema-registry", word)
    with pytest.raises(AssertionError, match=reason):
        process.start()
