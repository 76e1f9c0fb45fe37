"""The page of the running Spark jobs, and the curves of one of their queries."""

from __future__ import annotations

import time

from kafkapy.console.curve import curve_of
from kafkapy.console.problem import Problem
from kafkapy.console.spark_jobs import queries_of
from kafkapy.console.visit import Page, Visit

_CURVES = {
    "input_records_per_second": ("Records read", "per second"),
    "batch_seconds": ("Duration of a micro-batch", "seconds"),
    "lag_records": ("Lag", "records"),
    "state_rows": ("Rows of the state", "rows"),
}


def show(visit: Visit) -> Page:
    """Returns the page of one query of a Spark job if the URL names a query, otherwise the page of all queries."""
    topic, wanted = visit.settings.jobs_topic, visit.text("query")
    queries = queries_of(visit.cluster, topic) if topic else []
    curves, chosen = [], None
    if wanted:
        chosen = next((each for each in queries if each.name == wanted), None)
        if chosen is None:
            raise Problem(404, f"The topic {topic} has no micro-batch of a query {wanted!r}.")
        for name, (label, unit) in _CURVES.items():
            points = [(each.wall_ms / 1000, each.figure(name)) for each in chosen.batches]
            curves.append(curve_of(label, unit, points))
    values = {"queries": queries, "chosen": chosen, "curves": [each for each in curves if each.lines]}
    return Page("jobs", {"tab": "jobs", **values, "jobs_topic": topic, "now_ms": int(time.time() * 1000)})
