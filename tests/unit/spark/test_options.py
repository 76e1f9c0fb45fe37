"""Options of the Spark source and sink: names, values, contradictions."""

from __future__ import annotations

import pytest

from kafkapy.errors import ConfigError
from kafkapy.spark.options import milliseconds, read_options, write_options
from kafkapy.spark.start_and_end import SpecKind
from kafkapy.types import TopicPartition

LEAST = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "a"}


def read(is_streaming=False, **more):
    return read_options({**LEAST, **more}, is_streaming=is_streaming)


def refused(options, *, is_streaming=False):
    with pytest.raises(ConfigError) as error:
        read_options(options, is_streaming=is_streaming)
    return str(error.value)


def test_the_defaults_are_those_of_sparks_source():
    options = read()
    assert options.selection.topics == ("a",)
    assert options.starting.kind is SpecKind.EARLIEST and options.ending.kind is SpecKind.LATEST
    assert options.fail_on_data_loss and not options.include_headers
    assert options.max_trigger_delay_ms == 15 * 60_000
    assert (options.poll_timeout_ms, options.retries, options.retry_interval_ms) == (120_000, 3, 10)
    assert options.min_partitions is options.max_records_per_partition is None and not options.push_filters
    assert options.max_offsets_per_trigger is options.min_offsets_per_trigger is None
    assert options.properties == {
        "bootstrap.servers": "localhost:9092",
        "fetch.max.bytes": "8388608",
        "max.partition.fetch.bytes": "8388608",
    }
    assert read(**{"kafka.fetch.max.bytes": "5"}).properties["fetch.max.bytes"] == "5"
    assert read(is_streaming=True).starting.kind is SpecKind.LATEST


def test_names_are_case_insensitive_and_clients_keys_are_passed_on():
    given = {
        "KAFKA.BOOTSTRAP.SERVERS": "h:1",
        "SUBSCRIBE": " a , b,a",
        "failondataloss": "FALSE",
        "kafka.client.rack": "r",
    }
    options = read_options(given, is_streaming=False)
    assert options.selection.topics == ("a", "b") and not options.fail_on_data_loss
    assert options.properties["bootstrap.servers"] == "h:1" and options.properties["client.rack"] == "r"


@pytest.mark.parametrize(
    ("written", "nearest"),
    [
        ("startingOffset", "startingOffsets"),
        ("subscribePatern", "subscribePattern"),
        ("maxOffsetPerTrigger", "maxOffsetsPerTrigger"),
        ("kafka.isolation.levl", "kafka.isolation.level"),
        ("bootstrap.servers", "kafka.bootstrap.servers"),
    ],
)
def test_a_misspelt_option_is_named_with_the_nearest(written, nearest):
    message = refused({**LEAST, written: "x"})
    assert written in message and f"did you mean {nearest!r}?" in message


def test_options_of_spark_itself_are_ignored():
    read(checkpointLocation="/somewhere", queryName="q")


def test_exactly_one_option_chooses_topics():
    assert "One of the following options" in refused({"kafka.bootstrap.servers": "h:1"})
    assert "Only one of the following options" in refused({**LEAST, "assign": '{"a": [0]}'})


def test_partitions_and_patterns_choose_topics_too():
    servers = {"kafka.bootstrap.servers": "h:1"}
    assigned = read_options({**servers, "assign": '{"a": [0, 2], "b": [1]}'}, is_streaming=False)
    assert assigned.selection.partitions == (TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1))
    assert read_options({**servers, "subscribePattern": "a.*"}, is_streaming=False).selection.pattern == "a.*"
    assert "not a regular expression" in refused({**servers, "subscribePattern": "("})
    assert "expected JSON" in refused({**servers, "assign": "a"})


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"startingOffsets": "latest"}, "starting offset can't be latest"),
        ({"startingOffsets": '{"a": {"0": -1}}'}, "starting offset can't be latest"),
        ({"endingOffsets": "earliest"}, "ending offset can't be earliest"),
        ({"startingOffsets": "soon"}, "startingOffsets"),
        ({"startingOffsets": '{"a": {"0": -3}}'}, "Option startingOffsets: an offset is below -2"),
        ({"endingOffsets": '{"a": {"0": -3}}'}, "Option endingOffsets: an offset is below -2"),
        ({"startingTimestamp": "-5"}, "startingTimestamp"),
        ({"failOnDataLoss": "perhaps"}, "failOnDataLoss"),
        ({"minPartitions": "0"}, "minPartitions"),
        ({"maxOffsetsPerTrigger": "1.5"}, "maxOffsetsPerTrigger"),
        ({"minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "5"}, "higher than the maxOffsetsPerTrigger"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay"),
        ({"kafka.auto.offset.reset": "earliest"}, "startingOffsets sets the start"),
        ({"kafka.value.deserializer": "x"}, "value.deserializer"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers"),
        ({"kafka.isolation.level": "read_comitted"}, "Invalid value read_comitted for configuration isolation.level"),
        ({"kafka.ssl.provider": "p"}, "'ssl.provider' is not supported"),
        ({"kafka.sasl.kerberos.kinit.cmd": "k"}, "'sasl.kerberos.kinit.cmd' is not supported"),
    ],
)
def test_invalid_and_contradictory_options_are_refused(more, words):
    assert words in refused({**LEAST, **more})


