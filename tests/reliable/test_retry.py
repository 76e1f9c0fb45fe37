"""The retry chain on a broker: outputs, retries, dead letters, order by key, bad handlers, redrive."""

from __future__ import annotations

import contextlib
import io
import json
import time

import pytest

from kafkapy.client import Producer
from kafkapy.client.reliable import Failure, Output, Processor
from kafkapy.client.reliable.chain_headers import DUE, origin_of
from kafkapy.client.reliable.conditions import parse_condition
from kafkapy.client.reliable.isolated_handler import IsolatedHandler
from kafkapy.client.reliable.redrive import Redrive
from kafkapy.errors import ConfigError
from kafkapy.tools.reliable.redrive import TOOL as REDRIVE
from kafkapy.tools.tool import run_tool
from tests.reliable.running import records_of, running, values_of, wait_until
from tests.reliable.tool_process import ToolProcess

GROUP_SETTINGS = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}


def produce(bootstrap: str, topic: str, records, **settings) -> None:
    with Producer(bootstrap_servers=bootstrap, **settings) as producer:
        for record in records:
            key, value, *rest = record
            producer.send(topic, value, key, headers=rest[0] if rest else None)


def process(bootstrap: str, handler, topics, group: str, done, **settings) -> dict[str, int]:
    """Runs a processor until `done(counts)`; returns the counts."""
    properties = {"bootstrap.servers": bootstrap, **GROUP_SETTINGS}
    with Processor(handler, topics=topics, group=group, properties=properties, **settings) as processor:
        with running(processor.run, processor.stop) as errors:
            wait_until(lambda: done(processor.counts), errors)
        return dict(processor.counts)


def test_each_record_ends_once_in_the_output_or_the_dead_letters(bootstrap, make_topic):
    source, target = make_topic("payments", 3), make_topic("charges")
    attempts: dict[bytes, int] = {}

    def handle(delivery):
        number = int(delivery.value)
        attempts[delivery.value] = attempts.get(delivery.value, 0) + 1
        assert delivery.attempt == attempts[delivery.value]
        assert (delivery.topic, delivery.headers) == (source, (("kept", b"1"),))
        if number % 10 == 3:
            raise RuntimeError(f"record {number} never succeeds")
        if number % 10 == 5 and delivery.attempt < 3:
            raise RuntimeError(f"record {number} succeeds later")
        if number % 10 == 7:
            raise Failure(f"record {number} is wrong")
        return Output(target, delivery.value, delivery.key)

    produce(bootstrap, source, [(b"k%d" % n, b"%d" % n, [("kept", b"1")]) for n in range(100)])
    counts = process(
        bootstrap,
        handle,
        [source],
        f"{source}-group",
        lambda counts: counts["handled"] + counts["dead"] >= 100,
        retries=[0.05, 0.1],
    )
    assert (counts["handled"], counts["dead"], counts["retried"]) == (80, 20, 40)
    outputs = sorted(map(int, values_of(bootstrap, target)))
    assert outputs == [n for n in range(100) if n % 10 not in (3, 7)]
    dead = records_of(bootstrap, f"{source}.dlt")
    assert sorted(int(each.value) for each in dead) == [n for n in range(100) if n % 10 in (3, 7)]
    originals = {each.value: each for each in records_of(bootstrap, source)}
    for each in dead:
        headers = dict(each.headers)
        original = originals[each.value]
        assert each.key == original.key and headers["kept"] == b"1"
        assert origin_of(each.headers) == (source, original.partition)
        assert headers["kafka_dlt-original-offset"] == original.offset.to_bytes(8, "big")
        assert headers["__connect.errors.offset"] == b"%d" % original.offset
        assert headers["kafka_dlt-exception-fqcn"] in (b"RuntimeError", b"kafkapy.client.reliable.records.Failure")
    assert {attempts[b"3"], attempts[b"5"], attempts[b"7"]} == {3, 1}


