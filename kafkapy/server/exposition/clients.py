"""The metrics that clients have pushed (KIP-714)."""

from __future__ import annotations

from kafkapy.metrics import table
from kafkapy.metrics.page import Page
from kafkapy.server.client_telemetry import ClientTelemetry


def write_clients(page: Page, telemetry: ClientTelemetry, monotonic_ms: int) -> None:
    page.one(table.CLIENT_INSTANCES, len(telemetry))
    page.one(table.CLIENT_PUSHES, telemetry.pushes)
    page.one(table.CLIENT_PUSHES_REFUSED, telemetry.refused_pushes)
    page.one(table.CLIENT_PUSHED_BYTES, telemetry.pushed_bytes)
    page.one(table.CLIENT_DROPPED, telemetry.series.dropped)
    page.begin(table.CLIENT_METRIC)
    for series in telemetry.series.current(monotonic_ms):
        values = (series.metric, series.client_id, series.instance_id, series.attributes)
        page.sample(table.CLIENT_METRIC, values, series.value)
