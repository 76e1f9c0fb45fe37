"""The command `kafkapy broker`: arguments, errors, and the limit of open files."""

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafkapy.broker_command import Invocation, UsageError, main, metrics_file, parse_arguments
from kafkapy.config import BrokerConfig
from tests.broker_process import BrokerProcess
from tests.crash.refusals import assert_refused
from tests.ports import free_port


def test_arguments_are_parsed_in_both_spellings():
    assert parse_arguments(["--config", "a", "--override=b=c=d", "--override", "e = f"]) == Invocation(
        "a", {"b": "c=d", "e": "f"}
    )
    assert parse_arguments(["--ephemeral", "--override=b=c", "--until-end-of-input"]) == Invocation(
        None, {"b": "c"}, is_ephemeral=True, ends_with_input=True
    )


@pytest.mark.parametrize(
    ("listener", "overrides", "expected"),
    [
        ("localhost:9404", {}, "a"),
        ("localhost:9404", {"node.id": "2"}, "a"),
        ("", {}, None),
        ("localhost:0", {}, None),
        ("0", {}, None),
        ("localhost:9404", {"kafkapy.metrics.password": "x"}, None),
        ("localhost:9404", {"listener.name.metrics.ssl.keystore.location": "x"}, None),
        ("localhost:9404", {"ssl.keystore.location": "x"}, None),
    ],
)
def test_the_file_configures_the_metrics_listener_unless_something_else_does(listener, overrides, expected):
    keys = {"process.roles": "broker,controller", "node.id": "1", "kafkapy.metrics.listener": listener}
    assert metrics_file(BrokerConfig(keys), Invocation("a", overrides)) == expected
    assert metrics_file(BrokerConfig(keys), Invocation(None, overrides)) is None


@pytest.mark.parametrize(
    "words",
    [
        ["--confg", "a"],
        ["--config"],
        ["--override", "key"],
        ["--override", "=value"],
        ["--ephemeral", "--config", "a"],
        ["--until-end-of-input"],
    ],
)
def test_wrong_arguments_are_refused(words):
    with pytest.raises(UsageError):
        parse_arguments(words)


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["stop"], ["kafkapy broker: to stop brokers use `kafkapy server-stop`"]),
        (
            ["strat"],
            ["kafkapy broker: unknown command 'strat'; did you mean start?", "See `kafkapy broker --help`."],
        ),
        (["status"], ["kafkapy broker: unknown command 'status'", "See `kafkapy broker --help`."]),
        (["--confg", "a"], ["kafkapy broker: unknown command '--confg'", "See `kafkapy broker --help`."]),
        (
            ["start", "--overide=a=b"],
            [
                "kafkapy broker start: unknown option '--overide=a=b'; did you mean --override?",
                "See `kafkapy broker start --help`.",
            ],
        ),
    ],
    ids=["stop", "misspelt", "another", "option", "misspelt option"],
)
def test_an_error_names_what_is_wrong(words, lines, capsys):
    assert main(words) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err.splitlines()) == ("", lines)


def test_help_is_printed_to_standard_output(capsys):
    assert [main(words) for words in (["--help"], ["start", "-h"])] == [0, 0]
    assert capsys.readouterr().out.count("usage: kafkapy broker start") == 2


def test_the_limit_of_open_files_is_raised(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(used + 100, hard - 1), hard))
    try:
        with BrokerProcess(tmp_path) as broker:
            limits = Path(f"/proc/{broker.pid}/limits").read_text()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    line = next(line for line in limits.splitlines() if line.startswith("Max open files"))
    assert line.split()[3] == line.split()[4]


class LimitedBroker(BrokerProcess):
    """A broker process with a low limit of open files."""

    most_files = 40

    def command(self) -> list[str]:
        return ["prlimit", f"--nofile={self.most_files}", *super().command()]


class WaitingHeir(BrokerProcess):
    """A broker process that waits for its quorum, with so many inherited files that its own get numbers from 1,200."""

    ready_line = re.compile("Connection to bootstrap server")

    def command(self) -> list[str]:
        opening = 'ulimit -S -n 4096; for ((n = 3; n < 1200; n++)); do eval "exec $n</dev/null"; done; exec "$@"'
        return ["bash", "-c", opening, "bash", *super().command()]