def test_ends_are_refused_for_streams():
    assert "not valid in streaming" in refused({**LEAST, "endingOffsets": "latest"}, is_streaming=True)
    assert "not valid in streaming" in refused({**LEAST, "endingTimestamp": "5"}, is_streaming=True)


def test_timestamps_take_precedence_over_offsets():
    options = read(startingOffsets="earliest", startingOffsetsByTimestamp='{"a": {"0": 7}}')
    assert options.starting.kind is SpecKind.TIMESTAMPS and options.starting.numbers == {TopicPartition("a", 0): 7}
    options = read(startingTimestamp="9", startingOffsetsByTimestamp='{"a": {"0": 7}}')
    assert (
        options.starting.kind is SpecKind.TIMESTAMP and options.starting.timestamp == 9 and options.starting.is_strict
    )
    assert not read(startingTimestamp="9", startingOffsetsByTimestampStrategy="latest").starting.is_strict


@pytest.mark.parametrize(
    ("text", "expected"), [("100", 100), ("100ms", 100), ("30s", 30_000), ("15m", 900_000), ("2h", 7_200_000)]
)
def test_times_as_spark_writes_them(text, expected):
    assert milliseconds("maxTriggerDelay", text) == expected


def test_a_writer_takes_a_producers_keys_only():
    options = write_options({**LEAST, "topic": "t", "kafka.linger.ms": "5", "kafka.fetch.min.bytes": "1"})
    assert options.topic == "t"
    assert options.properties == {"bootstrap.servers": "localhost:9092", "linger.ms": "5", "batch.size": "131072"}
    for key, value, words in [
        ("value.serializer", "x", r"value\.serializer"),
        ("acks", "2", "for configuration acks"),
        ("security.protocol", "TLS", "for configuration security.protocol"),
        ("sasl.kerberos.kinit.cmd", "k", "no effect in kafkapy's client"),
    ]:
        with pytest.raises(ConfigError, match=words):
            write_options({**LEAST, f"kafka.{key}": value})
    read(**{"kafka.security.protocol": "sasl_ssl", "kafka.ssl.keystore.location": "/k"})


def test_numbers_and_flags_have_bounds():
    options = read(
        minPartitions="1",
        maxOffsetsPerTrigger="7",
        minOffsetsPerTrigger="7",
        includeHeaders=" True ",
        pushFilters="TRUE",
    )
    assert (options.min_partitions, options.max_offsets_per_trigger, options.min_offsets_per_trigger) == (1, 7, 7)
    assert options.include_headers and options.push_filters
    assert read(**{"fetchOffset.numRetries": "0"}).retries == 0
    assert "at least 1" in refused({**LEAST, "maxRecordsPerPartition": "0"})
    assert "at least 0" in refused({**LEAST, "fetchOffset.numRetries": "-1"})
    assert "subscribe: no topics" in refused({"kafka.bootstrap.servers": "h:1", "subscribe": " , "})
    assert "the pattern is empty" in refused({"kafka.bootstrap.servers": "h:1", "subscribePattern": " "})


def test_secrets_of_the_client_are_hidden():
    options = read(**{"kafka.sasl.jaas.config": "the secret", "kafka.sasl.mechanism": "PLAIN"})
    assert options.properties["sasl.jaas.config"] == "the secret"
    assert "the secret" not in repr(options) and "PLAIN" in repr(options)


def test_the_size_of_batches_can_be_chosen_and_fits_into_the_memory():
    """A larger default than the client's would leave no room for a record if the memory is small."""
    assert write_options({**LEAST, "kafka.batch.size": "4096"}).properties["batch.size"] == "4096"
    assert "batch.size" not in write_options({**LEAST, "kafka.buffer.memory": "65536"}).properties
