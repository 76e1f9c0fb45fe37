"""The newest numbers that clients pushed, for the metrics page: a bounded number of series, each forgotten in time."""

from __future__ import annotations

from kafkapy.server.otlp import Points

# A client that has been silent for so many of its push intervals is gone.
SILENT_INTERVALS = 3


class ClientSeries:
    """One number of one client. Owner thread changes `value`, any reads."""

    __slots__ = ("attributes", "client_id", "expires_ms", "instance_id", "metric", "value")

    def __init__(self, metric: str, client_id: str, instance_id: str, attributes: str) -> None:
        self.metric = metric
        self.client_id = client_id
        self.instance_id = instance_id
        self.attributes = attributes
        self.value = 0.0
        self.expires_ms = 0


class ClientSeriesTable:
    """Owns the series. The reactor's thread stores; any thread asks for `current`.

    When all places are taken, those whose time is over are given away; if there is none, what comes is dropped.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._series: dict[tuple[str, str, str], ClientSeries] = {}
        self._swept_ms = 0
        self.dropped = 0

    def store(self, instance_id: str, client_id: str, found: Points, now_ms: int, interval_ms: int) -> None:
        """Takes over one push."""
        self.dropped += found.dropped
        for point in found.points:
            key = (instance_id, point.name, point.attributes)
            series = self._series.get(key)
            if series is None:
                if not self._has_room(now_ms):
                    self.dropped += 1
                    continue
                series = self._series[key] = ClientSeries(point.name, client_id, instance_id, point.attributes)
            series.value = series.value + point.value if point.is_difference else point.value
            series.expires_ms = now_ms + SILENT_INTERVALS * interval_ms

    def current(self, now_ms: int) -> list[ClientSeries]:
        """Those of clients that are not silent, a metric's together."""
        alive = [series for series in list(self._series.values()) if series.expires_ms > now_ms]
        return sorted(alive, key=lambda series: (series.metric, series.instance_id, series.attributes))

    def _has_room(self, now_ms: int) -> bool:
        if len(self._series) < self._limit:
            return True
        if now_ms - self._swept_ms >= 1000:  # a sweep looks at all of them
            self._swept_ms = now_ms
            self._series = {key: series for key, series in self._series.items() if series.expires_ms > now_ms}
        return len(self._series) < self._limit
