"""The results of a back-test, as text and as a page."""

from __future__ import annotations

from kafkapy_jobs.backtest import SHOWN_SIGNALS, Backtest, RuleResult, lines, report, results
from kafkapy_jobs.stock_rules import EVERY_DAY

TEST = Backtest({"up": "close > previous(close)"}, [1, 5], "2017-03-01", "2017-03-31", 3, 60)


def sums(rule, position, days, gain, wins, known):
    return {"rule": rule, "position": position, "days": days, "gain": gain, "wins": wins, "known": known}


def test_results_are_means_over_known_returns():
    rows = [sums("up", 0, 4, 0.2, 3, 4), sums("up", 1, 4, 0.0, 0, 0), sums(EVERY_DAY, 0, 60, 0.6, 30, 60)]
    found = results(rows, ["up", "never"], [1, 5])
    assert found == [
        RuleResult("up", 4, [0.05, None], [0.75, None]),
        RuleResult("never", 0, [None, None], [None, None]),
        RuleResult(EVERY_DAY, 60, [0.01, None], [0.5, None]),
    ]
    assert lines(found, TEST) == [
        "rule       signals      1 d  5 d  wins 1 d  wins 5 d",
        "up               4  +5.00 %         75.0 %",
        "never            0",
        "every day       60  +1.00 %         50.0 %",
    ]


def test_the_report_has_rules_plots_and_the_last_signals():
    found = [RuleResult("up", 4, [0.05, None], [0.75, None]), RuleResult(EVERY_DAY, 60, [0.01, 0.02], [0.5, 0.5])]
    last = [("up", f"{code:06d}", "<b>", 1.5) for code in range(SHOWN_SIGNALS + 1)]
    page = report(found, TEST, [("2017-03", 4)], last)
    assert "Back-test 2017-03-01 to 2017-03-31" in page and "60 quotes of 3 stocks" in page
    assert page.count("<svg") == 2 and page.count("<polyline") == 2
    assert "close &gt; previous(close)" in page and "<b>" not in page
    assert f"The first {SHOWN_SIGNALS} of {SHOWN_SIGNALS + 1}." in page
