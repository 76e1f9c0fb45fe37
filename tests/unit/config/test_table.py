"""The configuration table against the facts read from Apache Kafka releases."""

import json
from pathlib import Path

import pytest

from kafkapy.config.client_table import ADMIN_ROWS, CONSUMER_ROWS, PRODUCER_ROWS
from kafkapy.config.row import CLUSTER_WIDE, PER_BROKER, REQUIRED
from kafkapy.config.startup_rules import REMOVED_KEYS
from kafkapy.config.table import BROKER_ROWS, TOPIC_ROWS, TOPIC_SYNONYMS, broker_synonyms
from kafkapy.config.value import default_value

FACTS = json.loads((Path(__file__).parents[2] / "data" / "kafka_configs.json").read_text())
TABLES = {
    "broker": BROKER_ROWS,
    "topic": TOPIC_ROWS,
    "producer": PRODUCER_ROWS,
    "consumer": CONSUMER_ROWS,
    "admin": ADMIN_ROWS,
}
CASES = [(kind, name) for kind in TABLES for name, fact in FACTS[kind].items() if "until" not in fact]


@pytest.mark.parametrize("kind", TABLES)
def test_the_table_has_exactly_kafkas_keys(kind):
    assert set(TABLES[kind]) == {name for each, name in CASES if each == kind}


def test_removed_keys_are_those_of_39_only():
    removed = {name for name, fact in FACTS["broker"].items() if "until" in fact}
    assert {name for name in removed if not name.startswith("zookeeper.")} == REMOVED_KEYS


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_each_row_agrees_with_kafka(kind, name):
    fact, row = FACTS[kind][name], TABLES[kind][name]
    assert row.type.name.lower() == fact["type"]
    assert row.importance == fact["importance"]
    assert (row.default is REQUIRED) == fact.get("required", False)
    if row.default is not REQUIRED:
        assert row.default == fact["default"]
        assert type(row.default) is type(fact["default"])
    assert ("" if row.validator is None else str(row.validator)) == fact.get("valid", "")


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_default_is_valid_and_documented(kind, name):
    row = TABLES[kind][name]
    value = default_value(row)
    if row.validator is not None and value is not None:
        row.validator(name, value)
    assert row.documentation.endswith(".")
    assert len(row.documentation) > 10


def test_topic_synonyms_are_rows_of_the_same_type_of_value():
    for name, chained in TOPIC_SYNONYMS.items():
        assert name in TOPIC_ROWS
        for key, factor in chained:
            numeric = factor != 1
            assert numeric or BROKER_ROWS[key].type == TOPIC_ROWS[name].type


def test_dynamic_modes_of_some_keys():
    assert BROKER_ROWS["log.segment.bytes"].mode is CLUSTER_WIDE
    assert BROKER_ROWS["listeners"].mode is PER_BROKER
    dynamic = [name for name, row in BROKER_ROWS.items() if row.mode is not row.mode.READ_ONLY]
    assert len(dynamic) == 99


def test_synonyms_of_broker_keys():
    assert broker_synonyms("log.retention.hours") == (
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    )
    assert broker_synonyms("log.segment.bytes") == ("log.segment.bytes",)
    assert broker_synonyms("listener.name.x.max.connections") == ("listener.name.x.max.connections", "max.connections")
