"""Checks of a start that must be refused: with one clear line, exit status 1, and an unchanged directory."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.broker_process import ROOT, BrokerProcess
from tests.directory_content import assert_unchanged, directory_content

START_TIMEOUT_S = 60


def refused(broker: BrokerProcess) -> str:
    """Starts the broker, which must end with status 1. Returns its last line of output, which names the reason."""
    done = subprocess.run(
        broker.command(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        cwd=ROOT,
        timeout=START_TIMEOUT_S,
        check=False,
    )
    output = done.stdout.decode("utf-8", "replace")
    assert "Traceback" not in output, output
    assert not broker.ready_line.search(output), output
    assert done.returncode == 1, output
    line = output.splitlines()[-1]
    assert line.startswith("kafkapy broker start: "), output
    return line


def assert_refused(broker: BrokerProcess, reason: str, *directories: Path) -> None:
    """Checks that the start is refused with a line that matches `reason`, and that the directories are unchanged."""
    before = directory_content(*directories)
    line = refused(broker)
    assert re.search(reason, line), line
    assert_unchanged(before, directory_content(*directories))