def test_a_transaction_ends_while_slow_handlers_have_more_records(bootstrap, make_topic):
    source = make_topic("slow")
    produce(bootstrap, source, [(None, b"%d" % n) for n in range(30)])
    with Processor(
        lambda delivery: time.sleep(0.2), topics=[source], group=f"{source}-group", bootstrap_servers=bootstrap
    ) as processor:
        processor.relay.consumer.subscribe([source], processor.relay)
        while not processor.relay.run_once():
            continue
        assert 0 < processor.counts["handled"] < 30
        while processor.counts["handled"] < 30:
            processor.relay.run_once()
    assert processor.counts["handled"] == 30


def test_records_with_a_key_keep_their_order_on_request(bootstrap, make_topic):
    source, target = make_topic("orders", 2), make_topic("stock", 2)

    def handle(delivery):
        if delivery.value.endswith(b"first") and delivery.attempt < 3:
            raise RuntimeError("not yet")
        return Output(target, delivery.value, delivery.key)

    names = (b"first", b"second", b"third", b"fourth")
    produce(bootstrap, source, [(b"k%d" % key, b"%d %s" % (key, name)) for name in names for key in range(6)])
    counts = process(
        bootstrap,
        handle,
        [source],
        f"{source}-group",
        lambda counts: counts["handled"] >= 24,
        retries=[0.1, 0.3],
        keeps_order=True,
    )
    assert counts["behind_key"] > 0
    by_key: dict[bytes, list[bytes]] = {}
    for each in records_of(bootstrap, target):
        by_key.setdefault(each.key, []).append(each.value.split()[1])
    assert by_key == {b"k%d" % key: list(names) for key in range(6)}


def test_a_processor_that_starts_again_knows_which_keys_wait(bootstrap, make_topic):
    source, target = make_topic("again", 1), make_topic("again-out", 1)

    def refuse(delivery):
        raise RuntimeError("down")

    produce(bootstrap, source, [(b"a", b"1"), (b"b", b"1")])
    options = {"retries": [0.2, 2], "keeps_order": True, "instance": "one"}
    process(bootstrap, refuse, [source], source, lambda counts: counts["failed"] >= 4, **options)
    produce(bootstrap, source, [(b"a", b"2"), (b"b", b"2"), (b"c", b"1")])
    counts = process(
        bootstrap,
        lambda delivery: Output(target, delivery.value, delivery.key),
        [source],
        source,
        lambda counts: counts["handled"] >= 5,
        **options,
    )
    assert counts["behind_key"] >= 2
    found = [(each.key, each.value) for each in records_of(bootstrap, target)]
    assert found[0] == (b"c", b"1")
    assert [each for each in found if each[0] == b"a"] == [(b"a", b"1"), (b"a", b"2")]


def test_a_handler_may_hang_die_or_return_nonsense(bootstrap, make_topic):
    source, target = make_topic("bad"), make_topic("bad-out")
    values = [b"hang", b"good 1", b"die", b"good 2", b"raise", b"nonsense", b"fail", b"good 3"]
    produce(bootstrap, source, [(target.encode(), value) for value in values] + [(b"no-such-topic", b"good 4")])
    with IsolatedHandler("tests.reliable.handlers:misbehave", 2.0) as handler:
        counts = process(
            bootstrap,
            handler,
            [source],
            source,
            lambda counts: counts["handled"] + counts["dead"] >= 9,
            retries=[],
        )
    assert (counts["handled"], counts["dead"]) == (3, 6)
    assert values_of(bootstrap, target) == [b"good 1", b"good 2", b"good 3"]
    errors = {each.value: dict(each.headers)["kafkapy.retry.error"] for each in records_of(bootstrap, f"{source}.dlt")}
    assert b"HandlerTimedOut" in errors[b"hang"] and b"HandlerDied" in errors[b"die"]
    assert b"RuntimeError" in errors[b"raise"] and b"UnusableOutput" in errors[b"nonsense"]
    assert b"UnusableOutput" in errors[b"good 4"] and b"no retry helps" in errors[b"fail"]


