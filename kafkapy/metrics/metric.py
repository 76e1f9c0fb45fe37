"""The declaration of a metric: its name, its kind, its labels and its meaning."""

from __future__ import annotations

import re

COUNTER, GAUGE, SUMMARY, HISTOGRAM, UNTYPED = "counter", "gauge", "summary", "histogram", "untyped"
NAME = re.compile(r"[a-z_][a-z0-9_]*")
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class Metric:
    """One metric: a family of series, one for each combination of label values. Must not be changed.

    The values of a series are given in the order of `labels`.
    """

    __slots__ = ("documentation", "kind", "labels", "name")

    def __init__(self, name: str, kind: str, labels: tuple[str, ...], documentation: str) -> None:
        if not NAME.fullmatch(name) or not all(map(LABEL.fullmatch, labels)):
            raise ValueError(f"Prometheus does not accept the metric {name} with the labels {labels}")
        self.name = name
        self.kind = kind
        self.labels = labels
        self.documentation = documentation

    def head(self) -> bytes:
        """Returns the HELP and TYPE lines, which precede the metric's series on the page."""
        documentation = self.documentation.replace("\\", "\\\\").replace("\n", "\\n")
        return f"# HELP {self.name} {documentation}\n# TYPE {self.name} {self.kind}\n".encode()

    def __repr__(self) -> str:
        return f"Metric({self.name})"


def counter(name: str, documentation: str, *labels: str) -> Metric:
    """Returns the declaration of a metric whose value only grows, from 0 at the start of the process."""
    return Metric(name, COUNTER, labels, documentation)


def gauge(name: str, documentation: str, *labels: str) -> Metric:
    return Metric(name, GAUGE, labels, documentation)


def summary(name: str, documentation: str, *labels: str) -> Metric:
    """Returns the declaration of a metric with quantiles of the last minute (label `quantile`), and with `_sum` and
    `_count` since the start of the process."""
    return Metric(name, SUMMARY, labels, documentation)


def histogram(name: str, documentation: str, *labels: str) -> Metric:
    """Returns the declaration of a metric with the number of values up to each upper bound (label `le`), `_sum` and
    `_count`, all since the start of the process."""
    return Metric(name, HISTOGRAM, labels, documentation)


def untyped(name: str, documentation: str, *labels: str) -> Metric:
    return Metric(name, UNTYPED, labels, documentation)


def format_labels(names: tuple[str, ...], values: tuple[object, ...]) -> str:
    """Returns `{name="value",...}` with escaped values; "" if there are no labels."""
    if not names:
        return ""
    pairs = (f'{name}="{escape(str(value))}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def escape(text: str) -> str:
    """Returns the text with backslashes, quotation marks and newlines escaped, as a label's value in Prometheus's text
    format."""
    if "\\" in text or '"' in text or "\n" in text:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text


def format_number(value: float) -> str:
    """Returns the number in Prometheus's text format."""
    if isinstance(value, int):
        return str(int(value))
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
