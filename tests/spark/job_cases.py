"""Every bundled job with a few records and the result that it must have, wherever it runs.

The results were worked out by hand from the descriptions of the jobs. `Runs` sends the records to topics of their own,
submits the jobs, and returns what each has printed, sent or written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyarrow import dataset

from hot_search import RULE
from kafkapy.client import Producer
from tests.spark.conftest import Topics
from tests.spark.run_jobs import MARK
from tests.spark.test_hot_search import TOP_1, TOP_2, WINDOW_1, WINDOW_2
from tests.spark.test_small_jobs import ACCESS, event
from tests.spark.test_stock_strategy import ROWS, STAGE_1
from tests.spark.test_submit import kafkapy
from tests.spark.topic_content import read_topic
from tests.spark.topic_records import START
from tests.spark_session import ROOT

START_MS = int(START.timestamp() * 1000)
# What a job with transformWithState says on an older release of Spark.
NEEDS_NEWER = "this job keeps its state with transformWithState, which PySpark has from version 4.1 on; this is 4.0.0"


class Sent(NamedTuple):
    """A record to send: `seconds` is its time after START, `topic` the number of one of the case's topics."""

    value: str | bytes | None
    seconds: float = 0
    key: str | None = None
    topic: int = 0


class Case(NamedTuple):
    """A job's name and options, its records and its result.

    The options `{0}`, `{1}` ... are topics, `{output}` is a topic and `{path}` a folder to write to, `{checkpoint}` a
    folder. `result` has the printed lines, the rows of printed tables, or what was written, in ascending order.
    `closing` is a record whose time closes the job's windows. Spark 4.0 closes them only in a later run that finds such
    a record.
    """

    words: Sequence[str]
    records: Sequence[Sent]
    result: Sequence[Any]
    closing: Sent | None = None
    has_state_processor: bool = False
    is_table: bool = False


class Place(NamedTuple):
    """A Spark: the options for `kafkapy jobs submit`, its environment variables, and a broker.

    On Spark Connect each job is submitted for itself; elsewhere one session runs all jobs. `lacks_state_processors` and
    `closes_windows_later` are peculiarities of Spark 4.0.
    """

    options: Sequence[str]
    environment: Mapping[str, str]
    bootstrap: str
    is_remote: bool = False
    lacks_state_processors: bool = False
    closes_windows_later: bool = False


class Ended(NamedTuple):
    """A job that has ended: its exit status, its standard output and its standard error."""

    status: int
    output: str
    errors: str


class Runs:
    """The runs of all cases at a place, in topics and folders of their own. `results` has the ends by name."""

    def __init__(self, place: Place, directory: Path) -> None:
        self._place = place
        self._directory = directory
        self._names = {name: self._make_names(name, case) for name, case in CASES.items()}
        for name, case in CASES.items():
            self._send(name, case.records)
        self.results = self._submit(CASES)
        if place.closes_windows_later:
            closings = {name: case.closing for name, case in CASES.items() if case.closing is not None}
            for name, record in closings.items():
                self._send(name, [record._replace(seconds=record.seconds + 1)])
            for name, ended in self._submit({name: CASES[name] for name in closings}).items():
                first = self.results[name]
                self.results[name] = Ended(
                    max(first.status, ended.status), first.output + ended.output, first.errors + ended.errors
                )

    def result_of(self, name: str) -> Any:
        """Returns the result of a case, which Case describes."""
        case, names, ended = CASES[name], self._names[name], self.results[name]
        assert ended.status == 0, ended.output[-2000:] + ended.errors[-6000:]
        if "{output}" in case.words:
            return sorted((key, value) for key, value, _ in read_topic(self._place.bootstrap, names["{output}"]))
        if "{path}" in case.words:
            files = dataset.dataset(names["{path}"], partitioning="hive", format="parquet", ignore_prefixes=["_", "."])
            return sorted(tuple(row.values()) for row in files.to_table(["offset", "value", "hour"]).to_pylist())
        return sorted(rows_of_tables(ended.output) if case.is_table else ended.output.splitlines())

    def _make_names(self, name: str, case: Case) -> dict[str, str]:
        topics = Topics(self._place.bootstrap)
        count = 1 + max(record.topic for record in case.records)
        made = {f"{{{number}}}": topics.create(name=f"{name}-{number}") for number in range(count)}
        made |= {"{output}": topics.create(name=f"{name}-output")}
        folder = self._directory / name
        return made | {"{path}": str(folder / "output"), "{checkpoint}": str(folder / "checkpoint")}

    def _send(self, name: str, records: Sequence[Sent]) -> None:
        with Producer(bootstrap_servers=self._place.bootstrap) as producer:
            for each in records:
                topic, timestamp = self._names[name][f"{{{each.topic}}}"], START_MS + int(each.seconds * 1000)
                producer.send(topic, each.value, each.key, partition=0, timestamp=timestamp)

    def _submit(self, cases: Mapping[str, Case]) -> dict[str, Ended]:
        place = self._place
        common = ("--bootstrap-server", place.bootstrap, "--time-zone", "UTC", "--shuffle-partitions", "2")
        words = {
            name: [case.words[0], *common, *(self._names[name].get(word, word) for word in case.words[1:])]
            for name, case in cases.items()
        }
        if place.is_remote:
            found = {}
            for name, each in words.items():
                done = kafkapy("jobs", "submit", *place.options, *each, environment=place.environment)
                found[name] = Ended(done.returncode, done.stdout, done.stderr)
            return found
        jobs, ends = self._directory / "jobs.json", self._directory / "ends.json"
        jobs.write_text(json.dumps(words), "utf-8")
        program = (str(ROOT / "tests" / "spark" / "run_jobs.py"), str(jobs), str(ends))
        done = kafkapy("jobs", "submit", *place.options, *program, environment=place.environment, timeout_s=1700)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
        parts = done.stdout.split(MARK)[1:]
        outputs = {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}
        found = json.loads(ends.read_text("utf-8"))
        return {name: Ended(status, outputs[name], errors) for name, (status, errors) in found.items()}


