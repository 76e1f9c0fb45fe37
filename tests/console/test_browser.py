"""The console in the distribution's Chromium: no violation of its policy, no error, nothing inaccessible."""

from __future__ import annotations

import pytest

from kafkapy.client import Producer
from tests.console.conftest import faults, opened
from tests.console.screens import Group, Messages, Overview, Topics

PATHS = (
    *("/", "/topics", "/topics/orders", "/topics/orders/partitions", "/topics/orders/configuration"),
    *("/topics/orders/records/1/50", "/topics/hostile?from=oldest", "/groups", "/group?id=billing", "/brokers"),
    *("/history", "/jobs"),
    *("/directories", "/transactions", "/security", "/metadata", "/metadata/difference?from=0"),
)


def test_a_user_walks_through_the_console(page, place):
    overview = Overview(page, place)
    overview.open()
    assert overview.figure("Brokers") == "1"
    overview.go_to("Topics")
    topics = Topics(page, place)
    topics.search("ord")
    assert topics.names() == ["orders"]
    topics.open_topic("orders")
    messages = Messages(page, place, "orders")
    messages.filter("key", "equals", "151")
    assert messages.offsets() == ["50"]
    assert "text=151" in page.url
    messages.open_first()
    assert page.url.endswith("/topics/orders/records/1/50")
    assert '"id": 151' in page.locator("pre").last.inner_text()


def test_a_group_says_why_it_lags(page, place):
    group = Group(page, place)
    group.open(id="billing")
    assert group.figure("Lag") == "140"
    assert "No member reads; 140 records wait." in group.reasons()


def test_markup_in_a_record_is_not_run(page, place):
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    Messages(page, place, "hostile").open(**{"from": "oldest"})
    page.goto(f"{place}/topics/hostile/records/0/0")
    assert page.locator("pre").last.inner_text().startswith("<script>alert(1)")
    assert page.locator("img[src=x]").count() == 0
    assert dialogs == []


def test_a_live_page_shows_records_as_they_are_written(page, place, broker):
    messages = Messages(page, place, "empty")
    page.goto(f"{place}/topics/empty?from=live&limit=2", wait_until="commit")
    page.locator("tr.progress").first.wait_for(state="attached")
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("empty", b"first", partition=0)
        producer.flush()
        page.get_by_text("first", exact=True).wait_for()
        producer.send("empty", b"second", partition=1)
    page.get_by_text("second", exact=True).wait_for()
    page.wait_for_load_state()
    assert "2 records are shown." in messages.outcome()


def test_a_stopped_page_keeps_its_rows(page, place):
    page.goto(f"{place}/topics/orders?from=live", wait_until="commit")
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Stop").wait_for(state="hidden")
    assert page.locator("table.records").count() == 1


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_pages_have_no_errors_and_no_faults_of_accessibility(browser, console, place, scheme, width):
    problems: list[str] = []
    page = opened(browser, console, problems, color_scheme=scheme, viewport={"width": width, "height": 800})
    for path in PATHS:
        page.goto(place + path)
        problems += faults(page)
        wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth + 1")
        problems += [f"{path} is wider than the screen"] if wide else []
    page.context.close()
    assert problems == []


def test_reading_works_without_javascript(browser, console, place):
    problems: list[str] = []
    page = opened(browser, console, problems, java_script_enabled=False)
    for path in PATHS:
        page.goto(place + path)
        assert page.locator("h1").count() == 1, path
    messages = Messages(page, place, "orders")
    messages.open(**{"from": "oldest", "partition": 0, "limit": 20})
    assert messages.offsets() == [str(number) for number in range(20)]
    page.context.close()
    assert problems == []
