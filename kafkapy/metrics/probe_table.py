"""The table of the metrics of `kafkapy probe`."""

from __future__ import annotations

from kafkapy.metrics.metric import Metric, counter, gauge, histogram

ATTEMPTS = counter("kafkapy_probe_attempts_total", "Records that the probe has tried to write and read back.")
FAILURES = counter("kafkapy_probe_failures_total", "Records that could not be written and read back in time.")
UP = gauge("kafkapy_probe_up", "1 if the last record was written and read back.")
LAST_SUCCESS = gauge("kafkapy_probe_last_success_seconds", "Time of the last success, in seconds since 1970.")
PRODUCE_SECONDS = histogram(
    "kafkapy_probe_produce_seconds", "Seconds until the acknowledgement of a record (acks=all)."
)
SECONDS = histogram("kafkapy_probe_seconds", "Seconds from sending a record to reading it.")

METRICS: dict[str, Metric] = {value.name: value for value in list(globals().values()) if isinstance(value, Metric)}
