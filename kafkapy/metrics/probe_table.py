"""The metrics of `kafkapy probe`: one row each."""

from __future__ import annotations

from kafkapy.metrics.metric import Metric, counter, gauge, histogram

ATTEMPTS = counter("kafkapy_probe_attempts_total", "Records that were to go through the broker.")
FAILURES = counter("kafkapy_probe_failures_total", "Those that did not come out again in time.")
UP = gauge("kafkapy_probe_up", "1 if the last record came through.")
LAST_SUCCESS = gauge("kafkapy_probe_last_success_seconds", "When the last record came through, in seconds since 1970.")
PRODUCE_SECONDS = histogram("kafkapy_probe_produce_seconds", "From sending a record to its acknowledgement (acks=all).")
SECONDS = histogram("kafkapy_probe_seconds", "From sending a record to having read it.")

METRICS: dict[str, Metric] = {value.name: value for value in list(globals().values()) if isinstance(value, Metric)}
