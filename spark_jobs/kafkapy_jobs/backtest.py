"""The result of a back-test, and its HTML report. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafkapy_jobs.html_page import bar_plot, line_plot, page, percent, section, table
from kafkapy_jobs.stock_rules import EVERY_DAY

# The report lists at most this many signals of the last day.
SHOWN_SIGNALS = 200


class RuleResult(NamedTuple):
    """The signals of one rule: their number, and for each horizon the mean return and the share of positive returns.

    Both are None for a horizon without a known return.
    """

    rule: str
    signals: int
    returns: list[float | None]
    wins: list[float | None]


class Backtest(NamedTuple):
    """A back-test: rules by name, horizons in trading days, first and last day (yyyy-MM-dd), stocks and quotes."""

    rules: Mapping[str, str]
    horizons: Sequence[int]
    first_day: str
    last_day: str
    stocks: int
    quotes: int


def results(sums: Iterable[Mapping[str, Any]], rules: Iterable[str], horizons: Sequence[int]) -> list[RuleResult]:
    """Returns the result of each rule, with EVERY_DAY at the end.

    `sums` has a row for each rule and horizon, with `position`, the horizon's index, and the sums `days`, `gain`,
    `wins` and `known`.
    """
    by_place = {(row["rule"], row["position"]): row for row in sums}
    found = []
    for rule in (*rules, EVERY_DAY):
        rows = [by_place.get((rule, position)) for position in range(len(horizons))]
        known = [row["known"] if row else 0 for row in rows]
        found.append(
            RuleResult(
                rule,
                rows[0]["days"] if rows and rows[0] else 0,
                [row["gain"] / count if row and count else None for row, count in zip(rows, known, strict=True)],
                [row["wins"] / count if row and count else None for row, count in zip(rows, known, strict=True)],
            )
        )
    return found


def lines(found: Iterable[RuleResult], test: Backtest) -> list[str]:
    """Formats the results as a table of text."""
    head = ["rule", "signals", *(f"{days} d" for days in test.horizons), *(f"wins {days} d" for days in test.horizons)]
    rows = [head]
    for each in found:
        wins = ["" if share is None else f"{100 * share:.1f} %" for share in each.wins]
        rows.append([each.rule, str(each.signals), *map(percent, each.returns), *wins])
    widths = [max(len(row[index]) for row in rows) for index in range(len(head))]
    return [
        "  ".join(cell.ljust(width) if index == 0 else cell.rjust(width)
                  for index, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]  # fmt: skip


def report(
    found: Sequence[RuleResult],
    test: Backtest,
    by_period: Sequence[tuple[str, int]],
    last_signals: Sequence[tuple[str, str, str, float]],
) -> str:
    """Returns the report as a page.

    `by_period` has the number of signals of each day or month; `last_signals` are rule, code, name and close of the
    signals of the last day.
    """
    labels = [f"{days} d" for days in test.horizons]
    columns = ["rule", "condition", "signals", *(f"mean return {label}" for label in labels)]
    columns += [f"gains {label}" for label in labels]
    rows = [
        [each.rule, test.rules.get(each.rule, "every stock on every day"), each.signals, *map(percent, each.returns),
         *("" if share is None else f"{100 * share:.1f} %" for share in each.wins)]
        for each in found
    ]  # fmt: skip
    curves = {each.rule: [None if value is None else 100 * value for value in each.returns] for each in found}
    shown = sorted(last_signals)[:SHOWN_SIGNALS]
    note = "" if len(last_signals) <= SHOWN_SIGNALS else f"The first {SHOWN_SIGNALS} of {len(last_signals)}."
    return page(
        f"Back-test {test.first_day} to {test.last_day}",
        [
            f'<p class="note">{test.quotes:,} quotes of {test.stocks:,} stocks. A return is the close some trading '
            "days after the signal, divided by the close of the signal's day, less one, without costs. Compare each "
            f"rule with the line “{EVERY_DAY}”.</p>",
            section("Rules", table(columns, rows)),
            section("Mean return after a signal", line_plot(curves, labels, unit=" %", title="mean returns")),
            section("Signals", bar_plot([float(count) for _, count in by_period], [name for name, _ in by_period])),
            section(f"Signals of {test.last_day}", table(["rule", "code", "name", "close"], shown), note=note),
        ],
    )
