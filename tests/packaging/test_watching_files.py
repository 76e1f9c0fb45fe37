"""The dashboard and the alerts use only metrics and labels of the metric tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from kafkapy.metrics.metric import HISTOGRAM, SUMMARY, Metric
from kafkapy.metrics.probe_table import METRICS as PROBE_METRICS
from kafkapy.metrics.table import METRICS
from tests.operations.prometheus import PACKAGING, dashboard_expressions

ALERTS = (PACKAGING / "prometheus" / "alerts.yml").read_text()
# A name that is not followed by the bracket of a call, and the labels in its braces.
SERIES = re.compile(r"\b((?:kafka|kafkapy|process)_[a-z0-9_]+|up)\b(?:\{([^}]*)\})?(?!\()")
LABEL = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')
GROUPED = re.compile(r"\bby \(([^)]*)\)")
# Labels that Prometheus itself adds.
ADDED_LABELS = {"instance", "job"}


def series_of(metric: Metric) -> Iterator[tuple[str, set[str]]]:
    """Returns the names under which a metric is stored, each with its labels."""
    labels = set(metric.labels)
    if metric.kind == SUMMARY:
        yield metric.name, labels | {"quantile"}
    elif metric.kind == HISTOGRAM:
        yield f"{metric.name}_bucket", labels | {"le"}
    else:
        yield metric.name, labels
    if metric.kind in (SUMMARY, HISTOGRAM):
        yield f"{metric.name}_sum", labels
        yield f"{metric.name}_count", labels


STORED: dict[str, set[str]] = {
    "up": set(),
    **{name: labels for metric in (*METRICS.values(), *PROBE_METRICS.values()) for name, labels in series_of(metric)},
}


def alert_rules() -> dict[str, str]:
    """Returns the text of every rule by name."""
    parts = re.split(r"^ *- alert: (\w+)$", ALERTS, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def alert_expressions() -> list[str]:
    return [found for rule in alert_rules().values() for found in re.findall(r"^ *expr: (.+)$", rule, re.MULTILINE)]


def labels_of(expression: str) -> set[str]:
    """Returns the names of the labels that the metrics in an expression of PromQL may have."""
    return {label for name, _ in SERIES.findall(expression) for label in STORED[name]} | ADDED_LABELS


def unknown_in(expression: str) -> list[str]:
    """Returns the metrics and labels of an expression that do not exist."""
    found = SERIES.findall(expression)
    unknown = [name for name, _ in found if name not in STORED]
    for name, selector in found:
        if name in STORED:
            known = STORED[name] | ADDED_LABELS
            unknown += [f"{name}{{{label}}}" for label in LABEL.findall(selector) if label not in known]
    if not unknown:
        grouped = [label.strip() for group in GROUPED.findall(expression) for label in group.split(",")]
        unknown += [label for label in grouped if label not in labels_of(expression)]
    return unknown


@pytest.mark.parametrize("expression", [*dashboard_expressions(), *alert_expressions()])
def test_an_expression_asks_for_what_there_is(expression: str) -> None:
    assert SERIES.search(expression), "no series"
    assert unknown_in(expression) == []


def test_what_is_not_there_would_be_found() -> None:
    assert unknown_in('rate(kafka_nothing_total{topic=""}[1m])') == ["kafka_nothing_total"]
    assert unknown_in('kafkapy_probe_up{colour="red"}') == ["kafkapy_probe_up{colour}"]
    assert unknown_in("sum by (colour) (kafkapy_groups)") == ["colour"]
    assert unknown_in('kafkapy_request_seconds{request="Produce"}') == ["kafkapy_request_seconds"]


def test_every_alert_says_what_it_is_about() -> None:
    rules = alert_rules()
    assert len(rules) == len(alert_expressions()) == ALERTS.count("alert:") > 15
    for name, rule in rules.items():
        assert re.search(r"severity: (critical|warning)\b", rule), name
        assert "summary: " in rule, name
        expression = re.findall(r"^ *expr: (.+)$", rule, re.MULTILINE)[0]
        shown = set(re.findall(r"\$labels\.(\w+)", rule))
        assert shown <= labels_of(expression), name


def test_the_dashboard_is_whole() -> None:
    """Checks that panels do not overlap, have titles, and have unique ids."""
    panels = json.loads((PACKAGING / "grafana" / "kafkapy.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel["title"]
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
