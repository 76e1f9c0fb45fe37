"""Rows of the table of metrics, and the text of their series."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafkapy.metrics import probe_table, table
from kafkapy.metrics.metric import Metric, counter, escape, format_labels, format_number, gauge
from kafkapy.metrics.page import Page

AWKWARD = ["", 'a"b', "a\\b", "a\nb", "\\n", 'x"} 1\nother{y="', "ä €"]


def parsed(page):
    return {family.name: family for family in text_string_to_metric_families(bytes(page.native).decode())}


def test_the_tables_have_no_name_twice():
    for module in (table, probe_table):
        rows = [value for value in vars(module).values() if isinstance(value, Metric)]
        assert len(rows) == len(module.METRICS)
    assert not set(table.METRICS) & set(probe_table.METRICS)


def test_a_counter_ends_in_total():
    for row in (*table.METRICS.values(), *probe_table.METRICS.values()):
        assert row.name.endswith("_total") == (row.kind == "counter"), row
        assert row.documentation.endswith("."), row


@pytest.mark.parametrize("value", AWKWARD)
def test_labels_are_escaped(value):
    page = Page()
    page.family(gauge("some_gauge", "A \\ and\nmore.", "name", "other"), [((value, "x"), 1)])
    (sample,) = parsed(page)["some_gauge"].samples
    assert sample.labels == {"name": value, "other": "x"}
    assert escape(value) == value or "\\" in escape(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (True, "1"), (-5, "-5"), (2**63, "9223372036854775808"), (0.1, "0.1"), (1e300, "1e+300"),
     (float("inf"), "+Inf"), (float("-inf"), "-Inf"), (float("nan"), "NaN")],
)  # fmt: skip
def test_numbers_are_written_as_prometheus_reads_them(value, text):
    assert format_number(value) == text


def test_labels_without_names_are_nothing():
    assert format_labels((), ()) == ""
    with pytest.raises(ValueError, match="zip"):
        format_labels(("a",), ())


@pytest.mark.parametrize(("name", "labels"), [("1name", ()), ("na-me", ()), ("Name", ()), ("name", ("a-b",))])
def test_names_that_prometheus_refuses(name, labels):
    with pytest.raises(ValueError, match="Prometheus does not accept"):
        counter(name, "", *labels)


def test_parts_of_a_summary_and_a_histogram():
    page = Page()
    page.begin(table.REQUEST_TIME_MS)
    page.part(table.REQUEST_TIME_MS, ("Fetch",), 1.5, "quantile", "0.99")
    page.sample(table.REQUEST_TIME_MS, ("Fetch",), 3, "_count")
    page.begin(table.REQUEST_SECONDS)
    page.part(table.REQUEST_SECONDS, ("Fetch",), 2, "le", "+Inf")
    families = parsed(page)
    quantile, count = families[table.REQUEST_TIME_MS.name].samples
    assert quantile.labels == {"request": "Fetch", "quantile": "0.99"}
    assert (count.name, count.value) == ("kafka_network_requestmetrics_totaltimems_count", 3)
    (bucket,) = families[table.REQUEST_SECONDS.name].samples
    assert (bucket.name, bucket.labels) == ("kafkapy_request_seconds_bucket", {"request": "Fetch", "le": "+Inf"})
