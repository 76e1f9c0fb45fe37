"""Quotes in CSV files as vendors write them: UTF-8 with or without a byte order mark, UTF-16, or GBK.

The columns are those that a header names, in Chinese or English and in any order, or, without a header, the eight of
the topic's quotes and a ninth, the volume. Dates are 2017-03-01, 2017/3/1 or 20170301, with or without a time. The
single quotes around name, code and date are removed. A stock that was not traded on a day (no volume, or a price that
is not positive) is suspended.

Pure, and without imports of this library, because it runs on executors.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

ORDER = ("stock_name", "stock_code", "trade_day", "previous_close", "open", "high", "low", "close", "volume")
_NAMES = {
    "stock_code": ("stock_code", "code", "ts_code", "symbol", "ticker", "代码", "股票代码", "证券代码", "交易代码"),
    "stock_name": ("stock_name", "name", "名称", "股票名称", "证券名称", "简称", "证券简称"),
    "trade_day": ("trade_date", "trade_day", "date", "日期", "交易日期", "时间"),
    "previous_close": ("previous_close", "pre_close", "prev_close", "前收盘", "前收盘价", "昨收", "前收"),
    "open": ("open", "open_price", "开盘", "开盘价", "今开"),
    "high": ("high", "high_price", "最高", "最高价"),
    "low": ("low", "low_price", "最低", "最低价"),
    "close": ("close", "close_price", "收盘", "收盘价", "现价"),
    "volume": ("volume", "vol", "turnover_vol", "成交量", "总手"),
}
_COLUMNS = {name: column for column, names in _NAMES.items() for name in names}
_REQUIRED = ("stock_code", "trade_day", "high", "low", "close")
_UNIT = re.compile(r"[(（\[].*$")
_DAY = re.compile(r"(\d{4})([-/.]?)(\d{1,2})\2(\d{1,2})(?!\d)")
# The texts that vendors write for a value that there is not.
_NOTHING = frozenset(("", "-", "--", "none", "null", "nan", "n/a"))


class VendorQuote(NamedTuple):
    """A row of a vendor's file. `reason` says why the row cannot be used; it is empty for good rows.

    A suspended stock's row is good; `is_traded` is False.
    """

    stock_code: str = ""
    stock_name: str = ""
    trade_day: str = ""
    previous_close: float | None = None
    open: float | None = None
    high: float | None = None
    low: float | None = None
    close: float | None = None
    volume: float | None = None
    is_traded: bool = False
    reason: str = ""
    line: str = ""


def decode(content: bytes) -> str | None:
    """Decodes a file by its byte order mark, as UTF-8, or as GB 18030, which includes GBK; None if nothing fits."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _decoded(content, "utf-16")
    if content.startswith(codecs.BOM_UTF8):
        return _decoded(content, "utf-8-sig")
    text = _decoded(content, "utf-8")
    return _decoded(content, "gb18030") if text is None else text


def _decoded(content: bytes, encoding: str) -> str | None:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return None


def parse_file(content: bytes) -> Iterator[VendorQuote]:
    """Yields the rows of a file; a file that is not text, or lacks a column, is one row with a reason."""
    text = decode(content)
    if text is None or "\0" in text:
        yield VendorQuote(reason="not UTF-8, UTF-16 or GBK")
        return
    lines = text.splitlines()
    rows = csv.reader(lines, delimiter=_delimiter(lines), strict=False)
    columns: Sequence[str] | None = None
    for fields in rows:
        line = lines[min(rows.line_num, len(lines)) - 1]
        if not any(field.strip() for field in fields):
            continue
        if columns is None:
            columns = header(fields)
            if columns:
                missing = [name for name in _REQUIRED if name not in columns]
                if missing:
                    yield VendorQuote(reason=f"the header has no column {' or '.join(_NAMES[missing[0]])}", line=line)
                    return
                continue
            columns = ORDER
        yield parse_row(fields, columns)._replace(line=line)


