"""The console's pages, read without JavaScript: what they show, and that every link leads somewhere."""

from __future__ import annotations

import json
import re
import time

import pytest

from kafkapy.client import Consumer
from tests.console_process import links, walk


def test_the_overview_shows_the_health_of_the_cluster(visitor):
    reply = visitor.get("/c/test/")
    assert reply.status == 200
    assert "Without leader 0" in reply.plain
    assert "orders" in reply.plain
    assert len(reply.body) < 100_000


def test_the_first_page_and_its_files_are_below_100_kb(visitor):
    reply = visitor.get("/c/test/")
    total = len(reply.body)
    for part in reply.text.split('"'):
        if part.startswith("/static/"):
            total += len(visitor.get(part).body)
    assert total < 100_000


def test_the_topic_list_is_filtered_and_sorted(visitor):
    assert "orders" in visitor.get("/c/test/topics").plain
    found = visitor.get("/c/test/topics?q=ORD&sort=size").plain
    assert "orders" in found
    assert "hostile" not in found
    assert "__consumer_offsets" not in visitor.get("/c/test/topics").plain
    assert "__consumer_offsets" in visitor.get("/c/test/topics?internal=1").plain


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/topics/orders/partitions", "End offset"),
        ("/topics/orders/configuration", "retention.ms -1 topic"),
        ("/topics/orders/groups", "billing"),
        ("/topics/orders/producers", "Producers"),
        ("/groups", "billing Empty"),
        ("/brokers", "Active controller"),
        ("/brokers/1", "log.dirs"),
        ("/directories", "online"),
        ("/transactions", "payments CompleteCommit"),
        ("/security", "Subscriptions of client metrics"),
    ],
)
def test_a_page_shows(visitor, path, expected):
    reply = visitor.get(f"/c/test{path}")
    assert reply.status == 200, reply.plain
    assert expected in reply.plain


def test_a_group_shows_its_lag_and_the_reason(visitor):
    plain = visitor.get("/c/test/group?id=billing").plain
    assert "Lag 140" in plain
    assert "No member reads; 140 records wait." in plain
    assert "orders 2 0 100 100" in plain


def test_every_link_leads_to_a_page(visitor):
    wrong = [(path, reply.status) for path, reply in walk(visitor, "/c/test/", 80) if reply.status >= 400]
    assert wrong == []


def test_the_metadata_log_is_time_travel(visitor):
    assert "orders" in visitor.get("/c/test/metadata?q=topic+name:+orders").plain
    assert "Topics 0" in visitor.get("/c/test/metadata?at=1").plain
    assert "partition orders-1 did not exist leader 1" in visitor.get("/c/test/metadata/difference?from=0").plain
    assert "topic orders was created" in visitor.get("/c/test/topics/orders/history?partition=1").plain


def rows(reply):
    """Returns the offsets of the records that a page of messages shows."""
    return [link.rpartition("/records/")[2] for link in links(reply.text) if "/records/" in link]


def test_the_newest_records_come_first(visitor):
    found = rows(visitor.get("/c/test/topics/orders?limit=5"))
    assert found == ["2/99", "1/99", "0/99", "2/98", "1/98"]


def test_the_oldest_records_of_a_partition(visitor):
    assert rows(visitor.get("/c/test/topics/orders?from=oldest&partition=1&limit=3")) == ["1/0", "1/1", "1/2"]


def test_records_from_an_offset(visitor):
    assert rows(visitor.get("/c/test/topics/orders?from=offset&at=97&partition=0")) == ["0/97", "0/98", "0/99"]


def test_records_from_a_time(visitor):
    found = rows(visitor.get("/c/test/topics/orders?from=time&at=1700000000297"))
    assert sorted(found) == ["0/99", "1/99", "2/99"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("field=key&op=equals&text=151", ["1/50"]),
        ("field=value&op=contains&text=%22id%22:+77,", ["2/25"]),
        ("field=header&name=trace&op=equals&text=t-9", ["0/3"]),
        ("field=json&name=id&op=equals&text=12", ["0/4"]),
        ("field=json&name=price&op=greater&text=74.5", ["2/99"]),
        ("field=json&name=customer.name&op=equals&text=customer-3&field=key&name=&op=equals&text=10", ["1/3"]),
        ("field=value&op=contains&text=nowhere", []),
    ],
)
@pytest.mark.parametrize("start", ["newest", "oldest"])
def test_filters_select_records(visitor, query, expected, start):
    reply = visitor.get(f"/c/test/topics/orders?from={start}&{query}")
    assert rows(reply) == expected
    assert "All records were read." in reply.plain


def test_the_form_has_the_state_of_the_url(visitor):
    text = visitor.get("/c/test/topics/orders?from=oldest&limit=20&field=key&op=equals&text=5%22").text
    assert 'value="5&#34;"' in text
    assert '<option value="oldest" selected>' in text


