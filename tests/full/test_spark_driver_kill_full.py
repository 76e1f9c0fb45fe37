"""kill -9 of the hot search's driver during the stream, many times: each window is in Parquet and on the topic once."""

from __future__ import annotations

import datetime
import json
import os
import random

import pytest

from tests.broker_process import BrokerProcess
from tests.spark.driver_kill import Driver, Feed
from tests.spark.topic_content import read_topic
from tests.spark_session import start_session

pytestmark = [pytest.mark.full, pytest.mark.timeout(5400)]
KILLS = int(os.environ.get("KAFKAPY_DRIVER_KILLS", "20"))
# The data source's own sink: a transaction for each task and a ledger, instead of one transaction of the driver.
LEDGER = ("--delivery", "at-least-once", "--sink-option", "kafka.transactional.id=top-terms")


def by_window(rows):
    """Returns, by a window's end in ms, the terms with counts in the order of their ranks, each once."""
    windows = {}
    for row in sorted(rows, key=lambda row: row["rank"]):
        end = row["window_end"]
        if isinstance(end, str):
            end = datetime.datetime.fromisoformat(end)
        windows.setdefault(int(end.timestamp() * 1000), []).append((row["rank"], row["term"], row["count"]))
    for terms in windows.values():
        assert [rank for rank, _, _ in terms] == list(range(1, len(terms) + 1)), "a window is there more than once"
    return {end: [(term, count) for _, term, count in terms] for end, terms in windows.items()}


@pytest.mark.parametrize(("delivery", "kills"), [((), KILLS), (LEDGER, -(-KILLS // 4))], ids=("driver", "ledger"))
def test_each_window_is_there_once_and_right(tmp_path, delivery, kills):
    chance = random.Random(9)
    # the records carry old timestamps, which the broker would delete by time
    properties = {"num.partitions": "3", "log.retention.ms": "-1"}
    with BrokerProcess(tmp_path / "kafkapy", properties) as broker:
        driver = Driver(broker.bootstrap, "words-search", "top-terms", tmp_path, *delivery)
        with Feed(broker.bootstrap, "words-search") as feed:
            for _ in range(kills):
                driver.run_and_kill(chance)
        driver.run_to_the_end()
        written = by_window(json.loads(value) for _, value, _ in read_topic(broker.bootstrap, "top-terms"))
    expected = feed.expected()
    assert len(expected) > 5 * kills
    assert written == expected
    spark = start_session(tmp_path / "spark")
    assert by_window(spark.read.parquet(str(tmp_path / "top")).collect()) == expected