def rows_of_tables(output: str) -> list[list[str]]:
    """Returns the rows of Spark's printed tables, or of the JSON objects that jobs print on Spark Connect."""
    lines = output.splitlines()
    cells = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines if line.startswith("|")]
    headings = [number for number, line in enumerate(lines) if line.startswith("+")]
    heads = {tuple(cells[0])} if cells else set()
    assert not cells or len(headings) % 3 == 0
    return [row for row in cells if tuple(row) not in heads] + [
        list(json.loads(line).values()) for line in lines if line.startswith("{")
    ]


def _stream(*words: str) -> tuple[str, ...]:
    job, *rest = words
    return (job, "--topic", "{0}", "--trigger", "available-now", "--checkpoint", "{checkpoint}", *rest)


def _each_second(values: Sequence[str], start: float = 0, *, topic: int = 0) -> list[Sent]:
    return [Sent(value, start + index, topic=topic) for index, value in enumerate(values)]


def _late_event() -> str:
    return json.dumps({"@timestamp": "2017-04-17T09:00:00.000Z", "beat": {"name": "server-1"},
                       "system": {"cpu": {"user": {"pct": 1}}}})  # fmt: skip


def _stock(code: str) -> str:
    (line,) = (line for line in STAGE_1 if line.startswith(f"'{code}'"))
    return line


_TRENDS = [
    "2017-05-01 12:01:00", "   1 b: 12, 0 before, +3.5", "   2 a: 6, 0 before, +2.4",
    "2017-05-01 12:02:00", "   1 c: 6, 0 before, +2.4", "   2 b: 6, 12 before, -1.4",
]  # fmt: skip
_SEARCHES = [
    *(Sent(term, second) for second in range(0, 60, 10) for term in ("a", "b", "b")),
    *(Sent(term, second) for second in range(60, 120, 10) for term in ("c", "b")),
    Sent("", 700),
]
_TREND_WORDS = ("trending-search", "--window", "1 min", "--lateness", "30 s", "--top", "2", "--minimum", "1")
_ADDRESSES = ["10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2"]