def test_a_record_shows_key_value_and_headers(visitor):
    plain = visitor.get("/c/test/topics/orders/records/1/50").plain
    assert '"name": "customer-4"' in plain
    assert "t-151" in plain
    assert "2023-11-14 22:13:20.151" in plain


def test_a_record_says_who_has_read_it_and_what_deletes_it(visitor):
    plain = visitor.get("/c/test/topics/orders/records/1/50").plain
    assert re.search(r"Read by [^;]*billing[^;]*; not yet by none\.", plain)
    assert "Retention by time is off." in plain
    assert "No open transaction holds it back." in plain
    assert re.search(r"; not yet by [^.]*billing", visitor.get("/c/test/topics/orders/records/1/70").plain)
    assert "Retention by time deletes it after" in visitor.get("/c/test/topics/hostile/records/0/0").plain


def test_a_page_says_what_kafkas_protocol_does_not_tell(broker, visitor):
    """No metrics listener is known to this console; Apache Kafka, against which this test runs too, has none."""
    unknown = "Apache Kafka does not tell it."
    plain = visitor.get("/c/test/topics/orders/records/1/50").plain
    assert "Segment, position and batch are not known. Kafka's protocol does not tell this." in plain
    assert unknown in plain
    with Consumer(bootstrap_servers=broker.bootstrap, group_id="watching", enable_auto_commit=False) as consumer:
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.1)
        consumer.commit({("orders", 0): 10})
        reply = visitor.get("/c/test/group?id=watching")
        deadline_s = time.monotonic() + 60
        while reply.status == 404 and time.monotonic() < deadline_s:  # the console shows the list of groups for 2 s
            time.sleep(0.1)
            reply = visitor.get("/c/test/group?id=watching")
    plain = reply.plain
    assert "Not known: whether a quota delays the group, and whether a record is larger than its fetches." in plain
    assert unknown in plain


def test_the_bytes_of_a_record_are_a_file(visitor):
    reply = visitor.get("/c/test/topics/orders/records/1/50?download=key")
    assert reply.body == b"151"
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["content-disposition"].startswith("attachment")


def test_the_shown_records_can_be_exported(visitor):
    reply = visitor.get("/c/test/topics/orders/export?from=oldest&partition=0&limit=2&as=json")
    found = [json.loads(line) for line in reply.text.splitlines()]
    assert [each["offset"] for each in found] == [0, 1]
    assert found[1]["headers"] == [{"name": "trace", "value": "t-3"}]
    assert visitor.get("/c/test/topics/orders/export?as=csv&limit=1").text.startswith("partition,offset,timestamp")


def test_the_coordinators_records_are_decoded(visitor):
    plain = visitor.get("/c/test/topics/__consumer_offsets?from=oldest").plain
    assert "OffsetCommitValue" in plain
    assert '"group": "billing"' in plain
    assert "TransactionLogValue" in visitor.get("/c/test/topics/__transaction_state?from=oldest").plain


def test_a_decoder_says_why_it_fails(visitor):
    plain = visitor.get("/c/test/topics/hostile/records/0/1?vd=json").plain
    assert "json: not JSON" in plain
    assert "ff fe 80" in plain


@pytest.mark.parametrize(
    ("path", "status", "expected"),
    [
        ("/c/nowhere/", 404, "no cluster 'nowhere'"),
        ("/c/test/nothing", 404, "no page"),
        ("/c/test/topics/absent", 404, "does not exist"),
        ("/c/test/topics/bad%20name%3Cscript%3E", 404, "does not exist"),
        ("/c/test/topics/orders?limit=many", 400, "limit=many"),
        ("/c/test/topics/orders?from=yesterday", 400, "from=yesterday"),
        ("/c/test/topics/orders?from=offset&at=-1", 400, "is not an offset"),
        ("/c/test/topics/orders?from=time&at=soon", 400, "is not a time"),
        ("/c/test/topics/orders?partition=7", 404, "no partition 7"),
        ("/c/test/topics/orders?field=code&text=x", 400, "A filter has the field"),
        ("/c/test/topics/orders/records/0/500", 404, "offsets from 0 to 99"),
        ("/c/test/topics/orders/records/9/0", 404, "no partition 9"),
        ("/c/test/group?id=nobody", 404, "no group"),
        ("/c/test/group", 400, "names no group"),
        ("/c/test/topics?start=-4", 400, "start=-4"),
        ("/c/test/topics?q=" + "x" * 2000, 400, "characters"),
        ("/c/test/brokers/99", 404, "no broker 99"),
    ],
)
def test_a_meaningless_url_says_what_is_wrong(visitor, path, status, expected):
    reply = visitor.get(path)
    assert reply.status == status
    assert expected in reply.plain
