"""Traces, audits, expired records and the logging handler on a broker."""

from __future__ import annotations

import json
import logging
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from kafkapy.client import Consumer, KafkaHandler, Producer
from kafkapy.client.reliable import AuditReporter, ConsumerAudit, ProducerAudit, TimeToLive, Tracer
from kafkapy.client.reliable.trace_context import parse_parent
from kafkapy.tools.reliable.audit import TOOL as AUDIT
from kafkapy.tools.reliable.trace import TOOL as TRACE
from kafkapy.tools.tool import run_tool
from tests.reliable.running import records_of, wait_until


def read(bootstrap: str, topic: str, count: int, **settings):
    """Returns the first `count` records that a consumer gets."""
    found = []
    with Consumer(bootstrap_servers=bootstrap, **settings) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        wait_until(lambda: found.extend(consumer.poll(0.1)) or len(found) >= count)
    return found


class Collector(BaseHTTPRequestHandler):
    """A collector that keeps the bodies of requests."""

    bodies: list[tuple[str, dict]] = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.bodies.append((self.path, json.loads(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments):
        """Prints nothing."""


def test_a_trace_shows_the_way_of_a_record(bootstrap, make_topic, capsys):
    first, second, traces = make_topic("first"), make_topic("second"), make_topic("traces", 2)
    tracer = Tracer("shop", bootstrap_servers=bootstrap, topic=traces)
    with Producer(bootstrap_servers=bootstrap, interceptor_classes=[tracer.interceptor]) as producer:
        producer.send(first, b"1", headers={"mine": b"1"}).result(30)
        [record] = read(bootstrap, first, 1)
        with tracer.processing(record):
            producer.send(second, b"2").result(30)
    tracer.close()
    assert tracer.dropped == 0
    parent = parse_parent(dict(record.headers)["traceparent"])
    assert dict(record.headers)["mine"] == b"1"
    [child] = read(bootstrap, second, 1)
    assert parse_parent(dict(child.headers)["traceparent"]).trace_id == parent.trace_id
    connection = ["--topic", traces, "-b", bootstrap]
    assert run_tool(TRACE, ["--record", f"{second}-0@0", *connection]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"trace {parent.trace_id.hex()}"
    assert sorted(line.split("ms")[1].split()[0] for line in lines[1:]) == [
        *("acknowledged", "acknowledged", "done", "received", "sent", "sent")
    ]
    assert run_tool(TRACE, ["--id", parent.trace_id.hex(), "--json", *connection]) == 0
    spans = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["topic"] for each in spans] == [first, first, second]
    assert [each["parent_id"] for each in spans] == ["", spans[0]["span_id"], spans[1]["span_id"]]
    server = HTTPServer(("127.0.0.1", 0), Collector)
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    assert run_tool(TRACE, ["--id", parent.trace_id.hex(), "--otlp", address, *connection]) == 0
    server.shutdown()
    server.server_close()
    [(path, body)] = Collector.bodies
    exported = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert path == "/v1/traces" and [each["kind"] for each in exported] == [4, 5, 4]
    assert exported[2]["parentSpanId"] == spans[1]["span_id"]


def test_the_audit_finds_what_was_dropped_and_repeated(bootstrap, make_topic, capsys):
    topic, counts = make_topic("audited"), make_topic("counts")
    start_ms = (time.time_ns() // 1_000_000 - 600_000) // 10_000 * 10_000

    def reporter(client: str, group: str = "") -> AuditReporter:
        return AuditReporter(client, bootstrap_servers=bootstrap, topic=counts, group=group)

    audit = ProducerAudit(reporter("shop"))
    with Producer(bootstrap_servers=bootstrap, interceptor_classes=[audit]) as producer:
        for number in range(300):
            producer.send(topic, b"%d" % number, timestamp=start_ms + number * 100)
    with Producer(bootstrap_servers=bootstrap) as producer:  # repeats a record without an audit
        producer.send(topic, b"7", timestamp=start_ms + 700)

    class Dropping:
        """Drops three records of the second bucket before the audit counts them."""

        def on_consume(self, records):
            return [each for each in records if each.value not in (b"110", b"111", b"150")]

    consumer_audit = ConsumerAudit(reporter("charges", "charging"))
    read(bootstrap, topic, 298, interceptor_classes=[Dropping(), consumer_audit])
    words = ["--audit-topic", counts, "--topic", topic, "-b", bootstrap, "--json"]
    assert run_tool(AUDIT, words) == 2
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["bucket_ms"], each["missing"], each["group"]) for each in found] == [
        (start_ms, -1, "charging"),
        (start_ms + 10_000, 3, "charging"),
    ]


def test_expired_records_are_dropped_and_counted(bootstrap, make_topic):
    topic = make_topic("lifetime")
    now_ms = time.time_ns() // 1_000_000
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(10):
            age_ms = 60_000 if number % 2 else 0
            producer.send(topic, b"%d" % number, timestamp=now_ms - age_ms, headers=[("ttl-ms", "59000")])
        producer.send(topic, b"bad", headers=[("ttl-ms", "soon")])
        producer.send(topic, b"none")
    lifetime = TimeToLive()
    found = read(bootstrap, topic, 7, interceptor_classes=[lifetime])
    assert [each.value for each in found] == [b"0", b"2", b"4", b"6", b"8", b"bad", b"none"]
    assert (lifetime.expired[topic], lifetime.invalid[topic]) == (5, 1)


def test_log_records_are_written_to_a_topic(bootstrap, make_topic):
    topic = make_topic("logs")
    handler = KafkaHandler(
        topic, level=logging.ERROR, key="logger", bootstrap_servers=bootstrap, trace_id=lambda: "00-x"
    )
    logger = logging.getLogger("tests.reliable.logs")
    logger.addHandler(handler)
    try:
        logger.info("not this")
        logger.error("user %s failed", "ann", extra={"user": "ann"})
        try:
            raise RuntimeError("boom")
        except RuntimeError:
            logger.exception("caught")
    finally:
        logger.removeHandler(handler)
        handler.close()
    assert (handler.sent, handler.dropped) == (2, 0)
    first, second = records_of(bootstrap, topic)
    body = json.loads(first.value)
    assert (body["message"], body["level"], body["user"], first.key) == (
        *("user ann failed", "ERROR", "ann", b"tests.reliable.logs"),
    )
    assert dict(first.headers) == {"level": b"ERROR", "traceparent": b"00-x"}
    assert "RuntimeError: boom" in json.loads(second.value)["traceback"]
