"""The samples of the pages on the schema registry, the REST proxy, reliability patterns and drop-in clients."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents.blocks import ROOT, of_section
from tests.documents.newcomer import Newcomer

pytestmark = pytest.mark.timeout(600)
START_TIMEOUT_S = 120
# The rules of the page that a command block names, and the modules and topics that its samples need.
RULES = re.compile(r"^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HANDLER = "def charge(delivery):\n    return None\n"


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    """Yields a newcomer with an activated environment and a running broker."""
    with Newcomer(tmp_path) as made:
        made.activates(". .venv/bin/activate")
        made.leaves_running("kafkapy broker start", until="ready", timeout_s=START_TIMEOUT_S)
        yield made


def create_topics(newcomer: Newcomer, *names: str) -> None:
    for name in names:
        newcomer.types(f"kafkapy topics --bootstrap-server localhost:9092 --create --topic {name}")


def start_of(page: str, heading: str) -> tuple[str, list]:
    """Returns the command that starts a program, without the installation before it, and the other blocks."""
    first, *others = of_section(page, heading)
    installation, command = first.text.splitlines()
    assert installation.startswith("pip install 'kafkapy[")
    return command, others


def test_the_registry_and_the_proxy_answer_the_samples(newcomer: Newcomer) -> None:
    command, (registration,) = start_of("docs/schema-registry.md", "The schema registry")
    newcomer.leaves_running(command, until="kafkapy registry ready", timeout_s=START_TIMEOUT_S)
    assert json.loads(newcomer.types(registration.text))["id"] == 1
    (serializers,) = of_section("docs/schema-registry.md", "Serializers")
    assert newcomer.types(serializers.text, serializers.kind) == "{'id': 1}\n"

    command, (production,) = start_of("docs/rest-proxy.md", "The REST proxy")
    newcomer.leaves_running(command, until="kafkapy rest ready", timeout_s=START_TIMEOUT_S)
    # The record of the serializers' sample precedes it.
    assert json.loads(newcomer.types(production.text))["offsets"][0]["offset"] == 1


def test_the_services_run_as_their_page_says(newcomer: Newcomer) -> None:
    page = "docs/reliable.md"
    create_topics(newcomer, "orders", "orders.dlt", "orders.big", "orders.eu", "orders.rest", "audit", "reminders")
    (newcomer.clone / "charges.py").write_text(HANDLER)
    (retry,) = of_section(page, "Retries and dead letters")
    newcomer.leaves_running(retry.text, until="kafkapy retry: ready", timeout_s=START_TIMEOUT_S)
    (redrive,) = of_section(page, "Redrive")
    newcomer.types(redrive.text)

    delay, program = of_section(page, "Delayed records")
    newcomer.leaves_running(delay.text, until="kafkapy delay: ready", timeout_s=START_TIMEOUT_S)
    assert newcomer.types(program.text, program.kind) == ""

    (rules,) = RULES.findall((ROOT / page).read_text())
    (newcomer.clone / "orders.json").write_text(rules)
    check, route = of_section(page, "Routing")[0].text.splitlines()
    assert newcomer.types(check) == "2 rules from orders to audit, orders.big, orders.eu, orders.rest\n"
    newcomer.leaves_running(route, until="kafkapy route: ready", timeout_s=START_TIMEOUT_S)

    (tail,) = of_section(page, "Logs")
    newcomer.leaves_running(tail.text, until="kafkapy tail: ready", timeout_s=START_TIMEOUT_S)


def test_a_drop_in_client_is_an_import(newcomer: Newcomer) -> None:
    (imports,) = of_section("docs/drop-in-clients.md", "Drop-in clients")
    program = (
        f"{imports.text}\nproducer = kafka.KafkaProducer()\nprint(producer.send('t', b'v').get().offset, NewTopic)"
    )
    assert newcomer.types(program, imports.kind).startswith("0 <class 'kafkapy.compat.kafka.admin.")
