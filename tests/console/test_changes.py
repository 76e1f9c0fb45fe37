"""Changes: form, review, application; refused when they are forged, late or sent twice; each leaves a trace."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafkapy.client import Admin, Consumer, TopicPartition
from kafkapy.client.admin import ConfigResource, NewTopic, ResourceType
from tests.console_process import walk

AUDIT = "__kafkapy_console_audit"


@pytest.fixture
def editor(changing):
    return changing.visitor()


@pytest.fixture(scope="module")
def admin(broker):
    with Admin(bootstrap_servers=broker.bootstrap) as running:
        yield running


def create(admin, topic):
    """Creates a topic, and waits until the broker knows it."""
    admin.create_topics([NewTopic(topic, 1, 1)]).check()
    while admin.describe_topics([topic]).errors:
        time.sleep(0.02)


def hidden(reply):
    """Returns the hidden fields of the last form of a page."""
    last = reply.text.rpartition('<form method="post">')[2]
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', last))


def review(editor, change, **fields):
    return editor.post(f"/c/test/change/{change}", {"form_token": editor.form_token, "step": "review", **fields})


def apply(editor, change, reviewed, **more):
    assert reviewed.status == 200, reviewed.plain
    return editor.post(f"/c/test/change/{change}", {**hidden(reviewed), "step": "apply", **more})


def made(editor, change, confirm="", **fields):
    reply = apply(editor, change, review(editor, change, **fields), confirm=confirm)
    assert reply.status == 200, reply.plain
    return reply


def test_a_topic_is_created_enlarged_configured_and_deleted(editor, admin):
    reviewed = review(editor, "create-topic", topic="made", partitions="2", configuration="retention.ms=60000")
    assert "--create --topic made --partitions 2 --config retention.ms=60000" in reviewed.plain
    assert "made" not in admin.list_topics()
    apply(editor, "create-topic", reviewed)
    assert len(admin.describe_topics(["made"])["made"].partitions) == 2
    reply = made(editor, "add-partitions", topic="made", partitions="5")
    assert "has 5 partitions now" in reply.plain
    reviewed = review(
        editor, "alter-configuration", kind="topic", name="made", set="segment.bytes=2000000", remove="retention.ms"
    )
    assert "retention.ms 60000 (the default)" in reviewed.plain
    assert "--add-config segment.bytes=2000000 --delete-config retention.ms" in reviewed.plain
    apply(editor, "alter-configuration", reviewed)
    resource = ConfigResource(ResourceType.TOPIC, "made")
    assert admin.describe_configs([resource])[resource]["segment.bytes"].value == "2000000"
    reviewed = review(editor, "delete-topic", topic="made")
    refused = apply(editor, "delete-topic", reviewed, confirm="maid")
    assert refused.status == 400
    assert "made" in admin.list_topics()
    apply(editor, "delete-topic", refused._replace(status=200), confirm="made")
    assert "made" not in admin.list_topics()


def records(broker, topic):
    with Consumer(bootstrap_servers=broker.bootstrap) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning([TopicPartition(topic, 0)])
        end = consumer.end_offsets([(topic, 0)])[(topic, 0)]
        found = []
        while consumer.position((topic, 0)) < end:
            found += consumer.poll(1.0)
        return found


def test_a_record_is_written_and_written_again(editor, broker, admin):
    create(admin, "written")
    reply = made(editor, "produce", topic="written", key="k", value="line 1\r\nline 2", headers="h=1")
    assert "written to written-0 at offset 0" in reply.plain
    page = editor.get("/c/test/topics/written/records/0/0").text
    again = re.search(r'href="(/c/test/change/produce[^"]+)">Write it again', page)
    form = editor.get(again[1].replace("&amp;", "&"))
    assert "line 1\nline 2</textarea>" in form.text
    made(editor, "produce", topic="written", key_form="null", value="/w==", value_form="base64", partition="0")
    first, second = records(broker, "written")
    assert (first.key, first.value, first.headers) == (b"k", b"line 1\nline 2", (("h", b"1"),))
    assert (second.key, second.value) == (None, b"\xff")


def test_offsets_are_set_after_a_table_of_what_will_be_read_again(editor, broker, admin):
    with Consumer(bootstrap_servers=broker.bootstrap, group_id="resetting", enable_auto_commit=False) as consumer:
        consumer.assign([("orders", 0)])
        consumer.commit({("orders", 0): 60})
    reviewed = review(editor, "reset-offsets", group="resetting", to="offset", value="10")
    assert "orders-0 60 10 50 0" in reviewed.plain
    assert "--reset-offsets --group resetting --to-offset 10 --all-topics --execute" in reviewed.plain
    apply(editor, "reset-offsets", reviewed, confirm="resetting")
    partition = TopicPartition("orders", 0)
    assert admin.list_group_offsets(["resetting"])["resetting"][partition].offset == 10
    reviewed = review(editor, "reset-offsets", group="resetting", topics="orders:0", to="time", value="1700000000030")
    assert "orders-0 10 10 0 0" in reviewed.plain
    assert "--to-datetime 2023-11-14T22:13:20.030" in reviewed.plain
    made(editor, "reset-offsets", group="resetting", to="shift", value="-4", confirm="resetting")
    assert admin.list_group_offsets(["resetting"])["resetting"][partition].offset == 6
    made(editor, "delete-group", group="resetting", confirm="resetting")
    assert "resetting" not in [each.group_id for each in admin.list_groups()]


def test_offsets_of_a_group_with_members_are_not_set(editor, broker):
    with Consumer(bootstrap_servers=broker.bootstrap, group_id="alive", enable_auto_commit=False) as consumer:
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.2)
        consumer.commit({("orders", 0): 1})
        reply = review(editor, "reset-offsets", group="alive", to="latest")
    assert reply.status == 409
    assert "The group alive has 1 member." in reply.plain


@pytest.mark.parametrize(
    ("change", "fields", "status", "reason"),
    [
        ("create-topic", {"topic": "orders"}, 502, "already exists"),
        ("create-topic", {"topic": "bad name"}, 502, "INVALID_TOPIC_EXCEPTION"),
        ("create-topic", {"topic": ""}, 400, "is empty"),
        ("create-topic", {"topic": "x", "partitions": "many"}, 400, "whole number"),
        ("create-topic", {"topic": "x", "configuration": "what"}, 400, "is not key=value"),
        ("add-partitions", {"topic": "orders", "partitions": "2"}, 400, "can only be added"),
        ("alter-configuration", {"kind": "topic", "name": "orders", "set": "retention.ms=soon"}, 502, "INVALID_CONFIG"),
        ("alter-configuration", {"kind": "topic", "name": "orders"}, 400, "No key is set"),
        ("delete-topic", {"topic": "absent"}, 404, "does not exist"),
        ("produce", {"topic": "orders", "partition": "7"}, 400, "from 0 to 2"),
        ("produce", {"topic": "orders", "value": "?", "value_form": "base64"}, 400, "not base64"),
        ("reassign", {"topic": "orders", "replicas": "0: 9"}, 400, "unknown broker"),
        ("reassign", {"topic": "orders", "replicas": "zero"}, 400, "PARTITION: BROKER"),
        ("elect-leaders", {"topic": "orders", "kind": "preferred"}, 409, "nothing to elect"),
        ("unknown", {}, 404, "There is no change"),
    ],
)
def test_a_change_that_cannot_be_made_says_why(editor, change, fields, status, reason):
    reply = review(editor, change, **fields)
    assert (reply.status, reason in reply.plain) == (status, True), reply.plain


def test_replicas_are_moved_by_the_command_that_is_shown(editor):
    reply = review(editor, "reassign", topic="orders", replicas="0: 1\n1: 1")
    assert '{"topic": "orders", "partition": 0, "replicas": [1]}' in reply.plain
    assert apply(editor, "reassign", reply).status == 200


def test_a_form_that_is_sent_twice_is_applied_once(editor, broker, admin):
    create(admin, "once")
    reviewed = review(editor, "produce", topic="once", value="x")
    assert apply(editor, "produce", reviewed).status == 200
    twice = apply(editor, "produce", reviewed)
    assert twice.status == 409
    assert "was sent already" in twice.plain
    assert len(records(broker, "once")) == 1


@pytest.mark.parametrize("forgery", [{"form_token": "x"}, {"once": "x"}, {"form_token": "", "once": ""}])
def test_a_forged_form_changes_nothing(editor, admin, forgery):
    reviewed = review(editor, "create-topic", topic="forged")
    reply = apply(editor, "create-topic", reviewed, **forgery)
    assert reply.status in (403, 409)
    assert "forged" not in admin.list_topics()


def test_a_review_belongs_to_its_session_and_change(changing, editor, admin):
    other = changing.visitor()
    fields = hidden(review(editor, "create-topic", topic="stolen"))
    fields["form_token"] = other.form_token
    assert other.post("/c/test/change/create-topic", {**fields, "step": "apply"}).status == 409
    fields = hidden(review(editor, "create-topic", topic="stolen"))
    assert editor.post("/c/test/change/delete-topic", {**fields, "topic": "orders", "step": "apply"}).status == 409
    assert {"orders"} <= admin.list_topics().keys()
    assert "stolen" not in admin.list_topics()


def test_a_change_from_another_site_is_refused(editor, admin):
    reviewed = hidden(review(editor, "create-topic", topic="foreign"))
    fields = {**reviewed, "step": "apply"}
    reply = editor.post("/c/test/change/create-topic", fields, headers={"Origin": "https://evil.example"})
    assert reply.status == 403
    assert "foreign" not in admin.list_topics()


def test_every_link_of_a_console_that_changes_leads_to_a_page(editor):
    wrong = [(path, reply.status) for path, reply in walk(editor, "/c/test/topics/orders?limit=1", 40)]
    assert [each for each in wrong if each[1] >= 400 and "/metadata" not in each[0] and "/history" not in each[0]] == []
    assert any("/change/produce" in path for path, _ in wrong)


def test_a_console_that_only_reads_refuses_changes(visitor, admin):
    fields = {"form_token": visitor.form_token, "step": "review", "topic": "readonly"}
    assert visitor.post("/c/test/change/create-topic", fields).status == 403
    assert visitor.get("/c/test/change/create-topic").status == 403
    assert "Create a topic" not in visitor.get("/c/test/topics").plain
    assert "readonly" not in admin.list_topics()


def test_each_change_leaves_a_line_in_the_log_and_a_record_in_the_audit_topic(changing, editor, broker, admin):
    made(editor, "create-topic", topic="audited")
    command = f"kafkapy topics --bootstrap-server {broker.bootstrap} --create --topic audited"
    assert f"token changed test: {command}" in changing.log()
    found = [json.loads(each.value) for each in records(broker, AUDIT)]
    entries = [each for each in found if each["fields"].get("topic") == "audited"]
    assert [each["state"] for each in entries] == ["requested", "applied"]
    assert entries[0]["commands"] == [command]
    assert entries[0]["user"] == "token"


def test_overlapping_changes_of_one_user_and_name_each_keep_their_outcome(editor, broker, admin):
    create(admin, "contended")
    reviews = [review(editor, "produce", topic="contended", value="x") for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(lambda each: apply(editor, "produce", each), reviews))
    assert [each.status for each in replies] == [200, 200]
    states: dict[bytes, list[str]] = {}
    for each in records(broker, AUDIT):
        entry = json.loads(each.value)
        if entry["fields"].get("topic") == "contended":
            states.setdefault(each.key, []).append(entry["state"])
    assert list(states.values()) == [["requested", "applied"]] * 2
