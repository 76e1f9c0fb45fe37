"""The tool verifiable-producer: its configuration."""

from __future__ import annotations

from pathlib import Path

from kafkapy.tools.tool import parse
from kafkapy.tools.verifiable_producer import TOOL, producer_properties


def test_a_file_takes_precedence_over_flags_except_for_the_serializers(tmp_path: Path):
    path = tmp_path / "producer.properties"
    path.write_text("acks=1\nvalue.serializer=org.apache.kafka.common.serialization.ByteArraySerializer\n")
    words = ["--topic", "t", "--bootstrap-server", "localhost:9092", "--acks", "-1", "--command-config", str(path)]
    properties = producer_properties(parse(TOOL, words)[1])
    assert (properties["acks"], properties["retries"]) == ("1", "0")
    assert properties["key.serializer"] == properties["value.serializer"] == "text"
