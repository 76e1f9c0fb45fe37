"""The programs `tail` and `find` on a broker."""

from __future__ import annotations

import io
import json
import threading

import pytest

from kafkapy.client import Producer
from kafkapy.client.reliable import FileTail
from kafkapy.tools.option_parser import OptionParser
from kafkapy.tools.short.find import TOOL, run
from tests.ports import free_port
from tests.reliable.running import records_of, running, values_of, wait_until
from tests.reliable.tool_process import ToolProcess


def test_lines_are_written_once_through_rotations_and_kills(bootstrap, make_topic, tmp_path):
    topic, path = make_topic("lines"), tmp_path / "app.log"
    number = 0

    def write(count: int) -> None:
        nonlocal number
        with path.open("a") as file:
            for _ in range(count):
                file.write(f"line {number}\n")
                number += 1

    write(50)
    words = ["tail", str(tmp_path / "*.log"), "-t", topic, "--name", topic, "-b", bootstrap]
    with ToolProcess(tmp_path / "tail", words) as tail:
        wait_until(lambda: len(values_of(bootstrap, topic)) >= 50)
        write(10)
        tail.kill()
        path.rename(tmp_path / "app.log.1")
        write(10)
        tail.start()
        wait_until(lambda: len(values_of(bootstrap, topic)) >= 70)
        path.rename(tmp_path / "app.log.2")
        write(10)
        wait_until(lambda: len(values_of(bootstrap, topic)) >= 80)
        path.unlink()
        write(10)
        wait_until(lambda: len(values_of(bootstrap, topic)) >= 90)
        assert tail.stop() == 0
        assert json.loads(tail.log().splitlines()[-1])["lines"] == 40
    assert values_of(bootstrap, topic) == [b"line %d" % each for each in range(90)]
    assert dict(records_of(bootstrap, topic)[0].headers) == {"kafkapy.file": str(path).encode()}


def test_a_file_that_is_gone_is_closed_and_its_name_can_be_used_again(bootstrap, make_topic, tmp_path):
    topic, path = make_topic("gone"), tmp_path / "day-1.log"
    path.write_text("a\n")
    patterns = [str(tmp_path / "*.log")]
    properties = {"bootstrap.servers": bootstrap}
    with (
        FileTail(patterns, topic, properties, name=topic, forgets_after_s=0) as tail,
        running(tail.run, tail.stop) as errors,
    ):
        wait_until(lambda: values_of(bootstrap, topic) == [b"a"], errors)
        assert tail.followed == {str(path)}
        path.unlink()
        wait_until(lambda: not tail.followed, errors)
        path.write_text("b\n")
        wait_until(lambda: values_of(bootstrap, topic) == [b"a", b"b"], errors)


def test_a_tail_without_brokers_can_be_stopped(tmp_path):
    tail = FileTail([str(tmp_path / "a.log")], "unreachable", {"bootstrap.servers": f"127.0.0.1:{free_port()}"})
    runner = threading.Thread(target=tail.run, daemon=True)
    runner.start()
    tail.stop()
    runner.join(30)
    assert not runner.is_alive()
    tail.close()


@pytest.mark.parametrize("flags", ["", "--hashed", "--last", "--hashed --last -n 1"])
def test_find_prints_what_a_full_scan_finds(bootstrap, make_topic, flags):
    topic = make_topic("found", 4)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(200):
            producer.send(topic, b"%d" % number, b"k%d" % (number % 20))
    expected = [each.value for each in records_of(bootstrap, topic) if each.key == b"k7"]
    assert len(expected) == 10
    output = io.BytesIO()
    words = [topic, "k7", "-b", bootstrap, *flags.split()]
    assert run(OptionParser(TOOL.all_options).parse(words), output) == 0
    assert output.getvalue().splitlines() == (expected[-1:] if "--last" in flags else expected)
    none = OptionParser(TOOL.all_options).parse([topic, "0a", "--hex", "-b", bootstrap])
    assert run(none, io.BytesIO()) == 1