def test_a_broker_that_inherits_a_thousand_files_waits_for_its_quorum_and_stops(tmp_path):
    quorum = {
        "process.roles": "broker",
        "controller.quorum.bootstrap.servers": f"localhost:{free_port()}",
        "controller.listener.names": "CONTROLLER",
    }
    broker = WaitingHeir(tmp_path, quorum)
    words = ["-t", "abcdefghijklmnopqrstug", "-c", str(broker.config), "--no-initial-controllers"]
    subprocess.run([sys.executable, "-m", "kafkapy", "storage", "format", *words], check=True, capture_output=True)
    with broker:
        assert len(os.listdir(f"/proc/{broker.pid}/fd")) > 1_190
        assert broker.stop() == 0


def test_too_few_open_files_are_refused(tmp_path):
    assert_refused(LimitedBroker(tmp_path), "at most 40 files may be open in this process", tmp_path)


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"log.dirs": "/proc/kafkapy"}, r"no log directory is usable: .* \(log directory /proc/kafkapy\)"),
        ({"num.partitions": "0"}, r"Invalid value 0 for configuration num\.partitions: Value must be at least 1"),
    ],
    ids=["directory", "value"],
)
def test_a_refusal_is_one_line(properties, reason, tmp_path):
    assert_refused(BrokerProcess(tmp_path, properties), reason, tmp_path)


@pytest.mark.parametrize("key", ["create.topic.policy.class.name", "authorizer.class.name"])
def test_a_plugin_of_a_controller_that_does_not_work_is_refused_in_one_line(key, tmp_path):
    settings = {
        "process.roles": "controller",
        "controller.quorum.voters": "1@localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": "CONTROLLER://localhost:9093",
        key: "collections.OrderedDict",
    }
    reason = rf"{re.escape(key)}=collections\.OrderedDict: TypeError: it has no method"
    assert_refused(BrokerProcess(tmp_path, settings), reason, tmp_path)


@pytest.mark.parametrize("content", [b"listeners=PLAINTEXT://:0\nlog.dirs=\x00\n", b"listeners=\x1b[1m\n", b"a\x7f=b"])
def test_a_file_with_control_characters_is_refused(content, tmp_path):
    path = tmp_path / "binary.properties"
    path.write_bytes(content)
    reason = r"binary\.properties is not a configuration file: line [12] holds the control character 0x(00|1b|7f)"
    assert_refused(BrokerProcess(tmp_path, config=path), reason, tmp_path)


def test_a_file_without_a_known_key_is_refused(tmp_path):
    path = tmp_path / "passwd"
    path.write_text("root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n")
    reason = "passwd is not a broker's configuration file: it has no key that a broker knows; its first key is 'root'"
    assert_refused(BrokerProcess(tmp_path, {"log.dirs": str(tmp_path / "data")}, config=path), reason, tmp_path)


def test_a_file_of_comments_and_overrides_starts(tmp_path):
    path = tmp_path / "empty.properties"
    path.write_text("# h\u00e9 \u4e2d\n", encoding="utf-8")
    port = free_port()
    overrides = {"log.dirs": str(tmp_path / "data"), "listeners": f"PLAINTEXT://localhost:{port}"}
    with BrokerProcess(tmp_path, overrides, config=path, port=port) as broker:
        assert broker.is_running


def test_a_misspelt_override_is_refused(tmp_path):
    broker = BrokerProcess(tmp_path, arguments=("--override", "listners=PLAINTEXT://localhost:1"))
    assert_refused(broker, "listners=PLAINTEXT://localhost:1: the key is unknown; did you mean listeners?", tmp_path)


def test_a_log_directory_below_a_file_is_refused(tmp_path):
    (tmp_path / "theirs").touch()
    broker = BrokerProcess(tmp_path, {"log.dirs": str(tmp_path / "theirs" / "data")})
    assert_refused(broker, rf"no log directory is usable: File exists: {tmp_path}/theirs \(log directory ", tmp_path)


def test_the_warning_of_an_unknown_key_names_the_nearest_one(tmp_path):
    with BrokerProcess(tmp_path, {"log.retention.hour": "1"}) as broker:
        assert "log.retention.hour is unknown and is ignored; did you mean log.retention.hours?" in broker.log()


def test_an_output_on_a_full_disk_does_not_end_the_broker(tmp_path):
    broker = BrokerProcess(tmp_path)
    with open("/dev/full", "wb") as output:
        process = subprocess.Popen(broker.command(), stdout=output, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while process.poll() is None and time.monotonic() < deadline:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", broker.port)) == 0:
                    break
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    finally:
        process.kill()
        process.wait()
    assert (broker.data / ".kafka_cleanshutdown").exists()
