"""Sample data for topics: search terms, daily quotes of a market, accesses of a web server, metrics of servers.

Each generator is endless and yields the same data for the same seed. It depends neither on topics nor on the clock.
"""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

from kafkapy.named_tuple import NamedTuple

TERMS = (
    "高考", "国考", "高考作文", "上海高考作文", "中国大学排名", "清华大学", "北京大学", "武汉大学",
    "计算机专业怎么样", "人民的名义", "达康书记", "高考后怎么放松", "kafka 实战", "kafka 入门与实践", "特斯拉",
    "Kafka", "天气预报", "火车票", "今日金价", "世界杯", "流浪地球", "机票", "新能源汽车", "房价", "股票行情", "考研",
    "四级成绩查询", "公务员考试", "健身", "红烧肉的做法", "python tutorial", "spark streaming", "weather",
    "world cup", "train tickets", "electric cars", "how to cook rice", "stock market", "message queue",
    "exchange rate", "football results", "learn chinese", "data pipeline", "maps", "translate", "movie times",
    "house prices", "running shoes", "coffee machine", "holiday calendar",
)  # fmt: skip
# Suffixes of terms, each rarer than the one before: the long tail of the distribution.
_TAILS = ("", " 2026", " 怎么样", " news", " 价格", " near me", " 排名", " review", " 视频", " download")
_ZIPF_EXPONENT = 1.1

STOCKS = (
    ("平安银行", "000001", 9.49), ("山东黄金", "600547", 37.07), ("海通证券", "600837", 15.61),
    ("贵州茅台", "600519", 361.80), ("中国平安", "601318", 35.44), ("万科A", "000002", 20.72),
    ("格力电器", "000651", 27.16), ("招商银行", "600036", 19.12), ("中国中车", "601766", 10.10),
    ("伊利股份", "600887", 18.25), ("美的集团", "000333", 33.02), ("比亚迪", "002594", 51.30),
)  # fmt: skip
# The largest change of a price in a day, as on the exchanges of Shanghai and Shenzhen.
_DAILY_LIMIT = 0.1
_FIRST_DAY = datetime.date(2017, 1, 3)
_PATHS = ("/", "/account/login.json", "/account/review_callback.json", "/search?q=kafka", "/static/app.js", "/orders")


class Sample(NamedTuple):
    """A sample record: its key or None, its value as text, and its value as an object."""

    key: str | None
    text: str
    members: dict[str, Any]


def zipf_weights(count: int, exponent: float = _ZIPF_EXPONENT) -> list[float]:
    """Returns the cumulative weights of the ranks 1 to `count` by Zipf's law.

    The weight of rank n is 1 / n ** exponent; element n - 1 of the result is the sum of the weights of the ranks 1 to
    n.
    """
    return list(accumulate(1 / (rank**exponent) for rank in range(1, count + 1)))


def search_terms(seed: int = 0) -> Iterator[Sample]:
    """Yields search terms in Chinese and English without end; their frequencies follow Zipf's law."""
    chance = random.Random(seed)
    terms = [term + tail for tail in _TAILS for term in TERMS]
    weights = zipf_weights(len(terms))
    while True:
        for term in chance.choices(terms, cum_weights=weights, k=1000):
            yield Sample(None, term, {"term": term})


def quotes(seed: int = 0) -> Iterator[Sample]:
    """Yields one quote of each stock for every trading day.

    Its columns are name, code and date, the previous day's close, and the open, high, low and close.
    """
    chance = random.Random(seed)
    closes = {code: price for _, code, price in STOCKS}
    day = _FIRST_DAY
    while True:
        for name, code, _ in STOCKS:
            prices = _prices_of_day(chance, closes[code])
            closes[code] = prices[-1]
            yield _quote(name, code, day, prices)
        day += datetime.timedelta(days=3 if day.weekday() == 4 else 1)


