"""What a running broker tells about itself: the table of metrics, the page in Prometheus's format, its listener."""
