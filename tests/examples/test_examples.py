"""Runs every program of examples/ against a broker, with its arguments and as the README says, and checks its
output."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.client import Consumer, TopicPartition
from kafkapy.client.admin import Admin, NewTopic
from tests.broker_process import BrokerProcess

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
README = (EXAMPLES / "README.md").read_text()
COMMANDS = [shlex.split(line) for line in README.splitlines() if line.startswith("python ")]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
    }
    with BrokerProcess(tmp_path_factory.mktemp("examples"), settings) as broker:
        yield broker.bootstrap


def run(name: str, *arguments: str) -> list[str]:
    """Runs an example and returns the lines that it prints."""
    return run_command("python", str(EXAMPLES / f"{name}.py"), *arguments)


def run_command(*words: str) -> list[str]:
    """Runs a command in the repository's folder, with this interpreter as `python`; returns the lines that it
    prints."""
    done = subprocess.run(
        [sys.executable if word == "python" else word for word in words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=ENVIRONMENT,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def make_topic(bootstrap: str, name: str, partitions: int) -> str:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, partitions, 1)]).check()
    return name


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
    """Round robin begins with partition 1; the keys "0" to "9" have the partitions 0, 1, 2, 0, ... by Java's hash."""
    lines = run("partitioners", bootstrap, "partitioned")
    assert lines[:2] == ["RoundRobinPartitioner: 1 2 0 1 2 0 1 2 0 1", "HashPartitioner: 0 1 2 0 1 2 0 1 2 0"]
    assert set(lines[2].removeprefix("RandomPartitioner: ").split()) <= {"0", "1", "2"}


def test_zodiac(bootstrap):
    lines = run("zodiac", bootstrap, "zodiac")
    assert lines == [
        "default: 鼠4 牛1 虎3 兔5 龙1 蛇10 马0 羊10 猴4 鸡11 狗8 猪2",
        "zodiac: 鼠0 牛1 虎2 兔3 龙4 蛇5 马6 羊7 猴8 鸡9 狗10 猪11",
    ]


def test_surnames(bootstrap):
    """Frequent names have partitions 0 to 4, the others share 5 and 6, and rare ones are in 7."""
    lines = run("surnames", bootstrap, "surnames")
    names = [[word[0] for word in line.partition(": ")[2].split()] for line in lines]
    assert names[:5] == [["王"], ["李"], ["张"], ["刘"], ["陈"]]
    assert len(names[5]) > 1 and len(names[6]) > 1 and set(names[5] + names[6]) == set("杨赵黄周吴徐孙胡朱高")
    assert set(names[7]) == set("欧司诸上")


def test_commit_per_partition(bootstrap):
    lines = run("commit_per_partition", bootstrap, "committed", "groupb", "30")
    assert lines[0] == "sent 30 records to committed"
    assert sum(not line.startswith("commit") for line in lines[1:]) == 30
    with Consumer(bootstrap_servers=bootstrap, group_id="groupb") as consumer:
        committed = consumer.committed([TopicPartition("committed", partition) for partition in range(3)])
    assert sum(each.offset for each in committed.values() if each is not None) == 30


def test_offsets_in_database(bootstrap, tmp_path):
    """The second run continues where the first has ended, and counts nothing twice."""
    arguments = (bootstrap, "counted", str(tmp_path / "database"))
    assert run("offsets_in_database", *arguments, "15")[1:] == ["15 records counted"]
    assert run("offsets_in_database", *arguments, "25")[1:] == ["40 records counted"]


def test_consumer_per_thread(bootstrap):
    lines = run("consumer_per_thread", bootstrap, make_topic(bootstrap, "threads", 6), "threads", "60")
    assert lines[1:] == ["60 different records, the most frequent 1 times"]


def test_worker_pool(bootstrap):
    assert run("worker_pool", bootstrap, "pool", "pool", "50")[1:] == ["50 records processed"]


def test_work_queue(bootstrap):
    assert run("work_queue", bootstrap, "queue", "queue", "50")[1:] == ["45 tasks done, 5 rejected"]


def test_idempotent_processing(bootstrap, tmp_path):
    lines = run("idempotent_processing", bootstrap, "orders", str(tmp_path / "orders"))
    assert lines == ["received 20, repeated 10, booked 10 orders of 450"]


def test_filtering(bootstrap):
    assert run("filtering", bootstrap, "filtered") == ["north 1, north 3, south 1, south 3"]


def test_broadcast(bootstrap):
    records = ", ".join(f"message {number}" for number in range(5))
    lines = run("broadcast", bootstrap, "broadcast")
    assert lines == [f"{receiver}: {records}" for receiver in ("first", "second", "third")]


