"""The broker's command: arguments, and what the process asks the system for."""

import os
import resource
from pathlib import Path

import pytest

from kafkapy.broker_command import UsageError, parse_arguments
from tests.broker_process import BrokerProcess


def test_arguments_in_both_spellings():
    assert parse_arguments(["--config", "a", "--override=b=c=d", "--override", "e = f"]) == (
        "a",
        {"b": "c=d", "e": "f"},
    )


@pytest.mark.parametrize("words", [["--confg", "a"], ["--config"], ["--override", "key"], ["--override", "=value"]])
def test_what_cannot_be_understood(words):
    with pytest.raises(UsageError):
        parse_arguments(words)


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
