"""The arithmetic of `python -m bench.spark`."""

from __future__ import annotations

from bench.spark import report
from bench.spark_queries import FORMS


def test_rates_and_goals():
    seconds = {"kafka": 10.0, "kafkapy": 4.0, "kafkapy-columns": 11.0}
    measured = {
        form: [{"seconds": seconds[form] * noise, "cpu_seconds": 3.04} for noise in (1, 0.5, 9)] for form in FORMS
    }
    found = {form: dict.fromkeys(("count", "hot-search"), measured[form]) for form in FORMS}
    told = report(found, 1_000_000)
    assert told["count"]["kafkapy"] == {"rows_per_s": 250_000, "cpu_s": 3.0, "times_own": 2.5, "reached": True}
    assert not told["count"]["kafkapy-columns"]["reached"] and told["hot-search"]["goal"] == 1.0
