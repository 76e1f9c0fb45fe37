"""A running broker with a metrics listener, and its pages as Prometheus would read them."""

from __future__ import annotations

import http.client
import time
from collections.abc import Mapping
from pathlib import Path

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from kafkapy.metrics import table
from tests.broker_process import BrokerProcess
from tests.ports import free_port


class WatchedBroker(BrokerProcess):
    """A broker whose metrics listener is on `metrics_port`."""

    def __init__(self, directory: Path, properties: Mapping[str, str] | None = None) -> None:
        self.metrics_port = free_port()
        listener = {"kafkapy.metrics.listener": f"127.0.0.1:{self.metrics_port}"}
        super().__init__(directory, {**listener, **(properties or {})})
        self._last_page = -1.0

    def get(self, path: str) -> tuple[int, str]:
        """Returns the status and the text of a page."""
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def page(self) -> Page:
        """Returns a page that is newer than the one returned before; the broker sends a page again for 0.25 s."""
        while True:
            status, text = self.get("/metrics")
            assert status == 200, text
            page = Page(text)
            number = page.value(table.PAGES.name)
            if number != self._last_page:
                self._last_page = number
                return page
            time.sleep(0.02)


class Page:
    """One page, parsed by Prometheus's own library."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.families: dict[str, Metric] = {}
        for family in text_string_to_metric_families(text):
            assert family.name not in self.families, f"{family.name} is there twice"
            self.families[family.name] = family
        self._samples = [sample for family in self.families.values() for sample in family.samples]
        keys = [(sample.name, frozenset(sample.labels.items())) for sample in self._samples]
        assert len(keys) == len(set(keys)), "a series is there twice"

    def values(self, name: str, **labels: str) -> list[float]:
        """Returns the values of all series of this name that have at least these labels; an empty label is missing."""
        return [
            sample.value
            for sample in self._samples
            if sample.name == name and all(sample.labels.get(key, "") == value for key, value in labels.items())
        ]

    def value(self, name: str, **labels: str) -> float:
        """Returns the value of the only series that has these labels."""
        found = self.values(name, **labels)
        assert len(found) == 1, (name, labels, found)
        return found[0]