def _prices_of_day(chance: random.Random, previous_close: float) -> tuple[float, ...]:
    """Returns (previous close, open, high, low, close) of a day, with random prices.

    None of the random prices differs from the previous close by more than the limit for one day.
    """
    low_limit, high_limit = previous_close * (1 - _DAILY_LIMIT), previous_close * (1 + _DAILY_LIMIT)
    moves = [previous_close * (1 + chance.gauss(0, 0.015)) for _ in range(4)]
    prices = [max(round(min(max(price, low_limit), high_limit), 2), 0.01) for price in moves]
    return previous_close, prices[0], max(prices), min(prices), prices[1]


def _quote(name: str, code: str, day: datetime.date, prices: tuple[float, ...]) -> Sample:
    date = f"{day.isoformat()} 00:00:00.000"
    numbers = ",".join(f"{price:.4f}" for price in prices)
    names = ("previous_close", "open", "high", "low", "close")
    members = {"stock_name": name, "stock_code": code, "trade_date": date, **dict(zip(names, prices, strict=True))}
    return Sample(code, f"'{name}','{code}','{date}',{numbers}", members)


def accesses(seed: int = 0) -> Iterator[Sample]:
    """Yields IP addresses of a web server's clients without end; their frequencies follow Zipf's law."""
    chance = random.Random(seed)
    addresses = [f"10.{chance.randrange(256)}.{chance.randrange(256)}.{chance.randrange(1, 255)}" for _ in range(500)]
    weights = zipf_weights(len(addresses))
    while True:
        for address in chance.choices(addresses, cum_weights=weights, k=1000):
            yield Sample(None, address, {"client": address})


def access_log(seed: int = 0) -> Iterator[Sample]:
    """Yields lines of a web server's log, one per second on average, from 2017-04-17 on."""
    chance = random.Random(seed)
    time = datetime.datetime(2017, 4, 17, 8, 0, 0)
    for access in accesses(seed):
        time += datetime.timedelta(milliseconds=chance.randrange(2000))
        method, path = chance.choice(("GET", "GET", "GET", "POST")), chance.choice(_PATHS)
        response = chance.choices((200, 302, 404, 500), weights=(90, 4, 5, 1))[0]
        stamp = f"{time:%Y-%m-%d %H:%M:%S}.{time.microsecond // 1000:03d} +0800"
        line = (
            f'{access.text} [{stamp}] "{method} {path} HTTP/1.1" {response} - "-" "Mozilla/5.0" '
            f'{chance.randrange(1, 300)} "{chance.randbytes(16).hex().upper()}"'
        )
        yield Sample(None, line, {"message": line})


def server_metrics(seed: int = 0) -> Iterator[Sample]:
    """Yields events in Metricbeat's format: processor and memory of five servers, every ten seconds of event time."""
    chance = random.Random(seed)
    time = datetime.datetime(2017, 4, 17, tzinfo=datetime.UTC)
    loads = {f"server-{number}": 0.3 for number in range(1, 6)}
    while True:
        stamp = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for server in loads:
            loads[server] = load = min(max(loads[server] + chance.gauss(0, 0.05), 0.0), 1.0)
            for name, system in _systems(chance, load).items():
                members = {
                    "@timestamp": stamp,
                    "beat": {"name": server, "hostname": server, "version": "5.3.0"},
                    "metricset": {"module": "system", "name": name},
                    "system": {name: system},
                }
                yield Sample(server, json.dumps(members), members)
        time += datetime.timedelta(seconds=10)


def _systems(chance: random.Random, load: float) -> dict[str, dict[str, Any]]:
    return {
        "cpu": {"user": {"pct": round(load, 4)}, "system": {"pct": round(load / 4, 4)}},
        "memory": {"used": {"pct": round(0.4 + load / 2, 4), "bytes": chance.randrange(1 << 33)}},
    }


# Name in `kafkapy jobs generate` -> (generator, topic that the jobs read, description)
GENERATORS: dict[str, tuple[Callable[[int], Iterator[Sample]], str, str]] = {
    "search-terms": (search_terms, "words-search", "search terms in Chinese and English, by Zipf's law"),
    "quotes": (quotes, "stock-quotes", "daily quotes of a market, eight columns"),
    "accesses": (accesses, "access-log", "addresses of a web server's clients"),
    "access-log": (access_log, "account-access-log", "lines of a web server's log"),
    "server-metrics": (server_metrics, "server-metrics", "Metricbeat's events of five servers"),
}
