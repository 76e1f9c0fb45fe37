"""The tool end-to-end-latency: the configuration of its clients."""

from __future__ import annotations

from kafkapy.tools.end_to_end_latency import consumer_properties, producer_properties


def test_records_are_bytes_whatever_the_file_of_the_user_sets():
    package = "org.apache.kafka.common.serialization"
    of_user = {"value.deserializer": f"{package}.StringDeserializer", "value.serializer": f"{package}.StringSerializer"}
    consuming = consumer_properties({**of_user, "client.id": "mine", "enable.auto.commit": "true"})
    assert consuming["key.deserializer"] == consuming["value.deserializer"] == "bytes"
    assert (consuming["client.id"], consuming["enable.auto.commit"]) == ("mine", "false")
    producing = producer_properties(of_user, "all")
    assert producing["key.serializer"] == producing["value.serializer"] == "bytes"
    assert producing["acks"] == "all"