def test_threaded_producer(bootstrap):
    assert run("threaded_producer", bootstrap, "threaded", "50") == ["4 threads: 200 records delivered, 0 failed"]
    found = values_of(bootstrap, "threaded", 200)
    for thread in range(4):
        assert [value for value in found if value.startswith(f"{thread}-")] == [f"{thread}-{n}" for n in range(50)]


def test_custom_serializer(bootstrap):
    assert run("custom_serializer", bootstrap, "customers", "customers") == [
        "1: Customer(number=1, name='Ada')",
        "2: Customer(number=2, name='刘备')",
        "3: None",
    ]


def test_interceptors(bootstrap):
    lines = run("interceptors", bootstrap, "intercepted", "intercepted")
    assert lines == ["delivered 10, failed 0", "kafkapy-message7"]


def test_custom_assignor(bootstrap):
    strong, weak = run("custom_assignor", bootstrap, "weights", "weights")
    numbers = [int(word) for line in (strong, weak) for word in line.split()[1:]]
    assert (strong.split()[0], len(strong.split()), weak.split()[0]) == ("strong-2:", 5, "weak-1:")
    assert sorted(numbers) == list(range(6))


def test_rebalance_listener(bootstrap):
    lines = run("rebalance_listener", bootstrap, "rebalanced", "rebalanced", "60")
    assert lines[1] == "first: 3 assigned"
    assert lines[-1] == "60 different records"


def test_administration(bootstrap):
    assert run("administration", bootstrap, "administered", "administrators") == [
        "1 brokers",
        "created administered",
        "configuration: {'max.message.bytes': '2000000', 'retention.ms': '3600000'}",
        "partition 0: offsets 0 to 2, administrators: lag 1",
        "partition 1: offsets 0 to 2, administrators: no offset",
        "deleted administered",
    ]


def test_trading_service(bootstrap):
    assert run("trading_service", bootstrap, "trade", "trade", "0") == [
        "中国中车 10.1 from partition 0",
        "中国中车 10.5 from partition 1",
        "中国中车 11.0 from partition 2",
        "中国中车 11.3 from partition 0",
    ]


def test_a_topic_with_another_number_of_partitions_is_refused(bootstrap):
    words = [sys.executable, str(EXAMPLES / "zodiac.py"), bootstrap, make_topic(bootstrap, "narrow", 2)]
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 1
    assert done.stderr == "The topic narrow has 2 partitions, not 12: name another topic\n"


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: Path(words[1]).stem)
def test_the_commands_of_the_readme_run_as_they_are_and_again(bootstrap, words):
    """They are changed only in the address. The second run finds the topics of the first."""
    command = [bootstrap if word == "localhost:9092" else word for word in words]
    assert command != words
    for _ in range(2):
        assert run_command(*command)


def test_every_command_has_a_usage_line_with_the_defaults():
    usage = run("worker_pool", "--help")
    assert usage[0] == "usage: worker_pool.py [-h] [bootstrap] [topic] [group] [count]"
    assert any("default: localhost:9092" in line for line in usage)


@pytest.fixture(scope="module")
def slow_group_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yields the address of a broker whose groups wait a minute for their first members: consumers of a new group
    wait."""
    settings = {"group.initial.rebalance.delay.ms": "60000"}
    with BrokerProcess(tmp_path_factory.mktemp("slow-groups"), settings) as broker:
        yield broker.bootstrap


def await_members(bootstrap, group):
    """Waits until consumers have joined the group. Ctrl-C before may be lost: Python ignores exceptions while it frees
    an object, such as the producer that has sent the records."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        while group not in [each.group_id for each in admin.list_groups()]:
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("name", "group"), [("consumer_per_thread", "example-threads"), ("worker_pool", "example-workers")]
)
def test_ctrl_c_ends_a_consumer_that_waits(slow_group_broker, name, group):
    words = [sys.executable, str(EXAMPLES / f"{name}.py"), slow_group_broker]
    with subprocess.Popen(
        words,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # The tests may run in the background of a shell, which ignores the signal and passes that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as program:
        try:
            assert program.stdout.readline().startswith("sent ")
            await_members(slow_group_broker, group)
            program.send_signal(signal.SIGINT)
            output, errors = program.communicate(timeout=50)
        finally:
            program.kill()
    assert (program.returncode, output, errors) == (130, "", "")


def test_every_example_is_tested_and_listed():
    names = {path.stem for path in EXAMPLES.glob("*.py")} - {"example_support"}
    source = Path(__file__).read_text()
    assert {name for name in names if f'run("{name}"' not in source} == set()
    assert {name for name in names if f"`{name}.py`" not in README} == set()
    assert sorted(Path(words[1]).stem for words in COMMANDS) == sorted(names)
