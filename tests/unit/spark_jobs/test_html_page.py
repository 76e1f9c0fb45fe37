"""Pages with plots: well-formed, escaped, with every value in its place."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from kafkapy_jobs.html_page import bar_plot, line_plot, nice_ticks, page, percent, row_bars, section, shortened, table


def parsed(html):
    return ElementTree.fromstring(f"<all>{html}</all>")


def points(html):
    return [
        [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
        for line in parsed(html).iter("polyline")
    ]


def test_a_line_has_its_points_in_order_and_a_gap_divides_it():
    html = line_plot({"a": [1.0, 2.0, None, 4.0]}, ["w", "x", "y", "z"], unit=" %")
    first, second = points(html)
    assert [len(first), len(second)] == [2, 1]
    assert first[0][0] < first[1][0] < second[0][0], "from left to right"
    assert first[0][1] > first[1][1] > second[0][1], "greater values are higher, and SVG counts from the top"
    assert "a, x: 2 %" in html


def test_plots_without_values_and_with_one_value_are_drawn():
    for html in (
        line_plot({}, []),
        line_plot({"a": [3.0]}, ["x"]),
        bar_plot([], []),
        bar_plot([0.0], ["x"]),
        row_bars([]),
    ):
        parsed(html)
        assert "nan" not in html and "inf" not in html


def test_bars_begin_at_zero():
    up, down = parsed(bar_plot([2.0, -1.0], ["a", "b"])).iter("rect")
    zero = float(up.get("y")) + float(up.get("height"))
    assert float(down.get("y")) == pytest.approx(zero, abs=0.2)
    assert float(up.get("height")) == pytest.approx(2 * float(down.get("height")), abs=0.3)
    widths = [float(bar.get("width")) for bar in parsed(row_bars([("高考", 10.0), ("b", 5.0)])).iter("rect")]
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.2)


def test_texts_are_escaped():
    evil = '<script>alert("1")</script>&'
    html = page(evil, [section(evil, table([evil], [[evil]]), line_plot({evil: [1.0]}, [evil]), row_bars([(evil, 1.0)]),
                               bar_plot([1.0], [evil]), note=evil)])  # fmt: skip
    assert "<script" not in html and "&lt;script" in html
    assert re.findall(r"<(?:script|link|img|iframe)\b|https?://", html) == []


def test_tables_align_numbers():
    cells = [
        (cell.get("class"), cell.text)
        for cell in parsed(table(["a", "b"], [["x", 1234], ["y", None], ["z", "+1.00 %"]])).iter("td")
    ]
    assert cells == [
        (None, "x"),
        ("number", "1,234"),
        (None, "y"),
        ("number", None),
        (None, "z"),
        ("number", "+1.00 %"),
    ]


@pytest.mark.parametrize(
    ("least", "greatest", "ticks"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (-1.3, 2.1, [-2, -1, 0, 1, 2, 3]),
        (5, 5, [5, 6, 7, 8, 9, 10]),
        (0, 0, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.001, 0.0032, [0.001, 0.0015, 0.002, 0.0025, 0.003, 0.0035]),
    ],
)
def test_ticks_are_round_and_include_both_ends(least, greatest, ticks):
    assert nice_ticks(least, greatest) == pytest.approx(ticks)


def test_small_texts():
    assert percent(0.01254) == "+1.25 %" and percent(None) == ""
    assert shortened("x" * 20) == "x" * 15 + "…" and shortened("高考") == "高考"