def test_an_output_that_the_broker_refuses_is_the_fault_of_its_record(bootstrap, make_topic):
    source, target = make_topic("large"), make_topic("large-out")

    def handle(delivery):
        return Output(target, b"x" * 3_000_000 if delivery.value == b"3" else delivery.value)

    produce(bootstrap, source, [(None, b"%d" % n) for n in range(6)])
    counts = process(
        bootstrap,
        handle,
        [source],
        source,
        lambda counts: counts["handled"] + counts["dead"] >= 6,
        retries=[],
    )
    assert (counts["handled"], counts["dead"]) == (5, 1)
    assert sorted(values_of(bootstrap, target)) == [b"0", b"1", b"2", b"4", b"5"]
    assert values_of(bootstrap, f"{source}.dlt") == [b"3"]


def test_an_unreadable_header_of_the_chain_is_counted_and_the_record_handled(bootstrap, make_topic):
    source = make_topic("headers")
    produce(bootstrap, source, [(None, b"1", [("kafkapy.retry.topic", b"t"), (DUE, b"soon")])])
    produce(bootstrap, source, [(None, b"2", [("kafkapy.retry.topic", b"t"), (DUE, b"9999999999999")])])
    counts = process(
        bootstrap, lambda delivery: None, [source], source, lambda counts: counts["handled"] >= 2, retries=[0.1]
    )
    assert counts["invalid_headers"] > 0


def test_a_topic_that_does_not_exist_is_refused(bootstrap):
    with pytest.raises(ConfigError, match="does not exist"):
        Processor(print, topics=["nowhere"], group="g", properties={"bootstrap.servers": bootstrap})


def bury(bootstrap: str, source: str, values) -> None:
    def refuse(delivery):
        raise Failure("dead")

    produce(bootstrap, source, [(value, value) for value in values])
    process(bootstrap, refuse, [source], source, lambda counts: counts["dead"] >= len(values))


def test_a_second_redrive_moves_nothing(bootstrap, make_topic):
    source = make_topic("redriven", 2)
    values = [b"%d" % n for n in range(30)]
    bury(bootstrap, source, values)
    properties = {"bootstrap.servers": bootstrap}
    dry = Redrive(properties, f"{source}.dlt").run(is_dry=True)
    assert dry["moved"] == 30
    some = Redrive(properties, f"{source}.dlt", conditions=[parse_condition("value^=1")]).run()
    assert (some["moved"], some["other"]) == (11, 19)
    rest = Redrive(properties, f"{source}.dlt").run()
    assert rest["moved"] == 19
    assert Redrive(properties, f"{source}.dlt").run()["moved"] == 0
    assert sorted(values_of(bootstrap, source)) == sorted(values * 2)
    assert all(not each.headers for each in records_of(bootstrap, source))


def test_the_redrive_command_prints_what_it_would_move(bootstrap, make_topic):
    source = make_topic("command")
    bury(bootstrap, source, [b"a", b"b"])
    output = io.StringIO()
    words = ["--from", f"{source}.dlt", "--where", "key=b", "--dry-run", "-b", bootstrap]
    with contextlib.redirect_stdout(output):
        assert run_tool(REDRIVE, words) == 0
    lines = output.getvalue().splitlines()
    assert lines[0].endswith(f"-> {source}") and json.loads(lines[1]) == {"other": 1, "would_move": 1}


def test_the_service_is_one_command(bootstrap, make_topic, tmp_path):
    source, target = make_topic("service"), make_topic("service-out")
    produce(bootstrap, source, [(target.encode(), b"1"), (target.encode(), b"raise"), (target.encode(), b"2")])
    words = ["retry", "-t", source, "-g", source, "--handler", "tests.reliable.handlers:misbehave", "--delays", "50ms"]
    with ToolProcess(tmp_path, [*words, "-b", bootstrap]) as service:
        wait_until(lambda: values_of(bootstrap, f"{source}.dlt") == [b"raise"])
        assert service.stop() == 0
        counts = json.loads(service.log().splitlines()[-1])
        assert counts == {"handled": 2, "failed": 2, "retried": 1, "dead": 1, "outputs": 2}
    assert values_of(bootstrap, target) == [b"1", b"2"]
