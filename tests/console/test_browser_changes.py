"""The functions of Kafka Manager in a browser: clusters, brokers, topics, partitions, groups, and changes of them."""

from __future__ import annotations

import pytest

from kafkapy.console.changes import CHANGES
from tests.console.conftest import faults, opened
from tests.console.screens import Brokers, Change, Configuration, Groups, Overview, Partitions, Topics


def test_clusters_are_listed_and_chosen(editing_page, editing_place):
    overview = Overview(editing_page, editing_place)
    overview.open()
    assert overview.clusters() == ["test", "second"]
    overview.choose_cluster("second")
    assert editing_page.url.endswith("/c/second/")
    assert overview.title.startswith("second")
    assert overview.figure("Brokers") == "1"


def test_brokers_show_their_address_replicas_and_configuration(editing_page, editing_place, broker):
    brokers = Brokers(editing_page, editing_place)
    brokers.open()
    row = brokers.row(1)
    assert row[1].rpartition(":")[2] == broker.bootstrap.rpartition(":")[2]
    assert int(row[5]) >= 6
    assert faults(editing_page) == []
    brokers.open_configuration(1)
    assert editing_page.get_by_text("offsets.topic.num.partitions", exact=True).count() == 1


def test_topics_and_partitions_show_replicas_isr_and_offsets(editing_page, editing_place):
    topics = Topics(editing_page, editing_place)
    topics.open()
    assert {"orders", "hostile", "empty"} <= set(topics.names())
    assert faults(editing_page) == []
    partitions = Partitions(editing_page, editing_place, "orders")
    partitions.open()
    assert partitions.figure("Partitions") == "3"
    row = partitions.row(1)
    assert (row["Leader"], row["Replicas"], row["ISR"], row["End offset"]) == ("1", "1", "1", "100")


def test_groups_show_state_and_lag_of_each_partition(editing_page, editing_place):
    groups = Groups(editing_page, editing_place)
    groups.open()
    assert groups.row("billing")[-1] == "140"
    assert faults(editing_page) == []
    groups.open_group("billing")
    cells = [row.locator("td").all_inner_texts() for row in groups.rows().all()]
    assert [(row[0], row[1], row[2], row[4]) for row in cells] == [
        ("orders", "0", "100", "0"),
        ("orders", "1", "60", "40"),
        ("orders", "2", "0", "100"),
    ]


def test_a_topic_is_created_enlarged_configured_moved_and_deleted(editing_page, editing_place):
    change = Change(editing_page, editing_place)
    Topics(editing_page, editing_place).open()
    change.follow("Create a topic")
    change.fill(topic="books", partitions="2", configuration="retention.ms=60000")
    change.review()
    assert ["partitions", "", "2"] in change.compared()
    assert "--create --topic books --partitions 2 --config retention.ms=60000" in change.command()
    assert faults(editing_page) == []
    assert change.apply() == "The topic books was created."
    assert faults(editing_page) == []
    change.proceed()

    change.follow("Add partitions")
    change.fill(partitions="3")
    change.review()
    assert change.compared() == [["partitions", "2", "3"]]
    assert change.apply() == "The topic books has 3 partitions now."
    change.proceed()
    assert Partitions(editing_page, editing_place, "books").figure("Partitions") == "3"

    change.follow("Change the configuration")
    change.fill(set="segment.bytes=2000000", remove="retention.ms")
    change.review()
    assert ["retention.ms", "60000", "(the default)"] in change.compared()
    change.apply()
    change.proceed()
    row = Configuration(editing_page, editing_place, "books").row("segment.bytes")
    assert "2000000" in row[1]
    assert "topic" in row[2]

    change.follow("Move replicas")
    change.fill(replicas="0: 1")
    change.review()
    assert change.compared() == [["0", "1", "1"]]
    assert "will move" in change.apply()
    change.proceed()

    change.follow("Delete the topic")
    change.review()
    assert change.apply("books") == "The topic books was deleted."
    change.proceed()
    assert "books" not in Topics(editing_page, editing_place).names()


def test_a_refused_change_says_why(browser, changing, editing_place):
    problems: list[str] = []
    page = opened(browser, changing, problems)
    change = Change(page, editing_place)
    Partitions(page, editing_place, "orders").open()
    change.follow("Elect leaders")
    page.get_by_role("button", name="Review").click()
    assert "there is nothing to elect" in page.get_by_role("alert").inner_text()
    assert faults(page) == []
    Partitions(page, editing_place, "orders").open()
    change.follow("Delete the topic")
    change.review()
    page.locator("#confirm").fill("order")
    page.get_by_role("button", name="Apply").click()
    assert "Type orders to confirm" in page.get_by_role("alert").inner_text()
    page.context.close()
    # Chromium reports a page with such a status as an error; there is no other.
    assert [each.partition("status of ")[2] for each in problems] == ["409 (Conflict)", "400 (Bad Request)"]


@pytest.mark.parametrize("name", CHANGES)
def test_the_form_of_each_change_is_accessible(editing_page, editing_place, name):
    editing_page.goto(f"{editing_place}/change/{name}?topic=orders&group=billing&kind=topic&name=orders")
    assert editing_page.locator("h1").inner_text() == CHANGES[name].title


def test_a_topic_is_created_without_javascript(browser, changing, editing_place):
    problems: list[str] = []
    page = opened(browser, changing, problems, java_script_enabled=False)
    change = Change(page, editing_place)
    Topics(page, editing_place).open()
    change.follow("Create a topic")
    change.fill(topic="plain", partitions="1")
    change.review()
    assert change.apply() == "The topic plain was created."
    change.proceed()
    change.follow("Delete the topic")
    change.review()
    assert change.apply("plain") == "The topic plain was deleted."
    page.context.close()
    assert problems == []
