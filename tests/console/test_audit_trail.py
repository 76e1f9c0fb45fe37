"""The page of the metadata log shows who has made a change, if the audit topic has this information."""

from __future__ import annotations

import json
import re
import time
from types import SimpleNamespace

import pytest

from kafkapy.console.audit_trail import AuditedChange, author_of, paired
from kafkapy.protocol.messages.metadata_records import PartitionChangeRecord, RemoveTopicRecord, TopicRecord
from tests.console.conftest import visitor
from tests.console.test_changes import apply, editor, made, review

__all__ = ["editor", "visitor"]


def entry(state: str, time: int, **more: object) -> bytes:
    fields = {"topic": "t", "user": "ann"}
    return json.dumps(
        {"id": "1", "time": time, "user": "ann", "change": "create-topic", "fields": fields, "state": state, **more}
    ).encode()


def test_the_two_records_of_a_change_are_paired_by_their_id():
    values = [
        entry("requested", 10),
        entry("requested", 11, id="2"),
        *(None, b"[]", b"{", b"[" * 50_000, b'{"id": 1, "time": "x"}'),
        entry("failed", 12),
        entry("applied", 15, id="2"),
        entry("applied", 16, id="unknown"),
    ]
    assert paired(values) == [
        AuditedChange("ann", "create-topic", "t", 10, 12, "failed"),
        AuditedChange("ann", "create-topic", "t", 11, 15, "applied"),
    ]


def test_a_change_has_caused_records_of_its_name_and_time():
    change = AuditedChange("ann", "create-topic", "t", 100_000, 101_000, "applied")
    assert change.distance_ms({"t"}, 100_500) == 0
    assert change.distance_ms({"t"}, 99_000) == 1000
    assert change.distance_ms({"other"}, 100_500) is None
    assert change.distance_ms({"t"}, 90_000) is None
    assert change.distance_ms({"t"}, 110_000) is None
    assert change._replace(ended_ms=None).distance_ms({"t"}, 110_000) == 0


@pytest.mark.parametrize(
    ("change", "record", "author"),
    [
        ("create-topic", TopicRecord(name="t"), "ann: create-topic"),
        ("reassign", TopicRecord(name="t", topic_id=bytes(15) + b"1"), ""),
        ("reassign", PartitionChangeRecord(topic_id=bytes(15) + b"1"), "ann: reassign"),
        ("reassign", RemoveTopicRecord(topic_id=bytes(15) + b"1"), ""),
        ("delete-topic", RemoveTopicRecord(topic_id=bytes(15) + b"1"), "ann: delete-topic"),
    ],
)
def test_a_topic_is_created_and_deleted_only_by_changes_that_can(change, record, author):
    changes = [AuditedChange("ann", change, "t", 100_000, 101_000, "applied")]
    logged = SimpleNamespace(message=record, wall_ms=99_000)
    assert author_of(changes, logged, {bytes(15) + b"1": "t"}) == author


def test_the_metadata_log_names_who_created_configured_and_deleted_a_topic(editor, visitor):
    made(editor, "create-topic", topic="authored", partitions="1", configuration="retention.ms=60000")
    history = visitor.get("/c/test/topics/authored/history").plain
    assert "By token: create-topic." in history
    apply(editor, "delete-topic", review(editor, "delete-topic", topic="authored"), confirm="authored")
    deadline = time.monotonic() + 60
    while (
        "token: delete-topic" not in (found := visitor.get("/c/test/metadata")).text
    ):  # what was read is kept for 15 s
        assert time.monotonic() < deadline, found.plain
        time.sleep(0.5)
    assert re.search(r"RemoveTopic [^<]*</td><td>token: delete-topic</td>", found.text), found.plain
    assert re.search(r"Topic name: authored[^<]*</td><td>token: create-topic</td>", found.text), found.plain
    assert re.search(r"Config [^<]*authored[^<]*retention.ms[^<]*</td><td>token: create-topic</td>", found.text)
    assert "orders" in visitor.get("/c/test/metadata?q=topic+name:+orders").plain
    found = visitor.get("/c/test/metadata?q=topic+name:+orders")  # other tests may have moved its partitions
    assert not re.search(r"Topic name: orders[^<]*</td><td>token", found.text), found.plain
