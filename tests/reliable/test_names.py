"""Two processes of a service with one name: one of them ends with a clear error, and the other one goes on."""

from __future__ import annotations

import itertools
import json

from kafkapy.client import Producer
from tests.reliable.running import values_of, wait_until
from tests.reliable.tool_process import ToolProcess


def run_two(directory, words, write, target, bootstrap):
    """Starts a second process while the first one works, and waits until one of them has ended; returns whether that
    was the first one, and its log."""
    values = (b"%d" % number for number in itertools.count())
    written = []

    def write_next():
        written.append(next(values))
        write(written[-1])

    with ToolProcess(directory / "first", words) as first:
        write_next()
        wait_until(lambda: values_of(bootstrap, target))  # the first process has the name
        with ToolProcess(directory / "second", words) as second:

            def has_ended():
                write_next()
                return not (first.is_running and second.is_running)

            wait_until(has_ended)
            ended, other = (second, first) if first.is_running else (first, second)
            write_next()
            wait_until(lambda: len(values_of(bootstrap, target)) >= len(written))
            assert other.is_running
            assert ended.stop() == 1, ended.log()
    assert sorted(values_of(bootstrap, target), key=int) == written, "each record has one output"
    return ended is first, ended.log()


def test_a_router_ends_when_another_process_starts_with_its_name(bootstrap, make_topic, tmp_path):
    source, target = make_topic("named"), make_topic("named-out")
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"from": [source], "otherwise": [target]}))
    words = ["route", "--rules", str(rules), "-g", source, "--instance", "one", "-b", bootstrap]
    with Producer(bootstrap_servers=bootstrap) as producer:
        is_first, log = run_two(tmp_path, words, lambda value: producer.send(source, value).result(), target, bootstrap)
    assert is_first
    assert f"Another process uses the name one (--instance) in the group {source}, so this process ends." in log


def test_a_tail_ends_when_another_process_starts_with_its_name(bootstrap, make_topic, tmp_path):
    target, path = make_topic("named-lines"), tmp_path / "app.log"

    def write(value):
        with path.open("ab") as file:
            file.write(value + b"\n")

    words = ["tail", str(path), "-t", target, "--name", target, "-b", bootstrap]
    _, log = run_two(tmp_path, words, write, target, bootstrap)
    assert f"Another process uses the name {target} (--name) on the host " in log
