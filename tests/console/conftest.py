"""A broker with topics, records, groups and a transaction, consoles that show and change it, and a browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from kafkapy.client import Admin, Consumer, Producer
from kafkapy.client.admin import NewTopic
from tests.broker_process import BrokerProcess
from tests.console_process import ConsoleProcess

HOSTILE = {
    "markup": b"<script>alert(1)</script><img src=x onerror=alert(2)>",
    "invalid": b"\xff\xfe\x80 not UTF-8",
    "nested": b"[" * 100_000,
    "quotes": b"\"'><b>bold</b>",
    "null": None,
}


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    directory = tmp_path_factory.mktemp("console-broker")
    properties = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
    with BrokerProcess(directory, properties) as running:
        fill(running.bootstrap)
        yield running


def fill(bootstrap: str) -> None:
    """Creates what the tests look at."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        topics = [NewTopic("orders", 3, 1, configs={"retention.ms": "-1"}), NewTopic("hostile", 1, 1)]
        admin.create_topics([*topics, NewTopic("empty", 2, 1)]).check()
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(300):
            value = json.dumps({"id": number, "customer": {"name": f"customer-{number % 7}"}, "price": number / 4})
            producer.send(
                "orders",
                value.encode(),
                key=b"%d" % number,
                partition=number % 3,
                timestamp=1_700_000_000_000 + number,
                headers=[("trace", b"t-%d" % number)],
            )
        for name, value in HOSTILE.items():
            producer.send("hostile", value, key=name.encode())
    with Producer(bootstrap_servers=bootstrap, transactional_id="payments") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("hostile", b"in a transaction")
        producer.commit_transaction()
    with Consumer(bootstrap_servers=bootstrap, group_id="billing", enable_auto_commit=False) as consumer:
        consumer.assign([("orders", 0), ("orders", 1), ("orders", 2)])
        consumer.commit({("orders", 0): 100, ("orders", 1): 60, ("orders", 2): 0})


@pytest.fixture(scope="session")
def console(broker, tmp_path_factory):
    directory = tmp_path_factory.mktemp("console")
    arguments = ("--bootstrap-server", broker.bootstrap, "--name", "test", "--metadata-directory", str(broker.data))
    with ConsoleProcess(directory, *arguments) as running:
        yield running


@pytest.fixture
def visitor(console):
    return console.visitor()


@pytest.fixture(scope="module")
def changing(broker, tmp_path_factory):
    """Yields a console with --allow-changes and a second cluster, which is the first one under another name."""
    directory = tmp_path_factory.mktemp("changing")
    arguments = ("--bootstrap-server", broker.bootstrap, "--name", "test", "--allow-changes")
    with ConsoleProcess(directory, *arguments, "--cluster", f"second={broker.bootstrap}") as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        program = shutil.which("chromium")
        assert program, "Chromium is not installed: ./run-tests installs it, or says what to install"
        with playwright.chromium.launch(executable_path=program, args=["--no-sandbox"]) as running:
            yield running


def opened(browser: Browser, console: ConsoleProcess, problems: list[str], **settings) -> Page:
    """Returns a page whose user has logged in; violations and errors of its pages are added to `problems`."""
    page = browser.new_context(**settings).new_page()
    page.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(console.address)
    return page


def faults(page: Page) -> list[str]:
    """Returns what axe finds on the present page that is serious or critical."""
    found = Axe().run(page, options={"resultTypes": ["violations"]})
    return [
        f"{page.url}: {each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}"
        for each in found.response["violations"]
        if each["impact"] in ("serious", "critical")
    ]


@pytest.fixture
def page(browser, console) -> Iterator[Page]:
    problems: list[str] = []
    page = opened(browser, console, problems)
    yield page
    page.context.close()
    assert problems == []


@pytest.fixture
def place(console) -> str:
    return f"{console.origin}/c/test"


@pytest.fixture
def editing_page(browser, changing) -> Iterator[Page]:
    """Yields a browser page of a console with --allow-changes. Whatever the page shows when the test ends is checked by
    axe."""
    problems: list[str] = []
    page = opened(browser, changing, problems)
    yield page
    problems += faults(page)
    page.context.close()
    assert problems == []


@pytest.fixture
def editing_place(changing) -> str:
    return f"{changing.origin}/c/test"
