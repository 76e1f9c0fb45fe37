"""The page of the curves of a cluster, of a topic or of a group over the last hour or week."""

from __future__ import annotations

from kafkapy.console.curve import Curve, curve_of
from kafkapy.console.history import FIGURES, group_series, topic_series
from kafkapy.console.visit import Page, Visit

_SPANS = ("hour", "week")


def show(visit: Visit) -> Page:
    """Returns the page with the curves of the topic or the group that the URL names, otherwise with the curves of the
    cluster.
    """
    span = visit.choice("span", _SPANS, "hour")
    topic, group = visit.text("topic"), visit.text("group")
    curves: list[Curve] = []
    if visit.cluster.history is not None:
        wanted = {} if topic or group else dict(FIGURES)
        wanted |= {topic_series(topic): ("Records written", "per second")} if topic else {}
        wanted |= {group_series(group): ("Lag", "records")} if group else {}
        for name, (label, unit) in wanted.items():
            points = visit.cluster.history.points(name, is_week=span == "week")
            curves.append(curve_of(label, unit, points))
    values = {"tab": "history", "span": span, "spans": _SPANS, "topic": topic, "group": group, "curves": curves}
    return Page("history", values)


def curves_of(visit: Visit, series: dict[str, tuple[str, str]]) -> list[Curve]:
    """Returns a curve of the last hour for each of the series that has points.

    `series` maps the name of each series to its label and its unit. Returns an empty list if the console keeps no
    history for this user.
    """
    if visit.cluster.history is None:
        return []
    found = [curve_of(*shown, visit.cluster.history.points(name)) for name, shown in series.items()]
    return [each for each in found if each.lines]
