"""The error table against the facts read from Apache Kafka releases, and what the exceptions carry."""

import json
from pathlib import Path

import pytest

from kafkapy.errors import ApiError, Error, StorageError

FACTS = json.loads((Path(__file__).parents[1] / "data" / "kafka_errors.json").read_text())["errors"]


def test_table_is_kafkas():
    ours = [{"code": int(error), "name": error.name, "retriable": error.retriable} for error in Error]
    assert ours == sorted(FACTS, key=lambda row: row["code"])


def test_every_error_but_none_has_a_message():
    assert [error.name for error in Error if not error.message] == ["NONE"]


def test_members_are_plain_integers():
    assert Error.OFFSET_OUT_OF_RANGE == 1
    assert Error(87) is Error.INVALID_RECORD


@pytest.mark.parametrize("code", [-2, 134, 32767])
def test_unknown_code_is_unknown_server_error(code):
    assert Error.of(code) is Error.UNKNOWN_SERVER_ERROR


def test_api_error_takes_the_rows_message_unless_told_more():
    assert ApiError(Error.INVALID_RECORD).message == Error.INVALID_RECORD.message
    assert ApiError(Error.INVALID_RECORD, "x").message == "x"
    assert str(ApiError(Error.INVALID_RECORD, "x")) == "INVALID_RECORD: x"


def test_storage_error_names_its_directory():
    assert str(StorageError("/data", "write failed")) == "write failed (log directory /data)"
