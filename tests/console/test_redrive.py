"""Dead letters go back to their topics from the console: a dry run first, each record once."""

from __future__ import annotations

from kafkapy.client import Admin, Producer
from kafkapy.client.admin import NewTopic
from kafkapy.client.reliable.chain_headers import ORIGIN_TOPIC
from tests.console.test_changes import admin, apply, editor, records, review

__all__ = ["admin", "editor"]


def test_dead_letters_go_back_once_after_a_dry_run(editor, admin: Admin, broker):
    admin.create_topics([NewTopic("payments", 1, 1), NewTopic("payments.dlt", 1, 1)]).check()
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for key, origin in ((b"a", b"payments"), (b"b", b"payments"), (b"c", b"gone"), (b"d", None)):
            headers = [(ORIGIN_TOPIC, origin)] if origin else []
            producer.send("payments.dlt", b"dead", key=key, headers=headers).result()
    assert "Redrive dead letters" in editor.get("/c/test/topics/payments.dlt?limit=1").plain
    reviewed = review(editor, "redrive", topic="payments.dlt", where="key=a")
    assert "go to payments 1" in reviewed.plain
    assert "left out by the conditions 3" in reviewed.plain
    assert "redrive --bootstrap-server" in reviewed.plain
    assert "--from payments.dlt --where key=a --count 10000" in reviewed.plain
    assert records(broker, "payments") == []
    assert "1 record of payments.dlt went back." in apply(editor, "redrive", reviewed).plain
    assert [each.key for each in records(broker, "payments") if each.key] == [b"a"]
    reviewed = review(editor, "redrive", topic="payments.dlt")
    assert "go to payments 1" in reviewed.plain
    assert "whose topic does not exist 1" in reviewed.plain
    assert "without a topic to go to 1" in reviewed.plain
    apply(editor, "redrive", reviewed)
    assert [each.key for each in records(broker, "payments") if each.key] == [b"a", b"b"]
    refused = review(editor, "redrive", topic="payments.dlt")
    assert (refused.status, "No record of payments.dlt would be moved" in refused.plain) == (409, True)


def test_a_redrive_that_has_no_sense_says_why(editor):
    for fields, status, reason in (
        ({"topic": "absent"}, 404, "does not exist"),
        ({"topic": "orders", "where": "?"}, 400, "This is no condition"),
        ({"topic": "orders", "target": "orders"}, 502, "cannot be redriven into itself"),
        ({"topic": "orders", "count": "100000"}, 400, "whole number"),
    ):
        reply = review(editor, "redrive", **fields)
        assert (reply.status, reason in reply.plain) == (status, True), reply.plain
