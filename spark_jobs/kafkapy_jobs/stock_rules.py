"""Rules over daily quotes as text, such as `close > 1.05 * average(close, 20)`, and their signals with later returns.

A rule is an expression over the series of one stock: `open`, `high`, `low`, `close`, `previous_close`, `volume`. It has
numbers, `+ - * /`, comparisons (also `a < b < c`), `and`, `or`, `not`, and these functions, where n is a whole number
of trading days:

    highest(x, n), lowest(x, n)          the extreme of the last n days, today included
    average(x, n), total(x, n)           mean and sum of the last n days, today included
    previous(x, n)                       the value n days ago; n is 1 if it is left out
    crosses_above(x, y)                  x is above y today and was not above it on the day before
    crosses_below(x, y)                  the opposite

A value that is not known is None: a day before the stock has n days, a day without a volume. A comparison with None is
false. Days are the stock's own trading days or, with a calendar of the market, all trading days of the market; on a day
on which the stock was suspended its values are None, and extremes, means and sums ignore them.

Pure, and without imports of this library, because it runs on executors.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

SERIES = ("open", "high", "low", "close", "previous_close", "volume")
# The name of the rule that is true on every day, with which the others are compared.
EVERY_DAY = "every day"
Values = list[Any]
_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda left, right: left / right if right else None,
}
_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_WINDOWS: dict[str, Callable[[list[Any]], Any]] = {
    "highest": max,
    "lowest": min,
    # The exact sum, so that the average of equal prices is that price.
    "average": lambda known: math.fsum(known) / len(known),
    "total": math.fsum,
}


class RuleError(ValueError):
    """A rule that cannot be understood; the message says which part."""


class Signal(NamedTuple):
    """A day on which a rule is true, or the sum over all days of the rule EVERY_DAY.

    `days` is the number of days; `gains`, `wins` and `known` have, for each horizon, the sum of the returns, the number
    of positive returns, and the number of returns that are known.
    """

    rule: str
    trade_day: str
    close: float | None
    days: int
    gains: list[float]
    wins: list[int]
    known: list[int]


def compile_rule(text: str) -> ast.expr:
    """Returns the parsed rule. Raises RuleError if it has a syntax error, an unknown name or a wrong argument."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise RuleError(f"{text!r} is not an expression") from None
    evaluate(tree, {name: [1.0] for name in SERIES}, 1)
    if not _is_condition(tree):
        raise RuleError(f"{text!r} is a number and not a condition")
    return tree


def evaluate(tree: ast.expr, series: Mapping[str, Values], size: int) -> Values:
    """Returns the value of an expression on each of `size` days. Raises RuleError for what is not allowed in a rule."""
    match tree:
        case ast.Constant(value=bool()):
            raise RuleError(f"{ast.unparse(tree)} is not a number")
        case ast.Constant(value=int() | float() as number):
            return [number] * size
        case ast.Name(id=name) if name in SERIES:
            return series[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return _pairwise(_ARITHMETIC[type(op)], _number(left, series, size), _number(right, series, size))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return [None if value is None else -value for value in _number(operand, series, size)]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return [not value for value in _condition(operand, series, size)]
        case ast.BoolOp(op=op, values=parts):
            join = all if isinstance(op, ast.And) else any
            return [join(day) for day in zip(*(_condition(part, series, size) for part in parts), strict=True)]
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARISONS for op in ops):
            operands = [_number(each, series, size) for each in (left, *others)]
            pairs = [
                _pairwise(_COMPARISONS[type(op)], operands[index], operands[index + 1]) for index, op in enumerate(ops)
            ]
            return [all(day) for day in zip(*pairs, strict=True)]
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _call(name, arguments, series, size)
    raise RuleError(f"{ast.unparse(tree)!r} is not allowed in a rule")


def _call(name: str, arguments: list[ast.expr], series: Mapping[str, Values], size: int) -> Values:
    if name in _WINDOWS and len(arguments) == 2:
        return _over_windows(_WINDOWS[name], _number(arguments[0], series, size), _days(arguments[1]))
    if name == "previous" and len(arguments) in (1, 2):
        days = _days(arguments[1]) if len(arguments) == 2 else 1
        values = _number(arguments[0], series, size)
        return [None] * min(days, size) + values[: max(0, size - days)]
    if name in ("crosses_above", "crosses_below") and len(arguments) == 2:
        left, right = (_number(each, series, size) for each in arguments)
        is_beyond = operator.gt if name == "crosses_above" else operator.lt
        today = _pairwise(is_beyond, left, right)
        return [
            day > 0 and bool(today[day]) and today[day - 1] is not None and not today[day - 1] for day in range(size)
        ]
    known = ", ".join((*_WINDOWS, "previous", "crosses_above", "crosses_below"))
    raise RuleError(f"{name} with {len(arguments)} arguments is not a function of rules; there are {known}")


