"""Masking rules: masked content is on no page and in no export, and no filter, replay or comparison reveals it."""

from __future__ import annotations

import json

import pytest

from kafkapy.client import Producer
from kafkapy.console.masking import MASK, Mask, mask_of, parse_rule
from kafkapy.console.record_filter import Record
from tests.console.test_changes import review
from tests.console_process import ConsoleProcess
from tests.tools.tool_host import run_ours

SECRET = "4111-2222"
VALUES = (
    json.dumps({"id": 1, "card": {"number": SECRET}, "lines": [{"card": SECRET}, {"card": SECRET, "n": 2}]}).encode(),
    f"not JSON: {SECRET}".encode(),
    b'{"card": {"number": "%s"}, "card": {"number": "%s"}}' % (SECRET.encode(), SECRET.encode()),
    b"[" * 50_000 + SECRET.encode(),
    None,
)
RULES = ("--mask", "secret*=json.card.number,json.lines.card,header.token", "--mask", "secrets=key")


@pytest.fixture(scope="module")
def masking(broker, tmp_path_factory):
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for value in VALUES:
            headers = [("token", SECRET.encode()), ("plain", b"shown")]
            producer.send("secrets", value, key=SECRET.encode(), headers=headers).result()
    arguments = ("--bootstrap-server", broker.bootstrap, "--name", "test", "--allow-changes", *RULES)
    with ConsoleProcess(tmp_path_factory.mktemp("masking"), *arguments) as running:
        yield running


@pytest.fixture
def reader(masking):
    return masking.visitor()


@pytest.mark.parametrize(
    "path",
    [
        *("?from=oldest", "?from=newest", "?from=oldest&vd=hex&kd=hex", "/export?from=oldest&as=json"),
        *("/export?from=oldest&as=csv", "/records/0/0?download=value", "/records/0/0?download=key"),
        *(f"/records/0/{offset}" for offset in range(len(VALUES))),
    ],
)
def test_masked_content_is_nowhere(reader, path):
    reply = reader.get(f"/c/test/topics/secrets{path}")
    assert reply.status == 200
    assert SECRET not in reply.text
    assert SECRET.encode().hex(" ") not in reply.text
    assert MASK in reply.text or MASK.encode().hex() in reply.text.replace(" ", "")


def test_other_content_is_shown(reader):
    shown = reader.get("/c/test/topics/secrets/records/0/0").plain
    assert '"id": 1' in shown
    assert '"n": 2' in shown
    assert "shown" in shown
    assert "Write it again" not in shown
    assert "Write it again" in reader.get("/c/test/topics/orders/records/1/50").plain
    assert "customer-4" in reader.get("/c/test/topics/orders/records/1/50").plain


@pytest.mark.parametrize(
    "query",
    [
        f"field=value&op=contains&text={SECRET}",
        f"field=key&op=equals&text={SECRET}",
        f"field=header&name=token&op=equals&text={SECRET}",
        f"field=header&name=&op=equals&text={SECRET}",
        f"field=json&name=card.number&op=equals&text={SECRET}",
        f"field=json&name=card&op=contains&text={SECRET}",
        f"field=json&name=lines.0.card&op=equals&text={SECRET}",
        f"field=json&name=lines&op=contains&text={SECRET}",
    ],
)
@pytest.mark.parametrize("page", ["", "/export"])
def test_a_filter_on_masked_content_is_refused(reader, query, page):
    reply = reader.get(f"/c/test/topics/secrets{page}?from=oldest&{query}")
    assert (reply.status, "masking rule" in reply.plain) == (403, True)


def test_a_filter_on_other_content_works(reader):
    reply = reader.get("/c/test/topics/secrets?from=oldest&field=json&name=id&op=equals&text=1")
    assert "5 records read, 1 shown" in reply.plain
    assert reader.get("/c/test/topics/secrets?field=header&name=plain&op=equals&text=shown").status == 200


def test_masked_content_is_neither_replayed_nor_compared(reader):
    reply = review(reader, "replay", topic="secrets", target="copied")
    assert (reply.status, "A replay is not allowed" in reply.plain) == (403, True)
    for first, second in (("secrets", "orders"), ("orders", "secrets")):
        reply = reader.get(f"/c/test/compare?topic={first}&with={second}&content=1")
        assert (reply.status, "Comparing content is not allowed" in reply.plain) == (403, True)
    assert reader.get("/c/test/compare?topic=secrets&with=orders").status == 200


def test_the_rules_of_a_topic_are_joined():
    rules = [parse_rule("pay*=value"), parse_rule("*=header.a,json.b.c"), parse_rule("other=key")]
    assert mask_of(rules, "payments") == Mask(False, True, frozenset({"a"}), (("b", "c"),))
    assert not mask_of(rules[:1], "orders")


def test_elements_and_missing_paths():
    def masked(rule: str, value: bytes) -> bytes | None:
        return parse_rule(f"t={rule}").mask.apply(Record(0, 0, -1, 0, None, value, ())).value

    assert masked("json.a.0.b", b'{"a": [{"b": 1}, {"b": 2}]}') == b'{"a": [{"b": "(masked)"}, {"b": 2}]}'
    assert masked("json.a.b", b'{"a": [{"b": 1}, [{"b": 2}], 3]}') == (
        b'{"a": [{"b": "(masked)"}, [{"b": "(masked)"}], 3]}'
    )
    assert masked("json.x.y", b'{"a": 1}') == b'{"a": 1}'
    assert masked("json.a.b.c", b'{"a": "text"}') == b'{"a": "text"}'


@pytest.mark.parametrize("rule", ["", "topic", "topic=", "=key", "topic=code", "topic=json.", "topic=json.a..b"])
def test_an_invalid_rule_is_refused_at_the_start(rule):
    done = run_ours("console", "--bootstrap-server", "localhost:1", "--listener", "localhost:0", "--mask", rule)
    assert done.code != 0
    assert "--mask: " in done.err