CASES = {
    "hot-search": Case(
        _stream("hot-search"),
        [*_each_second(WINDOW_1), *_each_second(WINDOW_2, 300), Sent(b"\xff\xfe", 301), Sent(None, 900)],
        [
            *[RULE] * 4, "时间:[2017-05-01 12:05:00],热搜词如下:", "时间:[2017-05-01 12:10:00],热搜词如下:",
            *(f"{term}:{count}" for term, count in [*TOP_1, *TOP_2]),
        ],
        closing=Sent(None, 900),
    ),
    "trending-search": Case(_stream(*_TREND_WORDS), _SEARCHES, _TRENDS, closing=Sent("", 700)),
    "trending-search-approximate": Case(
        _stream(*_TREND_WORDS, "--approximate", "20"), _SEARCHES, _TRENDS, has_state_processor=True
    ),
    "stock-strategy": Case(
        ("stock-strategy", "--topic", "{0}", "--days", "3"),
        [*_each_second(ROWS), Sent("no quote")],
        ["历史新高:", "历史新低:", *STAGE_1, *map(_stock, ("000001", "600547", "600837"))],
    ),
    "stock-backtest": Case(
        ("stock-backtest", "--topic", "{0}", "--rule", "up=close > previous(close)", "--horizons", "1"),
        _each_second(ROWS),
        [
            "2017-02-27 to 2017-03-01: 9 quotes of 3 stocks", "rule       signals      1 d  wins 1 d",
            "up               2  +0.11 %   100.0 %", "every day        9  -0.31 %    33.3 %",
            "signals of 2017-03-01:", "up 000001 平安银行: 9.49",
        ],
    ),
    "stock-alerts": Case(
        _stream("stock-alerts", "--days", "3"),
        _each_second(ROWS),
        [
            "'000001' '平安银行' 历史新高: 9.55 '2017-03-01 00:00:00.000'",
            "'600547' '山东黄金' 历史新低: 36.6 '2017-03-01 00:00:00.000'",
            "'600837' '海通证券' 历史新低: 15.6 '2017-03-01 00:00:00.000'",
        ],
        has_state_processor=True,
    ),
    "stock-statistics": Case(
        _stream("stock-statistics"),
        [*_each_second(ROWS), Sent(ROWS[0], 600)],
        [
            "2017-05-01 12:01:00 000001: 3 quotes, 9.42 to 9.55, close 9.49 to 9.43",
            "2017-05-01 12:01:00 600547: 3 quotes, 36.6 to 37.99, close 36.82 to 37.45",
            "2017-05-01 12:01:00 600837: 3 quotes, 15.6 to 15.9, close 15.61 to 15.74",
        ],
        closing=Sent(ROWS[0], 600),
    ),
    "word-count": Case(
        _stream("word-count"),
        [Sent("hello world hello kafka hello"), Sent("hello spark hadoop kafka spark"), Sent(b"\xff")],
        ["hadoop: 1", "hello: 4", "kafka: 2", "spark: 2", "world: 1"],
    ),
    "ip-blacklist": Case(
        _stream("ip-blacklist", "--threshold", "2"),
        [*_each_second(_ADDRESSES, 1), Sent("no address", 5)],
        ["ip:10.0.0.1被加入到黑名单,请求次数为:3", "请求时间:12:00:03,IP:10.0.0.1,请求次数:3"],
        has_state_processor=True,
    ),
    "access-log": Case(
        _stream("access-log"),
        [Sent(ACCESS), Sent("no line of a log")],
        ["10.10.10.157\t2017-04-17\t16:06:20.909\tPOST\t/account/review_callback.json\t200\t32.0"],
    ),
    "server-metrics": Case(
        _stream("server-metrics"),
        [
            Sent(event(0, cpu={"user": {"pct": 0.25}})),
            Sent(event(10, cpu={"user": {"pct": 0.75}})),
            Sent(event(10, "server-2", cpu={"user": {"pct": 0.5}})),
            Sent(_late_event()),
        ],
        [
            "2017-04-17 08:05:00 server-1 system.cpu.user.pct: average 0.5, least 0.25, greatest 0.75 of 2",
            "2017-04-17 08:05:00 server-2 system.cpu.user.pct: average 0.5, least 0.5, greatest 0.5 of 1",
        ],
        closing=Sent(_late_event()),
    ),
    "stream-table": Case(
        _stream("stream-table"),
        [Sent("shanghai", key="jetty"), Sent("beijing", key="jetty"), Sent("keyless")],
        [f"[KSTREAM-SOURCE-0000000000]: {pair}" for pair in ("jetty , beijing", "jetty , shanghai", "null , keyless")],
    ),
    "stream-table-max": Case(
        _stream("stream-table", "--as", "max"),
        [Sent("3", key="a"), Sent("7", key="a"), Sent("-1", key="b"), Sent("x", key="b")],
        ["a , 7", "b , -1"],
    ),
    "stream-table-table": Case(
        _stream("stream-table", "--as", "table", "--old-values"),
        [Sent("shanghai", key="jetty"), Sent("beijing", key="jetty"), Sent("keyless")],
        ["[KTABLE-SOURCE-0000000001]: jetty , (beijing<-null)"],
        has_state_processor=True,
    ),
    "stream-joins": Case(
        _stream("stream-joins", "--right-topic", "{1}"),
        [
            Sent("l", 1000, "a"), Sent("l", 1000, "b"),
            *(Sent(f"r{second}", 1000 + second, "a", topic=1) for second in (-301, -300, 0, 300, 301)),
        ],
        ["a , left:l, right:r-300", "a , left:l, right:r0", "a , left:l, right:r300"],
    ),
    "stream-joins-tables": Case(
        _stream("stream-joins", "--join", "tables", "--right-topic", "{1}"),
        [Sent("l1", 1, "a"), Sent("l2", 3, "a"), Sent("r1", 2, "a", topic=1), Sent("r1", 3, "b", topic=1)],
        ["a , left:l1, right:r1", "a , left:l2, right:r1"],
        has_state_processor=True,
    ),
    "sql-job": Case(
        ("sql-job", "--topic", "{0}", "--trigger", "available-now"),
        [Sent("{'name':'caocao','age':'32','sex':'male'}")],
        [["caocao", "32", "male", "", "", "", ""]],
        is_table=True,
    ),
    "sql-statements": Case(
        (
            "sql-statements", "--topic", "{0}", "--trigger", "available-now",
            "--statement", "select a, b from dyl_test where b > 1",
        ),
        [Sent('{"a":"1","b":"2"}'), Sent('{"a":"2","b":"1"}'), Sent('{"a":"3","b":"7"}')],
        [["1", "2"], ["3", "7"]],
        is_table=True,
    ),
    "envelope": Case(
        _stream("envelope"),
        [
            Sent('{"schema":{"type":"string","optional":false},"payload":"kafka-connect"}'),
            Sent('{"schema":null,"payload":{"a":1}}'), Sent("no envelope"),
        ],
        ["kafka-connect", '{"a":1}'],
    ),
    "click-enrichment": Case(
        _stream("click-enrichment", "--profile-topic", "{1}", "--search-topic", "{2}"),
        [
            Sent("/early", 0, "a"), Sent("/with-search", 10.9, "a"), Sent("/too-late-for-it", 11.1, "a"),
            Sent("/unknown-user", 10.5, "b"), Sent('{"zip":"1"}', 1, "a", topic=1), Sent("kafka", 10, "a", topic=2),
        ],
        [
            "a /early , profile:null, search:null", 'a /too-late-for-it , profile:{"zip":"1"}, search:null',
            'a /with-search , profile:{"zip":"1"}, search:kafka', "b /unknown-user , profile:null, search:null",
        ],
        has_state_processor=True,
    ),
    "out-of-order": Case(
        _stream("out-of-order"),
        [Sent("x", 10, "a"), Sent("x", 70, "a"), Sent("x", 50, "a")],
        [
            "2017-05-01 12:00:00 a: 2 (1 out of order, revision 1)",
            "2017-05-01 12:01:00 a: 1 (0 out of order, revision 1)",
        ],
        has_state_processor=True,
    ),
    "reprocess": Case(
        (
            "reprocess", "--topic", "{0}", "--output-topic", "{output}", "--checkpoint", "{checkpoint}",
            "--where", "text <> 'c'", "--new-value", "upper(text)",
        ),
        [Sent("a", key="1"), Sent("b", key="2"), Sent("c", key="3")],
        [(b"1", b"A"), (b"2", b"B")],
    ),
    "archive": Case(
        _stream("archive", "--output-path", "{path}"),
        [Sent("v0"), Sent(b"\xff\x00", 3599), Sent("v2", 3600)],
        [(0, b"v0", "2017-05-01-12"), (1, b"\xff\x00", "2017-05-01-12"), (2, b"v2", "2017-05-01-13")],
    ),
}  # fmt: skip


def job_of(name: str) -> str:
    """Returns the name of the job of a case."""
    return CASES[name].words[0]