def _days(tree: ast.expr) -> int:
    match tree:
        case ast.Constant(value=int() as days) if not isinstance(days, bool) and days > 0:
            return days
    raise RuleError(f"{ast.unparse(tree)!r} is not a whole number of days from 1")


def _number(tree: ast.expr, series: Mapping[str, Values], size: int) -> Values:
    if _is_condition(tree):
        raise RuleError(f"{ast.unparse(tree)!r} is a condition and not a number")
    return evaluate(tree, series, size)


def _condition(tree: ast.expr, series: Mapping[str, Values], size: int) -> Values:
    if not _is_condition(tree):
        raise RuleError(f"{ast.unparse(tree)!r} is a number and not a condition")
    return evaluate(tree, series, size)


def _is_condition(tree: ast.expr) -> bool:
    match tree:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(func=ast.Name(id="crosses_above" | "crosses_below")):
            return True
    return False


def _pairwise(function: Callable[[Any, Any], Any], left: Values, right: Values) -> Values:
    return [None if one is None or other is None else function(one, other) for one, other in zip(left, right)]  # noqa: B905


def _over_windows(function: Callable[[list[Any]], Any], values: Values, days: int) -> Values:
    """Returns, for each day, the result of `function` for the known values of the last `days` days, including the day.

    The result is None for the first `days` - 1 days of the stock, and if none of the values is known.
    """
    found: Values = [None] * min(days - 1, len(values))
    is_complete = None not in values
    for end in range(days, len(values) + 1):
        known = values[end - days : end]
        if not is_complete:
            known = [value for value in known if value is not None]
        found.append(function(known) if known else None)
    return found


def aligned(
    quotes: Mapping[str, Mapping[str, Any]], calendar: Sequence[str] | None
) -> tuple[list[str], dict[str, Values]]:
    """Returns the days of a stock in order, and its series on them.

    `quotes` are the values by day (yyyy-MM-dd) on which the stock was traded. With a calendar the days are those of the
    market from the stock's first day on, with None on days without a quote.
    """
    own = sorted(quotes)
    if calendar is not None and own:
        own = [day for day in calendar if day >= own[0]]
    return own, {name: [quotes[day].get(name) if day in quotes else None for day in own] for name in SERIES}


def signals(
    quotes: Mapping[str, Mapping[str, Any]],
    rules: Mapping[str, ast.expr],
    horizons: Sequence[int],
    start: str = "",
    end: str = "9999-99-99",
    calendar: Sequence[str] | None = None,
) -> Iterator[Signal]:
    """Yields the signals of one stock on the days from `start` to `end`, and the sum over all of these days.

    The return of a day for a horizon of n days is the close n days later, divided by the close of the day, less one. If
    the stock is suspended n days later, its next close is used. Days on which the stock is suspended have no signals.
    The days before `start` count for the rules' windows.
    """
    days, series = aligned(quotes, calendar)
    inside = [index for index, day in enumerate(days) if start <= day <= end and series["close"][index] is not None]
    later = _next_known(series["close"])
    every = Signal(EVERY_DAY, "", None, 0, [0.0] * len(horizons), [0] * len(horizons), [0] * len(horizons))
    returns: dict[int, list[float | None]] = {}
    for index in inside:
        returns[index] = [_return(series["close"][index], later, index + horizon) for horizon in horizons]
        every = _added(every, returns[index])
    for name, rule in rules.items():
        found = evaluate(rule, series, len(days))
        for index in inside:
            if found[index]:
                empty = Signal(name, days[index], series["close"][index], 0, [0.0] * len(horizons), [], [])
                yield _added(empty._replace(wins=[0] * len(horizons), known=[0] * len(horizons)), returns[index])
    if every.days:
        yield every


def _added(signal: Signal, returns: Sequence[float | None]) -> Signal:
    return signal._replace(
        days=signal.days + 1,
        gains=[gain + (value or 0.0) for gain, value in zip(signal.gains, returns, strict=True)],
        wins=[wins + (value is not None and value > 0) for wins, value in zip(signal.wins, returns, strict=True)],
        known=[known + (value is not None) for known, value in zip(signal.known, returns, strict=True)],
    )


def _next_known(values: Values) -> Values:
    """Returns, for each day, its value or that of the first later day that has one; None if there is no such day."""
    found: Values = []
    following = None
    for value in reversed(values):
        following = value if value is not None else following
        found.append(following)
    return found[::-1]


def _return(close: float, later: Values, index: int) -> float | None:
    if index >= len(later) or later[index] is None or not close:
        return None
    return float(later[index] / close - 1)
