"""Word count, access log, server metrics, stock statistics and Connect's envelope, on static data."""

from __future__ import annotations

import json

from access_log import FIELDS, accesses, with_fields
from envelope import payloads, with_payloads
from kafkapy_jobs.quotes import with_quotes
from kafkapy_jobs.values import with_text
from server_metrics import METRICS, summaries, with_events
from stock_statistics import statistics
from tests.spark.test_stock_strategy import ROWS
from tests.spark.topic_records import record, records, run_stream, values
from word_count import lines, word_counts

ACCESS = (
    '10.10.10.157 [2017-04-17 16:06:20.909 +0800] "POST /account/review_callback.json '
    '{"token":"d1a8c275f4282b1adfc6c2723f3722d"}HTTP/1.1" 200 - "-" "Apache-HttpClient/4.1.1 (Java 1.5)" 32 '
    '"C32A54056E518AA47412D038A504F869"'
)


def test_words_of_a_file_are_counted(spark):
    rows = with_text(records(spark, ["hello world hello kafka hello hello spark hadoop kafka spark"]), "text")
    expected = {"spark: 2", "hadoop: 1", "hello: 4", "kafka: 2", "world: 1"}
    assert set(lines(word_counts(rows).collect())) == expected


def test_words_of_a_stream_go_on_over_a_restart(spark, tmp_path):
    """The stream of a published example drops blank lines, converts to lower case and splits at commas."""

    def transform(rows):
        return word_counts(with_text(rows, "text"), ",", lower_case=True)

    batch = [record(text) for text in ("Kafka,Spark", "", "kafka,  ", None, b"\xff")]
    (first,) = run_stream(spark, tmp_path, [batch], transform, mode="update")
    assert lines(first) == ["kafka: 2", "spark: 1"]
    (second,) = run_stream(spark, tmp_path, [[record("KAFKA")]], transform, mode="update")
    assert lines(second) == ["kafka: 3"]


def test_a_line_of_an_access_log_has_its_fields(spark):
    rows = with_fields(records(spark, [ACCESS, "not a line", None, b"\xff", ACCESS.replace("32 ", "")]))
    found = rows.orderBy("offset").collect()
    assert values(found, "reason") == [
        None, "not a line of an access log", "null value", "not UTF-8", "not a line of an access log",
    ]  # fmt: skip
    assert values(found[:1], *FIELDS) == [
        ("10.10.10.157", "2017-04-17", "16:06:20.909", "POST", "/account/review_callback.json", "200", "32")
    ]
    (access,) = accesses(rows).collect()
    assert (access["response"], access["cost"]) == (200, 32.0)


def event(second, server="server-1", **system):
    members = {"@timestamp": f"2017-04-17T08:00:{second:02d}.000Z", "beat": {"name": server}, "system": system}
    return json.dumps(members)


def test_metrics_of_servers_are_summarised_by_window(spark):
    texts = [
        event(0, cpu={"user": {"pct": 0.25}}),
        event(10, cpu={"user": {"pct": 0.75}}),
        event(10, "server-2", cpu={"user": {"pct": 0.5}}),
        event(20, memory={"used": {"pct": "much"}}),
        json.dumps({"beat": {"name": "x"}}),
        json.dumps({"@timestamp": "2017-04-17T08:00:00.000Z"}),
        "not json",
    ]
    rows = with_events(records(spark, texts))
    assert values(rows.orderBy("offset").collect(), "reason")[4:] == [
        "no @timestamp",
        "no name of a server",
        "not JSON",
    ]
    found = summaries(rows, METRICS, "5 minutes", "5 minutes", "1 minute").orderBy("server").collect()
    assert values(found, "server", "metric", "count", "average", "least", "greatest") == [
        ("server-1", "system.cpu.user.pct", 2, 0.5, 0.25, 0.75),
        ("server-2", "system.cpu.user.pct", 1, 0.5, 0.5, 0.5),
    ]


def test_stocks_have_their_statistics_by_window(spark):
    found = statistics(with_quotes(records(spark, ROWS)), "1 minute", "1 minute", "10 seconds")
    rows = found.where("stock_code = '000001'").collect()
    assert values(rows, "quotes", "lowest", "highest", "first_close", "last_close") == [(3, 9.42, 9.55, 9.49, 9.43)]


def test_payloads_come_out_of_connects_envelope(spark):
    texts = [
        '{"schema":{"type":"string","optional":false},"payload":"kafka-connect"}',
        '{"schema":null,"payload":null}',
        '{"schema":null,"payload":{"a":1}}',
        '{"payload":"no schema"}',
        "[1]",
        "kafka-connect",
    ]
    rows = with_payloads(records(spark, texts)).orderBy("offset")
    assert values(rows.collect(), "reason") == [None, None, None, "not an envelope", "not an envelope", "not JSON"]
    assert values(payloads(rows).collect(), "payload") == ["kafka-connect", None, '{"a":1}']
