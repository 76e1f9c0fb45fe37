"""SQL over a topic: the properties file, the seven columns, the schema, and several statements on one view."""

from __future__ import annotations

from argparse import Namespace

import pytest

from kafkapy_jobs.values import columns_of_schema
from sql_job import DEFAULTS, make_view, parse_properties, read_properties, seven_columns
from sql_statements import SCHEMA, STATEMENTS
from tests.spark.topic_records import records

NOTHING = ("",) * 7


def test_a_properties_file_is_laid_over_the_defaults(tmp_path, capsys):
    path = tmp_path / "job.properties"
    path.write_text("# comment\n! another\nappName = Mine\nsubscribe:words\nsparksql=select \\\n    `_1` from tmp\n\n")
    found = read_properties(str(path), Namespace())
    assert found == DEFAULTS | {"appName": "Mine", "subscribe": "words", "sparksql": "select `_1` from tmp"}
    assert read_properties(None, Namespace()) == DEFAULTS
    assert "no properties file was given" in capsys.readouterr().err
    assert (DEFAULTS["appName"], DEFAULTS["tmpTable"], DEFAULTS["subscribe"]) == ("Test7", "tmp", "test")


def test_keys_and_values_part_at_the_first_sign():
    assert parse_properties("a=b=c\nd e f\ng\n h : i\n") == {"a": "b=c", "d": "e f", "g": "", "h": "i"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'name':'caocao','age':'32','sex':'male'}", ("caocao", "32", "male", "", "", "", "")),
        ('{"a":1,"b":null,"c":{"d":2},"e":[1]}', ("1", "", '{"d":2}', "[1]", "", "", "")),
        ('{"a":"1","b":"2","c":"3","d":"4","e":"5","f":"6","g":"7"}', tuple("1234567")),
        ('{"a":"1","b":"2","c":"3","d":"4","e":"5","f":"6","g":"7","h":"8"}', NOTHING),
        ("{}", NOTHING),
        ("not json", NOTHING),
        ("[1]", NOTHING),
        (b"\xff", NOTHING),
        (None, NOTHING),
    ],
)
def test_members_become_seven_columns(spark, text, expected):
    assert tuple(seven_columns(records(spark, [text])).first()) == expected


def test_the_view_is_asked_by_the_statement_of_the_file(spark):
    rows = records(spark, ["{'name':'caocao','age':32}"])
    make_view(rows, DEFAULTS)
    assert tuple(spark.sql(DEFAULTS["sparksql"]).first()) == ("caocao", "32", "", "", "", "", "")
    make_view(rows, DEFAULTS | {"schema": "name string, age int", "tmpTable": "people"})
    assert tuple(spark.sql("select age, name from people").first()) == (32, "caocao")


def test_several_statements_ask_one_view(spark):
    rows = records(spark, ['{"a":"1","b":"2","c":"2018-01-08","d":[23.9,45]}', "{malformed"])
    columns_of_schema(rows, SCHEMA).createOrReplaceTempView("dyl_test")
    first, second = (sorted(map(tuple, spark.sql(each).collect()), key=str) for each in STATEMENTS)
    assert first == [("1", "2", "2018-01-08", ["23.9", "45"]), (None, None, None, None)]
    assert second == [("1", "2", "2018-01-08", ["23.9", "45"], "2"), (None, None, None, None, "2")]
