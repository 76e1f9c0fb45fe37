"""Every program of examples/ is run against a broker, and its output looked at."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.client import Consumer, Producer, TopicPartition
from kafkapy.client.admin import Admin, NewTopic
from tests.broker_process import BrokerProcess

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("examples")) as broker:
        yield broker.bootstrap


def run(name: str, *arguments: str) -> list[str]:
    """The lines that an example prints."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def make_topic(bootstrap: str, name: str, partitions: int) -> str:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, partitions, 1)]).check()
    return name


def fill(bootstrap: str, topic: str, count: int) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(count):
            producer.send(topic, f"message{number}", key=str(number % 10))


def values_of(bootstrap: str, topic: str, count: int, **settings: str) -> list[str]:
    found: list[str] = []
    group = {"group_id": f"test-{topic}", "auto_offset_reset": "earliest"}
    with Consumer(bootstrap_servers=bootstrap, **group, **settings) as consumer:
        consumer.subscribe([topic])
        while len(found) < count:
            found += [record.value.decode() for record in consumer.poll(1.0)]
    return found


def test_sync_producer(bootstrap):
    make_topic(bootstrap, "sync", 1)
    assert run("sync_producer", bootstrap, "sync") == [f"partition=0,offset={number}" for number in range(10)]
    assert values_of(bootstrap, "sync", 10) == [f"message{number}" for number in range(10)]


def test_async_producer(bootstrap):
    lines = run("async_producer", bootstrap, "asynchronous")
    assert lines == ["closed: all ten are delivered", "awaited 10 deliveries"]
    assert len(values_of(bootstrap, "asynchronous", 20)) == 20


def test_transactional_producer(bootstrap):
    assert run("transactional_producer", bootstrap, "transactional") == ["committed 100 records"]
    found = values_of(bootstrap, "transactional", 100, isolation_level="read_committed")
    assert sorted(found, key=int) == [str(number) for number in range(100)]


def test_partitioners(bootstrap):
    """Round robin begins with partition 1; "0" to "9" by Java's hash over three partitions are 0, 1, 2, 0, ..."""
    lines = run("partitioners", bootstrap, make_topic(bootstrap, "partitioned", 3))
    assert lines[:2] == ["RoundRobinPartitioner: 1 2 0 1 2 0 1 2 0 1", "HashPartitioner: 0 1 2 0 1 2 0 1 2 0"]
    assert set(lines[2].removeprefix("RandomPartitioner: ").split()) <= {"0", "1", "2"}


def test_zodiac(bootstrap):
    lines = run("zodiac", bootstrap, make_topic(bootstrap, "zodiac", 12))
    assert lines == [
        "default: 鼠4 牛1 虎3 兔5 龙1 蛇10 马0 羊10 猴4 鸡11 狗8 猪2",
        "zodiac: 鼠0 牛1 虎2 兔3 龙4 蛇5 马6 羊7 猴8 鸡9 狗10 猪11",
    ]


def test_commit_per_partition(bootstrap):
    fill(bootstrap, make_topic(bootstrap, "committed", 3), 30)
    lines = run("commit_per_partition", bootstrap, "committed", "groupb", "30")
    assert sum(not line.startswith("commit") for line in lines) == 30
    with Consumer(bootstrap_servers=bootstrap, group_id="groupb") as consumer:
        committed = consumer.committed([TopicPartition("committed", partition) for partition in range(3)])
    assert sum(each.offset for each in committed.values() if each is not None) == 30


def test_offsets_in_database(bootstrap, tmp_path):
    """The second run goes on where the first has ended, and counts nothing twice."""
    fill(bootstrap, make_topic(bootstrap, "counted", 2), 40)
    arguments = (bootstrap, "counted", str(tmp_path / "database"))
    assert run("offsets_in_database", *arguments, "15") == ["15 records counted"]
    assert run("offsets_in_database", *arguments, "25") == ["40 records counted"]


def test_consumer_per_thread(bootstrap):
    fill(bootstrap, make_topic(bootstrap, "threads", 6), 60)
    assert run("consumer_per_thread", bootstrap, "threads", "threads", "60") == [
        "60 different records, the most frequent 1 times"
    ]


def test_worker_pool(bootstrap):
    fill(bootstrap, make_topic(bootstrap, "pool", 2), 50)
    assert run("worker_pool", bootstrap, "pool", "pool", "50") == ["50 records processed"]


def test_idempotent_processing(bootstrap, tmp_path):
    lines = run("idempotent_processing", bootstrap, "orders", str(tmp_path / "orders"))
    assert lines == ["received 20, repeated 10, booked 10 orders of 450"]


def test_filtering(bootstrap):
    assert run("filtering", bootstrap, "filtered") == ["north 1, north 3, south 1, south 3"]


def test_broadcast(bootstrap):
    news = ", ".join(f"news {number}" for number in range(5))
    lines = run("broadcast", bootstrap, "broadcast")
    assert lines == [f"{receiver}: {news}" for receiver in ("first", "second", "third")]


def test_every_example_is_tested_and_listed():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    source = Path(__file__).read_text()
    assert {name for name in names if f'run("{name}"' not in source} == set()
    listed = (EXAMPLES / "README.md").read_text()
    assert {name for name in names if f"`{name}.py`" not in listed} == set()
