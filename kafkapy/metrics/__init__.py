"""Metrics of a running broker: their table, the page in Prometheus's format, and the HTTP listener."""