def parse_line(value: bytes | None) -> Iterator[VendorQuote]:
    """Yields the quote of a record whose value is one row of a vendor's file.

    Yields a VendorQuote with a reason if the value cannot be decoded, is blank or is a header.
    """
    text = None if value is None else decode(value)
    if text is None:
        yield VendorQuote(reason="null value" if value is None else "not UTF-8, UTF-16 or GBK")
        return
    fields = next(csv.reader([text.strip()], delimiter=_delimiter([text])), [])
    if not any(field.strip() for field in fields):
        yield VendorQuote(reason="blank")
    elif header(fields):
        yield VendorQuote(reason="a header")
    else:
        yield parse_row(fields)


def parse_object(value: bytes | None) -> Iterator[VendorQuote]:
    """Yields the quote in a record's value: a JSON object with the names of a header's columns."""
    if value is None:
        yield VendorQuote(reason="null value")
        return
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        yield VendorQuote(reason="not JSON")
        return
    if not isinstance(found, dict):
        yield VendorQuote(reason="not a JSON object")
        return
    columns = [_COLUMNS.get(name.lower(), "") for name in found]
    yield parse_row(["" if member is None else str(member) for member in found.values()], columns)


def _delimiter(lines: Sequence[str]) -> str:
    first = next((line for line in lines if line.strip()), "")
    return max(",;\t", key=first.count)


def header(fields: Sequence[str]) -> list[str]:
    """Returns the columns that a row of names stands for, "" for unknown ones; [] if the row is not a header.

    A unit after a name, such as `成交量(手)`, is ignored.
    """
    names = [_COLUMNS.get(_UNIT.sub("", field).strip().strip("'\"").lower(), "") for field in fields]
    return names if len({name for name in names if name}) >= 2 else []


def parse_row(fields: Sequence[str], columns: Sequence[str] = ORDER) -> VendorQuote:
    """Returns the quote in a row of texts; its `reason` is set if the row cannot be used."""
    texts = {column: field.strip().strip("'\"= ") for column, field in zip(columns, fields, strict=False) if column}
    if any(name not in texts for name in _REQUIRED):
        return VendorQuote(reason=f"fewer than {len(_REQUIRED)} fields")
    day = parse_day(texts["trade_day"])
    numbers = {name: parse_number(texts.get(name, "")) for name in ORDER[3:]}
    quote = VendorQuote(parse_code(texts["stock_code"]), texts.get("stock_name", ""), day or "", **numbers)  # type: ignore[arg-type]
    wrong = [name for name in ("high", "low", "close") if texts[name].lower() not in _NOTHING and numbers[name] is None]
    if not quote.stock_code:
        return quote._replace(reason="no stock code")
    if day is None:
        return quote._replace(reason="the trade date is not a date")
    if wrong:
        return quote._replace(reason=f"{wrong[0]} is not a number")
    prices = [quote.high, quote.low, quote.close]
    is_traded = all(price is not None and price > 0 for price in prices) and quote.volume != 0
    if is_traded and (quote.low or 0) > (quote.high or 0):
        return quote._replace(reason="the lowest price is above the highest")
    return quote._replace(is_traded=is_traded)


def parse_code(text: str) -> str:
    """Returns the digits of a code such as `000001.SZ` or `sh600547`, with six digits, because spreadsheets remove
    leading zeros. Other codes are returned as they are."""
    found = re.fullmatch(r"(?:(?:sh|sz|bj)[.]?)?(\d{1,6})(?:\.(?:sh|sz|bj|ss))?", text, re.IGNORECASE)
    return found[1].zfill(6) if found else text


def parse_day(text: str) -> str | None:
    """Returns a date as yyyy-MM-dd; None if the text does not begin with a date."""
    found = _DAY.match(text)
    if found is None or (not found[2] and len(found[3] + found[4]) != 4):
        return None
    try:
        return datetime.date(int(found[1]), int(found[3]), int(found[4])).isoformat()
    except ValueError:
        return None


def parse_number(text: str) -> float | None:
    """Returns a finite number, also with separators of thousands; None for other texts."""
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) and text.isascii() and "_" not in text else None
