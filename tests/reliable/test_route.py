"""The router on a broker."""

from __future__ import annotations

import json

import pytest

from kafkapy.client import Producer
from kafkapy.client.reliable import Router, parse_rules
from kafkapy.errors import ConfigError
from kafkapy.tools.reliable.route import TOOL
from kafkapy.tools.tool import run_tool
from tests.reliable.running import records_of, running, values_of, wait_until


def test_records_go_where_the_rules_say(bootstrap, make_topic):
    source, big, audit, rest = make_topic("orders", 2), make_topic("big"), make_topic("audit"), make_topic("rest")
    table = parse_rules(
        json.dumps(
            {
                "rules": [
                    {"name": "big", "when": ["json.amount>=500"], "to": [big, audit]},
                    {"name": "eu", "when": ["header.region=eu"], "to": [audit]},
                ],
                "otherwise": [rest],
            }
        ),
        [source],
    )
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(100):
            headers = [("region", "eu")] if number % 4 == 0 else []
            producer.send(source, json.dumps({"amount": number * 10}), b"%d" % number, headers=headers)
        producer.send(source, b"{not JSON", b"x")
        producer.send(source, b"{}", b"y", headers=[("kafkapy.route.hops", "16")])
    router = Router({"bootstrap.servers": bootstrap}, source, table)
    with router.relay as relay, running(relay.run, relay.stop) as errors:
        wait_until(lambda: relay.counts["read"] >= 101 and relay.counts["dead"] >= 1, errors)
    assert sorted(int(each.key) for each in records_of(bootstrap, big)) == list(range(50, 100))
    expected = [n for n in range(100) if n >= 50 or n % 4 == 0]
    assert sorted(int(each.key) for each in records_of(bootstrap, audit)) == expected
    assert {each.key for each in records_of(bootstrap, rest)} == {
        b"x",
        *(b"%d" % n for n in range(50) if n % 4),
    }
    assert (relay.counts["invalid_json"], relay.counts["loops"], relay.counts["rule big"]) == (1, 1, 50)
    assert values_of(bootstrap, f"{source}.dlt") == [b"{}"]


def test_a_target_that_does_not_exist_is_refused(bootstrap, make_topic):
    table = parse_rules('{"otherwise": ["nowhere"]}', [make_topic("in")])
    with pytest.raises(ConfigError, match="nowhere does not exist"):
        Router({"bootstrap.servers": bootstrap}, "g", table)


def test_the_command_checks_rules(tmp_path, capsys):
    path = tmp_path / "rules.json"
    path.write_text('{"from": "in", "rules": [{"to": ["in"]}]}')
    assert run_tool(TOOL, ["--rules", str(path), "--check"]) == 1
    assert "a loop" in capsys.readouterr().err
    path.write_text('{"from": "in", "rules": [{"to": ["out"]}]}')
    assert run_tool(TOOL, ["--rules", str(path), "--check"]) == 0
    assert capsys.readouterr().out == "1 rules from in to out\n"
