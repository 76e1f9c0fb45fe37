"""The newest metric values that clients have pushed, for the metrics page: a bounded number of series, which expire."""

from __future__ import annotations

from kafkapy.server.otlp import Points

# A series expires after this many push intervals of its client without a push.
SILENT_INTERVALS = 3


class ClientSeries:
    """The newest value of one metric of one client, with one set of attributes. The reactor's thread changes `value`;
    any thread reads it."""

    __slots__ = ("attributes", "client_id", "expires_ms", "instance_id", "metric", "value")

    def __init__(self, metric: str, client_id: str, instance_id: str, attributes: str) -> None:
        self.metric = metric
        self.client_id = client_id
        self.instance_id = instance_id
        self.attributes = attributes
        self.value = 0.0
        self.expires_ms = 0


class ClientSeriesTable:
    """The table of series. The reactor's thread calls `store`; any thread may call `current`.

    When the table has `limit` series and a new one is to be stored, expired series are removed. If none has expired,
    the new series is dropped.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._series: dict[tuple[str, str, str], ClientSeries] = {}
        self._swept_ms = 0
        self.dropped = 0

    def store(self, instance_id: str, client_id: str, found: Points, monotonic_ms: int, interval_ms: int) -> None:
        """Stores the metric values that a client has pushed (KIP-714), and counts the values that were dropped.

        `found` has the values, and the number of values that were dropped when the push was decoded. `interval_ms` is
        the client's push interval; a series expires after three intervals without a push.
        """
        self.dropped += found.dropped
        for point in found.points:
            key = (instance_id, point.name, point.attributes)
            series = self._series.get(key)
            if series is None:
                if not self._has_room(monotonic_ms):
                    self.dropped += 1
                    continue
                series = self._series[key] = ClientSeries(point.name, client_id, instance_id, point.attributes)
            series.value = series.value + point.value if point.is_difference else point.value
            series.expires_ms = monotonic_ms + SILENT_INTERVALS * interval_ms

    def current(self, monotonic_ms: int) -> list[ClientSeries]:
        """Returns the series that have not expired, sorted by metric."""
        alive = [series for series in list(self._series.values()) if series.expires_ms > monotonic_ms]
        return sorted(alive, key=lambda series: (series.metric, series.instance_id, series.attributes))

    def _has_room(self, monotonic_ms: int) -> bool:
        if len(self._series) < self._limit:
            return True
        if monotonic_ms - self._swept_ms >= 1000:  # a sweep visits all series
            self._swept_ms = monotonic_ms
            self._series = {key: series for key, series in self._series.items() if series.expires_ms > monotonic_ms}
        return len(self._series) < self._limit
